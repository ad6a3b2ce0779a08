//! Tests the 1.0 format with fixtures written by hand. The last test of `encode` and
//! `generated` compare it with `a2a-lf`.

use super::*;
use crate::samples::{command, rpc};
use a2a_lambda_model::task::{
    A2aError, Artifact, ContextId, EventId, Generation, Part, SendCommand, SendResponse, Status,
    Task, TaskId, TaskState, Timestamp,
};
use serde_json::{Value, json};

mod decode;
mod encode;
mod generated;

/// What a view writes. Its members have different names, as those of a `Value`: a repeated one
/// would make the text longer.
fn written(view: View<'_>) -> Value {
    let value = serde_json::to_value(view).unwrap();
    let text = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    assert_eq!(text.len(), value.to_string().len());
    value
}

fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    command!(rpc("SendMessage", params), Send).map(|it| *it)
}

fn encode_sent(sent: &SendResponse) -> Value {
    written(View::Sent(sent))
}

fn encode_task(task: &Task) -> Value {
    written(View::Task(task))
}

fn field_of(refusal: A2aError) -> String {
    match refusal {
        A2aError::InvalidParams { field, .. } => field,
        other => panic!("{other:?}"),
    }
}

fn send_with(message: &Value) -> Value {
    let mut request = json!({"message": {
        "messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}],
    }});
    for (name, value) in message.as_object().unwrap() {
        request["message"][name] = value.clone();
    }
    request
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn task_in(state: TaskState) -> Task {
    Task {
        id: TaskId::parse("t1").unwrap(),
        context_id: ContextId::parse("c1").unwrap(),
        generation: Generation::V10,
        status: Status {
            state,
            message: None,
            timestamp: at("2026-05-28T10:00:00Z"),
        },
        artifacts: None,
        history: None,
        metadata: Default::default(),
        transitions: Vec::new(),
        last_event: Some(EventId {
            version: 2,
            n: 1,
            mark: None,
        }),
    }
}

fn artifact(parts: Vec<Part>) -> Artifact {
    Artifact {
        chunks_of: None,
        id: "a1".to_owned(),
        name: Some("report".to_owned()),
        description: None,
        parts,
        extensions: Vec::new(),
        metadata: Default::default(),
    }
}
