use super::bench;
use a2a_lambda::task::TaskState;

const NAME: &str = "format-report";

#[tokio::test]
async fn a_missing_format_is_asked_for() {
    let mut bench = bench(NAME);
    let reply = bench.send("Sales went up.").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::InputRequired));
    assert_eq!(reply.text(), "What format would you like for the report?");
    let reply = bench.send("Markdown").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert_eq!(
        reply.artifact_text(NAME).as_deref(),
        Some("# Report\n\nSales went up.")
    );
}

#[tokio::test]
async fn a_key_reaches_the_skill_and_nothing_that_is_kept() {
    let mut bench = bench(NAME);
    bench.send("Sales went up.").await.unwrap();
    let reply = bench.send("PDF format").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::AuthRequired));
    let hint = &reply.message().unwrap().metadata["a2a-lambda/auth"];
    assert_eq!(
        (&hint["authType"], &hint["service"]),
        (&"api_key".into(), &"pdf".into())
    );

    let reply = bench.send("sk-very-secret").await.unwrap();
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
async fn a_second_task_does_not_take_the_firsts_question_for_its_own() {
    let mut bench = bench(NAME);
    bench.send("Sales as PDF").await.unwrap();
    let reply = bench.new_task().send("Costs as plain text").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    let text = reply.artifact_text(NAME).unwrap();
    assert_eq!(text, "The report:\n\nCosts as plain text");
}

#[tokio::test]
async fn an_object_of_the_pattern_with_words_around_it_is_no_question() {
    let object = r#"{"state": "input-required", "prompt": "Which plain text?"}"#;
    let reply = bench(NAME).send(object).await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert_eq!(
        reply.artifact_text(NAME),
        Some(format!("The report:\n\n{object}"))
    );
}
