use super::*;
use crate::Dialect;
use crate::legacy::Legacy;
use crate::samples::{artifact, chunk, command, field_of, full_task, rpc, status, status_change};
use a2a_lambda_model::task::{
    A2aError, CancelCommand, ContextId, Frame, GetQuery, Message, Metadata, Part, PushOffer,
    SendResponse, SubscribeCommand, TaskId, TaskState,
};
use a2a_lambda_rows::each_row;
use serde_json::{Value, json};

pub(crate) mod rest;

const RPC: Legacy = Legacy(Dialect::json_rpc(Generation::V03));

/// An element of a stream.
fn frame_of(dialect: Legacy, frame: &Frame) -> Option<Value> {
    dialect.frame(frame, None, &mut Vec::new())
}

pub(crate) fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    command!(rpc("message/send", params), Send).map(|it| *it)
}

fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    command!(rpc("tasks/get", params), Get)
}

fn decode_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    command!(rpc("tasks/cancel", params), Cancel)
}

fn decode_subscribe(params: &Value) -> Result<SubscribeCommand, A2aError> {
    command!(rpc("tasks/resubscribe", params), Subscribe)
}

fn message() -> Value {
    json!({"messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]})
}

fn with(configuration: &Value) -> Value {
    json!({"message": message(), "configuration": configuration})
}

#[test]
fn every_member_of_a_send_is_read() {
    let sent = decode_send(&json!({
        "message": {
            "kind": "message",
            "messageId": "m-1",
            "role": "user",
            "parts": [
                {"kind": "text", "text": "hi"},
                {"kind": "file", "file": {"name": "a", "mimeType": "image/png", "uri": "u"}},
            ],
            "taskId": "t-1",
            "contextId": "c-1",
            "referenceTaskIds": ["t-0"],
            "extensions": ["urn:x"],
            "metadata": {"k": 1},
            "unknown": true,
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"],
            "historyLength": 3,
            "blocking": false,
            "pushNotificationConfig": {"url": "https://x.example/hook", "token": "t"},
        },
        "metadata": {"a2a-lambda/skillId": "s"},
    }))
    .unwrap();
    let file = Part {
        filename: Some("a".to_owned()),
        media_type: Some("image/png".to_owned()),
        ..Part::new(a2a_lambda_model::task::PartContent::Url("u".to_owned()))
    };
    let expected = SendCommand {
        message: Message {
            context_id: ContextId::parse("c-1").ok(),
            task_id: TaskId::parse("t-1").ok(),
            reference_task_ids: vec!["t-0".to_owned()],
            extensions: vec!["urn:x".to_owned()],
            metadata: Metadata::from_iter([("k".to_owned(), json!(1))]),
            ..Message::from_user("m-1", vec![Part::text("hi"), file])
        },
        client_task_id: None,
        mode: SendMode::Immediate,
        history_length: 3,
        accepted_output_modes: vec!["text/plain".to_owned()],
        push: Some(PushOffer {
            at: "configuration.pushNotificationConfig".to_owned(),
            id: None,
            url: "https://x.example/hook".to_owned(),
            token: Some(a2a_lambda_model::task::Secret::new("t")),
            schemes: Vec::new(),
            credentials: None,
            generation: Generation::V03,
            signs: false,
        }),
        metadata: Metadata::from_iter([("a2a-lambda/skillId".to_owned(), json!("s"))]),
        generation: Generation::V03,
        idempotency_key: None,
    };
    assert_eq!(sent, expected);
}

#[test]
fn a_send_without_configuration_waits_and_returns_100_messages() {
    let rows = [
        json!({"message": message()}),
        with(&json!({})),
        with(&json!({"blocking": null, "historyLength": null})),
        with(&json!({"blocking": true, "historyLength": 1000})),
    ];
    each_row(rows, |params| {
        let sent = decode_send(&params).unwrap();
        assert_eq!(sent.mode, SendMode::Blocking, "{params}");
        assert_eq!(sent.history_length, 100, "{params}");
    });
}

#[test]
fn a_faulty_send_is_refused_by_field() {
    let parts = |count: usize| {
        let parts = vec![json!({"text": "x"}); count];
        json!({"message": {"messageId": "m", "role": "user", "parts": parts}})
    };
    let changed = |name: &str, value: Value| {
        let mut message = message();
        message[name] = value;
        json!({"message": message})
    };
    let rows = [
        (json!({}), "message"),
        (json!({"": "x"}), "message"),
        (json!({"message": "hi"}), "message"),
        (json!({"message": {}}), "message.messageId"),
        (changed("messageId", json!("")), "message.messageId"),
        (changed("role", json!("agent")), "message.role"),
        (changed("kind", json!("task")), "message.kind"),
        (changed("taskId", json!("")), "message.taskId"),
        (changed("metadata", json!([])), "message.metadata"),
        (changed("parts", json!({})), "message.parts"),
        (parts(0), "message.parts"),
        (parts(65), "message.parts"),
        (
            with(&json!({"historyLength": -1, "blocking": "no"})),
            "configuration.historyLength",
        ),
        (with(&json!({"blocking": "no"})), "configuration.blocking"),
        (
            with(&json!({"acceptedOutputModes": ["a", 1]})),
            "configuration.acceptedOutputModes[1]",
        ),
        (
            with(&json!({"pushNotificationConfig": {}})),
            "configuration.pushNotificationConfig.url",
        ),
    ];
    each_row(rows, |(params, expected)| {
        assert_eq!(field_of(decode_send(&params)), expected, "{params}");
    });
    assert!(decode_send(&parts(64)).is_ok());
}

#[test]
fn a_task_is_named_by_its_id() {
    let query = decode_get(&json!({"id": "t-1"})).unwrap();
    assert_eq!((query.id.as_str(), query.history_length), ("t-1", 100));
    let query = decode_get(&json!({"id": "t-1", "historyLength": 0})).unwrap();
    assert_eq!(query.history_length, 0);
    let cancel = decode_cancel(&json!({"id": "t-1", "metadata": {"k": 1}})).unwrap();
    assert_eq!(Value::from(cancel.metadata), json!({"k": 1}));
    let subscribe = decode_subscribe(&json!({"id": "t-1"})).unwrap();
    assert_eq!((subscribe.id.as_str(), subscribe.last_event), ("t-1", None));

    assert_eq!(field_of(decode_get(&json!({"historyLength": -1}))), "id");
    assert_eq!(field_of(decode_cancel(&json!({"id": 1}))), "id");
    assert_eq!(field_of(decode_subscribe(&json!({}))), "id");
}

#[test]
fn a_task_is_written_with_its_kind() {
    let mut task = full_task();
    task.transitions.clear();
    assert_eq!(
        RPC.send_response(&SendResponse::Task(Box::new(task))),
        json!({
            "kind": "task",
            "id": "t-1",
            "contextId": "c-1",
            "status": {
                "state": "completed",
                "timestamp": "2026-05-28T20:26:40.000Z",
                "message": {
                    "kind": "message",
                    "messageId": "m-2",
                    "role": "agent",
                    "parts": [{"kind": "text", "text": "bye"}],
                    "taskId": "t-1",
                    "contextId": "c-1",
                },
            },
            "artifacts": [{
                "artifactId": "a-1",
                "name": "report",
                "parts": [{"kind": "text", "text": "done"}],
            }],
            "history": [{
                "kind": "message",
                "messageId": "m-1",
                "role": "user",
                "parts": [{"kind": "text", "text": "hello"}],
                "contextId": "c-1",
                "referenceTaskIds": ["t-0"],
            }],
            "metadata": {"tag": "x"},
        })
    );
}

#[test]
fn a_message_is_written_with_its_kind() {
    let message = Message::from_agent("m-2", vec![Part::text("hi")]);
    assert_eq!(
        RPC.send_response(&SendResponse::Message(message)),
        json!({
            "kind": "message",
            "messageId": "m-2",
            "role": "agent",
            "parts": [{"kind": "text", "text": "hi"}],
        })
    );
}

#[test]
fn each_stream_event_has_its_kind_and_the_last_is_final() {
    let frame = status_change(status(TaskState::Working, None), false);
    assert_eq!(
        frame_of(RPC, &frame),
        Some(json!({
            "kind": "status-update",
            "taskId": "t-1",
            "contextId": "c-1",
            "status": {"state": "working", "timestamp": "2026-05-28T20:26:40.000Z"},
            "final": false,
            "metadata": {"a2a-lambda/restarted": true},
        }))
    );
    let frame = status_change(status(TaskState::Completed, None), true);
    assert_eq!(frame_of(RPC, &frame).unwrap()["final"], true);
    assert_eq!(
        frame_of(RPC, &chunk(artifact("a-1", "x", "1"), false, true)),
        Some(json!({
            "kind": "artifact-update",
            "taskId": "t-1",
            "contextId": "c-1",
            "artifact": {"artifactId": "a-1", "name": "x", "parts": [{"kind": "text", "text": "1"}]},
            "append": false,
            "lastChunk": true,
        }))
    );
    assert_eq!(frame_of(RPC, &Frame::KeepAlive), None);
    assert_eq!(frame_of(RPC, &Frame::Refused(A2aError::Internal)), None);
}

#[test]
fn a_resumed_stream_begins_with_the_status_only() {
    let frame = Frame::Resumed(Box::new(full_task()));
    let shown = frame_of(RPC, &frame).unwrap();
    let members: Vec<&String> = shown.as_object().unwrap().keys().collect();
    assert_eq!(members, ["contextId", "id", "kind", "status"]);
}
