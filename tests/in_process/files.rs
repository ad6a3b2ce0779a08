//! Files of messages: inside the message, and uploaded before it.

use a2a_lambda::prelude::*;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::FileReader;
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::ReadBlobs as _;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{BUSY, Fault};
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Reply, Request, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;

const D: Dialect = Dialect::Rest10;

/// A file that is too large for the record of its task.
fn file(fill: u8) -> Vec<u8> {
    vec![fill; 40_000]
}

/// A part that contains `bytes`.
fn inside(bytes: &[u8]) -> Value {
    json!({"raw": STANDARD.encode(bytes), "mediaType": "application/pdf"})
}

/// Uploads `bytes`, and returns the part that refers to them.
async fn uploaded(world: &World, bytes: &[u8]) -> Value {
    let store = &world.store.memory().blobs;
    store.put("beside", bytes.to_vec().into()).await.unwrap();
    let sha256 = store.head("beside").await.unwrap().unwrap().sha256;
    store.remove(&["beside".to_owned()]).await.unwrap();
    let order = json!({
        "filename": "a.pdf", "mediaType": "application/pdf",
        "size": bytes.len(), "sha256": sha256,
    });
    let order = Request::post("/a2a-lambda/uploads", &order);
    let grant = world.call(&order).await.json();
    let url = grant["url"].as_str().unwrap();
    let key = url.strip_prefix("https://bucket.example/").unwrap();
    let (key, _) = key.split_once('?').unwrap();
    store.put(key, bytes.to_vec().into()).await.unwrap();
    grant["part"].clone()
}

/// A message with `part` to the task `id`.
fn answer(id: &str, part: &Value) -> Request {
    let mut params = D.say(&Say::in_task(id, "this one"));
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.push(part.clone());
    D.request(Op::Send, "", &params)
}

/// Sends all of `parts` in parallel as answers to one question. All turns read
/// the task before any of them can be stored.
async fn race(world: &World, parts: &[Value]) -> (String, Vec<Reply>) {
    let asked = world.call(&D.send(&Say::to("ask", "hi"))).await;
    let id = D.task(&asked)["id"].as_str().unwrap().to_owned();
    world.store.hold();
    let answers: Vec<Request> = parts.iter().map(|part| answer(&id, part)).collect();
    let open = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.store.release();
    };
    let sent = join_all(answers.iter().map(|answer| world.call(answer)));
    let (replies, ()) = tokio::join!(sent, open);
    (id, replies)
}

/// The file in the last message of the client.
fn heard(task: &Value) -> Vec<u8> {
    let history = task["history"].as_array().unwrap();
    let mut messages = history.iter().filter(|m| m["role"] == "ROLE_USER");
    let raw = &messages.next_back().unwrap()["parts"][1]["raw"];
    STANDARD.decode(raw.as_str().unwrap()).unwrap()
}

async fn exactly_one_wins(world: &World, parts: &[Value]) {
    let (id, replies) = race(world, parts).await;
    let won = |reply: &Reply| reply.status == 200;
    let winner = replies.iter().position(won).expect("no answer won");
    for (place, reply) in replies.iter().enumerate() {
        if place != winner {
            Fault::new(D, BUSY).check(reply).unwrap();
        }
    }
    let read = D.task(&world.call(&D.of_task(Op::Get, &id)).await);
    let sent = file(u8::try_from(winner).unwrap());
    assert!(heard(&read) == sent, "other bytes than those of {winner}");
}

/// Counts the bytes of a file and returns the file as an artifact. It reads
/// 1,000 bytes at a time.
#[skill(id = "counts", tags = ["test"])]
async fn counts(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<String> {
    let file = input.first_file();
    let file = &file.ok_or_else(|| AgentError::invalid_input("no file"))?;
    let (mut bytes, mut buffer, mut count) = (cx.open_file(file).await?, [0; 1000], 0);
    loop {
        let read = bytes.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        count += read;
    }
    let again = FileReader::new(cx.open_file(file).await?);
    cx.send_partial_artifact(Artifact::from_file("again", &file.media_type, again))
        .await?;
    Ok(format!("{count} bytes"))
}

fn counting(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("counts")
        .description("Counts.")
        .version("1")
        .skill(counts)
        .build()
}

#[tokio::test(start_paused = true)]
async fn a_skill_streams_a_file_in_and_returns_it() {
    let small = |settings: &mut Settings| settings.policy.response_max = 20_000;
    let world = World::serving(counting, small).unwrap();
    world.store.give_urls();
    for (part, bytes) in [
        (inside(&file(1)), 40_000),
        (uploaded(&world, &file(2)).await, 40_000),
        (inside(b"few"), 3),
    ] {
        let mut params = D.say(&Say::to("counts", "this one"));
        let parts = params["message"]["parts"].as_array_mut().unwrap();
        parts.push(part);
        let task = D.task(&world.call(&D.request(Op::Send, "", &params)).await);
        assert_eq!(D.state(&task), "completed", "{task}");
        assert!(
            task.to_string().contains(&format!("{bytes} bytes")),
            "{task}"
        );
        assert_eq!(task["artifacts"][0]["name"], "again", "{task}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_eight_parallel_answers_with_files_wins_with_its_own_bytes() {
    let world = World::new().unwrap();
    let parts: Vec<Value> = (0..8).map(|fill| inside(&file(fill))).collect();
    exactly_one_wins(&world, &parts).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_eight_parallel_answers_with_uploads_wins_with_its_own_bytes() {
    let world = World::new().unwrap();
    world.store.give_urls();
    let mut parts = Vec::new();
    for fill in 0..8 {
        parts.push(uploaded(&world, &file(fill)).await);
    }
    exactly_one_wins(&world, &parts).await;
}
