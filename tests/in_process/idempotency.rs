//! Idempotency keys, in every generation and binding.

use a2a_lambda::settings::Settings;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{Fault, KEY_REUSED, PARAMS, Row};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    an_invalid_key_is_refused_with_its_path
    a_repeated_key_returns_its_task_and_runs_nothing
    a_keyed_send_is_stored_before_its_skill_runs
    a_known_key_with_other_content_is_refused
    a_repeated_answer_returns_the_task_in_its_current_state
    a_key_given_in_two_places_must_be_equal
    a_setting_makes_message_ids_idempotency_keys
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    a_keyed_send_to_a_message_skill_returns_its_task
}

const HEADER: &str = "idempotency-key";
const METADATA: &str = "a2a-lambda/idempotencyKey";

/// The places of an idempotency key.
#[derive(Debug, Clone, Copy)]
enum Way {
    Header,
    Message,
    Request,
}

const WAYS: [Way; 3] = [Way::Header, Way::Message, Way::Request];

/// A send with its key in one place.
fn named(dialect: Dialect, op: Op, say: &Say<'_>, way: Way, key: &Value) -> Request {
    let mut params = dialect.say(say);
    match way {
        Way::Header => {
            let text = key.as_str().unwrap();
            return dialect.request(op, "", &params).header(HEADER, text);
        }
        Way::Message => params["message"]["metadata"][METADATA] = key.clone(),
        Way::Request => params["metadata"] = json!({ METADATA: key }),
    }
    dialect.request(op, "", &params)
}

fn send(dialect: Dialect, say: &Say<'_>, way: Way) -> Request {
    named(dialect, Op::Send, say, way, &json!("key 1"))
}

/// Number of tasks that the store was called to create.
fn creates(world: &World) -> usize {
    let commits = world.store.commits();
    commits.iter().filter(|commit| commit.version == 1).count()
}

fn said(dialect: Dialect, reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
    dialect.result(reply)
}

async fn a_repeated_key_returns_its_task_and_runs_nothing(dialect: Dialect) {
    each_row_async(WAYS, async |first| {
        let world = World::new().unwrap();
        let say = Say::to("echo", "hi");
        let reply = world.call(&send(dialect, &say, first)).await;
        let answer = said(dialect, &reply);
        let writes = world.store.writes();
        // Neither the place of the key nor `returnImmediately` is part of the content.
        each_row_async(WAYS, async |again| {
            let reply = world.call(&send(dialect, &say, again)).await;
            assert_eq!(said(dialect, &reply), answer, "{dialect:?} {first:?}");
        })
        .await;
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
        assert_eq!(world.store.writes(), writes);
        assert_eq!(creates(&world), 1);
        let stream = named(dialect, Op::Stream, &say, first, &json!("key 1"));
        let reply = world.call(&stream).await;
        let shown = frames(&reply).unwrap();
        let described = shown.iter().map(|event| dialect.described(event));
        let expected: &[&str] = match dialect {
            Dialect::Rpc10 | Dialect::Rest10 => &["task completed"],
            Dialect::Rpc03 | Dialect::Rest03 => &["task completed", "status completed"],
            Dialect::Rpc01 | Dialect::Path01 => &["status completed"],
        };
        assert_eq!(described.collect::<Vec<_>>(), expected, "{dialect:?}");
        assert_eq!(world.store.writes(), writes);
    })
    .await;
}

async fn a_keyed_send_is_stored_before_its_skill_runs(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = Say::to("echo", "hi");
    world.call(&send(dialect, &say, Way::Header)).await;
    let versions: Vec<u64> = world.store.commits().iter().map(|c| c.version).collect();
    assert_eq!(versions, [1, 2], "{dialect:?}");
}

async fn a_known_key_with_other_content_is_refused(dialect: Dialect) {
    let world = World::new().unwrap();
    world
        .call(&send(dialect, &Say::to("echo", "hi"), Way::Header))
        .await;
    for say in [
        Say::to("echo", "ho"),
        Say::to("greet", "hi"),
        Say::to("echo", "hi").in_context("mine"),
    ] {
        for op in [Op::Send, Op::Stream] {
            let request = named(dialect, op, &say, Way::Message, &json!("key 1"));
            refused(dialect, &world.call(&request).await, KEY_REUSED);
        }
    }
    assert_eq!(creates(&world), 1);
    // Another caller may use the same key.
    let other = send(dialect, &Say::to("echo", "ho"), Way::Header).from("other:ann");
    let reply = world.call(&other).await;
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
    let other = send(dialect, &Say::to("echo", "ha"), Way::Header).from("local:bob");
    let reply = world.call(&other).await;
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
}

async fn a_repeated_answer_returns_the_task_in_its_current_state(dialect: Dialect) {
    let world = World::new().unwrap();
    let open = Say::to("ask", "hi");
    let reply = world.call(&send(dialect, &open, Way::Header)).await;
    let task = dialect.task(&reply);
    let id = task["id"].as_str().unwrap();
    let answer = |key: &str, text: &str| {
        let say = Say::in_task(id, text);
        named(dialect, Op::Send, &say, Way::Message, &json!(key))
    };
    let reply = world.call(&answer("a", "again")).await;
    let asked = dialect.task(&reply);
    assert_eq!(dialect.status_words(&asked), "which one now?");
    let writes = world.store.writes();
    for request in [answer("a", "again"), send(dialect, &open, Way::Request)] {
        let repeat = world.call(&request).await;
        assert_eq!(repeat.status, 200, "{dialect:?} {}", repeat.text());
        assert_eq!(dialect.task(&repeat)["status"], asked["status"]);
    }
    assert_eq!(world.store.writes(), writes);
    let reply = world.call(&answer("b", "blue")).await;
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
    // A completed task only takes messages that it already has.
    let late = world.call(&answer("a", "again")).await;
    assert_eq!(dialect.state(&dialect.task(&late)), "completed");
    refused(dialect, &world.call(&answer("a", "else")).await, KEY_REUSED);
}

#[tokio::test(start_paused = true)]
async fn a_key_lives_as_long_as_its_continued_task() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let patient = |settings: &mut Settings| settings.policy.thread_ttl = DAY * 400;
    let world = World::with(patient).unwrap();
    let dialect = Dialect::Rest10;
    let opens = send(dialect, &Say::to("ask", "hi"), Way::Header);
    let task = dialect.task(&world.call(&opens).await);
    let id = task["id"].as_str().unwrap();
    let answers = named(
        dialect,
        Op::Send,
        &Say::in_task(id, "again"),
        Way::Header,
        &json!("key 2"),
    );
    world.call(&answers).await;
    let repeated = async || {
        world.clean_up();
        let mut same = true;
        for request in [&opens, &answers] {
            let reply = world.call(request).await;
            same &= reply.status == 200 && dialect.task(&reply)["id"] == id;
        }
        same
    };
    for number in 0..8 {
        advance(DAY * 20).await;
        let message = format!("m-{}", number + 2);
        let again = Say::in_task(id, "again").with_id(&message);
        let more = world.call(&dialect.send(&again)).await;
        assert_eq!(dialect.state(&dialect.task(&more)), "input-required");
        assert!(repeated().await);
        assert_eq!(creates(&world), 1);
    }
    advance(DAY * 20).await;
    world.call(&dialect.send(&Say::in_task(id, "blue"))).await;
    advance(DAY * 30 - Duration::from_millis(1)).await;
    assert!(repeated().await, "the key lives as long as its task");
    advance(Duration::from_millis(1)).await;
    assert!(!repeated().await, "the task has expired");
}

/// A task opened under a key, in a world with long-lived contexts: the world,
/// the request that opened it, and the task's id.
async fn opened() -> (World, Request, String) {
    const YEAR: Duration = Duration::from_secs(400 * 24 * 3600);
    let patient = |settings: &mut Settings| settings.policy.thread_ttl = YEAR;
    let world = World::with(patient).unwrap();
    let opens = send(Dialect::Rest10, &Say::to("ask", "hi"), Way::Header);
    let task = Dialect::Rest10.task(&world.call(&opens).await);
    let id = task["id"].as_str().unwrap().to_owned();
    (world, opens, id)
}

#[tokio::test(start_paused = true)]
async fn the_last_commit_of_a_task_renews_its_key() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let dialect = Dialect::Rest10;
    let (world, opens, id) = opened().await;
    for (silence, answer) in [(29, "again"), (16, "blue")] {
        advance(DAY * silence).await;
        let answers = dialect.send(&Say::in_task(&id, answer));
        assert_eq!(world.call(&answers).await.status, 200);
    }
    // Two lifetimes of the task as it was created have passed.
    advance(DAY * 30 - Duration::from_millis(1)).await;
    world.clean_up();
    let task = dialect.task(&world.call(&opens).await);
    assert_eq!(task["id"], id.as_str());
    assert_eq!(dialect.state(&task), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_its_task_no_longer_renews_lives_two_lifetimes() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let dialect = Dialect::Rest10;
    let (world, opens, id) = opened().await;
    // A task renews fewer keys than these.
    for number in 2..36 {
        let again = Say::in_task(&id, "again");
        let key = json!(format!("key {number}"));
        let answers = named(dialect, Op::Send, &again, Way::Header, &key);
        assert_eq!(world.call(&answers).await.status, 200);
    }
    for (silence, there, message) in [(29, true, "m-2"), (29, true, "m-3"), (3, false, "m-4")] {
        advance(DAY * silence).await;
        world.clean_up();
        let same = dialect.task(&world.call(&opens).await)["id"] == id.as_str();
        assert_eq!(same, there, "after {silence} days more");
        let again = Say::in_task(&id, "again").with_id(message);
        world.call(&dialect.send(&again)).await;
    }
}

async fn a_keyed_send_to_a_message_skill_returns_its_task(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = Say::to("greet", "hi");
    let first = dialect.task(&world.call(&send(dialect, &say, Way::Header)).await);
    assert_eq!(dialect.state(&first), "completed", "{first}");
    let reply = &at(&first, "/status/message")[dialect.parts()];
    assert!(reply.to_string().contains("hello there"), "{first}");
    each_row_async(WAYS, async |way| {
        let repeat = world.call(&send(dialect, &say, way)).await;
        assert_eq!(dialect.task(&repeat), first, "{dialect:?} {way:?}");
    })
    .await;
    assert_eq!(creates(&world), 1);
    let id = first["id"].as_str().unwrap();
    let read = world.call(&dialect.of_task(Op::Get, id)).await;
    assert_eq!(dialect.state(&dialect.task(&read)), "completed");
    // Without a key there is no task.
    let unnamed = world.call(&dialect.send(&say)).await;
    let unnamed = dialect.result(&unnamed);
    let unnamed = unnamed.get("message").unwrap_or(&unnamed);
    assert_eq!(unnamed.get("status"), None, "{unnamed}");
    assert_eq!(creates(&world), 1);
}

async fn an_invalid_key_is_refused_with_its_path(dialect: Dialect) {
    let long = "k".repeat(257);
    let world = World::new().unwrap();
    for (way, field) in [
        (Way::Message, "message.metadata.a2a-lambda/idempotencyKey"),
        (Way::Request, "metadata.a2a-lambda/idempotencyKey"),
    ] {
        let rows = [json!(""), json!("a\nb"), json!(long), json!(1), Value::Null];
        each_row_async(rows, async |key| {
            let request = named(dialect, Op::Send, &Say::to("echo", "hi"), way, &key);
            refused_at(dialect, &world.call(&request).await, field);
        })
        .await;
    }
    each_row_async(["", " ", long.as_str()], async |key| {
        let request = dialect.send(&Say::to("echo", "hi")).header(HEADER, key);
        refused_at(dialect, &world.call(&request).await, "Idempotency-Key");
    })
    .await;
    assert_eq!(world.store.writes(), 0);
}

async fn a_key_given_in_two_places_must_be_equal(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = Say::to("echo", "hi");
    let in_message = "message.metadata.a2a-lambda/idempotencyKey";
    let in_request = "metadata.a2a-lambda/idempotencyKey";
    for (way, field) in [(Way::Message, in_message), (Way::Request, in_request)] {
        let request = send(dialect, &say, way).header(HEADER, "another");
        refused_at(dialect, &world.call(&request).await, field);
    }
    let mut params = dialect.say(&say);
    params["message"]["metadata"][METADATA] = json!("one");
    params["metadata"] = json!({ METADATA: "other" });
    let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
    refused_at(dialect, &reply, in_request);
    let mut twice = dialect.send(&say).header(HEADER, "one");
    twice.headers.push((HEADER.to_owned(), "other".to_owned()));
    refused_at(dialect, &world.call(&twice).await, "Idempotency-Key");
    assert_eq!(world.store.writes(), 0);
    let same = send(dialect, &say, Way::Message).header(HEADER, "key 1");
    let reply = world.call(&same).await;
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_key_header_is_refused_for_a_batch_of_several_sends() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc10;
    let entry = |key: Option<&str>| {
        let mut params = d.say(&Say::to("echo", "hi"));
        if let Some(key) = key {
            params["metadata"] = json!({ METADATA: key });
        }
        d.envelope(Op::Send, &params)
    };
    let batch = |entries: Value| Request::post("/", &entries).header("a2a-version", "1.0");
    let two = json!([entry(None), entry(None)]);
    let reply = world.call(&batch(two).header(HEADER, "k")).await;
    for slot in reply.json().as_array().unwrap() {
        assert_eq!(at(slot, "/error/code"), -32602);
    }
    let one = json!([entry(None)]);
    let reply = world.call(&batch(one).header(HEADER, "k")).await;
    let task = at(&reply.json(), "/0/result/task").clone();
    assert_eq!(d.state(&task), "completed");
    let named = json!([entry(Some("k")), entry(Some("l"))]);
    let reply = world.call(&batch(named)).await.json();
    assert_eq!(at(&reply, "/0/result/task/id"), &task["id"]);
    assert_ne!(at(&reply, "/1/result/task/id"), &task["id"]);
}

async fn a_setting_makes_message_ids_idempotency_keys(dialect: Dialect) {
    let by_message = |on| World::with(|it| it.policy.idempotent_message_id = on).unwrap();
    let say = Say::to("echo", "hi").under("a");
    let again = Say::to("echo", "ho").under("b");
    for on in [true, false] {
        let world = by_message(on);
        world.call(&dialect.send(&say)).await;
        let reply = world.call(&dialect.send(&again)).await;
        // 0.1 has no message ids.
        if on && !dialect.is_v01() {
            refused(dialect, &reply, KEY_REUSED);
            assert_eq!(creates(&world), 1);
        } else {
            assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
            assert_eq!(creates(&world), 2);
        }
    }
}

#[track_caller]
fn refused(dialect: Dialect, reply: &Reply, row: Row) {
    let checked = Fault::new(dialect, row).check(reply);
    assert_eq!(checked, Ok(()), "{dialect:?} {}", reply.text());
}

#[track_caller]
fn refused_at(dialect: Dialect, reply: &Reply, field: &str) {
    let checked = Fault::new(dialect, PARAMS).at(field).check(reply);
    assert_eq!(checked, Ok(()), "{dialect:?} {}", reply.text());
}
