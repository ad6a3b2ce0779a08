//! Messages of a conversation, as a model reads them.

use a2a_lambda_model::task::{Message, PartContent, Role};
use a2a_lambda_model::thread::Thread;
use a2a_lambda_skill::model::ModelContent;
use a2a_lambda_skill::model::ModelMessage;
use a2a_lambda_skill::{AgentError, AgentResult};
use serde::Serialize;
use serde_json::Value;

/// What a function or worker begins with.
pub(super) struct LlmInput {
    pub(super) messages: Vec<ModelMessage>,
    /// What the author asks. A turn that runs again must ask the same. A thread is not part of
    /// it, because it grows.
    pub(super) value: Value,
    /// Whether it is the conversation of the task, which gets the answer.
    pub(super) is_chat: bool,
}

/// The input of a function or worker: a text as it is, any other value as JSON.
pub(super) fn prompt(input: &impl Serialize) -> AgentResult<LlmInput> {
    let value = serde_json::to_value(input).map_err(AgentError::serialization)?;
    let text = match &value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    Ok(LlmInput {
        messages: vec![ModelMessage::User(text)],
        value,
        is_chat: false,
    })
}

/// A conversation as the input of a function or worker.
pub(super) fn chat(thread: &Thread) -> LlmInput {
    LlmInput {
        messages: of_thread(thread),
        value: Value::Null,
        is_chat: true,
    }
}

/// The messages of a thread from the first one of the user. Services want the two sides in
/// turn, so messages of one side that follow each other are one message.
fn of_thread(thread: &Thread) -> Vec<ModelMessage> {
    let mut messages: Vec<ModelMessage> = Vec::new();
    for message in thread.iter() {
        let text = text_of(message);
        if text.is_empty() {
            continue;
        }
        match (message.role, messages.last_mut()) {
            (Role::User, Some(ModelMessage::User(before))) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (Role::User, _) => messages.push(ModelMessage::User(text)),
            (Role::Agent, Some(ModelMessage::Model(content))) => {
                content.push(ModelContent::Text(text));
            }
            (Role::Agent, Some(_)) => {
                messages.push(ModelMessage::Model(vec![ModelContent::Text(text)]));
            }
            (Role::Agent, None) => {}
        }
    }
    messages
}

fn text_of(message: &Message) -> String {
    let texts = message.parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(data) => data.to_string(),
        _ => match &part.filename {
            Some(name) => format!("[file: {name}]"),
            None => "[file]".to_owned(),
        },
    });
    texts.collect::<Vec<_>>().join("\n")
}
