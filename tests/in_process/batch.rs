//! JSON-RPC batches.

use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::world::{Reply, Request, World};
use base64::Engine as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn batch(world: &World, entries: &[Value]) -> Reply {
    let request = Request::post("/", &json!(entries)).header("a2a-version", "1.0");
    world.call(&request).await
}

fn call(dialect: Dialect, id: impl Into<Value>, op: Op, params: &Value) -> Value {
    let mut entry = dialect.envelope(op, params);
    entry["id"] = id.into();
    entry
}

#[tokio::test(start_paused = true)]
async fn the_entries_of_a_batch_run_in_order_and_answer_in_their_slots() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc01;
    let id = json!({"id": "b:1"});
    let reply = batch(
        &world,
        &[
            call(
                d,
                "first",
                Op::Send,
                &d.say(&Say::to("ask", "hi").under("b:1")),
            ),
            call(d, 2, Op::Get, &id),
            call(d, -3, Op::Send, &d.say(&Say::in_task("b:1", "blue"))),
            call(d, u64::MAX, Op::Get, &id),
            call(d, Value::Null, Op::Cancel, &id),
        ],
    )
    .await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/json");
    let body = reply.json();
    let slots = body.as_array().unwrap();
    let ids: Vec<&Value> = slots.iter().map(|slot| &slot["id"]).collect();
    let expected = [
        json!("first"),
        json!(2),
        json!(-3),
        json!(u64::MAX),
        Value::Null,
    ];
    assert_eq!(ids, expected.iter().collect::<Vec<_>>());
    let states: Vec<String> = slots[..4]
        .iter()
        .map(|slot| d.state(&slot["result"]))
        .collect();
    assert_eq!(
        states,
        ["input-required", "input-required", "completed", "completed"]
    );
    assert_eq!(at(&slots[4], "/error/code"), -32002);
}

#[tokio::test(start_paused = true)]
async fn each_entry_is_answered_in_its_own_generation() {
    let world = World::new().unwrap();
    let dialects = [Dialect::Rpc10, Dialect::Rpc03, Dialect::Rpc01];
    let entries = dialects.map(|d| call(d, 1, Op::Send, &d.say(&Say::to("echo", "hi"))));
    let body = batch(&world, &entries).await.json();
    for (d, slot) in dialects.into_iter().zip(body.as_array().unwrap()) {
        let task = slot["result"].get("task").unwrap_or(&slot["result"]);
        assert_eq!(d.state(task), "completed", "{slot}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_entry_fails_in_its_slot_and_the_others_run() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc10;
    let good = call(d, 1, Op::Send, &d.say(&Say::to("echo", "hi")));
    let mut unknown = good.clone();
    unknown["method"] = json!("Unknown");
    let reply = batch(
        &world,
        &[
            json!(5),
            good.clone(),
            call(d, 2, Op::Stream, &d.say(&Say::to("echo", "hi"))),
            call(d, 3, Op::Subscribe, &json!({"id": "x"})),
            call(d, 4, Op::Send, &json!({})),
            unknown,
            json!([]),
            good,
        ],
    )
    .await;
    assert_eq!(reply.status, 200);
    let body = reply.json();
    let codes: Vec<Option<i64>> = body
        .as_array()
        .unwrap()
        .iter()
        .map(|slot| at(slot, "/error/code").as_i64())
        .collect();
    let expected = [
        Some(-32600),
        None,
        Some(-32600),
        Some(-32600),
        Some(-32602),
        Some(-32601),
        Some(-32600),
        None,
    ];
    assert_eq!(codes, expected, "{}", reply.text());
    assert_eq!(world.store.commits().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_notification_runs_and_has_no_answer() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc10;
    let call = |id| call(d, id, Op::Send, &d.say(&Say::to("echo", "hi")));
    let mut notification = call(Value::Null);
    notification.as_object_mut().unwrap().remove("id");
    let mut refused = notification.clone();
    refused["params"] = json!({});
    let entries = [notification, refused];
    let reply = batch(&world, &[&entries[..], &[call(json!(1))]].concat()).await;
    let ids: Vec<Value> = reply.json().as_array().unwrap().clone();
    assert_eq!(ids.len(), 1, "{}", reply.text());
    assert_eq!(ids[0]["id"], 1);
    assert_eq!(world.store.commits().len(), 2);
    let reply = batch(&world, &entries).await;
    assert_eq!((reply.status, reply.text().as_str()), (204, ""));
    assert_eq!(world.store.commits().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_16_entries_at_most() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc10;
    let entry = call(d, 1, Op::Send, &d.say(&Say::to("echo", "hi")));
    let body = batch(&world, &vec![entry.clone(); 17]).await.json();
    assert_eq!(at(&body, "/error/code"), -32600);
    assert_eq!(world.store.writes(), 0);
    let body = batch(&world, &vec![entry; 16]).await.json();
    assert_eq!(body.as_array().unwrap().len(), 16);
    assert_eq!(world.store.commits().len(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_member_name_fails_only_its_own_entry() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc10;
    let good = call(d, 1, Op::Send, &d.say(&Say::to("echo", "hi"))).to_string();
    let bad = good.replacen(r#""text":"hi""#, r#""text":"hi","text":"ho""#, 1);
    let request = Request::post("/", &Value::Null)
        .header("a2a-version", "1.0")
        .body(format!("[{good},{bad},{good}]"));
    let body = world.call(&request).await.json();
    let slots = body.as_array().unwrap();
    assert!(slots[0].get("result").is_some() && slots[2].get("result").is_some());
    let field = at(&slots[1], "/error/data/0/fieldViolations/0/field");
    assert_eq!(field, "message.parts[0].text");
}

/// Invalid parts, each with the path of its fault inside the part.
fn no_parts(dialect: Dialect) -> Vec<(Value, &'static str)> {
    if dialect == Dialect::Rpc10 {
        return vec![
            (json!({"raw": "***"}), ".raw"),
            (json!({"raw": "aGk=aGk="}), ".raw"),
            (json!({"text": "a", "data": {}}), ""),
            (json!({"raw": "aGk=", "url": "https://a.example"}), ""),
            (json!({}), ""),
            (json!({"text": 5}), ".text"),
            (json!({"text": "a", "filename": 5}), ".filename"),
        ];
    }
    let tag = if dialect == Dialect::Rpc03 {
        "kind"
    } else {
        "type"
    };
    let file = |file: Value| json!({tag: "file", "file": file});
    let both = json!({"bytes": "aGk=", "uri": "https://a.example"});
    vec![
        (file(json!({"bytes": "***"})), ".file.bytes"),
        (file(both), ".file"),
        (file(json!({})), ".file"),
        (json!({tag: "text", "text": "a", "data": {}}), ""),
        (json!({tag: "text"}), ".text"),
        (json!({tag: "data", "data": 5}), ".data"),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_invalid_part_is_reported_in_the_slot_of_its_entry() {
    let dialects = [Dialect::Rpc10, Dialect::Rpc03, Dialect::Rpc01];
    let world = World::new().unwrap();
    // A valid entry follows the invalid entries of each generation.
    let mut wanted = Vec::new();
    let mut entries = Vec::new();
    for d in dialects {
        for (part, inside) in no_parts(d) {
            let mut params = d.say(&Say::to("echo", "hi").under("bad:1"));
            let parts = params["message"]["parts"].as_array_mut().unwrap();
            parts.push(part);
            entries.push((d, params));
            wanted.push(Some(format!("message.parts[1]{inside}")));
        }
        entries.push((d, d.say(&Say::to("echo", "hi").under("good:1"))));
        wanted.push(None);
    }
    let (mut slots, mut n) = (Vec::new(), 0);
    for some in entries.chunks(5) {
        let calls = some.iter().map(|(d, params)| {
            n += 1;
            call(*d, n, Op::Send, params)
        });
        let reply = batch(&world, &calls.collect::<Vec<_>>()).await;
        assert_eq!(reply.status, 200);
        let answered = reply.json();
        let answered = answered.as_array().unwrap().iter();
        slots.extend(answered.map(|slot| Reply {
            body: slot.to_string().into(),
            ..reply.clone()
        }));
    }
    assert_eq!(slots.len(), wanted.len());
    for (id, ((slot, field), (d, _))) in (1..).zip(slots.iter().zip(wanted).zip(&entries)) {
        let Some(field) = field else {
            assert_eq!(d.state(&d.task(slot)), "completed", "{}", slot.text());
            continue;
        };
        let fault = Fault::new(*d, PARAMS).id(id).at(&field);
        assert_eq!(fault.check(slot), Ok(()), "{field} {}", slot.text());
    }
    let commits = world.store.commits();
    let tasks: BTreeSet<String> = commits.iter().map(|it| it.task.to_string()).collect();
    assert_eq!(tasks.len(), dialects.len(), "only valid entries make tasks");
}

#[tokio::test(start_paused = true)]
async fn sends_of_a_batch_share_one_blocking_budget() {
    let world = World::new().unwrap();
    let d = Dialect::Rpc10;
    let slow = call(d, 1, Op::Send, &d.say(&Say::to("slow", "hi")));
    let begun = tokio::time::Instant::now();
    let body = batch(&world, &[slow.clone(), slow.clone(), slow])
        .await
        .json();
    let states: Vec<String> = body
        .as_array()
        .unwrap()
        .iter()
        .map(|slot| d.state(&slot["result"]["task"]))
        .collect();
    // The first send uses up the budget, so the other two return without waiting.
    assert_eq!(states, ["working", "submitted", "submitted"]);
    assert!(begun.elapsed() <= std::time::Duration::from_secs(28));
}

/// Sends a file of 30,000 bytes, and returns the id of its task.
async fn filed(world: &World) -> String {
    let d = Dialect::Rpc10;
    let raw = base64::engine::general_purpose::STANDARD.encode([7; 30_000]);
    let mut params = d.say(&Say::to("echo", "hi"));
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.push(json!({"raw": raw}));
    let reply = world.call(&d.request(Op::Send, "", &params)).await;
    d.task(&reply)["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_responses_of_a_batch_share_one_response_budget() {
    const MOST: usize = 400_000;
    let world = World::with(|settings| {
        settings.policy.response_max = MOST;
        settings.policy.inline_max = 10_000;
    });
    let world = world.unwrap();
    let d = Dialect::Rpc10;
    let id = filed(&world).await;
    let get = |n: u32| call(d, n, Op::Get, &json!({"id": id}));
    let missing = call(d, 0, Op::Get, &json!({"id": "nobody"}));
    // One entry, or a few, each get the whole file.
    for entries in [vec![get(1)], (0..6).map(get).collect()] {
        let reply = batch(&world, &entries).await;
        assert_eq!(reply.text().matches("\"raw\"").count(), entries.len());
    }
    let reply = batch(&world, &(0..16).map(get).collect::<Vec<_>>()).await;
    assert!(reply.body.len() <= MOST, "{} bytes", reply.body.len());
    let states = reply.text().matches("TASK_STATE_COMPLETED").count();
    assert_eq!(states, 16, "a task is missing");
    // A share of 25,000 bytes is too small for the file in base64. Later entries
    // also get what earlier ones left of their shares.
    let slots = reply.json();
    let given: Vec<bool> = slots.as_array().unwrap().iter().map(holds_file).collect();
    assert_eq!(given.first(), Some(&false));
    assert_eq!(given.last(), Some(&true));
    // The last entry gets what the errors before it do not use.
    let mut entries = vec![missing; 15];
    entries.push(get(15));
    let slots = batch(&world, &entries).await.json();
    assert!(holds_file(&slots[15]), "{}", slots[15]);
}

fn holds_file(slot: &Value) -> bool {
    slot.to_string().contains("\"raw\"")
}
