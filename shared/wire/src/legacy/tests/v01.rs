use super::*;
use crate::Dialect;
use crate::legacy::Legacy;
use crate::samples::{
    artifact, chunk, command, context_id, field_of, full_task, rest, rpc, status, status_change,
    task, task_id,
};
use a2a_lambda_model::task::{
    A2aError, CancelCommand, ContextId, Frame, GetQuery, Part, PartContent, SendMode,
    SubscribeCommand, Task, TaskId, TaskState,
};
use a2a_lambda_rows::each_row;
use serde_json::{Value, json};

pub(crate) fn decode_send(params: &Value) -> Result<SendCommand, A2aError> {
    command!(rpc("tasks/send", params), Send).map(|it| *it)
}

const LEGACY: Legacy = Legacy(Dialect::rest(Generation::V01));

/// A stream of a client whose task is `t-1`, with the artifacts that it has shown.
#[derive(Default)]
struct Stream(Vec<String>);

impl Stream {
    fn frame(&mut self, frame: &Frame) -> Option<Value> {
        LEGACY.frame(frame, Some(task_id()), &mut self.0)
    }
}

fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    command!(rest("POST", "/tasks/get", &[], params), Get)
}

fn decode_get_path(id: &str, pairs: &[(String, String)]) -> Result<GetQuery, A2aError> {
    let path = format!("/tasks/{id}/get");
    command!(rest("GET", &path, pairs, &Value::Null), Get)
}

fn decode_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    command!(rest("POST", "/tasks/cancel", &[], params), Cancel)
}

fn decode_subscribe(params: &Value) -> Result<SubscribeCommand, A2aError> {
    command!(rest("POST", "/tasks/resubscribe", &[], params), Subscribe)
}

fn params() -> Value {
    json!({
        "id": "order:7",
        "sessionId": "s-1",
        "message": {
            "role": "user",
            "parts": [{"type": "text", "text": "hi"}, {"type": "data", "data": [1]}],
            "metadata": {"m": 1},
        },
        "pushNotification": {"url": "https://x.example/hook"},
        "metadata": {"r": 1},
    })
}

#[test]
fn a_send_is_read_with_the_clients_task_id() {
    let expected = SendCommand {
        message: Message {
            context_id: ContextId::parse("s-1").ok(),
            metadata: [("m".to_owned(), json!(1))].into_iter().collect(),
            ..Message::from_user("", vec![Part::text("hi"), Part::data(json!([1]))])
        },
        client_task_id: TaskId::parse("order:7").ok(),
        mode: SendMode::Blocking,
        history_length: 0,
        accepted_output_modes: Vec::new(),
        push: Some(a2a_lambda_model::task::PushOffer {
            at: "pushNotification".to_owned(),
            id: Some(a2a_lambda_model::task::PushId::only()),
            url: "https://x.example/hook".to_owned(),
            token: None,
            schemes: Vec::new(),
            credentials: None,
            generation: Generation::V01,
            signs: false,
        }),
        metadata: [("r".to_owned(), json!(1))].into_iter().collect(),
        generation: Generation::V01,
        idempotency_key: None,
    };
    assert_eq!(decode_send(&params()), Ok(expected));
}

#[test]
fn history_is_returned_only_if_the_client_names_a_length() {
    let rows = [
        (json!(null), 0),
        (json!(0), 0),
        (json!(5), 5),
        (json!(500), 100),
    ];
    each_row(rows, |(given, length)| {
        let mut params = params();
        params["historyLength"] = given;
        assert_eq!(decode_send(&params).unwrap().history_length, length);
        assert_eq!(decode_get(&params).unwrap().history_length, length);
    });
    assert_eq!(decode_get_path("t", &[]).unwrap().history_length, 0);
    let query = [("historyLength".to_owned(), "3".to_owned())];
    assert_eq!(decode_get_path("t", &query).unwrap().history_length, 3);
}

#[test]
fn a_faulty_send_is_refused_by_field() {
    let changed = |name: &str, value: Value| {
        let mut params = params();
        params[name] = value;
        params
    };
    let rows = [
        (json!([]), "params"),
        (json!({}), "id"),
        (changed("id", json!("")), "id"),
        (changed("id", json!("a b")), "id"),
        (changed("sessionId", json!(1)), "sessionId"),
        (changed("historyLength", json!(-1)), "historyLength"),
        (
            changed("pushNotification", json!({})),
            "pushNotification.url",
        ),
        (
            changed("message", json!({"role": "user", "parts": []})),
            "message.parts",
        ),
        (
            changed("message", json!({"role": "agent", "parts": []})),
            "message.role",
        ),
        (
            changed(
                "message",
                json!({"role": "user", "parts": [{"type": "data", "data": 1}]}),
            ),
            "message.parts[0].data",
        ),
    ];
    each_row(rows, |(params, expected)| {
        assert_eq!(field_of(decode_send(&params)), expected, "{params}");
    });
    assert_eq!(field_of(decode_cancel(&json!({}))), "id");
    assert_eq!(field_of(decode_subscribe(&json!(1))), "params");
}

#[test]
fn a_task_is_written_in_the_shape_of_0_1() {
    let mut task = full_task();
    task.transitions.clear();
    assert_eq!(
        Value::from(LEGACY.task(&task)),
        json!({
            "id": "t-1",
            "sessionId": "c-1",
            "status": {
                "state": "completed",
                "timestamp": "2026-05-28T20:26:40.000Z",
                "message": {"role": "agent", "parts": [{"type": "text", "text": "bye"}]},
            },
            "artifacts": [{
                "name": "report",
                "index": 0,
                "parts": [{"type": "text", "text": "done"}],
                "metadata": {"artifactId": "a-1"},
            }],
            "history": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
            "metadata": {"tag": "x"},
        })
    );
}

#[test]
fn a_reply_without_a_task_becomes_a_completed_task() {
    let reply = Message {
        context_id: Some(context_id()),
        ..Message::from_agent("m-2", vec![Part::text("hi")])
    };
    let status = json!({
        "state": "completed",
        "message": {"role": "agent", "parts": [{"type": "text", "text": "hi"}]},
    });
    assert_eq!(
        Value::from(LEGACY.message_as_task(&reply, &task_id())),
        json!({"id": "t-1", "sessionId": "c-1", "status": status})
    );
    let mut stream = Stream::default();
    assert_eq!(
        stream.frame(&Frame::Message(reply)),
        Some(json!({"id": "t-1", "status": status, "final": true}))
    );
}

#[test]
fn a_stream_starts_with_a_status() {
    for (state, word, last) in [
        (TaskState::Submitted, "submitted", false),
        (TaskState::InputRequired, "input-required", false),
        (TaskState::Rejected, "failed", true),
    ] {
        let first = Frame::Task(Box::new(task(status(state, None))));
        assert_eq!(
            Stream::default().frame(&first),
            Some(json!({
                "id": "t-1",
                "status": {"state": word, "timestamp": "2026-05-28T20:26:40.000Z"},
                "final": last,
            }))
        );
    }
}

#[test]
fn a_stream_ends_with_a_final_status() {
    let mut stream = Stream::default();
    let end = status_change(status(TaskState::InputRequired, Some("which?")), true);
    assert_eq!(
        stream.frame(&end),
        Some(json!({
            "id": "t-1",
            "status": {
                "state": "input-required",
                "timestamp": "2026-05-28T20:26:40.000Z",
                "message": {"role": "agent", "parts": [{"type": "text", "text": "which?"}]},
            },
            "final": true,
            "metadata": {"a2a-lambda/restarted": true},
        }))
    );
    assert_eq!(stream.frame(&Frame::KeepAlive), None);
    assert_eq!(stream.frame(&Frame::Refused(A2aError::Internal)), None);
}

#[test]
fn chunks_of_one_artifact_have_one_index() {
    let mut stream = Stream::default();
    let mut index = |frame: &Frame| stream.frame(frame).unwrap()["artifact"]["index"].clone();
    assert_eq!(index(&chunk(artifact("a-1", "x", "1"), false, false)), 0);
    assert_eq!(index(&chunk(artifact("a-2", "y", "1"), false, true)), 1);
    assert_eq!(index(&chunk(artifact("a-1", "x", "2"), true, true)), 0);

    let last = chunk(artifact("a-1", "x", "2"), true, true);
    assert_eq!(
        stream.frame(&last),
        Some(json!({
            "id": "t-1",
            "artifact": {
                "name": "x",
                "index": 0,
                "parts": [{"type": "text", "text": "2"}],
                "append": true,
                "lastChunk": true,
                "metadata": {"artifactId": "a-1"},
            },
        }))
    );
}

#[test]
fn a_late_subscriber_gets_the_artifact_indexes_of_the_task() {
    for resumed in [false, true] {
        let shown = Task {
            artifacts: Some(vec![artifact("a-1", "x", "1"), artifact("a-2", "y", "1")]),
            ..task(status(TaskState::Working, None))
        };
        let first = if resumed {
            Frame::Resumed(Box::new(shown))
        } else {
            Frame::Task(Box::new(shown))
        };
        let mut stream = Stream::default();
        stream.frame(&first);
        let index = |frame: Option<Value>| frame.unwrap()["artifact"]["index"].clone();
        let known = chunk(artifact("a-2", "y", "2"), true, true);
        assert_eq!(index(stream.frame(&known)), 1);
        let new = chunk(artifact("a-3", "z", "1"), false, true);
        assert_eq!(index(stream.frame(&new)), 2);
    }
}

#[test]
fn a_file_part_is_read() {
    let mut params = params();
    params["message"]["parts"] = json!([
        {"type": "file", "file": {"name": "a", "mimeType": "text/csv", "bytes": "YQ"}},
    ]);
    let sent = decode_send(&params).unwrap();
    let [part] = sent.message.parts.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(part.content, PartContent::Raw("a".into()));
    assert_eq!(part.media_type.as_deref(), Some("text/csv"));
}
