//! Responses about a task stay within the size limit of a response.

use a2a_lambda::prelude::*;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::{FileContent, FileReader, FileSource};
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::ReadBlobs as _;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Request, World};
use serde_json::json;

per_dialect! {
    paused ALL:
    every_response_about_a_task_stays_within_the_limit
    every_frame_of_a_stream_stays_within_the_limit
}

per_dialect! {
    paused [Rpc10, Rest10]:
    a_page_of_tasks_with_large_files_stays_within_the_limit
}

const MOST: usize = 100_000;

/// Makes a file of as many bytes as the message says, from memory or from a reader.
/// For a message with a file, it answers the size and whether the bytes came along.
#[skill(id = "files", tags = ["test"])]
async fn make_file(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<String> {
    if let Some(file) = input.first_file() {
        let came = matches!(file.source, FileSource::Bytes(_));
        let bytes = cx.read_file(&file).await?.len();
        return Ok(format!("{bytes} bytes, came along: {came}"));
    }
    let order = input.text()?;
    let read = order.strip_prefix("read ");
    let bytes = vec![7; read.unwrap_or(order).parse().unwrap_or_default()];
    let content = match read {
        Some(_) => FileContent::Reader(FileReader::new(std::io::Cursor::new(bytes))),
        None => bytes.into(),
    };
    let file = Artifact::from_file("seven.bin", "application/x-sevens", content);
    cx.send_partial_artifact(file).await?;
    Ok("done".to_owned())
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("files")
        .version("1")
        .description("Files.")
        .skill(make_file)
        .build()
}

fn world() -> World {
    let small = |settings: &mut Settings| {
        settings.policy.response_max = MOST;
        settings.policy.inline_max = 1_000;
    };
    World::serving(agent, small).unwrap()
}

async fn every_response_about_a_task_stays_within_the_limit(dialect: Dialect) {
    for (size, whole) in [(50_000, true), (74_000, false), (500_000, false)] {
        let world = world();
        let reply = world
            .call(&dialect.send(&Say::to("files", &size.to_string())))
            .await;
        let task = dialect.task(&reply);
        let id = task["id"].as_str().unwrap();
        let got = world.call(&dialect.get(id, 10)).await;
        for answer in [&reply, &got] {
            let length = answer.body.len();
            assert!(length <= MOST, "{dialect:?} {size}: {length}");
            // Bytes of 7 are `BwcH` in base64.
            let given = answer.text().contains("BwcHBwcH");
            assert_eq!(given, whole, "{dialect:?} {size}");
            let marked = answer.text().contains("a2a-lambda/truncated");
            assert_eq!(marked, !whole, "{dialect:?} {size}");
        }
    }
}

async fn every_frame_of_a_stream_stays_within_the_limit(dialect: Dialect) {
    for (size, whole) in [(50_000, true), (74_000, false), (500_000, false)] {
        let world = world();
        let stream = dialect.stream(&Say::to("files", &size.to_string()));
        let reply = world.call(&stream).await;
        assert!(frames(&reply).unwrap().len() > 1);
        for frame in reply.text().split("\n\n") {
            assert!(frame.len() <= MOST, "{dialect:?} {size}: {}", frame.len());
        }
        let given = reply.text().contains("BwcHBwcH");
        assert_eq!(given, whole, "{dialect:?} {size}");
        let marked = reply.text().contains("a2a-lambda/truncated");
        assert_eq!(marked, !whole, "{dialect:?} {size}");
    }
}

async fn a_page_of_tasks_with_large_files_stays_within_the_limit(dialect: Dialect) {
    let world = world();
    for _ in 0..5 {
        world.call(&dialect.send(&Say::to("files", "30000"))).await;
    }
    let query = json!({"includeArtifacts": true, "pageSize": 5});
    let reply = world.call(&dialect.request(Op::List, "", &query)).await;
    let tasks = dialect.result(&reply)["tasks"].as_array().unwrap().len();
    assert_eq!(tasks, 5, "{dialect:?} {}", reply.text());
    assert!(reply.body.len() <= MOST, "{}", reply.body.len());
    let given = reply.text().matches("\"raw\":\"BwcH").count();
    assert!((1..3).contains(&given), "{given} files, {tasks} tasks");
}

#[tokio::test(start_paused = true)]
async fn an_artifact_larger_than_the_inline_limit_is_an_object() {
    for (size, objects) in [(999, 0), (1_000, 0), (1_001, 1)] {
        for order in [size.to_string(), format!("read {size}")] {
            let world = world();
            let say = Say::to("files", &order);
            let reply = world.call(&Dialect::Rest10.send(&say)).await;
            assert!(reply.text().contains("BwcHBwcH"), "{}", reply.text());
            let kept = world
                .store
                .memory()
                .blobs
                .keys("v1/", None, 10)
                .await
                .unwrap();
            assert_eq!(kept.len(), objects, "{order}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_gets_small_uploads_as_bytes_and_large_ones_as_references() {
    for (size, came) in [(MOST, true), (MOST + 1, false)] {
        let world = world();
        world.store.give_urls();
        let bytes = vec![7; size];
        let memory = world.store.memory();
        memory
            .blobs
            .put("same", bytes.clone().into())
            .await
            .unwrap();
        let digest = memory.blobs.head("same").await.unwrap().unwrap().sha256;
        let order = json!({"size": size, "sha256": digest});
        let grant = world
            .call(&Request::post("/a2a-lambda/uploads", &order))
            .await
            .json();
        let url = grant["url"].as_str().unwrap();
        let key = url.trim_start_matches("https://bucket.example/");
        let key = key.split('?').next().unwrap();
        memory.blobs.put(key, bytes.into()).await.unwrap();
        let dialect = Dialect::Rest10;
        let mut params = dialect.say(&Say::to("files", "1"));
        params["message"]["parts"] = json!([grant["part"]]);
        let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
        let said = format!("{size} bytes, came along: {came}");
        assert!(reply.text().contains(&said), "{}", reply.text());
    }
}

/// Sends a large file in the way the message names.
#[skill(id = "says", tags = ["test"])]
struct Says;

#[derive(serde::Serialize, serde::Deserialize)]
struct Asked;

impl SkillSlot for Asked {}

impl SkillHandler<Asked> for Says {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        let file = Content::from_file("five", "application/x-fives", vec![5; 3_000]);
        match input.first_text() {
            Some("update") => cx.send_intermediate_update(file).await?,
            Some("ask") => {
                return Ok(OnRequestResult::InputRequired {
                    message: file,
                    slot: Asked,
                });
            }
            Some("question") => return OnRequestResult::ask("which?", Asked),
            Some("end") => {
                return Ok(OnRequestResult::Completed {
                    message: Some(file),
                    output: "done".to_owned(),
                    artifacts: Vec::new(),
                });
            }
            _ => {}
        }
        OnRequestResult::done("done".to_owned())
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        OnInputResult::done("answered".to_owned())
    }
}

fn says() -> World {
    let agent = |_: Gate| Agent::builder("says").skill(Says).build();
    let small = |settings: &mut Settings| settings.policy.inline_max = 1_000;
    World::serving(agent, small).unwrap()
}

/// A message with one file of 2,000 bytes for each of these byte values.
fn with_files(say: &Say<'_>, bytes: &[u8]) -> serde_json::Value {
    use base64::Engine as _;
    let encode = |byte: &u8| {
        let file = base64::engine::general_purpose::STANDARD.encode(vec![*byte; 2_000]);
        json!({"raw": file, "filename": "f"})
    };
    let files: Vec<_> = bytes.iter().map(encode).collect();
    let mut params = Dialect::Rest10.say(say);
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.extend(files);
    params
}

#[tokio::test(start_paused = true)]
async fn large_bytes_in_any_message_are_stored_as_an_object() {
    let dialect = Dialect::Rest10;
    let rows = ["nothing", "update", "ask", "question", "end", "first"];
    each_row_async(rows, async |order| {
        let world = says();
        let first = Say::to("says", order);
        let files: &[u8] = if order == "first" { &[1] } else { &[] };
        let request = dialect.request(Op::Send, "", &with_files(&first, files));
        let task = dialect.task(&world.call(&request).await);
        let id = task["id"].as_str().unwrap();
        if order == "question" {
            let answer = with_files(&Say::in_task(id, "this"), &[1]);
            let answer = dialect.request(Op::Send, "", &answer);
            let task = dialect.task(&world.call(&answer).await);
            assert_eq!(dialect.state(&task), "completed");
        }
        let kept = world
            .store
            .memory()
            .blobs
            .keys("v1/", None, 10)
            .await
            .unwrap();
        assert_eq!(kept.len(), usize::from(order != "nothing"), "{order}");
        let got = world.call(&dialect.get(id, 10)).await.text();
        let bytes = if files.is_empty() && order != "question" {
            "BQUFBQUF"
        } else {
            "AQEBAQEB"
        };
        assert_eq!(got.contains(bytes), order != "nothing", "{order} {got}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_large_file_of_a_message_is_an_object_of_its_own() {
    let dialect = Dialect::Rest10;
    let world = says();
    let three = with_files(&Say::to("says", "nothing"), &[1, 2, 3]);
    let reply = world.call(&dialect.request(Op::Send, "", &three)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let task = dialect.task(&reply);
    let got = world
        .call(&dialect.get(task["id"].as_str().unwrap(), 10))
        .await;
    for bytes in ["AQEBAQEB", "AgICAgIC", "AwMDAwMD"] {
        assert!(got.text().contains(bytes), "{bytes}");
    }
    let kept = world
        .store
        .memory()
        .blobs
        .keys("v1/", None, 10)
        .await
        .unwrap();
    assert_eq!(kept.len(), 3);
}
