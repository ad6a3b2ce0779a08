use super::{data, skill_test};
use a2a_lambda::task::{A2aError, TaskState};
use a2a_lambda::testing::Reply;
use serde_json::json;

#[tokio::test]
async fn an_echo_makes_no_task() {
    let mut skill_test = skill_test("echo");
    let reply = skill_test.send("hello").await.unwrap();
    assert!(matches!(reply, Reply::Message(_)), "{reply:?}");
    assert_eq!(reply.text(), "hello");
    assert!(skill_test.events().is_empty());
}

#[tokio::test]
async fn a_question_in_words_is_answered_with_message_and_artifact() {
    let reply = skill_test("add").send("What's 2+2?").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert_eq!(reply.text(), "4");
    assert_eq!(reply.artifact_data("add"), Some(json!({ "sum": 4 })));
}

#[tokio::test]
async fn terms_can_be_given_as_data() {
    let reply = skill_test("add")
        .send(data(&json!({ "a": -1, "b": 43 })))
        .await
        .unwrap();
    assert_eq!(reply.artifact_data("add"), Some(json!({ "sum": 42 })));
}

#[tokio::test]
async fn invalid_terms_are_refused_with_their_field() {
    let mut skill_test = skill_test("add");
    let error = skill_test
        .send(data(&json!({ "a": 1, "b": "two" })))
        .await
        .unwrap_err();
    let Some(A2aError::InvalidParams { field, .. }) = error.refusal() else {
        panic!("{error}");
    };
    assert!(field.ends_with(".b"), "{field}");
}

#[tokio::test]
async fn a_sum_that_is_too_large_fails_with_a_public_error() {
    let reply = skill_test("add")
        .send(data(&json!({ "a": i64::MAX, "b": 1 })))
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Failed));
    assert_eq!(reply.error_code(), Some("OVERFLOW"));
    assert_eq!(reply.text(), "the sum is too large");
}
