//! Tasks: their states, streams, reads and ends.

use super::{Client, artifact, id, obedient};
use a2a_lambda_tests::dialect::{Dialect, Op, at};
use a2a_lambda_tests::error_rows::{FINISHED, Fault, NOT_CANCELABLE};
use a2a_lambda_tests::frames::Frame;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;

per_dialect! {
    paused ALL:
    each_result_of_a_skill_is_seen_in_the_state_of_its_task
    an_answer_reaches_the_waiting_task_and_a_finished_one_takes_none
    a_stream_shows_the_chunks_of_an_artifact_in_order
    a_read_of_a_running_task_has_its_partial_result
    a_running_task_is_canceled_and_read_as_canceled
    a_finished_task_stays_as_it_is
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    an_artifact_has_one_name_and_another_id_in_each_task
}

per_dialect! {
    paused [Rpc10, Rpc03, Rpc01]:
    each_entry_of_a_batch_is_answered_in_its_slot
}

const REST: Dialect = Dialect::Rest10;

async fn each_result_of_a_skill_is_seen_in_the_state_of_its_task(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    for (said, state, state_01, words) in [
        ("echo hi", "completed", "completed", ""),
        ("fail", "failed", "failed", "failed as told"),
        ("panic", "failed", "failed", "internal error"),
        ("reject", "rejected", "failed", "rejected"),
        ("auth", "auth-required", "input-required", "Who are you?"),
        (
            "hm",
            "input-required",
            "input-required",
            "What should I do?",
        ),
    ] {
        let task = client.says(said).await;
        let read = client.gets(&task).await;
        for task in [&task, &read] {
            // 0.1 has neither `rejected` nor `auth-required`.
            let state = if dialect.is_v01() { state_01 } else { state };
            assert_eq!(client.state(task), state, "{said}");
            assert_eq!(client.words(task), words, "{said}");
        }
    }
    let done = client.says("echo hi").await;
    assert_eq!(dialect.words(artifact(&done, "result")), "echo: hi");
    // Without a task, except in 0.1, which has no such answer.
    let params = client.message("tck-message-response", None, None);
    let result = dialect.result(&client.sends(&params).await);
    let message = result.get("message").unwrap_or(&result);
    let words = if dialect.is_v01() {
        client.words(&result)
    } else {
        dialect.words(message)
    };
    assert_eq!(words, "Direct message response", "{result}");
}

#[tokio::test(start_paused = true)]
async fn a_client_sees_every_state_of_a_task() {
    let world = obedient();
    let client = Client::new(&world, REST);
    let mut seen = BTreeSet::new();
    let mut see = |task: &Value| seen.insert(REST.state(task));
    for said in ["fail", "reject", "auth", "hm"] {
        see(&client.says(said).await);
    }
    let mut params = client.message("echo hi", None, None);
    params["configuration"] = json!({"returnImmediately": true});
    let queued = client.makes(&params).await;
    see(&queued);
    let params = client.message("chunks 2 1000", None, None);
    for frame in client.streams(&params).await {
        for kind in ["task", "statusUpdate"] {
            frame.data.get(kind).map(&mut see);
        }
    }
    let canceled = client.call(REST.of_task(Op::Cancel, id(&queued))).await;
    see(&REST.task(&canceled));
    let states = [
        "auth-required",
        "canceled",
        "completed",
        "failed",
        "input-required",
        "rejected",
        "submitted",
        "working",
    ];
    assert_eq!(seen, states.map(str::to_owned).into());
}

async fn an_answer_reaches_the_waiting_task_and_a_finished_one_takes_none(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let asked = client.says("hm").await;
    assert_eq!(client.words(&asked), "What should I do?");
    let answer = client.message("chunks 2 1000", Some(id(&asked)), None);
    let frames = client.streams(&answer).await;
    let lines: Vec<String> = frames.iter().map(|it| dialect.described(it)).collect();
    assert!(lines[0].ends_with(" working"), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "status completed", "{lines:?}");
    let done = client.gets(&asked).await;
    assert_eq!(client.state(&done), "completed", "{done}");
    let writes = world.store.writes();
    let late = client.message("echo late", Some(id(&asked)), None);
    let refused = client.sends(&late).await;
    Fault::new(dialect, FINISHED).check(&refused).unwrap();
    assert_eq!(world.store.writes(), writes);
}

/// The id of the task that a stream begins with.
fn begun(frame: &Frame) -> Value {
    let places = ["/result/task/id", "/task/id", "/result/id", "/id"];
    let mut ids = places.iter().map(|place| at(&frame.data, place));
    let id = ids.find(|id| id.is_string());
    json!({"id": id.unwrap_or_else(|| panic!("{frame:?}"))})
}

async fn a_stream_shows_the_chunks_of_an_artifact_in_order(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let params = client.message("chunks 3 1000", None, None);
    let frames = client.streams(&params).await;
    let lines: Vec<String> = frames.iter().map(|it| dialect.described(it)).collect();
    let index = if dialect.is_v01() { "#0 " } else { "" };
    let chunks = ["chunk-1 ", "+chunk-2 ", "+chunk-3 ."];
    let chunks = chunks.map(|it| format!("artifact {index}result {it}"));
    assert!(lines[0].ends_with(" working"), "{lines:?}");
    assert_eq!(lines[1..4], chunks);
    assert_eq!(lines[4..], ["status completed"]);
    let read = client.gets(&begun(&frames[0])).await;
    let whole = dialect.words(artifact(&read, "result"));
    assert_eq!(whole, "chunk-1 chunk-2 chunk-3 ");
}

async fn a_read_of_a_running_task_has_its_partial_result(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let params = client.message("chunks 3 1000", None, None);
    let mut live = client.open(dialect.request(Op::Stream, "", &params)).await;
    let task = begun(&live.next().await.unwrap().unwrap());
    for shown in ["chunk-1 ", "chunk-1 chunk-2 "] {
        let frame = live.next().await.unwrap().unwrap();
        assert!(dialect.described(&frame).starts_with("artifact "));
        let read = client.gets(&task).await;
        assert_eq!(client.state(&read), "working");
        assert_eq!(dialect.words(artifact(&read, "result")), shown);
    }
    live.finish().await;
    assert_eq!(client.state(&client.gets(&task).await), "completed");
}

async fn a_running_task_is_canceled_and_read_as_canceled(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    // The call ends before the task does.
    let task = client.says("wait 600").await;
    let state = client.state(&task);
    assert!(
        ["submitted", "working"].contains(&state.as_str()),
        "{state}"
    );
    let cancel = dialect.of_task(Op::Cancel, id(&task));
    let canceled = dialect.task(&client.call(cancel).await);
    assert_eq!(client.state(&canceled), "canceled");
    assert_eq!(client.state(&client.gets(&task).await), "canceled");
    let late = client.message("echo late", Some(id(&task)), None);
    let refused = client.sends(&late).await;
    Fault::new(dialect, FINISHED).check(&refused).unwrap();
}

async fn a_finished_task_stays_as_it_is(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let done = client.says("echo hi").await;
    let read = || client.call(dialect.of_task(Op::Get, id(&done)));
    let before = read().await.body;
    let late = client.message("echo late", Some(id(&done)), None);
    let refused = client.sends(&late).await;
    Fault::new(dialect, FINISHED).check(&refused).unwrap();
    let refused = client.call(dialect.of_task(Op::Cancel, id(&done))).await;
    Fault::new(dialect, NOT_CANCELABLE).check(&refused).unwrap();
    client.says_in(&dialect.context(&done), "note later").await;
    if !dialect.is_v01() {
        client.refers(&done, "refer").await;
    }
    assert!(read().await.body == before, "it changed");
}

async fn an_artifact_has_one_name_and_another_id_in_each_task(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let first = client.says("echo one").await;
    let second = client.refers(&first, "echo two").await;
    assert_eq!(dialect.context(&second), dialect.context(&first));
    let ids = [&first, &second].map(|task| {
        let id = artifact(task, "result")["artifactId"].as_str();
        id.unwrap_or_else(|| panic!("{task}"))
    });
    assert_ne!(ids[0], ids[1]);
}

async fn each_entry_of_a_batch_is_answered_in_its_slot(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let entry = |id: Value, op: Op, params: &Value| {
        let mut entry = dialect.envelope(op, params);
        entry["id"] = id;
        entry
    };
    let batch = json!([
        entry(json!("a"), Op::Send, &client.message("echo one", None, None)),
        entry(json!(2), Op::Get, &json!({"id": "no-such-task"})),
        {"jsonrpc": "2.0", "id": "c", "method": "no/such/method"},
        7,
        entry(json!(-5), Op::Send, &client.message("echo two", None, None)),
    ]);
    let reply = client
        .call(dialect.versioned(Request::post("/", &batch)))
        .await;
    let slots = reply.json();
    let slots = slots.as_array().unwrap();
    let ids: Vec<&Value> = slots.iter().map(|slot| &slot["id"]).collect();
    assert_eq!(json!(ids), json!(["a", 2, "c", null, -5]));
    for (slot, said) in [(0, "echo: one"), (4, "echo: two")] {
        let result = &slots[slot]["result"];
        let task = result.get("task").unwrap_or(result);
        assert_eq!(dialect.words(artifact(task, "result")), said);
    }
    let codes = [1, 2, 3].map(|slot| slots[slot]["error"]["code"].clone());
    assert_eq!(codes, [-32001, -32601, -32600]);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_first_generation_is_sent_and_read_at_its_own_paths() {
    let world = obedient();
    let dialect = Dialect::Path01;
    let client = Client::new(&world, dialect);
    let params = client.message("chunks 2 1000", None, None);
    let name = params["id"].as_str().unwrap().to_owned();
    let read = || client.call(Request::new("GET", format!("/tasks/{name}/get")));
    assert_eq!(read().await.status, 404);
    let mut live = client
        .open(Request::post("/tasks/sendSubscribe", &params))
        .await;
    while let Some(frame) = live.next().await.unwrap() {
        if dialect.described(&frame).starts_with("artifact ") {
            break;
        }
    }
    let partial = read().await.json();
    assert_eq!(client.state(&partial), "working");
    assert_eq!(dialect.words(artifact(&partial, "result")), "chunk-1 ");
    live.finish().await;
    assert_eq!(client.state(&read().await.json()), "completed");
    let params = client.message("echo hi", None, None);
    let sent = client.call(Request::post("/tasks/send", &params)).await;
    let words = dialect.words(artifact(&sent.json(), "result"));
    assert_eq!(words, "echo: hi");
}
