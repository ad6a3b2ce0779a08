//! What remains after a restart, and who can read it.

use crate::agent::{Folder, Running, refusal_in};
use crate::calls::Call;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::keys;
use a2a_lambda::store::stored::SCHEMA;
use a2a_lambda::store::table::{Item, Statement, Table as _};
use a2a_local::embedded::{Embedded, TABLE};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::Value;

/// Too large to be stored inside a task: these bytes are an object in the bucket.
const BYTES: usize = 100_000;

/// The conformance agent with its data in `folder`.
async fn agent(folder: &Folder) -> Running {
    Running::agent(folder, &["--agent", "conformance"]).await
}

/// A completed task with a file, as the send returned it.
async fn file(base: &str) -> Value {
    let answer = Call::say(base, &format!("file {BYTES}")).json().await;
    answer["task"].clone()
}

fn get(base: &str, task: &Value) -> Call {
    let id = task["id"].as_str().unwrap();
    Call::get(&format!("{base}/tasks/{id}"))
}

/// Asserts that the agent at `base` has `task` with all its bytes.
async fn has(base: &str, task: &Value) {
    let found = get(base, task).json().await;
    assert_eq!(found["status"], task["status"]);
    assert_eq!(found["artifacts"], task["artifacts"]);
    let part = &found["artifacts"][0]["parts"][0];
    let bytes = STANDARD.decode(part["raw"].as_str().unwrap()).unwrap();
    let expected: Vec<u8> = (0..=250).cycle().take(BYTES).collect();
    assert!(bytes == expected, "{} other bytes", bytes.len());
}

#[tokio::test]
async fn tasks_and_files_survive_a_restart() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let task = file(first.base()).await;
    first.interrupt().await;
    let second = agent(&folder).await;
    has(second.base(), &task).await;
}

#[tokio::test]
async fn tasks_and_files_survive_a_kill() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let task = file(first.base()).await;
    first.kill().await;
    let second = agent(&folder).await;
    has(second.base(), &task).await;
}

#[tokio::test]
async fn a_waiting_task_takes_its_answer_after_a_kill() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let asked = Call::say(first.base(), "anything").json().await;
    let task = &asked["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    first.kill().await;
    let second = agent(&folder).await;
    let answer = serde_json::json!({"message": {
        "messageId": "m2", "role": "ROLE_USER", "taskId": task["id"],
        "parts": [{"text": "echo it went on"}],
    }});
    let answered = Call::say(second.base(), "").body(&answer).json().await;
    let done = &answered["task"];
    assert_eq!(done["id"], task["id"]);
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_folder_of_another_release_is_refused_with_what_to_do() {
    for form in [SCHEMA - 1, SCHEMA + 1] {
        let folder = Folder::new();
        let first = agent(&folder).await;
        first.interrupt().await;
        let data = Embedded::start(Some(&folder.path().join(".a2a")))
            .await
            .unwrap();
        let clients = AwsClients::connect(data.endpoints()).await;
        let table = DynamoTable::new(clients.dynamodb, TABLE);
        let item = Item::from([("schema".to_owned(), i64::from(form).into())]);
        let note = Statement::put(keys::form(), item);
        table.write(note.into()).await.unwrap();
        data.stop().await;
        let error = refusal_in(&folder, &["--port", "0"], &[]).await;
        let what = format!("create it again, or use a release that reads {form}, or choose");
        assert!(error.contains(&what), "{error}");
    }
}

#[tokio::test]
async fn another_caller_cannot_read_a_task() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let base = agent.base();
    let who = |name: &str| format!("Bearer dev:{name}");
    let said = Call::say(base, "echo mine").header("Authorization", &who("acme:alice"));
    let task = said.json().await["task"].clone();
    let mine = get(base, &task).header("Authorization", &who("acme:alice"));
    assert_eq!(mine.json().await["id"], task["id"]);
    let absent = Call::get(&format!("{base}/tasks/task-{:032x}", 1));
    let absent = absent.header("Authorization", &who("acme:bob"));
    let (_, nothing) = absent.send().await;
    for other in ["acme:bob", "umbrella:alice"] {
        let theirs = get(base, &task).header("Authorization", &who(other));
        let (status, text) = theirs.send().await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{other}");
        // The same response as for an absent task, word for word.
        assert_eq!(text, nothing, "{other}");
        let list = Call::get(&format!("{base}/tasks")).header("Authorization", &who(other));
        assert_eq!(list.json().await["tasks"], serde_json::json!([]), "{other}");
    }
    let (status, _) = get(base, &task).send().await;
    assert_eq!(status, StatusCode::NOT_FOUND, "without credentials");
}

#[tokio::test]
async fn an_agent_in_memory_keeps_nothing() {
    let folder = Folder::new();
    let arguments = ["--agent", "conformance", "--memory"];
    let first = Running::agent(&folder, &arguments).await;
    let task = file(first.base()).await;
    has(first.base(), &task).await;
    first.interrupt().await;
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "files in the folder");
    let second = Running::agent(&folder, &arguments).await;
    let (status, _) = get(second.base(), &task).send().await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
