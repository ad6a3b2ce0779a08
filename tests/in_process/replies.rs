//! Replies of message-only skills that are too large for a response.

use a2a_lambda::prelude::*;
use a2a_lambda::settings::Settings;
use a2a_lambda::task::{Part, PartContent};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Reply, World};
use serde_json::{Value, json};

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    every_reply_stays_within_the_response_limit
    a_too_large_reply_becomes_a_completed_task
}

const MOST: usize = 100_000;
const TRUNCATED: &str = "\"a2a-lambda/truncated\":true";

/// Replies with the parts that the message lists: `bytes N`, `text N`, `data N`.
#[skill(id = "gives", tags = ["test"])]
async fn gives(input: String) -> AgentResult<Content> {
    let words: Vec<&str> = input.split(' ').collect();
    let parts = words.chunks(2).map(|order| {
        let size = order[1].parse().unwrap();
        match order[0] {
            "text" => Part::text("t".repeat(size)),
            "data" => Part::data(json!("d".repeat(size))),
            _ => Part::new(PartContent::Raw(vec![7; size].into())),
        }
    });
    Ok(Content::from_parts(parts.collect()))
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("gives")
        .description("Gives.")
        .version("1")
        .skill(gives)
        .build()
}

fn world() -> World {
    let small = |settings: &mut Settings| settings.policy.response_max = MOST;
    World::serving(agent, small).unwrap()
}

fn message(dialect: Dialect, reply: &Reply) -> Value {
    let result = dialect.result(reply);
    let result = result.get("message").cloned().unwrap_or(result);
    if result.get("role").is_some() {
        assert_eq!(result.get("taskId"), None, "{result}");
        return result;
    }
    let task = dialect.task(reply);
    assert_eq!(dialect.state(&task), "completed", "{task}");
    at(&task, "/status/message").clone()
}

/// Whether the response is a task.
fn is_task(dialect: Dialect, reply: &Reply) -> bool {
    let result = dialect.result(reply);
    let result = result.get("message").cloned().unwrap_or(result);
    result.get("role").is_none()
}

/// The parts of a message: `+` for a part with its content, `-` for one that
/// only names its digest. None if the message is left out.
fn given(dialect: Dialect, message: &Value) -> String {
    let empty = Vec::new();
    let parts = message[dialect.parts()].as_array().unwrap_or(&empty);
    let named = |part: &Value| part.to_string().contains("\"urn:sha256:");
    parts
        .iter()
        .map(|part| if named(part) { '-' } else { '+' })
        .collect()
}

async fn every_reply_stays_within_the_response_limit(dialect: Dialect) {
    let rows = [
        ("text 10", "+"),
        ("bytes 60000", "+"),
        ("bytes 80000", "-"),
        ("text 10 bytes 500000", "+-"),
        ("bytes 500000 text 10", "-+"),
        ("text 99000", ""),
        ("data 99000 text 10", ""),
        ("text 50000 text 50000 text 10", ""),
        ("bytes 30000 bytes 30000 bytes 30000", ""),
    ];
    each_row_async(rows, async |(order, left)| {
        for key in [None, Some("k1")] {
            let world = world();
            let mut request = dialect.send(&Say::to("gives", order));
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            let reply = world.call(&request).await;
            assert!(
                reply.body.len() <= MOST,
                "{dialect:?} {order}: {}",
                reply.body.len()
            );
            let message = message(dialect, &reply);
            assert_eq!(
                given(dialect, &message),
                left,
                "{dialect:?} {order} {key:?}"
            );
            let marked = dialect.result(&reply).to_string().contains(TRUNCATED);
            let whole = !left.is_empty() && !left.contains('-');
            assert_eq!(marked, !whole, "{dialect:?} {order} {key:?}");
            let stream = dialect.stream(&Say::to("gives", order));
            let shown = world.call(&stream).await;
            assert!(
                shown.body.len() <= MOST,
                "{dialect:?} {order}: {}",
                shown.body.len()
            );
            let events = frames(&shown).unwrap();
            // A2A 0.3 §7.2.2: a stream whose task has ended closes with an event that says so.
            let is_v03 = matches!(dialect, Dialect::Rpc03 | Dialect::Rest03);
            let is_task = dialect.described(&events[0]).starts_with("task");
            let count = 1 + usize::from(is_v03 && is_task);
            assert_eq!(events.len(), count, "{}", shown.text());
        }
    })
    .await;
}

async fn a_too_large_reply_becomes_a_completed_task(dialect: Dialect) {
    let world = world();
    let say = Say::to("gives", "bytes 500000").in_context("mine:c");
    let reply = world.call(&dialect.send(&say)).await;
    assert!(is_task(dialect, &reply), "{}", reply.text());
    assert_eq!(given(dialect, &message(dialect, &reply)), "-");
    assert_eq!(world.store.commits().len(), 1, "{dialect:?}");
    let list = Dialect::Rest10.request(Op::List, "", &json!({}));
    let list = world.call(&list).await.json();
    assert_eq!(list["totalSize"], 1, "{dialect:?}");
    // A reply that fits into a response is not stored.
    let small = Say::to("gives", "text 10").in_context("mine:c");
    let reply = world.call(&dialect.send(&small)).await;
    assert!(!is_task(dialect, &reply), "{}", reply.text());
    assert_eq!(world.store.commits().len(), 1, "{dialect:?}");
}
