//! The program reads a configuration file behind its flags and the environment.

use crate::agent::{Folder, Running, refusal_in};
use crate::calls::Call;
use a2a_lambda_rows::each_row_async;

/// A folder with the file `a2a.json`.
fn folder(text: &str) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path().join("a2a.json"), text).unwrap();
    folder
}

/// Starts the agent in `folder`.
async fn started(folder: &Folder, settings: &[(&str, &str)]) -> Running {
    let arguments = ["--memory", "--port", "0"];
    Running::start(folder, &arguments, settings, "listening on ").await
}

async fn url_on_the_card(agent: &Running) -> String {
    let url = format!("{}/.well-known/agent-card.json", agent.base());
    let card = Call::get(&url).json().await;
    card["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_in_the_working_folder_sets_what_nothing_else_sets() {
    let folder = folder(r#"{"A2A_PUBLIC_URL": "https://file.example", "A2A_PUSH": false}"#);
    let agent = started(&folder, &[]).await;
    assert!(agent.said.contains("file   a2a.json"), "{}", agent.said);
    assert_eq!(url_on_the_card(&agent).await, "https://file.example");
}

#[tokio::test]
async fn the_environment_wins_over_the_file() {
    let folder = folder(r#"{"A2A_PUBLIC_URL": "https://file.example"}"#);
    let settings = [("A2A_PUBLIC_URL", "https://environment.example")];
    let agent = started(&folder, &settings).await;
    assert_eq!(url_on_the_card(&agent).await, "https://environment.example");
}

#[tokio::test]
async fn an_empty_variable_hides_nothing_of_the_file() {
    let folder = folder(r#"{"A2A_PUBLIC_URL": "https://file.example"}"#);
    let agent = started(&folder, &[("A2A_PUBLIC_URL", "")]).await;
    assert_eq!(url_on_the_card(&agent).await, "https://file.example");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_stops_the_start_and_names_the_member() {
    let rows = [
        (r#"{"A2A_PUHS": "on"}"#, "`A2A_PUHS` is not a setting"),
        (
            r#"{"A2A_TASK_TTL": "bad"}"#,
            "setting `A2A_TASK_TTL` has a value",
        ),
        (r#"{"A2A_TASK_TTL": null}"#, "`A2A_TASK_TTL`"),
        (
            r#"{"A2A_THREAD_TTL": "1h", "A2A_STATE_TTL": "2h"}"#,
            "at most `A2A_THREAD_TTL`",
        ),
        (
            r#"{"A2A_SECRET_KEY": "0123456789012345678901234567890123456789"}"#,
            "`A2A_SECRET_KEY` does not belong there",
        ),
        (r#"["A2A_PUSH"]"#, "an object of settings"),
        ("{", "a2a.json"),
    ];
    each_row_async(rows, async |(text, named)| {
        let said = refusal_in(&folder(text), &["--memory", "--port", "0"], &[]).await;
        assert!(said.contains(named), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    })
    .await;
}

#[tokio::test]
async fn a_variable_that_is_not_a_setting_is_warned_of() {
    let settings = [("A2A_LEAES", "1s"), ("A2A_LEASE", "hunter2")];
    let said = refusal_in(&folder("{}"), &["--memory", "--port", "0"], &settings).await;
    assert!(
        said.contains("ignored unknown settings: A2A_LEAES"),
        "{said}"
    );
    assert!(said.contains("setting `A2A_LEASE`"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn keys_that_a_file_or_a_variable_demands_are_asked_of_every_caller() {
    let keys = ("A2A_AUTH", "keys");
    let file = r#"{"A2A_AUTH": "keys"}"#;
    for (text, settings) in [(file, &[][..]), ("{}", &[keys][..]), (file, &[keys])] {
        let folder = folder(text);
        let arguments = ["--data", "data", "--port", "0"];
        let agent = Running::start(&folder, &arguments, settings, "listening on ").await;
        let tasks = || Call::get(&format!("{}/tasks", agent.base()));
        for header in [None, Some("Bearer dev:acme:ann"), Some("Bearer made-up")] {
            let call = match header {
                Some(value) => tasks().header("Authorization", value),
                None => tasks(),
            };
            assert_eq!(call.send().await.0, 401, "{text} {header:?}");
        }
    }
    // Where nothing demands keys, everybody may call this machine.
    let agent = started(&folder("{}"), &[]).await;
    let tasks = Call::get(&format!("{}/tasks", agent.base()));
    assert_eq!(tasks.send().await.0, 200);
    let gateway = folder(r#"{"A2A_AUTH": "gateway"}"#);
    let said = refusal_in(&gateway, &["--memory", "--port", "0"], &[]).await;
    assert!(said.contains("setting `A2A_AUTH`"), "{said}");
}

#[tokio::test]
async fn a_provider_without_a_model_is_named_at_the_start() {
    // The folder cannot be used, so the program ends after it has read its settings.
    let arguments = ["--port", "0", "--data", "/tmp"];
    let settings = [("A2A_MODEL_PROVIDER", "openai")];
    let text = refusal_in(&Folder::new(), &arguments, &settings).await;
    let warning = "`A2A_MODEL_PROVIDER` has no effect: `A2A_MODEL_ID` names no model";
    assert_eq!(text.matches(warning).count(), 1, "{text}");
}
