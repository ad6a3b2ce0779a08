use super::*;
use crate::{OpenedRequest, RawRequest, open};
use a2a_lambda_model::task::{
    A2aError, ContextId, Event, EventId, LoggedEvent, Message, Part, Status, StatusUpdate,
    TaskState, Timestamp,
};
use insta::assert_snapshot;
use serde_json::json;

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

/// The bytes of a frame, with a line break before each member that follows another.
fn shown(bytes: Option<Vec<u8>>) -> String {
    let text = String::from_utf8(bytes.unwrap()).unwrap();
    assert!(text.ends_with("\n\n"), "{text}");
    text.replace(",\"", "\n  ,\"")
}

#[test]
fn a_json_rpc_stream_of_1_0_wraps_every_payload() {
    let mut encoder = rpc("SubscribeToTask");
    let opening = encoder.frame(&Frame::Task(task(Generation::V10)));
    assert_snapshot!(shown(opening), @"");
    assert_snapshot!(shown(encoder.frame(&done())), @"");
}

#[test]
fn a_rest_stream_carries_the_payload_itself() {
    let opening = rest("/tasks/t1:subscribe").frame(&Frame::Task(task(Generation::V10)));
    assert_snapshot!(shown(opening), @"");
    assert_snapshot!(shown(rest("/v1/tasks/t1:subscribe").frame(&done())), @"");
}

#[test]
fn a_resumed_stream_begins_without_an_id() {
    let resumed = rpc("SubscribeToTask").frame(&Frame::Resumed(task(Generation::V10)));
    assert_snapshot!(shown(resumed), @"");
}

#[test]
fn the_message_of_a_message_only_stream_has_no_id_line() {
    let message = Message::from_agent("m", vec![Part::text("hello")]);
    let only = rpc("SendStreamingMessage").frame(&Frame::Message(message));
    assert_snapshot!(shown(only), @"");
}

#[test]
fn a_resubscription_has_the_generation_of_the_task() {
    let mut encoder = rpc("tasks/resubscribe");
    let opening = encoder.frame(&Frame::Task(task(Generation::V10)));
    assert_snapshot!(shown(opening), @"");
    let mut encoder = rpc("tasks/resubscribe");
    let opening = encoder.frame(&Frame::Task(task(Generation::V01)));
    assert_snapshot!(shown(opening), @"");
    assert_snapshot!(shown(encoder.frame(&done())), @"");
}

#[test]
fn an_error_ends_a_stream_in_the_format_of_its_binding() {
    let error = Frame::Refused(A2aError::Internal);
    assert_snapshot!(shown(rpc("SubscribeToTask").frame(&error)), @"");
    assert_snapshot!(shown(rest("/tasks/t1:subscribe").frame(&error)), @"");
    assert_snapshot!(shown(rest("/v1/tasks/t1:subscribe").frame(&error)), @"");
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
