//! Holds sample values for the tests of the generations, and decodes their requests.

use crate::{MethodCall, OpenedRequest, RawRequest, open};
use a2a_lambda_model::task::{
    A2aError, Artifact, ArtifactUpdate, ContextId, Event, EventId, Frame, Generation, LoggedEvent,
    Message, Metadata, Part, Status, StatusUpdate, Task, TaskId, TaskState, Timestamp, Transition,
};
use serde_json::{Value, json};

pub(crate) fn task_id() -> TaskId {
    TaskId::parse("t-1").unwrap()
}

pub(crate) fn context_id() -> ContextId {
    ContextId::parse("c-1").unwrap()
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000 + second * 1000)
}

pub(crate) fn status(state: TaskState, text: Option<&str>) -> Status {
    Status {
        state,
        message: text.map(|text| Message::from_agent("m-2", vec![Part::text(text)])),
        timestamp: at(0),
    }
}

pub(crate) fn task(status: Status) -> Task {
    Task {
        id: task_id(),
        context_id: context_id(),
        generation: Generation::V03,
        status,
        artifacts: None,
        history: None,
        metadata: Metadata::new(),
        transitions: Vec::new(),
        last_event: None,
    }
}

/// A completed task with every optional member.
pub(crate) fn full_task() -> Task {
    let question = Message {
        context_id: Some(context_id()),
        reference_task_ids: vec!["t-0".to_owned()],
        ..Message::from_user("m-1", vec![Part::text("hello")])
    };
    Task {
        artifacts: Some(vec![artifact("a-1", "report", "done")]),
        history: Some(vec![question]),
        metadata: Metadata::from_iter([("tag".to_owned(), Value::from("x"))]),
        transitions: vec![
            Transition {
                state: TaskState::Submitted,
                at: at(0),
            },
            Transition {
                state: TaskState::AuthRequired,
                at: at(1),
            },
        ],
        ..task(status(TaskState::Completed, Some("bye")))
    }
}

pub(crate) fn artifact(id: &str, name: &str, text: &str) -> Artifact {
    Artifact {
        chunks_of: None,
        id: id.to_owned(),
        name: Some(name.to_owned()),
        description: None,
        parts: vec![Part::text(text)],
        extensions: Vec::new(),
        metadata: Metadata::new(),
    }
}

pub(crate) fn chunk(artifact: Artifact, append: bool, last_chunk: bool) -> Frame {
    let update = ArtifactUpdate {
        artifact,
        append,
        last_chunk,
        metadata: Metadata::new(),
    };
    event(Event::Artifact(update), false)
}

pub(crate) fn status_change(status: Status, last: bool) -> Frame {
    let update = StatusUpdate {
        status,
        metadata: Metadata::from_iter([("a2a-lambda/restarted".to_owned(), Value::Bool(true))]),
    };
    event(Event::Status(update), last)
}

fn event(event: Event, last: bool) -> Frame {
    Frame::Event {
        task_id: task_id(),
        context_id: context_id(),
        event: LoggedEvent {
            id: EventId {
                version: 1,
                n: 1,
                mark: None,
            },
            seq: 1,
            event,
        },
        last,
    }
}

/// The field that an error names.
pub(crate) fn field_of<T: std::fmt::Debug>(result: Result<T, A2aError>) -> String {
    match result {
        Err(A2aError::InvalidParams { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

/// Decodes a call over JSON-RPC.
pub(crate) fn rpc(method: &str, params: &Value) -> Result<MethodCall, A2aError> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    rest("POST", "/", &[], &body)
}

/// Decodes a call with a path.
pub(crate) fn rest(
    method: &str,
    path: &str,
    pairs: &[(String, String)],
    body: &Value,
) -> Result<MethodCall, A2aError> {
    let code = |text: &str| {
        text.bytes()
            .map(|it| format!("%{it:02x}"))
            .collect::<String>()
    };
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", code(name), code(value)));
    let body = body.to_string();
    let request = RawRequest {
        method,
        path,
        query: Some(&pairs.collect::<Vec<_>>().join("&")),
        content_type: Some("application/json"),
        body: body.as_bytes(),
        ..RawRequest::default()
    };
    match open(&request) {
        Ok(OpenedRequest::One(call)) => call.decode(),
        other => panic!("{other:?}"),
    }
}

/// The command of a call, which is of the kind that the pattern names.
macro_rules! command {
    ($call:expr, Subscribe) => {
        match $call {
            Ok(crate::MethodCall::Stream(crate::StreamCall::Subscribe(command))) => Ok(command),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    ($call:expr, $kind:ident) => {
        match $call {
            Ok(crate::MethodCall::Unary(crate::UnaryCall::$kind(command))) => Ok(command),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
}
pub(crate) use command;
