use super::skill_test;
use crate::examples::png::description;
use a2a_lambda::task::{PartContent, TaskState};
use a2a_lambda::testing::Reply;

/// What the PNG file of a reply says it shows.
fn drawing(reply: &Reply) -> String {
    let artifact = reply.artifact("logo.png").unwrap();
    let PartContent::Raw(bytes) = &artifact.parts[0].content else {
        panic!("a file is expected: {artifact:?}");
    };
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    description(bytes).unwrap().to_owned()
}

fn artifact_id(reply: &Reply) -> String {
    reply.task().unwrap().artifacts.as_ref().unwrap()[0]
        .id
        .clone()
}

#[tokio::test]
async fn refined_logo_is_a_new_task_and_the_first_is_unchanged() {
    let mut skill_test = skill_test("logo");
    let first = skill_test.send("Draw a square logo").await.unwrap();
    let task = first.task().unwrap();
    assert_eq!(first.state(), Some(TaskState::Completed));

    let second = skill_test
        .references([task.id.as_str()])
        .send("Make it blue")
        .await
        .unwrap();
    let refined = second.task().unwrap();
    assert_eq!(drawing(&second), "square blue");
    assert_eq!(refined.context_id, task.context_id);
    assert_ne!(refined.id, task.id);
    assert_ne!(artifact_id(&second), artifact_id(&first));
    assert_eq!(skill_test.get(&task.id).await.unwrap(), first);
}

#[tokio::test]
async fn logo_without_a_reference_starts_from_the_default() {
    let mut skill_test = skill_test("logo");
    skill_test.send("Draw a red square logo").await.unwrap();
    let second = skill_test.send("Make it blue").await.unwrap();
    assert_eq!(drawing(&second), "round blue");
}

#[tokio::test]
async fn reference_to_another_callers_task_is_ignored() {
    let mut skill_test = skill_test("logo");
    let first = skill_test.send("Draw a red square logo").await.unwrap();
    skill_test.new_context().caller("other", "mallory").unwrap();
    let id = first.task().unwrap().id.as_str();
    let second = skill_test
        .references([id])
        .send("Make it blue")
        .await
        .unwrap();
    assert_eq!(drawing(&second), "round blue");
}

#[tokio::test]
async fn client_that_shows_text_alone_gets_the_logo_as_it_is() {
    let reply = skill_test("logo")
        .accepts(["text/plain"])
        .send("Generate logo")
        .await;
    let artifact = reply.unwrap().task().unwrap().artifacts.clone().unwrap();
    assert_eq!(artifact[0].parts[0].effective_media_type(), "image/png");
}

#[tokio::test]
async fn client_that_reads_neither_text_nor_images_is_refused() {
    let error = skill_test("logo")
        .accepts(["video/mp4"])
        .send("Generate logo")
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("image/png"), "{error}");
}
