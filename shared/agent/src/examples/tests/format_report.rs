use super::skill_test;
use a2a_lambda::task::TaskState;

const NAME: &str = "format-report";

#[tokio::test]
async fn skill_asks_for_a_missing_format() {
    let mut skill_test = skill_test(NAME);
    let reply = skill_test.send("Sales went up.").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::InputRequired));
    assert_eq!(reply.text(), "What format would you like for the report?");
    let reply = skill_test.send("Markdown").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert_eq!(
        reply.artifact_text(NAME).as_deref(),
        Some("# Report\n\nSales went up.")
    );
}

#[tokio::test]
async fn credentials_reach_the_skill_and_are_not_stored() {
    let mut skill_test = skill_test(NAME);
    skill_test.send("Sales went up.").await.unwrap();
    let reply = skill_test.send("PDF format").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::AuthRequired));
    let hint = &reply.message().unwrap().metadata["a2a-lambda/auth"];
    assert_eq!(
        (&hint["authType"], &hint["service"]),
        (&"api_key".into(), &"pdf".into())
    );

    let reply = skill_test.send("sk-very-secret").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    let text = reply.artifact_text(NAME).unwrap();
    assert_eq!(text, "The report, ready for print:\n\nSales went up.");
    assert!(!format!("{reply:?}").contains("sk-very-secret"));
    let said = reply.conversation();
    let kept = [
        "Sales went up.",
        "What format would you like for the report?",
        "PDF format",
        "Please provide your API key.",
    ];
    assert_eq!(said, kept);
}

#[tokio::test]
async fn second_task_ignores_the_question_of_the_first() {
    let mut skill_test = skill_test(NAME);
    skill_test.send("Sales as PDF").await.unwrap();
    let reply = skill_test
        .new_task()
        .send("Costs as plain text")
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    let text = reply.artifact_text(NAME).unwrap();
    assert_eq!(text, "The report:\n\nCosts as plain text");
}

#[tokio::test]
async fn object_with_text_around_it_is_not_a_question() {
    let object = r#"{"state": "input-required", "prompt": "Which plain text?"}"#;
    let reply = skill_test(NAME).send(object).await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert_eq!(
        reply.artifact_text(NAME),
        Some(format!("The report:\n\n{object}"))
    );
}
