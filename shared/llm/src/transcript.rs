//! The messages of a request: what is asked, or a conversation within its window.

use super::files::FileSelection;
use super::setup::LlmSetup;
use a2a_lambda_model::task::{Message, Role};
use a2a_lambda_model::thread::Thread;
use a2a_lambda_skill::model::{ModelContent, ModelInput, ModelMessage, ModelPart, ModelRequest};
use a2a_lambda_skill::{AgentError, AgentResult, CallTokens, FilePart};
use serde_json::Value;

/// A conversation begins in steps of so many messages, so that requests that follow each other
/// have the same beginning, which a service may have cached.
const STRIDE: usize = 16;

/// What a function or worker begins with.
pub(super) struct LlmInput {
    pub(super) messages: Vec<ModelMessage>,
    /// The files that the messages name by their digests.
    pub(super) files: Vec<FilePart>,
    /// What the author asks. A turn that runs again must ask the same. A thread is not part of
    /// it, because it grows.
    pub(super) value: Value,
    /// Whether it is the conversation of the task, which gets the answer.
    pub(super) is_chat: bool,
}

/// The input of a function or worker.
pub(super) fn prompt(setup: &LlmSetup, input: &impl ModelInput) -> AgentResult<LlmInput> {
    let mut selection = FileSelection::default();
    let mut parts = Vec::new();
    for part in &input.to_parts()? {
        push(&mut parts, selection.select(part, true), "\n");
    }
    selection.add(&setup.files, &mut parts);
    let value = serde_json::to_value(&parts).map_err(AgentError::serialization)?;
    Ok(LlmInput {
        messages: vec![ModelMessage::User(parts)],
        files: selection.files,
        value,
        is_chat: false,
    })
}

/// A conversation as the input of a function or worker: its newest messages within the window,
/// with the files of the newest one of the user and those that the skill names.
pub(super) fn chat(setup: &LlmSetup, thread: &Thread) -> LlmInput {
    let begin = left_out(setup, thread);
    let is_user = |(_, message): &(usize, &Message)| message.role == Role::User;
    let newest = thread.iter().enumerate().filter(is_user).last();
    let newest = newest.map(|(index, _)| index);
    let mut selection = FileSelection::default();
    let mut messages = Vec::new();
    for (index, message) in thread.iter().enumerate().skip(begin) {
        let is_newest = Some(index) == newest;
        let mut parts = Vec::new();
        if begin > 0 && !messages.iter().any(is_from_user) && message.role == Role::User {
            let note = format!("[{begin} earlier messages are left out]");
            parts.push(ModelPart::Text(note));
        }
        for part in &message.parts {
            push(&mut parts, selection.select(part, is_newest), "\n");
        }
        if is_newest {
            selection.add(&setup.files, &mut parts);
        }
        add(&mut messages, message.role, parts);
    }
    LlmInput {
        messages,
        files: selection.files,
        value: Value::Null,
        is_chat: true,
    }
}

/// How many of the oldest messages the window of the setup leaves out.
pub(super) fn left_out(setup: &LlmSetup, thread: &Thread) -> usize {
    let mut rest = setup.window;
    let mut fits = |message: &&Message| {
        let tokens = tokens_of(message);
        let fits = tokens <= rest;
        rest = rest.saturating_sub(tokens);
        fits
    };
    let messages: Vec<_> = thread.iter().collect();
    let count = messages.iter().rev().take_while(|it| fits(it)).count();
    let first = messages.len() - count;
    // The newest message of the user is part of each request.
    let newest = messages.iter().rposition(|it| it.role == Role::User);
    first
        .next_multiple_of(STRIDE)
        .min(newest.unwrap_or(messages.len()))
}

/// The tokens that a message counts before its request, without its files.
fn tokens_of(message: &Message) -> u64 {
    let mut selection = FileSelection::default();
    let parts = message
        .parts
        .iter()
        .map(|part| selection.select(part, false));
    let mut request = ModelRequest {
        messages: vec![ModelMessage::User(parts.collect())],
        ..ModelRequest::default()
    };
    CallTokens::of(&mut request, u64::MAX).map_or(u64::MAX, |tokens| tokens.input)
}

fn is_from_user(message: &ModelMessage) -> bool {
    matches!(message, ModelMessage::User(_))
}

/// Adds a part. Texts that follow each other are one.
fn push(parts: &mut Vec<ModelPart>, part: ModelPart, between: &str) {
    match (parts.last_mut(), part) {
        (Some(ModelPart::Text(before)), ModelPart::Text(text)) => {
            before.push_str(between);
            before.push_str(&text);
        }
        (_, part) => parts.push(part),
    }
}

/// Adds a message to those from the first one of the user. Services want the two sides in turn,
/// so messages of one side that follow each other are one message.
fn add(messages: &mut Vec<ModelMessage>, role: Role, parts: Vec<ModelPart>) {
    let is_empty = |part: &ModelPart| matches!(part, ModelPart::Text(text) if text.is_empty());
    if parts.iter().all(is_empty) {
        return;
    }
    match (role, messages.last_mut()) {
        (Role::User, Some(ModelMessage::User(before))) => {
            let mut between = "\n\n";
            for part in parts {
                push(before, part, between);
                between = "\n";
            }
        }
        (Role::User, _) => messages.push(ModelMessage::User(parts)),
        (Role::Agent, None) => {}
        (Role::Agent, last) => {
            let text = ModelContent::Text(ModelMessage::User(parts).user_text());
            match last {
                Some(ModelMessage::Model(content)) => content.push(text),
                _ => messages.push(ModelMessage::Model(vec![text])),
            }
        }
    }
}
