//! Tests how tasks, pages and events of 1.0 are written.

use super::*;
use a2a_lambda_model::task::{
    ArtifactUpdate, Event, Frame, LoggedEvent, Message, Page, PartContent, StatusUpdate,
};

fn encode_page(page: &Page) -> Value {
    written(View::Page(page))
}

fn encode_frame(frame: &Frame) -> Option<Value> {
    Some(written(View::of_element(frame)?))
}

#[test]
fn a_bare_task_has_only_its_required_members_and_a_full_time() {
    assert_eq!(
        encode_task(&task_in(TaskState::Working)),
        json!({
            "id": "t1", "contextId": "c1",
            "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-05-28T10:00:00.000Z"},
        })
    );
}

#[test]
fn a_full_task_is_written_with_its_ids_in_every_message() {
    let mut task = task_in(TaskState::Completed);
    task.status.message = Some(Message::from_agent("m2", vec![Part::text("done")]));
    task.history = Some(vec![Message::from_user(
        "m1",
        vec![Part::data(Value::Null)],
    )]);
    let mut file = Part::new(PartContent::Raw(vec![0xfb, 0xff].into()));
    file.filename = Some("a.bin".to_owned());
    file.media_type = Some("application/octet-stream".to_owned());
    task.artifacts = Some(vec![artifact(vec![
        file,
        Part::new(PartContent::Url("https://example.com/a".to_owned())),
    ])]);
    task.metadata.insert("k".to_owned(), json!("v"));
    assert_eq!(
        encode_task(&task),
        json!({
            "id": "t1", "contextId": "c1",
            "status": {
                "state": "TASK_STATE_COMPLETED", "timestamp": "2026-05-28T10:00:00.000Z",
                "message": {
                    "messageId": "m2", "role": "ROLE_AGENT", "contextId": "c1", "taskId": "t1",
                    "parts": [{"text": "done"}],
                },
            },
            "history": [{
                "messageId": "m1", "role": "ROLE_USER", "contextId": "c1", "taskId": "t1",
                "parts": [{"data": null}],
            }],
            "artifacts": [{
                "artifactId": "a1", "name": "report",
                "parts": [
                    {"raw": "+/8=", "filename": "a.bin", "mediaType": "application/octet-stream"},
                    {"url": "https://example.com/a"},
                ],
            }],
            "metadata": {"k": "v"},
        })
    );
}

#[test]
fn a_send_is_answered_with_exactly_one_member() {
    let task = encode_sent(&SendResponse::Task(Box::new(task_in(TaskState::Working))));
    assert_eq!(
        task.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["task"]
    );
    let mut message = Message::from_agent("m2", vec![Part::text("hello")]);
    message.context_id = ContextId::parse("c1").ok();
    assert_eq!(
        encode_sent(&SendResponse::Message(message)),
        json!({"message": {
            "messageId": "m2", "role": "ROLE_AGENT", "contextId": "c1", "parts": [{"text": "hello"}],
        }})
    );
}

#[test]
fn an_empty_page_still_has_all_its_members() {
    let page = Page {
        tasks: Vec::new(),
        next_page_token: String::new(),
        page_size: 50,
        total_size: 0,
    };
    assert_eq!(
        encode_page(&page),
        json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0})
    );
}

fn event(event: Event, last: bool) -> Frame {
    Frame::Event {
        task_id: TaskId::parse("t1").unwrap(),
        context_id: ContextId::parse("c1").unwrap(),
        event: LoggedEvent {
            id: EventId {
                version: 3,
                n: 1,
                mark: None,
            },
            seq: 4,
            event,
        },
        last,
    }
}

#[test]
fn a_status_update_has_neither_kind_nor_final() {
    let update = StatusUpdate {
        status: task_in(TaskState::Completed).status,
        metadata: Default::default(),
    };
    assert_eq!(
        encode_frame(&event(Event::Status(update), true)),
        Some(json!({"statusUpdate": {
            "taskId": "t1", "contextId": "c1",
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-05-28T10:00:00.000Z"},
        }}))
    );
}

#[test]
fn an_artifact_update_has_append_and_last_chunk() {
    let update = ArtifactUpdate {
        artifact: artifact(vec![Part::text("x")]),
        append: false,
        last_chunk: true,
        metadata: Default::default(),
    };
    assert_eq!(
        encode_frame(&event(Event::Artifact(update), false)),
        Some(json!({"artifactUpdate": {
            "taskId": "t1", "contextId": "c1", "append": false, "lastChunk": true,
            "artifact": {"artifactId": "a1", "name": "report", "parts": [{"text": "x"}]},
        }}))
    );
}

#[test]
fn a_resumed_stream_shows_the_status_only() {
    let mut task = task_in(TaskState::Working);
    task.artifacts = Some(vec![artifact(vec![Part::text("x")])]);
    task.history = Some(vec![Message::from_user("m1", vec![Part::text("x")])]);
    assert_eq!(
        encode_frame(&Frame::Resumed(Box::new(task))),
        Some(json!({"task": encode_task(&task_in(TaskState::Working))}))
    );
}

#[test]
fn parts_are_never_empty_and_object_keys_stay_private() {
    assert_eq!(
        encode_sent(&SendResponse::Message(Message::from_agent("m", Vec::new())))["message"]["parts"],
        json!([{"text": ""}])
    );
    let stored = Part::new(PartContent::Stored(a2a_lambda_model::task::Blob {
        key: "acme/secret".to_owned(),
        size: 1,
        sha256: "00".to_owned(),
        upload: None,
    }));
    let message = Message::from_agent("m", vec![stored]);
    assert!(
        !encode_sent(&SendResponse::Message(message))
            .to_string()
            .contains("secret")
    );
}

/// `a2a-lf` reads this module's output and writes the same value. The time has
/// milliseconds other than `.000`, which `a2a-lf` would leave out.
#[test]
fn the_official_types_read_and_write_the_same_task() {
    let mut task = task_in(TaskState::InputRequired);
    task.status.timestamp = at("2026-05-28T10:00:00.250Z");
    task.status.message = Some(Message::from_agent("m2", vec![Part::text("which?")]));
    task.artifacts = Some(vec![artifact(vec![Part::data(
        json!({"n": 9_007_199_254_740_993_i64}),
    )])]);
    task.history = Some(Vec::new());
    let written = encode_task(&task);
    let read: a2a::Task = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}
