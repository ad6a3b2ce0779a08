//! Limits of the messages that answer `auth-required`.

use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};

const DIALECT: Dialect = Dialect::Rest10;
/// Bytes that such a message may have, as it is sealed.
const MOST: usize = 32 * 1024;

/// Sends these parts to a task that asks for credentials.
async fn answered(world: &World, parts: Value) -> Reply {
    let task = DIALECT.task(&world.call(&DIALECT.send(&Say::to("login", "hi"))).await);
    let id = task["id"].as_str().unwrap();
    let mut params = DIALECT.say(&Say::in_task(id, "the key"));
    params["message"]["parts"] = parts;
    let send = DIALECT.send(&Say::in_task(id, "the key"));
    let request = Request {
        body: params.to_string().into(),
        ..send
    };
    world.call(&request).await
}

fn is_refused(reply: &Reply, field: &str) {
    let fault = Fault::new(DIALECT, PARAMS).at(field);
    assert_eq!(fault.check(reply), Ok(()), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_auth_required_is_limited_to_32_kib() {
    let world = World::new().unwrap();
    let of = async |length: usize| answered(&world, json!([{"text": "x".repeat(length)}])).await;
    let large = of(40_000).await;
    is_refused(&large, "message.parts");
    // The measured size includes the members around the text.
    let text = large.text();
    let (_, size) = text
        .split_once(&format!("at most {MOST} bytes, not "))
        .unwrap();
    let size: usize = size
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let beside = size - 40_000;
    assert!(beside < 300, "{beside}");
    let commits = world.store.commits().len();
    let fits = of(MOST - beside).await;
    assert_eq!(fits.status, 200, "{}", fits.text());
    assert_eq!(DIALECT.state(&DIALECT.task(&fits)), "completed");
    assert!(world.store.commits().len() > commits);
    is_refused(&of(MOST - beside + 1).await, "message.parts");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_auth_required_cannot_contain_files() {
    let world = World::new().unwrap();
    let files = [
        json!({"raw": "AAAA", "filename": "key.pem"}),
        json!({"url": "https://example.com/key.pem"}),
        json!({"url": format!("urn:a2a-lambda:upload:01ARZ3NDEKTSV4RRFFQ69G5FAV:3:{}", "0".repeat(64))}),
    ];
    for file in files {
        let reply = answered(&world, json!([{"text": "the key"}, file])).await;
        is_refused(&reply, "message.parts[1]");
    }
    let reply = answered(&world, json!([{"text": "the key"}, {"data": {"key": 1}}])).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}
