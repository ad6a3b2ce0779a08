//! Tests the 1.0 format with generated objects.

use super::*;
use a2a_lambda_model::task::{Message, Metadata, PartContent};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z_]{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_metadata() -> impl Strategy<Value = Metadata> {
    btree_map("[a-z_/-]{1,6}", any_value(), 0..3).prop_map(|members| members.into_iter().collect())
}

fn any_part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        ".{0,12}".prop_map(PartContent::Text),
        vec(any::<u8>(), 0..12).prop_map(|bytes| PartContent::Raw(bytes.into())),
        "https://[a-z]{1,8}/".prop_map(PartContent::Url),
        any_value().prop_map(PartContent::Data),
    ];
    let name = option::of("[a-z]{1,8}");
    (content, name.clone(), name, any_metadata()).prop_map(
        |(content, filename, media_type, metadata)| Part {
            content,
            filename,
            media_type,
            metadata,
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = "[A-Za-z0-9._:-]{1,20}";
    let words = || vec("[a-z:]{0,8}", 0..3);
    (
        id,
        option::of(id),
        option::of(id),
        vec(any_part(), 1..4),
        words(),
        words(),
        any_metadata(),
    )
        .prop_map(
            |(id, context, task, parts, references, extensions, metadata)| Message {
                context_id: context.and_then(|id| ContextId::parse(id).ok()),
                task_id: task.and_then(|id| TaskId::parse(id).ok()),
                reference_task_ids: references,
                extensions,
                metadata,
                ..Message::from_user(id, parts)
            },
        )
}

fn any_task() -> impl Strategy<Value = Task> {
    let artifact = (vec(any_part(), 1..3), any_metadata(), option::of(".{0,6}")).prop_map(
        |(parts, metadata, description)| Artifact {
            metadata,
            description,
            ..artifact(parts)
        },
    );
    (
        0..TaskState::ALL.len(),
        // Without `.000`, which `a2a-lf` would leave out; the parent module tests it.
        (0i64..2_000_000_000, 1i64..1000),
        option::of(any_message()),
        option::of(vec(artifact, 0..3)),
        option::of(vec(any_message(), 0..3)),
        any_metadata(),
    )
        .prop_map(
            |(state, (seconds, millis), message, artifacts, history, metadata)| {
                let mut task = task_in(TaskState::ALL[state]);
                task.status.timestamp = Timestamp::from_millis(seconds * 1000 + millis);
                task.status.message = message;
                Task {
                    artifacts,
                    history,
                    metadata,
                    ..task
                }
            },
        )
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        // Free content may hold anything.
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name != "data" && name != "metadata" && holds_null(value)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_written_message_reads_back(message in any_message()) {
        let written = encode_sent(&SendResponse::Message(message.clone()));
        let read = decode_send(&written).unwrap();
        prop_assert_eq!(read.message, message);
    }

    #[test]
    fn the_official_types_write_any_task_unchanged(task in any_task()) {
        let written = encode_task(&task);
        prop_assert!(!holds_null(&written), "{}", written);
        let read: a2a::Task = serde_json::from_value(written.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(read).unwrap(), written);
    }

    #[test]
    fn any_request_is_read_or_refused_by_path(params in any_value()) {
        for request in [params.clone(), json!({"message": params}), send_with(&json!({"parts": [params]}))] {
            if let Err(refusal) = decode_send(&request) {
                prop_assert!(!field_of(refusal).is_empty());
            }
        }
    }
}
