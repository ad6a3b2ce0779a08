//! The calls that the banner and the README show, sent as they are printed.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use http::StatusCode;
use serde_json::{Value, json};

/// The events of a stream.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|json| serde_json::from_str(json).unwrap())
        .collect()
}

#[tokio::test]
async fn the_calls_of_the_banner_work_when_pasted() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &[]).await;
    let lines = agent.said.lines().map(str::trim);
    let calls: Vec<Call> = lines
        .filter(|line| line.starts_with("curl "))
        .map(Call::pasted)
        .collect();
    let [card, say, stream] = calls.as_slice() else {
        panic!("not three calls:\n{}", agent.said);
    };

    let card = card.clone().json().await;
    let shown = format!("{} {}:", card["name"], card["version"]).replace('"', "");
    assert!(agent.said.contains(&shown), "{shown}");
    for skill in card["skills"].as_array().unwrap() {
        let id = skill["id"].as_str().unwrap();
        assert!(agent.said.contains(id), "{id}");
    }

    let said = say.clone().json().await;
    assert!(said["result"].to_string().contains("hello"), "{said}");

    // The client makes the id of this task: the second call shows the same task.
    for _ in 0..2 {
        let (status, text) = stream.clone().send().await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let events = events(&text);
        assert!(events.iter().all(|e| e["id"] == "my-task-1"), "{text}");
        assert_eq!(events.last().unwrap()["final"], true, "{text}");
    }
}

#[tokio::test]
async fn the_banner_says_the_first_example_of_the_agent() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory", "--agent", "models"]).await;
    let words = r#"{"text":"Summarize this resume: John Doe"#;
    assert!(agent.said.contains(words), "{}", agent.said);
    assert!(!agent.said.contains("echo hello"), "{}", agent.said);
}

#[tokio::test]
async fn a_panic_is_shown_in_the_terminal_and_nowhere_else() {
    let folder = Folder::new();
    let agent = Running::logging(&folder).await;
    let answer = Call::say(agent.base(), "panic").json().await;
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_FAILED");
    assert!(!answer.to_string().contains("as told"), "{answer}");
    let terminal = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let lines = terminal.lines().filter(|line| line.contains("as told"));
    let lines: Vec<&str> = lines.collect();
    // The line of the log has the place, and is followed by what Rust prints.
    assert_eq!(lines, ["panicked as told"], "{terminal}");
    assert!(terminal.contains("a panic at "), "{terminal}");
}

/// The code blocks of the README in `language`.
fn blocks(language: &str) -> Vec<&'static str> {
    let readme = include_str!("../../README.md");
    let opening = format!("```{language}\n");
    let blocks = readme.split(&*opening).skip(1);
    blocks
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect()
}

#[tokio::test]
async fn the_exchange_in_the_readme_is_what_the_agent_answers() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let mut calls = blocks("sh").into_iter().filter(|b| b.starts_with("curl "));
    let call = Call::pasted(calls.next().unwrap()).at(agent.base());
    let answer = call.json().await;
    let shown: Value = serde_json::from_str(blocks("json")[0]).unwrap();
    assert_eq!(blank(&answer), blank(&shown));
    assert_eq!(
        answer["task"]["artifacts"][0]["parts"],
        json!([{"data": {"sum": 42}}])
    );
}

/// The value without what differs between runs.
fn blank(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let differs = name == "timestamp" || name.to_lowercase().ends_with("id");
                let value = if differs { json!("") } else { blank(value) };
                (name.clone(), value)
            })
            .collect(),
        Value::Array(items) => items.iter().map(blank).collect(),
        other => other.clone(),
    }
}

/// A reader types one line after the other; each goes out with the context and no task.
#[tokio::test]
async fn the_dialogue_in_the_readme_is_what_the_agent_says() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let mut texts = blocks("text").into_iter();
    let dialogue = texts.find(|block| block.starts_with("> ")).unwrap();
    let (dialogue, _) = dialogue.split_once("\n\n").unwrap();
    let mut context = None;
    for exchange in dialogue.trim_start_matches("> ").split("\n> ") {
        let (text, shown) = exchange.split_once('\n').unwrap();
        let parts = json!([{"text": text}]);
        let mut message = json!({"messageId": text, "role": "ROLE_USER", "parts": parts});
        message["contextId"] = context.into();
        let call = Call::say(agent.base(), "").body(&json!({"message": message}));
        let task = call.json().await["task"].clone();
        let artifact = &task["artifacts"][0];
        let answer = format!(
            "{} {} {} {}",
            task["status"]["state"],
            task["status"]["message"]["parts"][0]["text"],
            artifact["name"],
            artifact["parts"][0]["data"]
        );
        assert_shown(shown, &answer);
        context = Some(task["contextId"].clone());
    }
}

/// Checks that an answer has each piece of what a document shows, which ends at a comma, a brace, a
/// line or `…`. Digits before `…` are of an id.
fn assert_shown(shown: &str, answer: &str) {
    let plain = |text: &str| text.replace([' ', '"', '\\'], "");
    let answer = plain(answer);
    for piece in shown.split_inclusive(['\n', ',', '{', '…']) {
        let id = piece.strip_suffix('…');
        let id = id.map(|it| it.trim_end_matches(|digit: char| digit.is_ascii_hexdigit()));
        let piece = plain(id.unwrap_or(piece));
        let piece = piece.trim_matches(['\n', ',', '{', '}', '[', ']']);
        assert!(answer.contains(piece), "{piece}\nis not in\n{answer}");
    }
}
