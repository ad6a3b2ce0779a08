use super::*;
use a2a_lambda::SkillTest;
use a2a_lambda::task::{Event, TaskState};
use a2a_lambda::testing::Reply;

fn skill_test() -> SkillTest {
    SkillTest::new(&agent(Duration::from_secs(2)).unwrap(), "conformance")
}

async fn tells(message_id: &str) -> Reply {
    skill_test()
        .message_id(message_id)
        .send("tell me")
        .await
        .unwrap()
}

async fn obeys(text: &str) -> Reply {
    skill_test().send(text).await.unwrap()
}

fn only_part(reply: &Reply) -> Part {
    let artifacts = reply.task().unwrap().artifacts.as_ref().unwrap();
    assert_eq!((artifacts.len(), artifacts[0].parts.len()), (1, 1));
    artifacts[0].parts[0].clone()
}

#[tokio::test]
async fn message_id_selects_the_behaviour_for_a_kit() {
    let reply = tells("tck-complete-task-1").await;
    assert_eq!(
        (reply.state(), reply.text()),
        (Some(TaskState::Completed), "Hello from TCK")
    );
    let part = only_part(&tells("tck-artifact-text-1").await);
    assert_eq!(part, Part::text("Generated text content"));
    let part = only_part(&tells("tck-artifact-data-1").await);
    assert_eq!(
        part,
        Part::data(serde_json::json!({ "key": "value", "count": 42 }))
    );
    let part = only_part(&tells("tck-artifact-file-url-1").await);
    let url = PartContent::Url("https://example.com/output.txt".to_owned());
    assert_eq!(
        (part.content, part.filename.as_deref()),
        (url, Some("output.txt"))
    );
    let part = only_part(&tells("tck-artifact-file-1").await);
    assert!(matches!(part.content, PartContent::Raw(_)), "{part:?}");
    assert_eq!(part.media_type.as_deref(), Some("text/plain"));
    assert_eq!(
        tells("tck-input-required-1").await.state(),
        Some(TaskState::InputRequired)
    );
    assert_eq!(
        tells("tck-reject-task-1").await.state(),
        Some(TaskState::Rejected)
    );
    assert_eq!(
        tells("tck-anything-1").await.state(),
        Some(TaskState::Completed)
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_word_selects_the_behaviour_for_acts() {
    let failed = obeys("tck-task-failure trigger error").await;
    assert_eq!(failed.error_code(), Some("FAILED_AS_TOLD"));
    assert_eq!(failed.text(), "failed as told");
    assert_eq!(
        obeys("tck-unheard-of").await.state(),
        Some(TaskState::Failed)
    );
    let part = only_part(&obeys("tck-stream-basic generate").await);
    assert_eq!(part, Part::text("Streamed content"));
    let part = only_part(&obeys("tck-long-running start").await);
    assert_eq!(part, Part::text("Worked for seconds"));
}

#[tokio::test]
async fn a_task_that_asks_until_done_keeps_asking_whatever_the_messages_say() {
    let mut skill_test = skill_test();
    for text in ["tck-multi-turn start", "tck-complete-task", "echo hi"] {
        let reply = skill_test.send(text).await.unwrap();
        assert_eq!(reply.state(), Some(TaskState::InputRequired), "{text}");
    }
    let reply = skill_test.send("done").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn a_task_that_needs_credentials_completes_with_them() {
    let mut skill_test = skill_test();
    let reply = skill_test.send("tck-auth-required trigger").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::AuthRequired));
    assert_eq!(reply.text(), "Who are you?");
    let reply = skill_test.send("here they are").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn a_direct_message_makes_no_task() {
    let reply = tells("tck-message-response-1").await;
    assert!(reply.task().is_none());
    assert_eq!(reply.text(), "Direct message response");
}

#[tokio::test]
async fn chunks_of_a_stream_are_appended_to_one_artifact() {
    let mut skill_test = skill_test();
    skill_test
        .message_id("tck-stream-artifact-chunked-1")
        .send("go")
        .await
        .unwrap();
    let chunks: Vec<_> = skill_test
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Artifact(update) => Some((update.append, update.last_chunk)),
            Event::Status(_) => None,
        })
        .collect();
    assert_eq!(chunks, [(false, false), (true, true)]);
}

#[tokio::test(start_paused = true)]
async fn agent_executes_commands_in_the_text() {
    assert_eq!(
        only_part(&obeys("echo hello").await),
        Part::text("echo: hello")
    );
    let reply = obeys("chunks 3 20").await;
    assert_eq!(
        reply.artifact_text(RESULT).as_deref(),
        Some("chunk-1 chunk-2 chunk-3 ")
    );
    assert_eq!(obeys("wait 20").await.state(), Some(TaskState::Completed));
    assert_eq!(obeys("fail").await.error_code(), Some("FAILED_AS_TOLD"));
    assert_eq!(obeys("reject").await.text(), "rejected");
    assert_eq!(obeys("auth").await.state(), Some(TaskState::AuthRequired));
    let PartContent::Raw(bytes) = only_part(&obeys("file 1000").await).content else {
        panic!("no bytes");
    };
    assert!(
        bytes
            .iter()
            .enumerate()
            .all(|(i, byte)| usize::from(*byte) == i % 251)
    );
    assert_eq!(bytes.len(), 1000);
}

#[tokio::test]
async fn a_panic_as_told_fails_the_task_without_its_text() {
    let reply = obeys("panic").await;
    assert_eq!(reply.state(), Some(TaskState::Failed));
    assert_eq!(reply.error_code(), Some("INTERNAL_ERROR"));
    assert!(!format!("{reply:?}").contains("as told"), "{reply:?}");
}

#[tokio::test]
async fn step_results_name_the_run_that_made_them() {
    let mut skill_test = skill_test();
    for (nth, text) in [(1, "steps 2"), (2, "steps 2")] {
        let reply = skill_test.send(text).await.unwrap();
        let reported = reply.artifact_data(RESULT).unwrap();
        assert_eq!(reported["inConversation"], nth, "{reported}");
        assert_eq!(reported["steps"], reported["saved"]);
        let runs = reported["steps"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "{reported}");
        assert_ne!(runs[0], runs[1], "{reported}");
    }
}

#[tokio::test(start_paused = true)]
async fn file_artifact_is_delivered_before_the_task_ends() {
    let mut skill_test = skill_test();
    let reply = skill_test.send("file 1000 500").await.unwrap();
    let artifact = reply.task().unwrap().artifacts.as_ref().unwrap();
    assert_eq!(
        (artifact.len(), reply.state()),
        (1, Some(TaskState::Completed))
    );
}

#[tokio::test]
async fn agent_asks_until_the_text_is_a_command() {
    let mut skill_test = skill_test();
    for text in ["hello?", "hello!"] {
        let reply = skill_test.send(text).await.unwrap();
        assert_eq!(reply.state(), Some(TaskState::InputRequired));
    }
    let reply = skill_test.send("echo done").await.unwrap();
    assert_eq!(reply.artifact_text(RESULT).as_deref(), Some("echo: done"));
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_kits_stream_and_then_completes() {
    let mut skill_test = skill_test();
    let before = tokio::time::Instant::now();
    let reply = skill_test
        .message_id("test-resubscribe-message-id-1")
        .send("go")
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert!(before.elapsed() >= Duration::from_secs(4));
}

#[tokio::test]
async fn agent_accepts_an_invented_media_type() {
    let part = Part {
        media_type: Some("application/x-unsupported-tck-type".to_owned()),
        ..Part::text("unknown")
    };
    let mut skill_test = skill_test();
    let content = Content::from_parts(vec![part]);
    let reply = skill_test
        .message_id("tck-complete-task-2")
        .send(content)
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_canceled() {
    let mut skill_test = skill_test();
    let reply = skill_test.cancel_after(1).send("wait 20").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Canceled));
}

#[tokio::test]
async fn next_task_of_the_context_recalls_notes() {
    let mut skill_test = skill_test();
    skill_test.send("note the first").await.unwrap();
    skill_test.new_task().send("note the second").await.unwrap();
    let recalled = skill_test.new_task().send("recall").await.unwrap();
    let recalled = recalled.artifact_data(RESULT).unwrap();
    let said = [
        "note the first",
        "the first",
        "note the second",
        "the second",
        "recall",
    ];
    assert_eq!(recalled["said"], serde_json::json!(said));
    assert_eq!(recalled["noted"], "the second");
    assert!(recalled["steps"].is_null());
}

#[tokio::test]
async fn referenced_tasks_are_listed_with_their_artifacts() {
    let mut skill_test = skill_test();
    let first = skill_test.send("file 3").await.unwrap();
    let id = first.task().unwrap().id.to_string();
    let second = skill_test
        .new_task()
        .references([id.as_str(), "task-x"])
        .send("refer")
        .await
        .unwrap();
    let shown = second.artifact_data(RESULT).unwrap();
    let expected = serde_json::json!({ "shown": [[id, ["file.bin"]]], "others": ["task-x"] });
    assert_eq!(shown, expected);
}
