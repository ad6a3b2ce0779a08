//! Uploads: what an order grants, and whose files a message may refer to.

use a2a_lambda::settings::Settings;
use a2a_lambda::store::Blobs as _;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::world::{Reply, Request, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

const DAY: Duration = Duration::from_secs(24 * 3600);
const BYTES: &[u8] = b"0123456789";
const OTHER: &[u8] = b"9876543210";
/// SHA-256 of the bytes: `printf 0123456789 | sha256sum`.
const DIGEST: &str = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";

fn world() -> World {
    with(|_| ())
}

fn with(change: impl FnOnce(&mut Settings)) -> World {
    let world = World::with(change).unwrap();
    world.store.give_urls();
    world
}

async fn order(world: &World, size: usize) -> Reply {
    let order = json!({"size": size, "sha256": DIGEST, "filename": "digits.txt",
        "mediaType": "text/plain"});
    let request = Request::post("/a2a-lambda/uploads", &order).from("acme:ann");
    world.call(&request).await
}

/// Orders an upload and sends the file: the grant, and the key of the file.
async fn sent(world: &World, bytes: &'static [u8]) -> (Value, String) {
    let reply = order(world, BYTES.len()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let grant = reply.json();
    let url = grant["url"].as_str().unwrap();
    let key = url.strip_prefix("https://bucket.example/").unwrap();
    let key = key.split('?').next().unwrap().to_owned();
    world
        .store
        .memory()
        .blobs
        .put(&key, bytes.into())
        .await
        .unwrap();
    (grant, key)
}

/// A message that refers to the file of an order.
async fn named(world: &World, grant: &Value, caller: &'static str) -> Reply {
    naming(world, &[grant], caller).await
}

/// A message that refers to the files of these orders.
async fn naming(world: &World, grants: &[&Value], caller: &'static str) -> Reply {
    let dialect = Dialect::Rest10;
    let mut params = dialect.say(&Say::to("echo", "look at this"));
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.extend(grants.iter().map(|grant| grant["part"].clone()));
    let send = dialect.send(&Say::to("echo", "look at this"));
    let request = Request {
        body: params.to_string().into(),
        ..send
    };
    world.call(&request.from(caller)).await
}

fn refused(reply: &Reply) {
    let fault = Fault::new(Dialect::Rest10, PARAMS).at("message.parts[1]");
    assert_eq!(fault.check(reply), Ok(()), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_a_message_refers_to_belongs_to_its_task() {
    let world = world();
    let (grant, key) = sent(&world, BYTES).await;
    let url = grant["url"].as_str().unwrap();
    assert!(url.ends_with("?seconds=300"), "{url}");
    let reply = named(&world, &grant, "acme:ann").await;
    let task = Dialect::Rest10.task(&reply);
    assert_eq!(
        Dialect::Rest10.state(&task),
        "completed",
        "{}",
        reply.text()
    );
    // An upload expires after a day, whether a message refers to it or not.
    world.store.memory().blobs.remove(&[key]).await.unwrap();
    let id = task["id"].as_str().unwrap();
    let get = Dialect::Rest10.get(id, 10).from("acme:ann");
    let kept = world.call(&get).await.json();
    let file = at(&kept, "/history/0/parts/1");
    assert_eq!(file["raw"], STANDARD.encode(BYTES), "{kept}");
    assert_eq!(
        (&file["filename"], &file["mediaType"]),
        (&json!("digits.txt"), &json!("text/plain"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_of_several_parts_is_stored_once_and_shown_in_each() {
    let world = world();
    let (grant, _) = sent(&world, BYTES).await;
    let reply = naming(&world, &[&grant, &grant, &grant], "acme:ann").await;
    let task = Dialect::Rest10.task(&reply);
    let kept = world
        .store
        .memory()
        .blobs
        .keys("v1/", None, 9)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let parts = task["history"][0]["parts"].as_array().unwrap();
    let raw: Vec<&Value> = parts.iter().skip(1).map(|part| &part["raw"]).collect();
    assert_eq!(raw, vec![&json!(STANDARD.encode(BYTES)); 3]);
}

#[tokio::test(start_paused = true)]
async fn the_upload_limit_applies_to_all_files_of_a_message_together() {
    let world = with(|settings| settings.policy.upload_max = 25);
    let (first, _) = sent(&world, BYTES).await;
    let (second, _) = sent(&world, BYTES).await;
    let (third, _) = sent(&world, BYTES).await;
    let reply = naming(&world, &[&first, &second, &first], "acme:ann").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = naming(&world, &[&first, &second, &third], "acme:ann").await;
    let fault = Fault::new(Dialect::Rest10, PARAMS).at("message.parts[3]");
    assert_eq!(fault.check(&reply), Ok(()), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn an_upload_whose_bytes_do_not_match_its_order_is_refused() {
    each_row_async([OTHER, b"0123456789.", b"012345678", b""], async |other| {
        let world = world();
        let (grant, _) = sent(&world, other).await;
        refused(&named(&world, &grant, "acme:ann").await);
        assert_eq!(world.store.commits(), []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reference_with_a_changed_size_or_digest_is_refused() {
    let world = world();
    let (grant, _) = sent(&world, BYTES).await;
    let reference = grant["reference"].as_str().unwrap();
    for (of, to) in [(":10:", ":11:"), ("84d8", "94d8")] {
        let mut other = grant.clone();
        other["part"]["url"] = json!(reference.replace(of, to));
        refused(&named(&world, &other, "acme:ann").await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_can_be_used_for_a_day() {
    for (wait, there) in [(DAY - Duration::from_millis(1), true), (DAY, false)] {
        let world = world();
        let (grant, _) = sent(&world, BYTES).await;
        advance(wait).await;
        let reply = named(&world, &grant, "acme:ann").await;
        if there {
            assert_eq!(reply.status, 200, "{}", reply.text());
        } else {
            refused(&reply);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_upload_looks_exactly_like_an_absent_one() {
    let world = world();
    let (grant, _) = sent(&world, BYTES).await;
    let mut absent = grant.clone();
    let none = grant["reference"].as_str().unwrap();
    let none = none.replacen("upload:0", "upload:1", 1);
    absent["part"]["url"] = json!(none);
    for caller in ["evil:ann", "acme:bob"] {
        let reply = named(&world, &grant, caller).await;
        refused(&reply);
        assert_eq!(reply.body, named(&world, &absent, caller).await.body);
    }
    assert_eq!(named(&world, &grant, "acme:ann").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_order_larger_than_the_setting_is_refused() {
    let world = with(|settings| settings.policy.upload_max = 10);
    assert_eq!(order(&world, 10).await.status, 200);
    let reply = order(&world, 11).await;
    let fault = Fault::new(Dialect::Rest10, PARAMS).at("size");
    assert_eq!(fault.check(&reply), Ok(()), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn a_file_larger_than_the_inline_limit_is_stored_as_an_object() {
    // With a limit of 100 bytes, and with the default of 32 KiB.
    let few = [(100, 99, 0), (100, 100, 0), (100, 101, 1)];
    let many = [(0, 32_767, 0), (0, 32_768, 0), (0, 32_769, 1)];
    for (most, size, objects) in few.into_iter().chain(many) {
        let world = with(|settings| {
            if most > 0 {
                settings.policy.inline_max = most;
            }
        });
        let grant = json!({"part": {"raw": STANDARD.encode(vec![7; size])}});
        let reply = named(&world, &grant, "acme:ann").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let kept = world
            .store
            .memory()
            .blobs
            .keys("v1/", None, 10)
            .await
            .unwrap();
        assert_eq!(kept.len(), objects, "{size} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_task_deletes_the_upload_it_took() {
    for whole in [false, true] {
        let world = world();
        let (grant, _) = sent(&world, BYTES).await;
        let (_, other) = sent(&world, BYTES).await;
        let reply = naming(&world, &[&grant, &grant], "acme:ann").await;
        let task = Dialect::Rest10.task(&reply);
        let path = match whole {
            false => format!("/a2a-lambda/tasks/{}", task["id"].as_str().unwrap()),
            true => format!(
                "/a2a-lambda/contexts/{}",
                task["contextId"].as_str().unwrap()
            ),
        };
        let gone = world
            .call(&Request::new("DELETE", path).from("acme:ann"))
            .await;
        assert_eq!(gone.status, 200, "{}", gone.text());
        let memory = world.store.memory();
        assert_eq!(memory.blobs.keys("v1/", None, 9).await.unwrap(), [""; 0]);
        assert_eq!(memory.blobs.keys("up/", None, 9).await.unwrap(), [other]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_vanished_before_its_message_is_refused() {
    let world = world();
    let (grant, key) = sent(&world, BYTES).await;
    world.store.memory().blobs.remove(&[key]).await.unwrap();
    refused(&named(&world, &grant, "acme:ann").await);
    assert_eq!(world.store.commits(), []);
}

/// A message that names the file of a grant: for a new task, or as the answer in `task`.
fn message(task: Option<&str>, grant: &Value, at_once: bool) -> Request {
    let text = "look at this";
    let say = match task {
        Some(task) => Say::in_task(task, text),
        None => Say::to("echo", text),
    };
    let mut params = Dialect::Rest10.say(&say);
    params["configuration"] = json!({"returnImmediately": at_once});
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.push(grant["part"].clone());
    let send = Dialect::Rest10.request(Op::Send, "", &params);
    send.from("acme:ann")
}

/// Sends a message whose upload vanishes after its check and before its copy. Nothing may
/// be stored. The same message with another upload must then succeed.
async fn fails_without_a_trace(world: &World, task: Option<&str>, at_once: bool) {
    let dialect = Dialect::Rest10;
    let (grant, key) = sent(world, BYTES).await;
    let commits = world.store.commits();
    world.store.lose_sources(true);
    let reply = world.call(&message(task, &grant, at_once)).await;
    let said = reply.text();
    let status = at(&reply.json(), "/error/status").clone();
    assert_eq!((reply.status, status), (500, json!("INTERNAL")), "{said}");
    assert!(!said.contains(&key), "{said}");
    assert_eq!(world.store.commits(), commits, "no commit names the upload");
    let memory = world.store.memory();
    assert_eq!(memory.blobs.keys("v1/", None, 9).await.unwrap(), [""; 0]);

    world.store.lose_sources(false);
    let (grant, _) = sent(world, BYTES).await;
    let reply = world.call(&message(task, &grant, false)).await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "completed", "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_vanishes_before_its_copy_leaves_no_trace() {
    for at_once in [false, true] {
        fails_without_a_trace(&world(), None, at_once).await;

        let world = world();
        let ask = Dialect::Rest10.send(&Say::to("ask", "hi"));
        let reply = world.call(&ask.from("acme:ann")).await;
        let asked = Dialect::Rest10.task(&reply);
        let id = asked["id"].as_str().unwrap();
        fails_without_a_trace(&world, Some(id), at_once).await;
    }
}
