mod misses;
mod secrets;
mod written;

use super::*;
use crate::SkillTest;
use crate::prelude::*;
use crate::skill::ErrorCode;
use crate::skill::model::{ModelContent, ModelMessage, StopReason, Usage};
use crate::testing::ScriptedModel;
use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::Notify;

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
        Cassette::record(self.path(), || Ok(Arc::new(live))).unwrap()
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

/// A result whose error is its code: a cassette keeps no causes.
fn codes<T>(result: AgentResult<T>) -> Result<T, ErrorCode> {
    result.map_err(|error| error.code())
}

fn texts(reply: AgentResult<ModelReply>) -> Vec<ModelContent> {
    reply.unwrap().content
}

fn text(text: &str) -> ModelContent {
    ModelContent::Text(text.to_owned())
}

/// Streams a text and then fails, and continues for ever.
struct Broken;

impl Model for Broken {
    fn converse(&self, _: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        std::future::ready(Err(AgentError::deadline())).boxed()
    }

    fn converse_stream(
        &self,
        _: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        let first = stream::iter([Ok(Delta::Text("be".to_owned()))]);
        let cut = stream::repeat_with(|| Err(AgentError::model_output("cut")));
        std::future::ready(Ok(first.chain(cut).boxed())).boxed()
    }
}

#[tokio::test]
async fn a_replay_gives_the_recorded_replies_and_streams() {
    let folder = Folder::new("gives");
    let call = || ScriptedModel::new().tool_call("stock", json!({"of": "tea", "n": 1.5}));
    let live = call().text("whole").text("in pieces");
    let recording = folder.record(live);
    let called = recording.converse(request("call")).await;
    let whole = recording.converse(request("say")).await;
    let streamed = pieces(&recording, request("say")).await.unwrap();
    assert_eq!(called, call().converse(request("call")).await);
    assert!(streamed.len() > 2, "{streamed:?}");

    let replay = folder.replay();
    // In another order than they were recorded.
    assert_eq!(pieces(&replay, request("say")).await.unwrap(), streamed);
    assert_eq!(replay.converse(request("say")).await, whole);
    assert_eq!(replay.converse(request("call")).await, called);
    assert_eq!(replay.finish(), Ok(()));
}

#[tokio::test]
async fn each_error_of_a_model_is_replayed_with_its_code() {
    let errors = || {
        [
            AgentError::model_provider("x"),
            AgentError::model_auth("x"),
            AgentError::model_rate_limited("x"),
            AgentError::content_filtered("x"),
            AgentError::context_length_exceeded("x"),
            AgentError::model_output("x"),
            AgentError::model_unavailable(),
            AgentError::network("x"),
            AgentError::deadline(),
            AgentError::internal("x"),
        ]
    };
    for error in errors() {
        let folder = Folder::new("errors");
        let live = ScriptedModel::new()
            .error(error.clone())
            .error(error.clone());
        let recording = folder.record(live);
        assert_eq!(recording.converse(request("a")).await, Err(error.clone()));
        assert_eq!(pieces(&recording, request("b")).await, Err(error.clone()));
        let replay = folder.replay();
        for replayed in [
            replay.converse(request("a")).await.unwrap_err(),
            pieces(&replay, request("b")).await.unwrap_err(),
        ] {
            assert_eq!(replayed.code(), error.code());
            assert_eq!(replayed.text(), error.text());
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_replayed_up_to_its_error() {
    let folder = Folder::new("breaks");
    let recorded = pieces(&folder.record(Broken), request("")).await.unwrap();
    let replayed = pieces(&folder.replay(), request("")).await.unwrap();
    for pieces in [recorded, replayed] {
        let pieces: Vec<_> = pieces.into_iter().map(codes).collect();
        let text = Delta::Text("be".to_owned());
        assert_eq!(pieces, [Ok(text), Err(ErrorCode::ModelOutput)]);
    }
}

#[tokio::test]
async fn a_replay_never_makes_the_live_model() {
    let folder = Folder::new("never");
    let recording = folder.record(ScriptedModel::new().text("hello"));
    recording.converse(request("")).await.unwrap();
    let live = || panic!("a replay makes a model");
    let replay = Cassette::open(folder.path(), CassetteMode::default(), live).unwrap();
    assert_eq!(texts(replay.converse(request("")).await), [text("hello")]);
    replay.converse(request("another")).await.unwrap_err();
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

/// Answers with the request's system prompt: `first` only after it has answered another.
struct Held(Notify);

impl Model for Held {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            if request.system == "first" {
                self.0.notified().await;
            } else {
                self.0.notify_one();
            }
            Ok(ModelReply {
                content: vec![text(&request.system)],
                stop: StopReason::EndTurn,
                usage: Usage::default(),
            })
        })
    }

    fn converse_stream(
        &self,
        _: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        std::future::ready(Err(AgentError::model_unavailable())).boxed()
    }
}

#[tokio::test]
async fn calls_at_the_same_time_are_all_recorded_in_the_order_of_their_requests() {
    let folder = Folder::new("concurrent");
    let recording = folder.record(Held(Notify::new()));
    let names = ["first", "second", "third"];
    let calls = names.map(|name| recording.converse(request(name)));
    for (name, reply) in names.iter().zip(futures::future::join_all(calls).await) {
        assert_eq!(texts(reply), [text(name)]);
    }
    let recorded = file::read(&folder.path()).unwrap().unwrap();
    let recorded: Vec<&str> = recorded.iter().map(|it| &*it.request.system).collect();
    assert_eq!(recorded, names);
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

#[tokio::test]
async fn a_live_cassette_asks_the_model_and_writes_no_file() {
    let folder = Folder::new("live");
    let model = ScriptedModel::new().text("1").text("2");
    let asked = model.clone();
    let live = || AgentResult::<Arc<dyn Model>>::Ok(Arc::new(model));
    let cassette = Cassette::open(folder.path(), CassetteMode::Live, live).unwrap();
    assert_eq!(texts(cassette.converse(request("")).await), [text("1")]);
    pieces(&cassette, request("")).await.unwrap();
    assert_eq!(asked.finish(), Ok(()));
    assert!(!folder.path().exists());
}
