use super::*;
use crate::samples::rest;
use a2a_lambda_model::task::{ListQuery, Page};
use a2a_lambda_rows::each_row;

const REST: Legacy = Legacy(Dialect::rest(Generation::V03));

pub(crate) fn decode_send(body: &Value) -> Result<SendCommand, A2aError> {
    command!(rest("POST", "/v1/message:send", &[], body), Send).map(|it| *it)
}

fn decode_get(id: &str, pairs: &[(String, String)]) -> Result<GetQuery, A2aError> {
    let path = format!("/v1/tasks/{id}");
    command!(rest("GET", &path, pairs, &Value::Null), Get)
}

fn decode_cancel(id: &str, body: &Value) -> Result<CancelCommand, A2aError> {
    let path = format!("/v1/tasks/{id}:cancel");
    command!(rest("POST", &path, &[], body), Cancel)
}

fn decode_subscribe(id: &str) -> Result<SubscribeCommand, A2aError> {
    let path = format!("/v1/tasks/{id}:subscribe");
    command!(rest("GET", &path, &[], &Value::Null), Subscribe)
}

fn decode_list(pairs: &[(String, String)]) -> Result<ListQuery, A2aError> {
    command!(rest("GET", "/v1/tasks", pairs, &Value::Null), List)
}

fn query(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn proto_json_and_the_json_of_the_prose_read_alike() {
    let proto = json!({
        "message": {
            "messageId": "m-1",
            "contextId": "c-1",
            "role": "ROLE_USER",
            "content": [
                {"text": "hi"},
                {"file": {"fileWithBytes": "AAEC", "mimeType": "image/png", "name": "a.png"}},
                {"file": {"fileWithUri": "https://x.example/a"}},
                {"data": {"data": {"k": 1}}},
            ],
        },
    });
    let snake = json!({
        "request": {
            "message_id": "m-1",
            "context_id": "c-1",
            "task_id": "",
            "role": "ROLE_USER",
            "content": [
                {"text": "hi"},
                {"file": {"file_with_bytes": "AAEC", "mime_type": "image/png", "name": "a.png"}},
                {"file": {"file_with_uri": "https://x.example/a"}},
                {"data": {"data": {"k": 1}}},
            ],
        },
    });
    let prose = json!({
        "message": {
            "kind": "message",
            "messageId": "m-1",
            "contextId": "c-1",
            "role": "user",
            "parts": [
                {"kind": "text", "text": "hi"},
                {"kind": "file", "file": {"bytes": "AAEC", "mimeType": "image/png", "name": "a.png"}},
                {"kind": "file", "file": {"uri": "https://x.example/a"}},
                {"kind": "data", "data": {"k": 1}},
            ],
        },
    });
    let read = decode_send(&proto).unwrap();
    assert_eq!(read.message.parts.len(), 4);
    assert_eq!(read.mode, SendMode::Blocking);
    assert_eq!(decode_send(&snake).as_ref(), Ok(&read));
    assert_eq!(decode_send(&prose).as_ref(), Ok(&read));
}

#[test]
fn data_without_the_inner_data_member_is_read_as_it_is() {
    let rows = [
        (json!({"data": {"k": 1}}), json!({"k": 1})),
        (json!({"data": {}}), json!({})),
        (json!({"data": 5}), json!({"data": 5})),
        (
            json!({"data": {"k": 1}, "more": 2}),
            json!({"data": {"k": 1}, "more": 2}),
        ),
        (json!({"k": 1}), json!({"k": 1})),
        (json!({}), json!({})),
    ];
    each_row(rows, |(data, read_as)| {
        let message = json!({"messageId": "m", "role": "user", "content": [{"data": data}]});
        let sent = decode_send(&json!({"message": message})).unwrap();
        assert_eq!(sent.message.parts, [Part::data(read_as)], "{data}");
    });
}

#[test]
fn the_configuration_is_read_under_its_proto_names() {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]});
    for configuration in [
        json!({"historyLength": 2, "blocking": false, "pushNotification": {"url": "u"}}),
        json!({"history_length": "2", "blocking": false, "push_notification": {"url": "u"}}),
        json!({"historyLength": 2, "blocking": false, "pushNotificationConfig": {"url": "u"}}),
    ] {
        let sent = decode_send(&json!({"message": message, "configuration": configuration}));
        let sent = sent.unwrap();
        assert_eq!(sent.history_length, 2);
        assert_eq!(sent.mode, SendMode::Immediate);
        assert_eq!(sent.push.map(|push| push.url).as_deref(), Some("u"));
    }
}

#[test]
fn an_absent_blocking_does_not_wait_but_an_absent_configuration_does() {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]});
    let mode = |body: Value| decode_send(&body).unwrap().mode;
    let with =
        |configuration: Value| mode(json!({"message": message, "configuration": configuration}));
    assert_eq!(with(json!({})), SendMode::Immediate);
    assert_eq!(with(json!({"blocking": false})), SendMode::Immediate);
    assert_eq!(with(json!({"blocking": true})), SendMode::Blocking);
    assert_eq!(mode(json!({"message": message})), SendMode::Blocking);
}

#[test]
fn a_faulty_body_is_refused_by_field() {
    let part =
        |part: Value| json!({"message": {"messageId": "m", "role": "user", "content": [part]}});
    let rows = [
        (json!([]), "params"),
        (json!({}), "message"),
        (part(json!({"text": "x", "data": {}})), "message.content[0]"),
        (part(json!({"data": [1]})), "message.content[0].data"),
        (part(json!({"file": {}})), "message.content[0].file"),
        (
            part(json!({"file": {"fileWithBytes": "?"}})),
            "message.content[0].file.fileWithBytes",
        ),
        (
            json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "x"}]}}),
            "message.role",
        ),
        (
            json!({"message": {"messageId": "m", "role": 1, "content": [{"text": "x"}]}}),
            "message.role",
        ),
        (
            json!({"message": {
                "messageId": "m", "role": "user", "content": [{"text": "x"}], "parts": [{"text": "x"}],
            }}),
            "message.content",
        ),
    ];
    each_row(rows, |(body, field)| {
        assert_eq!(field_of(decode_send(&body)), field, "{body}");
    });
}

#[test]
fn a_task_is_named_by_path_and_query() {
    let read = decode_get("t-1", &query(&[("historyLength", "2"), ("other", "x")])).unwrap();
    assert_eq!((read.id.as_str(), read.history_length), ("t-1", 2));
    assert_eq!(decode_get("t-1", &[]).unwrap().history_length, 100);
    assert_eq!(field_of(decode_get("a b", &[])), "id");
    assert_eq!(
        field_of(decode_get("t-1", &query(&[("historyLength", "-2")]))),
        "historyLength"
    );
    assert_eq!(
        decode_cancel("t-1", &json!(null)).unwrap().id.as_str(),
        "t-1"
    );
    assert!(decode_cancel("t-1", &json!({"name": "tasks/t-1"})).is_ok());
    assert_eq!(field_of(decode_cancel("t-1", &json!([]))), "params");
    assert!(decode_subscribe("t-1").is_ok());
}

#[test]
fn a_list_has_the_filters_of_1_0() {
    let read = decode_list(&[]).unwrap();
    assert_eq!((read.page_size, read.history_length), (50, 100));
    assert!(!read.include_artifacts);

    let read = decode_list(&query(&[
        ("contextId", "c-1"),
        ("status", "TASK_STATE_CANCELLED"),
        ("statusTimestampAfter", "2026-05-28T10:00:00Z"),
        ("pageSize", "100"),
        ("pageToken", "next"),
        ("historyLength", "0"),
        ("includeArtifacts", "true"),
    ]))
    .unwrap();
    assert_eq!(read.status, Some(TaskState::Canceled));
    assert_eq!(read.page_size, 100);
    assert_eq!(read.page_token.as_deref(), Some("next"));
    assert!(read.include_artifacts && read.status_after.is_some());

    let rows = [
        ("status", "done"),
        ("pageSize", "101"),
        ("includeArtifacts", "yes"),
        ("statusTimestampAfter", "yesterday"),
    ];
    each_row(rows, |(name, value)| {
        assert_eq!(field_of(decode_list(&query(&[(name, value)]))), name);
    });
}

#[test]
fn a_response_is_proto_json_of_the_0_3_proto() {
    let mut task = full_task();
    task.transitions.clear();
    assert_eq!(
        REST.send_response(&SendResponse::Task(Box::new(task))),
        json!({"task": {
            "id": "t-1",
            "contextId": "c-1",
            "status": {
                "state": "TASK_STATE_COMPLETED",
                "timestamp": "2026-05-28T20:26:40.000Z",
                "message": {
                    "messageId": "m-2",
                    "role": "ROLE_AGENT",
                    "content": [{"text": "bye"}],
                    "taskId": "t-1",
                    "contextId": "c-1",
                },
            },
            "artifacts": [{"artifactId": "a-1", "name": "report", "parts": [{"text": "done"}]}],
            "history": [{
                "messageId": "m-1",
                "role": "ROLE_USER",
                "content": [{"text": "hello"}],
                "contextId": "c-1",
            }],
            "metadata": {"tag": "x"},
        }})
    );
    let message = Message::from_agent("m-2", vec![Part::text("hi")]);
    assert_eq!(
        REST.send_response(&SendResponse::Message(message)),
        json!({"message": {"messageId": "m-2", "role": "ROLE_AGENT", "content": [{"text": "hi"}]}})
    );
}

#[test]
fn a_page_has_all_its_members_even_when_empty() {
    let page = Page {
        tasks: Vec::new(),
        next_page_token: String::new(),
        page_size: 50,
        total_size: 0,
    };
    assert_eq!(
        REST.page(&page),
        json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0})
    );
}

#[test]
fn a_stream_ends_with_a_final_status_update() {
    let frame = status_change(status(TaskState::Canceled, None), true);
    assert_eq!(
        frame_of(REST, &frame),
        Some(json!({"statusUpdate": {
            "taskId": "t-1",
            "contextId": "c-1",
            "status": {
                "state": "TASK_STATE_CANCELLED",
                "timestamp": "2026-05-28T20:26:40.000Z",
            },
            "final": true,
            "metadata": {"a2a-lambda/restarted": true},
        }}))
    );
    assert_eq!(
        frame_of(REST, &chunk(artifact("a-1", "x", "1"), true, false)),
        Some(json!({"artifactUpdate": {
            "taskId": "t-1",
            "contextId": "c-1",
            "artifact": {"artifactId": "a-1", "name": "x", "parts": [{"text": "1"}]},
            "append": true,
            "lastChunk": false,
        }}))
    );
    let resumed = frame_of(REST, &Frame::Resumed(Box::new(full_task()))).unwrap();
    let members: Vec<&String> = resumed["task"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["contextId", "id", "status"]);
    assert_eq!(frame_of(REST, &Frame::KeepAlive), None);
}
