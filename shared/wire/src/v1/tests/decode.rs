//! Tests how requests of 1.0 are read, and which faults are named.

use super::*;
use crate::samples::rest;
use a2a_lambda_model::task::{
    CancelCommand, GetQuery, ListQuery, PartContent, Role, SendMode, SubscribeCommand,
};
use a2a_lambda_rows::each_row;

fn decode_get(params: &Value) -> Result<GetQuery, A2aError> {
    command!(rpc("GetTask", params), Get)
}

fn decode_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    command!(rpc("CancelTask", params), Cancel)
}

fn decode_subscribe(params: &Value) -> Result<SubscribeCommand, A2aError> {
    command!(rpc("SubscribeToTask", params), Subscribe)
}

fn decode_list(params: &Value) -> Result<ListQuery, A2aError> {
    command!(rpc("ListTasks", params), List)
}

fn decode_list_pairs(pairs: &[(String, String)]) -> Result<ListQuery, A2aError> {
    command!(rest("GET", "/tasks", pairs, &Value::Null), List)
}

fn part(part: &Value) -> Part {
    let mut command = decode_send(&send_with(&json!({"parts": [part]}))).unwrap();
    command.message.parts.remove(0)
}

#[test]
fn a_full_send_is_read() {
    let command = decode_send(&json!({
        "message": {
            "messageId": "m1", "contextId": "c1", "taskId": "t1", "role": "ROLE_USER",
            "parts": [{"text": "hi", "metadata": {"a": 1}}],
            "metadata": {"b": [null]}, "extensions": ["urn:x"], "referenceTaskIds": ["t0"],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": true,
            "taskPushNotificationConfig": {"url": "https://example.com/hook", "token": "s"},
        },
        "metadata": {"a2a-lambda/skillId": "echo"},
        "tenant": "acme",
    }))
    .unwrap();
    assert_eq!(command.message.id, "m1");
    assert_eq!(command.message.role, Role::User);
    assert_eq!(command.message.context_id, ContextId::parse("c1").ok());
    assert_eq!(command.message.task_id, TaskId::parse("t1").ok());
    assert_eq!(command.message.reference_task_ids, ["t0"]);
    assert_eq!(command.message.extensions, ["urn:x"]);
    assert_eq!(command.message.metadata["b"], json!([null]));
    assert_eq!(command.message.parts[0].metadata["a"], 1);
    assert_eq!(command.mode, SendMode::Immediate);
    assert_eq!(command.history_length, 3);
    assert_eq!(command.accepted_output_modes, ["text/plain"]);
    assert_eq!(command.push.unwrap().url, "https://example.com/hook");
    assert_eq!(command.metadata["a2a-lambda/skillId"], "echo");
    assert_eq!(command.generation, Generation::V10);
    assert_eq!(command.client_task_id, None);
}

#[test]
fn a_send_without_configuration_waits_and_returns_100_messages() {
    let command = decode_send(&send_with(&json!({}))).unwrap();
    assert_eq!(command.mode, SendMode::Blocking);
    assert_eq!(command.history_length, 100);
    assert!(command.accepted_output_modes.is_empty());
    assert_eq!(command.push, None);
}

#[test]
fn every_content_of_a_part_is_read() {
    assert_eq!(
        part(&json!({"text": ""})).content,
        PartContent::Text(String::new())
    );
    assert_eq!(
        part(&json!({"url": "https://example.com/a"})).content,
        PartContent::Url("https://example.com/a".to_owned())
    );
    let rows = [
        json!(null),
        json!(0),
        json!([1]),
        json!({"a": 9_007_199_254_740_993_i64}),
    ];
    each_row(rows, |data| {
        assert_eq!(
            part(&json!({"data": data})).content,
            PartContent::Data(data)
        );
    });
    let file = part(&json!({"raw": "aGk=", "filename": "a.txt", "mediaType": "text/plain"}));
    assert_eq!(file.content, PartContent::Raw("hi".into()));
    assert_eq!(file.filename.as_deref(), Some("a.txt"));
    assert_eq!(file.media_type.as_deref(), Some("text/plain"));
}

#[test]
fn base64_is_read_in_both_alphabets_with_and_without_padding() {
    each_row(["+/8=", "-_8=", "+/8", "-_8"], |raw| {
        let content = part(&json!({"raw": raw})).content;
        assert_eq!(content, PartContent::Raw(vec![0xfb, 0xff].into()), "{raw}");
    });
    assert_eq!(
        part(&json!({"raw": ""})).content,
        PartContent::Raw(Vec::new().into())
    );
}

#[test]
fn proto_names_and_numbers_in_strings_are_read() {
    let command = decode_send(&json!({
        "message": {
            "message_id": "m1", "context_id": "c1", "role": "ROLE_USER",
            "parts": [{"text": "hi", "media_type": "text/plain"}],
        },
        "configuration": {"history_length": "10", "return_immediately": true,
            "push_notification_config": {"url": "https://example.com/", "task_id": "t"}},
    }))
    .unwrap();
    assert_eq!(command.message.id, "m1");
    assert_eq!(command.message.context_id, ContextId::parse("c1").ok());
    assert_eq!(
        command.message.parts[0].media_type.as_deref(),
        Some("text/plain")
    );
    assert_eq!(command.history_length, 10);
    assert_eq!(command.mode, SendMode::Immediate);
    assert!(command.push.is_some());
}

#[test]
fn metadata_and_data_keep_snake_case_names() {
    let command = decode_send(&send_with(&json!({
        "metadata": {"task_id": "x", "n": null}, "parts": [{"data": {"media_type": null}}],
    })))
    .unwrap();
    assert_eq!(command.message.metadata["task_id"], "x");
    assert_eq!(command.message.metadata["n"], Value::Null);
    assert_eq!(
        command.message.parts[0].content,
        PartContent::Data(json!({"media_type": null}))
    );
}

#[test]
fn unknown_members_and_nulls_are_ignored() {
    let mut request = send_with(&json!({"kind": "message", "taskId": null, "extra": {"a": 1}}));
    request["message"]["parts"][0]["kind"] = json!("text");
    request["configuration"] = Value::Null;
    request["future"] = json!(1);
    assert!(decode_send(&request).is_ok());
}

#[test]
fn a_faulty_message_is_refused_by_path() {
    let many = vec![json!({"text": "x"}); 65];
    let rows = [
        (json!({"messageId": ""}), "message.messageId"),
        (json!({"messageId": null}), "message.messageId"),
        (json!({"messageId": 7}), "message.messageId"),
        (json!({"role": null}), "message.role"),
        (json!({"role": ""}), "message.role"),
        (json!({"role": "ROLE_AGENT"}), "message.role"),
        (json!({"role": "ROLE_UNSPECIFIED"}), "message.role"),
        (json!({"role": "user"}), "message.role"),
        (json!({"role": 1}), "message.role"),
        (json!({"parts": null}), "message.parts"),
        (json!({"parts": []}), "message.parts"),
        (json!({"parts": many}), "message.parts"),
        (json!({"parts": {"text": "x"}}), "message.parts"),
        (json!({"parts": ["x"]}), "message.parts[0]"),
        (json!({"parts": [{}]}), "message.parts[0]"),
        (
            json!({"parts": [{"text": "x"}, {"text": "x", "url": "https://x"}]}),
            "message.parts[1]",
        ),
        (
            json!({"parts": [{"text": "x", "data": null}]}),
            "message.parts[0]",
        ),
        (json!({"parts": [{"text": null}]}), "message.parts[0]"),
        (json!({"parts": [{"kind": "text"}]}), "message.parts[0]"),
        (json!({"parts": [{"text": 1}]}), "message.parts[0].text"),
        (json!({"parts": [{"raw": "a"}]}), "message.parts[0].raw"),
        (json!({"parts": [{"raw": "a b="}]}), "message.parts[0].raw"),
        (json!({"parts": [{"raw": [1]}]}), "message.parts[0].raw"),
        (json!({"parts": [{"url": 1}]}), "message.parts[0].url"),
        (
            json!({"parts": [{"text": "x", "filename": 1}]}),
            "message.parts[0].filename",
        ),
        (
            json!({"parts": [{"text": "x", "mediaType": []}]}),
            "message.parts[0].mediaType",
        ),
        (
            json!({"parts": [{"text": "x", "metadata": 1}]}),
            "message.parts[0].metadata",
        ),
        (json!({"contextId": 1}), "message.contextId"),
        (json!({"contextId": "a b"}), "message.contextId"),
        (json!({"taskId": "a/b"}), "message.taskId"),
        (json!({"taskId": "x".repeat(129)}), "message.taskId"),
        (json!({"taskId": "t", "task_id": "t"}), "message.taskId"),
        (json!({"metadata": []}), "message.metadata"),
        (json!({"extensions": "urn:x"}), "message.extensions"),
        (
            json!({"referenceTaskIds": ["a", 1]}),
            "message.referenceTaskIds[1]",
        ),
    ];
    each_row(rows, |(message, field)| {
        let refusal = decode_send(&send_with(&message)).unwrap_err();
        assert_eq!(field_of(refusal), field, "{message}");
    });
}

#[test]
fn a_faulty_configuration_is_refused_by_path() {
    let config = json!({"url": "https://example.com/"});
    let rows = [
        (json!([]), "configuration"),
        (json!({"historyLength": -1}), "configuration.historyLength"),
        (
            json!({"historyLength": "-1"}),
            "configuration.historyLength",
        ),
        (json!({"historyLength": 1.5}), "configuration.historyLength"),
        (
            json!({"historyLength": "many"}),
            "configuration.historyLength",
        ),
        (
            json!({"historyLength": true}),
            "configuration.historyLength",
        ),
        (
            json!({"returnImmediately": "true"}),
            "configuration.returnImmediately",
        ),
        (
            json!({"acceptedOutputModes": "text/plain"}),
            "configuration.acceptedOutputModes",
        ),
        (
            json!({"acceptedOutputModes": [null]}),
            "configuration.acceptedOutputModes[0]",
        ),
        (
            json!({"taskPushNotificationConfig": {}}),
            "configuration.taskPushNotificationConfig.url",
        ),
        (
            json!({"pushNotificationConfig": {"url": ""}}),
            "configuration.pushNotificationConfig.url",
        ),
        (
            json!({"pushNotificationConfig": config, "taskPushNotificationConfig": config}),
            "configuration.taskPushNotificationConfig",
        ),
        (
            json!({"taskPushNotificationConfig": {"url": "https://x", "authentication": {}}}),
            "configuration.taskPushNotificationConfig.authentication.scheme",
        ),
    ];
    each_row(rows, |(configuration, field)| {
        let mut request = send_with(&json!({}));
        request["configuration"] = configuration.clone();
        assert_eq!(
            field_of(decode_send(&request).unwrap_err()),
            field,
            "{configuration}"
        );
    });
}

#[test]
fn the_first_fault_of_a_request_is_named() {
    let request = json!({"message": {"parts": []}, "configuration": {"historyLength": -1}});
    assert_eq!(
        field_of(decode_send(&request).unwrap_err()),
        "message.messageId"
    );
    assert_eq!(field_of(decode_send(&Value::Null).unwrap_err()), "message");
    assert_eq!(field_of(decode_send(&json!([1])).unwrap_err()), "params");
    assert_eq!(
        field_of(decode_send(&json!({"message": "hi"})).unwrap_err()),
        "message"
    );
}

#[test]
fn history_is_clamped_and_never_negative() {
    let rows = [
        (json!(0), 0),
        (json!(7), 7),
        (json!(100), 100),
        (json!(101), 100),
        (json!(u64::MAX), 100),
        (json!(null), 100),
    ];
    each_row(rows, |(length, expected)| {
        let query = decode_get(&json!({"id": "t", "historyLength": length})).unwrap();
        assert_eq!(query.history_length, expected, "{length}");
    });
}

#[test]
fn a_task_is_named_by_its_id() {
    assert_eq!(
        decode_get(&json!({"id": "a:b"})).unwrap().id.as_str(),
        "a:b"
    );
    let rows = [
        json!({}),
        json!({"id": ""}),
        json!({"id": 1}),
        json!({"id": "a b"}),
        json!({"name": "t"}),
    ];
    each_row(rows, |bad| {
        assert_eq!(field_of(decode_get(&bad).unwrap_err()), "id", "{bad}");
        assert_eq!(field_of(decode_cancel(&bad).unwrap_err()), "id", "{bad}");
        assert_eq!(field_of(decode_subscribe(&bad).unwrap_err()), "id", "{bad}");
    });
    let cancel = decode_cancel(&json!({"id": "t", "metadata": {"why": "x"}})).unwrap();
    assert_eq!(cancel.metadata["why"], "x");
}

#[test]
fn a_list_without_parameters_has_the_defaults() {
    let query = decode_list(&Value::Null).unwrap();
    assert_eq!(query.page_size, 50);
    assert_eq!(query.history_length, 100);
    assert!(!query.include_artifacts);
    assert_eq!(
        (query.context_id, query.status, query.page_token),
        (None, None, None)
    );
}

#[test]
fn a_full_list_is_read_from_json_and_from_a_query() {
    let json = decode_list(&json!({
        "contextId": "c1", "status": "TASK_STATE_INPUT_REQUIRED", "pageSize": 7, "pageToken": "p",
        "historyLength": 0, "statusTimestampAfter": "2026-05-28T12:00:00.1234+02:00",
        "includeArtifacts": true,
    }))
    .unwrap();
    let pairs = [
        ("contextId", "c1"),
        ("status", "TASK_STATE_INPUT_REQUIRED"),
        ("pageSize", "7"),
        ("pageToken", "p"),
        ("historyLength", "0"),
        ("statusTimestampAfter", "2026-05-28T12:00:00.1234+02:00"),
        ("includeArtifacts", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(decode_list_pairs(&pairs).unwrap(), json);
    assert_eq!(json.status, Some(TaskState::InputRequired));
    assert_eq!(json.page_size, 7);
    assert_eq!(json.history_length, 0);
    assert!(json.include_artifacts);
    assert_eq!(
        json.status_after,
        Timestamp::parse_rfc3339("2026-05-28T10:00:00.123Z")
    );
}

#[test]
fn a_faulty_list_is_refused_by_name_in_both_spellings() {
    let rows = [
        ("pageSize", "0"),
        ("pageSize", "101"),
        ("pageSize", "-1"),
        ("pageSize", "ten"),
        ("pageSize", ""),
        ("historyLength", "-1"),
        ("status", "TASK_STATE_UNKNOWN"),
        ("status", "completed"),
        ("status", "1"),
        ("statusTimestampAfter", "yesterday"),
        ("statusTimestampAfter", "2026-05-28"),
        ("contextId", "a b"),
        ("includeArtifacts", "yes"),
    ];
    each_row(rows, |(name, value)| {
        let pairs = [(name.to_owned(), value.to_owned())];
        assert_eq!(
            field_of(decode_list_pairs(&pairs).unwrap_err()),
            name,
            "{value}"
        );
        let request = json!({ name: value });
        assert_eq!(
            field_of(decode_list(&request).unwrap_err()),
            name,
            "{value}"
        );
    });
    assert_eq!(
        field_of(decode_list(&json!({"status": 3})).unwrap_err()),
        "status"
    );
    let twice = [
        ("pageSize".to_owned(), "1".to_owned()),
        ("pageSize".to_owned(), "2".to_owned()),
    ];
    assert_eq!(field_of(decode_list_pairs(&twice).unwrap_err()), "pageSize");
}

#[test]
fn every_state_has_its_name() {
    let rows = [
        (TaskState::Submitted, "TASK_STATE_SUBMITTED"),
        (TaskState::Working, "TASK_STATE_WORKING"),
        (TaskState::InputRequired, "TASK_STATE_INPUT_REQUIRED"),
        (TaskState::AuthRequired, "TASK_STATE_AUTH_REQUIRED"),
        (TaskState::Completed, "TASK_STATE_COMPLETED"),
        (TaskState::Failed, "TASK_STATE_FAILED"),
        (TaskState::Canceled, "TASK_STATE_CANCELED"),
        (TaskState::Rejected, "TASK_STATE_REJECTED"),
    ];
    each_row(rows, |(state, name)| {
        let read = decode_list(&json!({"status": name})).unwrap();
        assert_eq!(read.status, Some(state));
        assert_eq!(encode_task(&task_in(state))["status"]["state"], name);
    });
}
