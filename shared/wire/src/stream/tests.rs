use super::*;
use crate::{OpenedRequest, RawRequest, open};
use a2a_lambda_model::task::{
    A2aError, ContextId, Event, EventId, LoggedEvent, Message, Part, Status, StatusUpdate, Task,
    TaskId, TaskState, Timestamp,
};
use serde_json::{Value, json};

fn status(state: TaskState) -> Status {
    Status {
        state,
        message: None,
        timestamp: Timestamp::from_millis(0),
    }
}

fn task(generation: Generation) -> Box<Task> {
    Box::new(Task {
        id: TaskId::parse("t1").unwrap(),
        context_id: ContextId::parse("c1").unwrap(),
        generation,
        status: status(TaskState::Working),
        artifacts: None,
        history: None,
        metadata: Default::default(),
        transitions: Vec::new(),
        last_event: Some(EventId {
            version: 2,
            n: 1,
            mark: None,
        }),
    })
}

fn done() -> Frame {
    Frame::Event {
        task_id: TaskId::parse("t1").unwrap(),
        context_id: ContextId::parse("c1").unwrap(),
        event: LoggedEvent {
            id: EventId {
                version: 3,
                n: 2,
                mark: None,
            },
            seq: 5,
            event: Event::Status(StatusUpdate {
                status: status(TaskState::Completed),
                metadata: Default::default(),
            }),
        },
        last: true,
    }
}

fn encoder(request: &RawRequest<'_>) -> StreamEncoder {
    match open(request) {
        Ok(OpenedRequest::One(call)) => StreamEncoder::new(&call),
        other => panic!("{other:?}"),
    }
}

fn rpc(method: &str) -> StreamEncoder {
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": {"id": "t1"}});
    let body = body.to_string();
    encoder(&RawRequest {
        method: "POST",
        path: "/",
        content_type: Some("application/json"),
        body: body.as_bytes(),
        ..RawRequest::default()
    })
}

fn rest(path: &str) -> StreamEncoder {
    encoder(&RawRequest {
        method: "GET",
        path,
        ..RawRequest::default()
    })
}

/// The lines before the `data:` line, and the data.
fn read(bytes: Option<Vec<u8>>) -> (Vec<String>, Value) {
    let text = String::from_utf8(bytes.unwrap()).unwrap();
    let text = text.strip_suffix("\n\n").unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let data = lines.pop().unwrap();
    let data = data.strip_prefix("data: ").unwrap();
    (lines, serde_json::from_str(data).unwrap())
}

#[test]
fn a_json_rpc_stream_of_1_0_wraps_every_payload() {
    let mut encoder = rpc("SubscribeToTask");
    let (lines, data) = read(encoder.frame(&Frame::Task(task(Generation::V10))));
    assert_eq!(lines, ["id: 2.1"]);
    assert_eq!(
        (&data["jsonrpc"], &data["id"]),
        (&json!("2.0"), &json!("r"))
    );
    assert_eq!(data["result"]["task"]["id"], "t1");
    let (lines, data) = read(encoder.frame(&done()));
    assert_eq!(lines, ["id: 3.2"]);
    assert_eq!(
        data["result"]["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[test]
fn a_rest_stream_carries_the_payload_itself() {
    let (_, data) = read(rest("/tasks/t1:subscribe").frame(&Frame::Task(task(Generation::V10))));
    assert_eq!(data["task"]["id"], "t1");
    let (_, data) = read(rest("/v1/tasks/t1:subscribe").frame(&done()));
    assert_eq!(data["statusUpdate"]["final"], true);
}

#[test]
fn a_resumed_stream_begins_without_an_id() {
    let (lines, _) = read(rpc("SubscribeToTask").frame(&Frame::Resumed(task(Generation::V10))));
    assert!(lines.is_empty());
}

#[test]
fn the_message_of_a_message_only_stream_has_no_id_line() {
    let message = Message::from_agent("m", vec![Part::text("hello")]);
    let (lines, data) = read(rpc("SendStreamingMessage").frame(&Frame::Message(message)));
    assert!(lines.is_empty());
    assert_eq!(data["result"]["message"]["messageId"], "m");
}

#[test]
fn a_resubscription_has_the_generation_of_the_task() {
    let mut encoder = rpc("tasks/resubscribe");
    let (_, data) = read(encoder.frame(&Frame::Task(task(Generation::V10))));
    assert_eq!(data["result"]["kind"], "task");
    let mut encoder = rpc("tasks/resubscribe");
    let (_, data) = read(encoder.frame(&Frame::Task(task(Generation::V01))));
    assert_eq!(data["result"].get("kind"), None);
    assert_eq!(data["result"]["status"]["state"], "working");
    let (_, data) = read(encoder.frame(&done()));
    assert_eq!(data["result"]["id"], "t1");
    assert_eq!(data["result"]["final"], true);
    assert_eq!(data["result"].get("kind"), None);
}

#[test]
fn an_error_ends_a_stream_in_the_format_of_its_binding() {
    let error = Frame::Refused(A2aError::Internal);
    let (lines, data) = read(rpc("SubscribeToTask").frame(&error));
    assert!(lines.is_empty());
    assert_eq!(
        (&data["id"], &data["error"]["code"]),
        (&json!("r"), &json!(-32603))
    );
    let (lines, data) = read(rest("/tasks/t1:subscribe").frame(&error));
    assert_eq!(lines, ["event: error"]);
    assert_eq!(data["error"]["status"], "INTERNAL");
    let (lines, data) = read(rest("/v1/tasks/t1:subscribe").frame(&error));
    assert_eq!(lines, ["event: error"]);
    assert_eq!(data["code"], -32603);
}

#[test]
fn a_stream_is_never_cached_and_kept_open_by_comments() {
    let mut encoder = rpc("SubscribeToTask");
    assert_eq!(
        encoder.headers(),
        [
            ("content-type", "text/event-stream".to_owned()),
            ("cache-control", "no-cache".to_owned()),
        ]
    );
    assert_eq!(
        encoder.frame(&Frame::KeepAlive).as_deref(),
        Some(&b": ping\n"[..])
    );
}
