use super::{OpenAiApi, OpenAiModel, sse};
use crate::model_stub::{ModelStub, StubAnswer};
use crate::provider::{ModelCallError, deltas};
use a2a_lambda_skill::model::{
    Delta, Model as _, ModelContent, ModelFile, ModelMessage, ModelPart, ModelReply, ModelRequest,
    ModelTool, StopReason, Usage,
};
use a2a_lambda_skill::{AgentError, AgentResult, ErrorCode};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use serde_json::{Map, Value, json};
use std::time::Duration;

mod chat;
mod failures;
mod files;
mod responses;

/// A limit that a silent service reaches.
const SHORT: Duration = Duration::from_millis(50);

fn model(stub: &ModelStub, api: OpenAiApi) -> OpenAiModel {
    OpenAiModel::builder(&stub.url, "m")
        .api(api)
        .build()
        .unwrap()
}

fn ask(text: &str) -> ModelRequest {
    ModelRequest {
        messages: vec![ModelMessage::from_text(text)],
        ..ModelRequest::default()
    }
}

fn with_tools(names: &[&str]) -> ModelRequest {
    let tool = |name: &&str| ModelTool {
        name: (*name).to_owned(),
        description: format!("the {name}"),
        input_schema: json!({"type": "object"}),
    };
    ModelRequest {
        tools: names.iter().map(tool).collect(),
        ..ask("how many?")
    }
}

fn text(text: &str) -> ModelContent {
    ModelContent::Text(text.to_owned())
}

fn call(id: &str, name: &str, input: Value) -> ModelContent {
    ModelContent::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    }
}

fn stop(stop: StopReason, input_tokens: u64, output_tokens: u64) -> Delta {
    let usage = Usage {
        input_tokens,
        output_tokens,
        cached_tokens: 0,
    };
    Delta::Stop { stop, usage }
}

/// The reply to one request, whose answer is `answer`.
async fn reply(api: OpenAiApi, answer: &Value) -> AgentResult<ModelReply> {
    let stub = ModelStub::start([StubAnswer::json(200, &answer.to_string())]).await;
    model(&stub, api).converse(ask("hello")).await
}

/// The deltas and the error of a stream.
type Streamed = (Vec<Delta>, Option<AgentError>);

async fn collect(deltas: impl futures::Stream<Item = AgentResult<Delta>>) -> Streamed {
    let (mut kept, mut error) = (Vec::new(), None);
    let mut deltas = std::pin::pin!(deltas);
    while let Some(delta) = deltas.next().await {
        assert_eq!(error, None, "a delta follows an error");
        match delta {
            Ok(delta) => kept.push(delta),
            Err(failed) => error = Some(failed),
        }
    }
    (kept, error)
}

/// What a provider of `api` makes of these chunks, without a network.
fn decoded(api: OpenAiApi, chunks: &[&[u8]]) -> Streamed {
    let provider = OpenAiModel::builder("http://a", "m")
        .api(api)
        .build()
        .unwrap();
    let chunks: Vec<Result<Bytes, ModelCallError>> = chunks
        .iter()
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    let events = sse::events(stream::iter(chunks).boxed());
    let deltas = deltas(events, provider.decoder());
    // Nothing of it waits.
    collect(deltas).now_or_never().unwrap()
}

/// A cut at every byte changes no delta. A stream that ends at any byte before its terminal
/// event gives the first of the deltas, and an error.
fn check_every_cut(api: OpenAiApi, whole: &str, terminal: usize) {
    let bytes = whole.as_bytes();
    let expected = decoded(api, &[bytes]);
    assert_eq!(expected.1, None);
    assert!(matches!(expected.0.last(), Some(Delta::Stop { .. })));
    for at in 0..=bytes.len() {
        let (before, after) = bytes.split_at(at);
        assert_eq!(decoded(api, &[before, after]), expected, "cut at {at}");
        let (deltas, error) = decoded(api, &[before]);
        match error {
            Some(error) => {
                assert!(at < terminal, "an error at {at} of {terminal}");
                assert_eq!(error.code(), ErrorCode::ModelProvider);
                assert!(expected.0.starts_with(&deltas), "end at {at}: {deltas:?}");
            }
            None => {
                assert!(at >= terminal, "a silent end at {at} of {terminal}");
                assert!(matches!(deltas.last(), Some(Delta::Stop { .. })));
            }
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decoded(api, &single), expected);
}

/// The end of the first event that contains `part`.
fn end_of(whole: &str, part: &str) -> usize {
    let (before, after) = whole.split_once(part).unwrap();
    let (rest, _) = after.split_once("\n\n").unwrap();
    before.len() + part.len() + rest.len() + 2
}
