//! Requests without a recording.

use super::*;
use serde_json::Value;

/// Asks the model for the capital of a country.
#[skill(id = "capital", tags = ["test"])]
async fn capital(cx: &mut TaskContext<'_>, country: String) -> AgentResult<String> {
    let request = ModelRequest {
        messages: vec![ModelMessage::from_text(country)],
        ..request("Name the capital. Answer in one word.")
    };
    let reply = cx.model()?.converse(request).await?;
    Ok(format!("{:?}", reply.content))
}

fn client() -> SkillTest {
    let agent = Agent::builder("agent").skill(capital).build().unwrap();
    SkillTest::new(&agent, "capital")
}

async fn cause(replay: &Cassette, request: ModelRequest) -> String {
    let error = replay.converse(request).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelProvider);
    error.cause().unwrap().to_owned()
}

async fn recorded(test: &str, requests: impl IntoIterator<Item = ModelRequest>) -> Folder {
    let folder = Folder::new(test);
    let live = ScriptedModel::new();
    let recording = folder.record(live.clone());
    for request in requests {
        live.clone().text("recorded");
        recording.converse(request).await.unwrap();
    }
    folder
}

#[tokio::test]
async fn a_skill_is_recorded_and_replayed_and_a_new_question_is_a_miss() {
    let folder = Folder::new("skill");
    let recording = folder.record(ScriptedModel::new().text("Oslo"));
    let mut author = client();
    author
        .model(Arc::new(recording))
        .send("Norway")
        .await
        .unwrap();

    let mut test = client();
    let reply = test.cassette(folder.path()).unwrap().send("Norway").await;
    let text = reply.unwrap().artifact_text("capital");
    assert_eq!(text.as_deref(), Some(r#"[Text("Oslo")]"#));

    let failed = test.send("Sweden").await.unwrap();
    assert_eq!(failed.error_code(), Some("MODEL_PROVIDER"));
    let cause = test.cause().unwrap();
    assert!(cause.contains(&name(&folder.path())), "{cause}");
    let difference = r#"/messages/0/user: recorded "Norway", asked "Sweden""#;
    assert!(cause.contains(difference), "{cause}");
    assert!(cause.contains("Cassette::record"), "{cause}");
}

#[tokio::test]
async fn a_miss_shows_the_nearest_recording_and_where_a_long_prompt_changed() {
    let prompt = |word: &str| format!("{} {word} {}", "be kind ".repeat(90), "always ".repeat(90));
    let far = ModelRequest {
        system: prompt("and brief"),
        options: json!({"effort": "low"}).as_object().unwrap().clone(),
        messages: vec![ModelMessage::from_text("hello")],
        ..ModelRequest::default()
    };
    let folder = recorded("nearest", [far, request(&prompt("and brief"))]).await;
    let cause = cause(&folder.replay(), request(&prompt("and exact"))).await;
    assert!(cause.contains("recording 2 of 2"), "{cause}");
    assert!(cause.contains("/system: recorded …"), "{cause}");
    assert!(cause.contains("kind  and brief always"), "{cause}");
    assert!(cause.contains("kind  and exact always"), "{cause}");
    assert!(cause.chars().count() < 600, "{cause}");
}

#[tokio::test]
async fn a_miss_with_many_differences_shows_some_and_counts_the_rest() {
    let with = |messages: Vec<&str>| ModelRequest {
        messages: messages
            .into_iter()
            .map(|it| ModelMessage::from_text(it.repeat(200)))
            .collect(),
        ..ModelRequest::default()
    };
    let folder = recorded("many", [with(vec!["a", "b", "c", "d"])]).await;
    let cause = cause(&folder.replay(), with(vec!["e", "f", "g", "h", "i"])).await;
    assert!(cause.contains("/messages/2/user"), "{cause}");
    assert!(!cause.contains("/messages/3"), "{cause}");
    assert!(cause.contains("and at 2 more places"), "{cause}");
    assert!(cause.chars().count() < 1200, "{cause}");
}

#[tokio::test]
async fn a_member_that_was_added_or_removed_is_a_difference() {
    let with = |options: Value| ModelRequest {
        options: options.as_object().unwrap().clone(),
        ..ModelRequest::default()
    };
    let folder = recorded("member", [with(json!({"top/k": 1}))]).await;
    let cause = cause(&folder.replay(), with(json!({"top~p": 2}))).await;
    assert!(
        cause.contains("/options/top~1k: recorded 1, asked nothing"),
        "{cause}"
    );
    assert!(
        cause.contains("/options/top~0p: recorded nothing, asked 2"),
        "{cause}"
    );
}

#[tokio::test]
async fn a_miss_that_a_skill_hides_is_reported_at_the_end() {
    let folder = recorded("hidden", [request("known")]).await;
    let replay = folder.replay();
    for system in ["unknown", "known", "later"] {
        let _hidden = replay.converse(request(system)).await;
    }
    let missed = replay.finish().unwrap_err();
    assert!(matches!(missed, CassetteError::Miss { .. }), "{missed}");
    assert!(missed.to_string().contains("unknown"), "{missed}");
}

#[tokio::test]
async fn a_cassette_without_calls_says_so() {
    let folder = Folder::new("empty");
    std::fs::write(folder.path(), "[]").unwrap();
    let cause = cause(&folder.replay(), request("")).await;
    assert!(cause.contains("it has no recordings"), "{cause}");
}
