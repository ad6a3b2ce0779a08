//! Work that continues after its call, and after its process was killed.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use serde_json::{Value, json};

async fn agent(folder: &Folder) -> Running {
    Running::agent(folder, &["--agent", "conformance"]).await
}

/// Sends `text` without waiting for the task. Returns the task's id.
pub(crate) async fn begun(base: &str, text: &str) -> String {
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]});
    let body = json!({"message": message, "configuration": {"returnImmediately": true}});
    let task = Call::say(base, text).body(&body).json().await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED", "{task}");
    task["id"].as_str().unwrap().to_owned()
}

/// The task, once its state is no longer one of `passing`.
pub(crate) async fn after(base: &str, id: &str, passing: &[&str]) -> Value {
    loop {
        let task = Call::get(&format!("{base}/tasks/{id}")).json().await;
        if !passing
            .iter()
            .any(|state| task["status"]["state"] == *state)
        {
            return task;
        }
        // Each call takes time; the time limit of the test ends an endless loop.
        tokio::task::yield_now().await;
    }
}

pub(crate) const OPEN: [&str; 2] = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"];

#[tokio::test]
async fn a_send_that_returns_immediately_completes_in_the_background() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let id = begun(agent.base(), "wait 2").await;
    let task = after(agent.base(), &id, &OPEN).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

#[tokio::test]
async fn a_running_task_survives_a_kill_of_its_process() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let id = begun(first.base(), "wait 3").await;
    let working = after(first.base(), &id, &["TASK_STATE_SUBMITTED"]).await;
    assert_eq!(
        working["status"]["state"], "TASK_STATE_WORKING",
        "{working}"
    );
    first.kill().await;
    let second = agent(&folder).await;
    let task = after(second.base(), &id, &OPEN).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(task["contextId"], working["contextId"]);
}

#[tokio::test]
async fn a_submitted_task_survives_a_kill_of_its_process() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let id = begun(first.base(), "wait 1").await;
    first.kill().await;
    let second = agent(&folder).await;
    let task = after(second.base(), &id, &OPEN).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

#[tokio::test]
async fn a_blocking_task_survives_its_caller_and_its_process() {
    let folder = Folder::new();
    let first = agent(&folder).await;
    let base = first.base().to_owned();
    let call = tokio::spawn(async move { Call::say(&base, "wait 3").send().await });
    let id = loop {
        let page = Call::get(&format!("{}/tasks", first.base())).json().await;
        if let Some(id) = page["tasks"][0]["id"].as_str() {
            break id.to_owned();
        }
        tokio::task::yield_now().await;
    };
    call.abort();
    first.kill().await;
    let second = agent(&folder).await;
    let task = after(second.base(), &id, &OPEN).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}
