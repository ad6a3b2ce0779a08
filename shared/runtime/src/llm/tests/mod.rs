//! Tests of functions and workers, with a model that answers from a list.
//!
//! - here: the model, and what the tests share
//! - `function`, `worker`, `confirm`: the three kinds

mod confirm;
mod function;
mod worker;

use crate::skill::model::{
    Delta, Model, ModelContent, ModelMessage, ModelReply, ModelRequest, StopReason, ToolResult,
    Usage,
};
use crate::skill::{AgentError, AgentResult};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A model that answers from a list, and records what it was asked.
#[derive(Default)]
pub(super) struct ListedModel {
    answers: Mutex<VecDeque<AgentResult<Vec<ModelContent>>>>,
    pub(super) requests: Mutex<Vec<ModelRequest>>,
    pub(super) latency: Duration,
}

impl ListedModel {
    pub(super) fn new(
        answers: impl IntoIterator<Item = AgentResult<Vec<ModelContent>>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    fn next(&self, request: ModelRequest) -> AgentResult<ModelReply> {
        self.requests.lock().unwrap().push(request);
        let next = self.answers.lock().unwrap().pop_front();
        let content = next.expect("the test lists every answer")?;
        let mut reply = ModelReply {
            content,
            stop: StopReason::EndTurn,
            usage: Usage {
                input_tokens: 10,
                output_tokens: 5,
            },
        };
        if reply.calls_tools() {
            reply.stop = StopReason::ToolUse;
        }
        Ok(reply)
    }

    /// The requests so far.
    pub(super) fn asked(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The last message of the newest request.
    pub(super) fn last_message(&self) -> ModelMessage {
        let asked = self.asked();
        asked.last().unwrap().messages.last().unwrap().clone()
    }
}

impl Model for ListedModel {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            tokio::time::sleep(self.latency).await;
            self.next(request)
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let reply = self.next(request)?;
            let mut deltas = Vec::new();
            for content in reply.content {
                match content {
                    ModelContent::Text(text) => {
                        let words = text.split_inclusive(' ').map(str::to_owned);
                        deltas.extend(words.map(Delta::Text));
                    }
                    ModelContent::ToolUse { id, name, input } => {
                        deltas.push(Delta::ToolUse { id, name });
                        deltas.push(Delta::ToolInput(input.to_string()));
                    }
                    ModelContent::Provider(block) => deltas.push(Delta::Provider(block)),
                }
            }
            deltas.push(Delta::Stop {
                stop: reply.stop,
                usage: reply.usage,
            });
            Ok(stream::iter(deltas).map(Ok).boxed())
        })
    }
}

pub(super) fn text(text: &str) -> AgentResult<Vec<ModelContent>> {
    Ok(vec![ModelContent::Text(text.to_owned())])
}

pub(super) fn tool_use(id: &str, name: &str, input: Value) -> ModelContent {
    ModelContent::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    }
}

pub(super) fn call(name: &str, input: Value) -> AgentResult<Vec<ModelContent>> {
    Ok(vec![tool_use("1", name, input)])
}

pub(super) fn answer(input: Value) -> AgentResult<Vec<ModelContent>> {
    call("answer", input)
}

/// The results that the newest request gives to the model: `Ok` or `Err` of each call.
pub(super) fn results(model: &ListedModel) -> Vec<Result<Value, String>> {
    match model.last_message() {
        ModelMessage::ToolResults(results) => {
            results.into_iter().map(|result| result.result).collect()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn result_ids(message: &ModelMessage) -> Vec<String> {
    let ids = |results: &Vec<ToolResult>| results.iter().map(|result| result.id.clone()).collect();
    match message {
        ModelMessage::ToolResults(results) => ids(results),
        other => panic!("{other:?}"),
    }
}

pub(super) fn busy() -> AgentResult<Vec<ModelContent>> {
    Err(AgentError::model_rate_limited("429"))
}

pub(super) fn order(pieces: u32) -> Value {
    json!({"article": "A-1", "pieces": pieces})
}
