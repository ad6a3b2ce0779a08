mod misses;
mod secrets;
mod written;

use super::*;
use crate::SkillTest;
use crate::prelude::*;
use crate::testing::ScriptedModel;
use a2a_lambda_skill::ErrorCode;
use a2a_lambda_skill::model::{
    ModelContent, ModelFile, ModelMessage, ModelPart, StopReason, Usage,
};
use serde_json::json;

/// A folder for the cassettes of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("a2a-lambda-cassette-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _left = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    /// The file of a cassette, which does not exist yet.
    fn path(&self) -> PathBuf {
        self.0.join("cassette.json")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn record(&self, live: impl Model + 'static) -> Cassette {
        Cassette::record(self.path(), Arc::new(live)).unwrap()
    }

    fn replay(&self) -> Cassette {
        Cassette::replay(self.path()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

fn request(system: &str) -> ModelRequest {
    ModelRequest {
        system: system.to_owned(),
        ..ModelRequest::default()
    }
}

async fn pieces(model: &dyn Model, request: ModelRequest) -> AgentResult<Vec<AgentResult<Delta>>> {
    Ok(model.converse_stream(request).await?.collect().await)
}

fn texts(reply: AgentResult<ModelReply>) -> Vec<ModelContent> {
    reply.unwrap().content
}

fn text(text: &str) -> ModelContent {
    ModelContent::Text(text.to_owned())
}

#[tokio::test]
async fn a_replay_gives_the_recorded_replies_and_streams() {
    let folder = Folder::new("gives");
    let call = || ScriptedModel::new().tool_call("stock", json!({"of": "tea", "n": 1.5}));
    let recording = folder.record(call().text("whole").text("in pieces"));
    let called = recording.converse(request("call")).await;
    let whole = recording.converse(request("say")).await;
    let streamed = pieces(&recording, request("stream")).await.unwrap();
    assert_eq!(called, call().converse(request("call")).await);
    assert!(streamed.len() > 2, "{streamed:?}");

    let replay = folder.replay();
    // In another order than they were recorded.
    assert_eq!(pieces(&replay, request("stream")).await.unwrap(), streamed);
    assert_eq!(replay.converse(request("say")).await, whole);
    assert_eq!(replay.converse(request("call")).await, called);
    assert_eq!(replay.finish(), Ok(()));
}

#[tokio::test]
async fn an_error_of_the_model_reaches_the_skill_and_is_not_recorded() {
    let folder = Folder::new("errors");
    let limited = AgentError::model_rate_limited("x");
    let live = ScriptedModel::new().error(limited.clone()).text("hello");
    let recording = folder.record(live);
    assert_eq!(recording.converse(request("a")).await, Err(limited));
    assert!(!folder.path().exists());
    recording.converse(request("a")).await.unwrap();
    let replay = folder.replay();
    assert_eq!(texts(replay.converse(request("a")).await), [text("hello")]);
}

#[tokio::test]
async fn equal_requests_replay_in_order_and_then_the_last() {
    let folder = Folder::new("order");
    let live = ScriptedModel::new().text("1").text("other").text("2");
    let recording = folder.record(live);
    for system in ["same", "other", "same"] {
        recording.converse(request(system)).await.unwrap();
    }
    let replay = folder.replay();
    for expected in ["1", "2", "2"] {
        let reply = replay.converse(request("same")).await;
        assert_eq!(texts(reply), [text(expected)]);
    }
}

#[tokio::test]
async fn a_request_with_a_file_replays_for_the_same_bytes_only() {
    let folder = Folder::new("files");
    let ask = |bytes: &'static [u8]| {
        let file = ModelFile::new(Some("cv.pdf".to_owned()), "application/pdf", bytes);
        ModelRequest {
            messages: vec![ModelMessage::User(vec![ModelPart::File(file)])],
            ..request("Summarize it.")
        }
    };
    let recording = folder.record(ScriptedModel::new().text("John Doe"));
    let resume = b"%PDF-1.7 the resume of John Doe";
    recording.converse(ask(resume)).await.unwrap();
    assert!(
        !folder.text().contains("the resume of"),
        "{}",
        folder.text()
    );

    let replay = folder.replay();
    let reply = replay.converse(ask(resume)).await;
    assert_eq!(texts(reply), [text("John Doe")]);
    let other = replay.converse(ask(b"%PDF-1.7 another resume")).await;
    let cause = other.unwrap_err().cause().unwrap().to_owned();
    assert!(cause.contains("sha256"), "{cause}");
}

#[tokio::test]
async fn a_block_of_the_provider_returns_byte_by_byte() {
    let folder = Folder::new("provider");
    let block = json!({
        "z": {"signature": "Ab+/=\u{e9}\u{1F375}\n\u{0}", "n": [1.0, 1, 0.1, -0.0, 1e300, u64::MAX]},
        "a": null,
    });
    let reply = ModelReply {
        content: vec![ModelContent::Provider(block.clone())],
        stop: StopReason::EndTurn,
        usage: Usage::default(),
    };
    let live = ScriptedModel::new()
        .reply(reply.clone())
        .reply(reply)
        .text("end");
    let next = |content| ModelRequest {
        messages: vec![ModelMessage::Model(content)],
        ..ModelRequest::default()
    };
    let recording = folder.record(live);
    let content = texts(recording.converse(request("")).await);
    pieces(&recording, request("")).await.unwrap();
    recording.converse(next(content)).await.unwrap();

    let replay = folder.replay();
    let content = texts(replay.converse(request("")).await);
    let streamed = pieces(&replay, request("")).await.unwrap();
    let (ModelContent::Provider(whole), Ok(Delta::Provider(piece))) = (&content[0], &streamed[0])
    else {
        panic!("{content:?}, {streamed:?}");
    };
    assert_eq!(whole.to_string(), block.to_string());
    assert_eq!(piece.to_string(), block.to_string());
    // The next request has the block, and is found.
    assert_eq!(texts(replay.converse(next(content)).await), [text("end")]);
}
