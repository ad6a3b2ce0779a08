//! What clients wish for and how frameworks write it: output modes, files without a type, the
//! names of the older SDKs, the last word of a task.

use a2a_lambda::prelude::*;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{CONTENT_TYPE, Fault};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::{Ask, Gate};
use a2a_lambda_tests::world::{Request, World};
use serde_json::{Value, json};

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    client_that_reads_text_alone_gets_data_as_text_in_every_answer
    wish_for_output_is_refused_only_if_nothing_can_be_read
    last_word_of_an_ended_task_stands_in_its_history
}

/// Says something, and gives a list of numbers.
#[skill(id = "sums", tags = ["test"])]
async fn sums(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<OnRequestResult<Vec<u32>>> {
    cx.send_intermediate_update("adding").await?;
    Ok(OnRequestResult::Completed {
        message: Some("done".into()),
        output: vec![1, 2],
        artifacts: Vec::new(),
    })
}

/// Says whether the artifact of the task that it refers to is data.
#[skill(id = "quotes", tags = ["test"])]
async fn quotes(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<bool> {
    let tasks = cx.references().await?;
    let artifact = tasks.first().and_then(|task| task.artifact("sums"));
    Ok(artifact.is_some_and(|artifact| artifact.data().is_some()))
}

/// Names the media type of a picture, and its caption.
#[skill(id = "looks", tags = ["test"], input_modes = ["image/png"])]
async fn looks(_: &mut TaskContext<'_>, input: Content) -> AgentResult<String> {
    let file = input
        .first_file()
        .ok_or_else(|| AgentError::missing_input("no picture"))?;
    Ok(format!(
        "{}: {}",
        file.media_type,
        input.first_text().unwrap_or("none")
    ))
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    let agent = Agent::builder("wishes")
        .skill(sums)
        .skill(quotes)
        .skill(looks)
        .skill(Ask);
    agent.description("Fulfils wishes.").version("1").build()
}

fn world() -> World {
    World::serving(agent, |_| {}).unwrap()
}

/// A send to `skill`, of a client that accepts these output modes.
fn wish(dialect: Dialect, op: Op, skill: &str, modes: &Value) -> Request {
    let mut params = dialect.say(&Say::to(skill, "go"));
    params["configuration"] = json!({ "acceptedOutputModes": modes });
    if !dialect.is_v10() {
        params["configuration"]["blocking"] = json!(true);
    }
    dialect.request(op, "", &params)
}

async fn client_that_reads_text_alone_gets_data_as_text_in_every_answer(dialect: Dialect) {
    let rows = [
        (json!(["text"]), true),
        (json!(["TEXT/PLAIN; charset=utf-8"]), true),
        (json!(["text/*", "image/png"]), true),
        (json!([]), false),
        (json!(["text/plain", "application/json"]), false),
        (json!(["*/*"]), false),
    ];
    each_row_async(rows, async |(modes, is_text)| {
        let world = world();
        let (text, data) = ("\"text\":\"[1,2]\"", "[1,2]}");
        let is_shown = |answer: &str, place: &str| {
            assert_eq!(answer.contains(text), is_text, "{place} {modes}: {answer}");
            assert_eq!(answer.contains(data), !is_text, "{place} {modes}: {answer}");
        };
        let sent = world.call(&wish(dialect, Op::Send, "sums", &modes)).await;
        assert_eq!(sent.status, 200, "{}", sent.text());
        is_shown(&sent.text(), "send");
        let id = world.store.commits().last().unwrap().task.to_string();
        let got = world.call(&dialect.of_task(Op::Get, &id)).await;
        is_shown(&got.text(), "get");
        if dialect.is_v10() {
            let query = json!({"includeArtifacts": true});
            let listed = world.call(&dialect.request(Op::List, "", &query)).await;
            is_shown(&listed.text(), "list");
        }
        let world = self::world();
        let streamed = world.call(&wish(dialect, Op::Stream, "sums", &modes)).await;
        is_shown(&streamed.text(), "stream");
    })
    .await;
}

async fn wish_for_output_is_refused_only_if_nothing_can_be_read(dialect: Dialect) {
    let unknown: Vec<String> = (0..200).map(|n| format!("x-{n}/y")).collect();
    let mut with_text = unknown.clone();
    with_text.push("text".to_owned());
    let rows = [
        json!(with_text),
        json!([""]),
        json!(["file"]),
        json!(["data"]),
    ];
    each_row_async(rows, async |modes| {
        let reply = world().call(&wish(dialect, Op::Send, "sums", &modes)).await;
        assert_eq!(dialect.state(&dialect.task(&reply)), "completed", "{modes}");
    })
    .await;
    for modes in [json!(unknown), json!(["video/mp4"]), json!(["image"])] {
        let world = world();
        let reply = world.call(&wish(dialect, Op::Send, "sums", &modes)).await;
        Fault::new(dialect, CONTENT_TYPE).check(&reply).unwrap();
        assert!(world.store.commits().is_empty(), "nothing was made");
    }
}

async fn last_word_of_an_ended_task_stands_in_its_history(dialect: Dialect) {
    let world = world();
    let sent = world
        .call(&wish(dialect, Op::Send, "sums", &json!([])))
        .await;
    let task = dialect.task(&sent);
    let id = world.store.commits().last().unwrap().task.to_string();
    let got = dialect.task(&world.call(&dialect.of_task(Op::Get, &id)).await);
    for task in [task, got] {
        let history = task["history"].as_array().unwrap();
        let words: Vec<String> = history.iter().map(|said| dialect.words(said)).collect();
        assert_eq!(words, ["go", "adding", "done"]);
        assert_eq!(history.last(), Some(at(&task, "/status/message")), "{task}");
    }
    let newest = dialect.task(&world.call(&dialect.get(&id, 1)).await);
    assert_eq!(newest["history"].as_array().unwrap().len(), 1);
    assert_eq!(dialect.words(&newest["history"][0]), "done");
}

fn rpc_03(message: &Value) -> Request {
    let params = json!({ "message": message });
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": params});
    Request::post("/", &body)
}

#[tokio::test(start_paused = true)]
async fn names_of_the_older_sdks_continue_a_task() {
    let (world, dialect) = (world(), Dialect::Rpc03);
    let asked = dialect.task(&world.call(&dialect.send(&Say::to("ask", "go"))).await);
    let (task, context) = (&asked["id"], &asked["contextId"]);
    let mut answer = json!({
        "kind": "message", "role": "user", "message_id": "m-2", "task_id": task,
        "context_id": context, "parts": [{"kind": "text", "text": "this"}],
    });
    answer["taskId"] = json!("task-of-another");
    let refused = world.call(&rpc_03(&answer)).await;
    assert!(refused.text().contains("twice"), "{}", refused.text());
    answer.as_object_mut().unwrap().remove("taskId");
    let answered = dialect.task(&world.call(&rpc_03(&answer)).await);
    assert_eq!(answered["id"], *task);
    assert_eq!(dialect.words(&answered["artifacts"][0]), "this after 1");
}

#[tokio::test(start_paused = true)]
async fn picture_with_a_caption_and_no_type_reaches_its_skill() {
    let (world, dialect) = (world(), Dialect::Rpc03);
    // The first bytes of a PNG, under the name of a text.
    let file = json!({"bytes": "iVBORw0KGgoAAAANSUhEUgAAAAE=", "name": "a.txt"});
    let message = json!({
        "kind": "message", "role": "user", "messageId": "m-1",
        "metadata": {"a2a-lambda/skillId": "looks"},
        "parts": [{"kind": "text", "text": "my cat"}, {"kind": "file", "file": file}],
    });
    let task = dialect.task(&world.call(&rpc_03(&message)).await);
    assert_eq!(dialect.words(&task["artifacts"][0]), "image/png: my cat");
    let echoed = at(&task, "/history/0/parts/1/file");
    assert_eq!(echoed, &file, "the message is not changed");
}

#[tokio::test(start_paused = true)]
async fn skill_gets_data_though_its_client_reads_text_alone() {
    let (world, dialect) = (world(), Dialect::Rpc10);
    let modes = json!(["text"]);
    world.call(&wish(dialect, Op::Send, "sums", &modes)).await;
    let id = world.store.commits().last().unwrap().task.to_string();
    let mut params = dialect.say(&Say::to("quotes", "go"));
    params["message"]["referenceTaskIds"] = json!([id]);
    let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
    let task = dialect.task(&reply);
    let data = at(&task, "/artifacts/0/parts/0/data");
    assert_eq!(data, &json!(true), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn client_of_events_reads_an_error_before_its_request_is_understood() {
    for text in [
        "{",
        r#"{"jsonrpc":"2.0","id":7,"method":"message/stream","params":{"a":"\ud83d"}}"#,
    ] {
        let request = Request::new("POST", "/")
            .header("content-type", "application/json")
            .line("accept", "*/*")
            .line("accept", "text/event-stream");
        let reply = world().call(&request.body(text)).await;
        assert_eq!(reply.header("content-type"), "text/event-stream");
        assert!(
            reply.text().starts_with("data: {\"error\""),
            "{}",
            reply.text()
        );
    }
}
