use super::skill_test;
use crate::examples::pdf;
use a2a_lambda::task::{PartContent, TaskState};
use a2a_lambda::testing::Reply;

/// Id and lines of the PDF file of a reply.
fn report(reply: &Reply) -> (String, Vec<String>) {
    let artifacts = reply.task().unwrap().artifacts.as_ref().unwrap();
    let [artifact] = artifacts.as_slice() else {
        panic!("one artifact is expected: {artifacts:?}");
    };
    assert_eq!(artifact.name.as_deref(), Some("report.pdf"));
    assert_eq!(
        artifact.parts[0].media_type.as_deref(),
        Some("application/pdf")
    );
    let PartContent::Raw(bytes) = &artifact.parts[0].content else {
        panic!("a file is expected: {artifact:?}");
    };
    assert!(bytes.starts_with(b"%PDF-1.4") && bytes.ends_with(b"%%EOF\n"));
    (artifact.id.clone(), pdf::lines(bytes))
}

#[tokio::test]
async fn a_report_is_created_in_the_format_that_was_asked_for() {
    let mut skill_test = skill_test("create-report");
    let asked = skill_test.send("Create a report").await.unwrap();
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    assert_eq!(asked.text(), "What format would you like?");
    assert!(
        asked
            .task()
            .unwrap()
            .artifacts
            .as_ref()
            .is_none_or(Vec::is_empty)
    );
    let asked = skill_test.send("a nice one").await.unwrap();
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    let done = skill_test.send("PDF format").await.unwrap();
    assert_eq!(done.state(), Some(TaskState::Completed));
    assert_eq!(done.text(), "Here's your report");
    assert_eq!(
        report(&done).1.get(2).map(String::as_str),
        Some("Create a report")
    );
}

#[tokio::test]
async fn a_shorter_report_is_a_new_task_with_the_same_name_and_another_id() {
    let mut skill_test = skill_test("create-report");
    let first = skill_test
        .send("Create a report on (sales) as PDF")
        .await
        .unwrap();
    let task = first.task().unwrap();
    let (id, lines) = report(&first);
    assert!(lines.contains(&"Create a report on (sales) as PDF".to_owned()));

    skill_test.references([task.id.as_str()]);
    let second = skill_test.send("Make it shorter").await.unwrap();
    assert_eq!(second.text(), "Here's the shorter version");
    let (new_id, shorter) = report(&second);
    assert!(new_id != id && shorter.len() < lines.len() && lines.starts_with(&shorter));
    assert_eq!(second.task().unwrap().context_id, task.context_id);
    assert_eq!(skill_test.get(&task.id).await.unwrap(), first);
}

#[test]
fn lines_of_any_text_are_read_back_from_the_file() {
    let lines: Vec<String> = (0..100).map(|n| format!("{n} \\ (a) ) '")).collect();
    assert_eq!(pdf::lines(&pdf::file(&lines)), lines);
    assert_eq!(pdf::lines(&pdf::file(&["größer".to_owned()])), ["gr??er"]);
}
