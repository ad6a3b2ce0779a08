//! Tests each row of the conversion table in `words`.

mod v01;
mod v03;

use super::*;
use crate::Dialect;
use crate::legacy::Legacy;
use crate::samples::{artifact, context_id, full_task, status, task, task_id};
use crate::v1::View;
use crate::words::state_name;
use a2a_lambda_model::task::metadata_keys::STATE_TRANSITIONS;
use a2a_lambda_model::task::{
    Blob, ContextId, Generation, Message, Part, PartContent, SendCommand, SendMode, Task, TaskState,
};
use a2a_lambda_rows::each_row;
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

const RPC: Legacy = Legacy(Dialect::json_rpc(Generation::V03));
const REST: Legacy = Legacy(Dialect::rest(Generation::V03));
const V01: Legacy = Legacy(Dialect::rest(Generation::V01));

/// A task in 0.3, 0.3 REST and 0.1.
fn in_all(task: &Task) -> [Value; 3] {
    [RPC, REST, V01].map(|it| it.task(task).into())
}

/// The first part of the first artifact of a task with this part, in 0.3, 0.3
/// REST and 0.1.
fn part_in_all(part: Part) -> [Value; 3] {
    let mut holder = artifact("a-1", "x", "");
    holder.parts = vec![part];
    let task = Task {
        artifacts: Some(vec![holder]),
        ..task(status(TaskState::Completed, None))
    };
    in_all(&task).map(|it| it["artifacts"][0]["parts"][0].clone())
}

#[test]
fn a_rejected_task_keeps_its_reason_as_a_failed_one_in_0_1() {
    let [v03, rest, v01] = in_all(&task(status(TaskState::Rejected, Some("not for me"))));
    assert_eq!(v03["status"]["state"], "rejected");
    assert_eq!(rest["status"]["state"], "TASK_STATE_REJECTED");
    assert_eq!(v01["status"]["state"], "failed");
    assert_eq!(
        v01["status"]["message"],
        json!({"role": "agent", "parts": [{"type": "text", "text": "not for me"}]})
    );
}

#[test]
fn auth_required_is_input_required_in_0_1() {
    let [v03, rest, v01] = in_all(&task(status(TaskState::AuthRequired, None)));
    assert_eq!(v03["status"]["state"], "auth-required");
    assert_eq!(rest["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(v01["status"]["state"], "input-required");
}

#[test]
fn the_other_states_keep_their_names() {
    let rows = [
        (TaskState::Submitted, "submitted", "TASK_STATE_SUBMITTED"),
        (TaskState::Working, "working", "TASK_STATE_WORKING"),
        (
            TaskState::InputRequired,
            "input-required",
            "TASK_STATE_INPUT_REQUIRED",
        ),
        (TaskState::Completed, "completed", "TASK_STATE_COMPLETED"),
        (TaskState::Failed, "failed", "TASK_STATE_FAILED"),
        (TaskState::Canceled, "canceled", "TASK_STATE_CANCELLED"),
    ];
    each_row(rows, |(state, word, proto)| {
        let of = |dialect| state_name(state, dialect);
        let (v03, v01) = (Generation::V03, Generation::V01);
        assert_eq!(of(Dialect::json_rpc(v01)), word);
        assert_eq!(of(Dialect::json_rpc(v03)), word);
        assert_eq!(of(Dialect::rest(v03)), proto);
    });
}

#[test]
fn data_that_is_an_object_is_not_wrapped() {
    let [v03, rest, v01] = part_in_all(Part::data(json!({"a": 1})));
    assert_eq!(v03, json!({"kind": "data", "data": {"a": 1}}));
    assert_eq!(rest, json!({"data": {"data": {"a": 1}}}));
    assert_eq!(v01, json!({"type": "data", "data": {"a": 1}}));
}

#[test]
fn a_scalar_or_null_is_wrapped_and_marked() {
    each_row([json!(7), json!("x"), json!(true), json!(null)], |value| {
        let [v03, rest, v01] = part_in_all(Part::data(value.clone()));
        let mark = json!({"data_part_compat": true});
        let wrapped = json!({"value": value});
        assert_eq!(
            v03,
            json!({"kind": "data", "data": wrapped, "metadata": mark})
        );
        assert_eq!(rest, json!({"data": {"data": wrapped}, "metadata": mark}));
        assert_eq!(
            v01,
            json!({"type": "data", "data": wrapped, "metadata": mark})
        );
    });
}

#[test]
fn an_array_is_wrapped_in_0_3_and_stays_in_0_1() {
    let [v03, rest, v01] = part_in_all(Part::data(json!([1, 2])));
    let mark = json!({"data_part_compat": true});
    assert_eq!(
        v03,
        json!({"kind": "data", "data": {"value": [1, 2]}, "metadata": mark})
    );
    assert_eq!(
        rest,
        json!({"data": {"data": {"value": [1, 2]}}, "metadata": mark})
    );
    assert_eq!(v01, json!({"type": "data", "data": [1, 2]}));
}

#[test]
fn wrapped_data_is_unwrapped_when_it_is_read() {
    let message = |part: Value| json!({"messageId": "m", "role": "user", "parts": [part]});
    let part = json!({
        "kind": "data",
        "data": {"value": [1, 2]},
        "metadata": {"data_part_compat": true, "k": "v"},
    });
    let sent = v03::decode_send(&json!({"message": message(part)})).unwrap();
    let [read] = sent.message.parts.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(read.content, PartContent::Data(json!([1, 2])));
    assert_eq!(Value::from(read.metadata.clone()), json!({"k": "v"}));

    let unmarked = json!({"kind": "data", "data": {"value": 1}});
    let sent = v03::decode_send(&json!({"message": message(unmarked)})).unwrap();
    assert_eq!(
        sent.message.parts,
        [Part::data(json!({"value": 1}))],
        "an object of the client's own"
    );
}

#[test]
fn bytes_and_urls_are_written_as_files() {
    let file = |content| Part {
        filename: Some("a.bin".to_owned()),
        media_type: Some("image/png".to_owned()),
        ..Part::new(content)
    };
    let raw = file(PartContent::Raw(Bytes::from_static(&[0xfb, 0xff])));
    let [v03, rest, v01] = part_in_all(raw);
    let inner = json!({"name": "a.bin", "mimeType": "image/png", "bytes": "+/8="});
    assert_eq!(v03, json!({"kind": "file", "file": inner}));
    assert_eq!(v01, json!({"type": "file", "file": inner}));
    assert_eq!(
        rest,
        json!({"file": {"name": "a.bin", "mimeType": "image/png", "fileWithBytes": "+/8="}})
    );

    let [v03, rest, v01] = part_in_all(file(PartContent::Url("https://x.example/a".to_owned())));
    let inner = json!({"name": "a.bin", "mimeType": "image/png", "uri": "https://x.example/a"});
    assert_eq!(v03, json!({"kind": "file", "file": inner}));
    assert_eq!(v01, json!({"type": "file", "file": inner}));
    assert_eq!(rest["file"]["fileWithUri"], "https://x.example/a");
}

#[test]
fn no_dialect_shows_what_only_the_store_knows() {
    let blob = Blob {
        key: "secret".to_owned(),
        size: 1,
        sha256: "00".to_owned(),
        upload: Some("secret".to_owned()),
    };
    let mut shown = artifact("a-1", "x", "");
    shown.chunks_of = Some(7);
    shown.parts = vec![Part::new(PartContent::Stored(blob))];
    let task = Task {
        artifacts: Some(vec![shown]),
        ..task(status(TaskState::Completed, None))
    };
    let v10 = serde_json::to_value(View::<true>::Task(&task)).unwrap();
    each_row(in_all(&task).into_iter().chain([v10]), |it| {
        let text = it.to_string();
        assert!(!text.contains("secret") && !text.contains("chunks"), "{it}");
    });
}

#[test]
fn an_artifact_is_known_by_its_index_in_0_1() {
    let task = Task {
        artifacts: Some(vec![artifact("a-1", "x", "1"), artifact("a-2", "y", "2")]),
        ..task(status(TaskState::Completed, None))
    };
    let [v03, rest, v01] = in_all(&task);
    assert_eq!(v03["artifacts"][1]["artifactId"], "a-2");
    assert_eq!(rest["artifacts"][1]["artifactId"], "a-2");
    assert_eq!(
        v01["artifacts"][1],
        json!({
            "name": "y",
            "index": 1,
            "parts": [{"type": "text", "text": "2"}],
            "metadata": {"artifactId": "a-2"},
        })
    );
}

#[test]
fn a_context_is_a_session_and_messages_have_no_id_in_0_1() {
    let [v03, rest, v01] = in_all(&full_task());
    assert_eq!(v03["contextId"], "c-1");
    assert_eq!(rest["contextId"], "c-1");
    assert_eq!(v01["sessionId"], "c-1");
    assert_eq!(v03["history"][0]["messageId"], "m-1");
    assert_eq!(
        v01["history"],
        json!([{"role": "user", "parts": [{"type": "text", "text": "hello"}]}])
    );
}

#[test]
fn state_changes_have_the_state_names_of_the_dialect() {
    let [v03, rest, v01] = in_all(&full_task()).map(|it| it["metadata"][STATE_TRANSITIONS].clone());
    assert_eq!(
        v03,
        json!([
            {"state": "submitted", "timestamp": "2026-05-28T20:26:40.000Z"},
            {"state": "auth-required", "timestamp": "2026-05-28T20:26:41.000Z"},
        ])
    );
    assert_eq!(rest[1]["state"], "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(v01[1]["state"], "input-required");
}

#[test]
fn a_faulty_part_is_named_by_its_path() {
    let rows = [
        (json!({"kind": "text", "text": 1}), "message.parts[1].text"),
        (json!({"kind": "text"}), "message.parts[1].text"),
        (
            json!({"kind": "video", "text": "x"}),
            "message.parts[1].kind",
        ),
        (
            json!({"kind": "data", "text": "x"}),
            "message.parts[1].kind",
        ),
        (
            json!({"kind": "text", "text": "x", "data": {}}),
            "message.parts[1]",
        ),
        (
            json!({"kind": "data", "data": [1]}),
            "message.parts[1].data",
        ),
        (json!({"file": {}}), "message.parts[1].file"),
        (
            json!({"file": {"bytes": "?"}}),
            "message.parts[1].file.bytes",
        ),
        (
            json!({"file": {"bytes": "", "uri": "u"}}),
            "message.parts[1].file",
        ),
        (json!({"file": {"uri": ""}}), "message.parts[1].file.uri"),
        (json!({"file": "x"}), "message.parts[1].file"),
        (json!({}), "message.parts[1]"),
        (json!("x"), "message.parts[1]"),
    ];
    each_row(rows, |(part, field)| {
        let message = json!({"messageId": "m", "role": "user", "parts": [{"text": "fine"}, part]});
        let result = v03::decode_send(&json!({"message": message}));
        assert_eq!(crate::samples::field_of(result), field, "{part}");
    });
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name = prop_oneof![
            Just("value".to_owned()),
            Just("data".to_owned()),
            "[a-z]{1,3}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        ".{0,8}".prop_map(PartContent::Text),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|it| PartContent::Raw(it.into())),
        "[a-z]{1,8}".prop_map(PartContent::Url),
        json_value().prop_map(PartContent::Data),
    ];
    let name = prop::option::of("[a-z]{1,5}");
    (
        content,
        name.clone(),
        name,
        prop::collection::btree_map("[a-z]{1,3}", json_value(), 0..2),
    )
        .prop_map(|(content, filename, media_type, metadata)| {
            let file = matches!(content, PartContent::Raw(_) | PartContent::Url(_));
            Part {
                content,
                filename: filename.filter(|_| file),
                media_type: media_type.filter(|_| file),
                metadata: metadata.into_iter().collect(),
            }
        })
}

proptest! {
    #[test]
    fn a_written_message_reads_back(parts in prop::collection::vec(any_part(), 1..4)) {
        let message = Message {
            task_id: Some(task_id()),
            context_id: Some(context_id()),
            ..Message::from_user("m-1", parts)
        };
        let sent = v03::decode_send(&json!({"message": RPC.message(&message)}));
        prop_assert_eq!(sent.map(|it| it.message), Ok(message.clone()));
        let sent = v03::rest::decode_send(&json!({"message": REST.message(&message)}));
        prop_assert_eq!(sent.map(|it| it.message), Ok(message.clone()));
        let old = V01.message_as_task(&message, &task_id());
        let sent = v01::decode_send(&json!({"id": "t", "message": old["status"]["message"]}));
        prop_assert_eq!(sent.map(|it| it.message.parts), Ok(message.parts));
    }

    #[test]
    fn any_input_is_read_or_refused(params in json_value(), part in json_value()) {
        let message = json!({"messageId": "m", "role": "user", "parts": [part]});
        for params in [&params, &json!({"id": "t", "message": message})] {
            let _ = v03::decode_send(params);
            let _ = v03::rest::decode_send(params);
            let _ = v01::decode_send(params);
        }
    }
}

#[test]
fn a_malformed_context_id_is_refused() {
    assert!(ContextId::parse("a b").is_err());
    let params = json!({
        "message": {"messageId": "m", "role": "user", "parts": [{"text": "x"}], "contextId": "a b"},
    });
    let result = v03::decode_send(&params);
    assert_eq!(crate::samples::field_of(result), "message.contextId");
}
