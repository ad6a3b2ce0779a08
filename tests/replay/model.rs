//! A model whose answers depend on the request alone: its prompt has the script.

use super::log::{Log, Mark};
use super::program::Call;
use super::skills::{SubInput, mix};
use a2a_lambda::skill::model::{
    Delta, Model, ModelContent, ModelMessage, ModelReply, ModelRequest, StopReason, Usage,
};
use a2a_lambda::skill::{AgentError, AgentResult};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a worker of a program asks its model.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prompt {
    pub(super) path: String,
    pub(super) branch: String,
    /// The calls of each answer.
    pub(super) answers: Value,
    pub(super) sum: u32,
    /// Whether each answer is refused once.
    pub(super) busy: bool,
}

/// The model of a run.
#[derive(Debug)]
pub(super) struct PromptedModel(pub(super) Arc<Log>);

impl PromptedModel {
    fn reply(&self, request: &ModelRequest) -> AgentResult<ModelReply> {
        let prompt = request.messages.first().map(ModelMessage::user_text);
        let prompt: Prompt = serde_json::from_str(&prompt.unwrap()).unwrap();
        let answers: Vec<Vec<Call>> = serde_json::from_value(prompt.answers.clone()).unwrap();
        let is_answer = |message: &&ModelMessage| matches!(message, ModelMessage::Model(_));
        let number = request.messages.iter().filter(is_answer).count();
        let (path, messages) = (&prompt.path, &request.messages);
        self.note_stored(path, &answers, number);
        let key = format!("{path}/model{number}");
        let asked = format!("{} {}", number, mix(0, messages));
        let runs = self.0.effect(&prompt.branch, &key, &asked);
        if prompt.busy && runs == 1 {
            return Err(AgentError::domain("BUSY", "the model is busy").transient());
        }
        let content = match answers.get(number) {
            Some(calls) => calls
                .iter()
                .enumerate()
                .map(|(place, call)| ModelContent::ToolUse {
                    id: format!("call-{number}-{place}"),
                    name: call.tool().to_owned(),
                    input: input(&prompt, call),
                })
                .collect(),
            None => vec![ModelContent::Text(format!(
                "{path} heard {}",
                mix(1, messages)
            ))],
        };
        let mut reply = ModelReply {
            content,
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        };
        if reply.calls_tools() {
            reply.stop = StopReason::ToolUse;
        }
        Ok(reply)
    }

    /// The last answer and the results of its calls are stored when the model is asked again.
    fn note_stored(&self, path: &str, answers: &[Vec<Call>], number: usize) {
        let Some(before) = number.checked_sub(1) else {
            return;
        };
        let mark = Mark::default();
        self.0.stored(&format!("{path}/model{before}"), mark);
        // A later answer may make the same call again.
        let later: Vec<_> = answers.iter().skip(number).flatten().collect();
        for call in answers.iter().take(number).flatten() {
            if !later.iter().any(|other| other.number() == call.number()) {
                self.0.stored(&format!("{path}/{}", call.number()), mark);
            }
        }
    }
}

impl Call {
    const fn tool(&self) -> &'static str {
        match self {
            Self::Function { .. } => "function",
            Self::Skill { .. } => "sub",
        }
    }
}

fn input(prompt: &Prompt, call: &Call) -> Value {
    let path = format!("{}/{}", prompt.path, call.number());
    match call {
        Call::Function { .. } => json!({ "path": path }),
        Call::Skill { fails, body, .. } => json!(SubInput {
            path,
            branch: prompt.branch.clone(),
            fails: *fails,
            body: json!(body),
        }),
    }
}

impl Model for PromptedModel {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            self.0.place(false).await;
            self.reply(&request)
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            self.0.place(false).await;
            let deltas = deltas(self.reply(&request)?);
            Ok(stream::iter(deltas).map(Ok).boxed())
        })
    }
}

fn deltas(reply: ModelReply) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for content in reply.content {
        match content {
            ModelContent::Text(text) => {
                let words = text.split_inclusive(' ');
                deltas.extend(words.map(|word| Delta::Text(word.to_owned())));
            }
            ModelContent::ToolUse { id, name, input } => {
                deltas.push(Delta::ToolUse { id, name });
                deltas.push(Delta::ToolInput(input.to_string()));
            }
            ModelContent::Provider(_) => {}
        }
    }
    let (stop, usage) = (reply.stop, reply.usage);
    deltas.push(Delta::Stop { stop, usage });
    deltas
}
