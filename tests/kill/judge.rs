//! Checks a scenario after the program was killed.

use crate::case::{LOOK, LOOKS, Store};
use crate::client::{events, get, post};
use crate::scenario::{BYTES, Known, OWN_ID, Scenario, id, message, rests, send_own_id};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;

/// All tasks of the caller, read one by one.
pub(crate) async fn tasks(base: &str) -> Vec<Value> {
    let page = get(&format!("{base}/tasks?pageSize=100")).await;
    let listed = page.map(|page| page["tasks"].clone()).unwrap_or_default();
    let mut tasks = Vec::new();
    for task in listed.as_array().into_iter().flatten() {
        let url = format!("{base}/tasks/{}", id(task));
        tasks.push(get(&url).await.unwrap_or_default());
    }
    tasks
}

/// A task, once it is at rest.
async fn rested(base: &str, id: &str) -> Option<Value> {
    for _ in 0..LOOKS {
        let task = get(&format!("{base}/tasks/{id}")).await;
        if let Some(task) = task.filter(rests) {
            return Some(task);
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// The violations of a run.
pub(crate) async fn judge(
    scenario: Scenario,
    base: &str,
    store: &Store,
    known: &Known,
    kept: &BTreeSet<String>,
) -> Vec<String> {
    let mut wrong = known.wrong.clone();
    let mut ids: BTreeSet<String> = tasks(base).await.iter().map(id).collect();
    for reported in &known.reported {
        if store.task(&id(reported)).await.is_none() {
            wrong.push(format!("acknowledged and not stored: {reported}"));
            return wrong;
        }
        ids.insert(id(reported));
    }
    if ids.len() > 1 {
        wrong.push(format!("one send made the tasks {ids:?}"));
    }
    for id in &ids {
        let Some(task) = rested(base, id).await else {
            wrong.push(format!("does not come to rest: {id}"));
            continue;
        };
        let found = about(scenario, known, kept, &task);
        wrong.extend(found.into_iter().map(|what| format!("{what}: {task}")));
        wrong.extend(shown(base, id, known).await);
    }
    wrong.extend(afterwards(scenario, base, ids.first()).await);
    wrong
}

/// The violations of a task at rest.
fn about(scenario: Scenario, known: &Known, kept: &BTreeSet<String>, task: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let state = task["status"]["state"].as_str().unwrap_or_default();
    let completed = state == "TASK_STATE_COMPLETED";
    let rests_well = match scenario {
        Scenario::Continued => completed || state == "TASK_STATE_INPUT_REQUIRED",
        Scenario::Cancel => completed || state == "TASK_STATE_CANCELED",
        _ => completed,
    };
    check(rests_well, "unexpected state at rest");
    check(!known.canceled || !completed, "completed after its cancel");
    for reported in known.reported.iter().filter(|reported| rests(reported)) {
        let same =
            reported["artifacts"] == task["artifacts"] && reported["status"] == task["status"];
        // A later message may continue a task that asks.
        let asked = reported["status"]["state"] == "TASK_STATE_INPUT_REQUIRED";
        check(
            same || asked,
            &format!("differs from the earlier response {reported}"),
        );
    }
    if completed {
        check(content(scenario, task), "unexpected content");
    }
    let history = task["history"].as_array().into_iter().flatten();
    let said = history.filter(|one| one["role"] == "ROLE_USER").count();
    let sent = if scenario == Scenario::Continued {
        2
    } else {
        1
    };
    check(
        said > 0 && said <= sent,
        "unexpected number of user messages",
    );
    if completed {
        let text = task["artifacts"].to_string();
        for run in kept {
            check(text.contains(run.as_str()), &format!("{run} ran again"));
        }
    }
    wrong
}

/// Whether a completed task has its whole content exactly once.
fn content(scenario: Scenario, task: &Value) -> bool {
    let artifacts: Vec<&Value> = task["artifacts"].as_array().into_iter().flatten().collect();
    let [artifact] = artifacts.as_slice() else {
        return false;
    };
    let parts = || artifact["parts"].as_array().into_iter().flatten();
    let text: String = parts().filter_map(|part| part["text"].as_str()).collect();
    match scenario {
        Scenario::Deferred | Scenario::ClientId => text == "echo: hello",
        Scenario::Stream => text == "chunk-1 chunk-2 chunk-3 ",
        Scenario::Queued => steps(artifact, 2),
        Scenario::Continued => steps(artifact, 1),
        Scenario::Cancel | Scenario::File => {
            let raw = artifact["parts"][0]["raw"].as_str().unwrap_or_default();
            let expected: Vec<u8> = (0..=250).cycle().take(BYTES).collect();
            STANDARD.decode(raw).is_ok_and(|bytes| bytes == expected)
        }
    }
}

/// Whether `count` different steps ran and were stored, in the first such turn of the
/// context.
fn steps(artifact: &Value, count: usize) -> bool {
    let reported = &artifact["parts"][0]["data"];
    let runs = reported["steps"].as_array().into_iter().flatten();
    let runs: BTreeSet<&str> = runs.filter_map(Value::as_str).collect();
    runs.len() == count && reported["saved"] == reported["steps"] && reported["inConversation"] == 1
}

/// Checks that the frames of a stream are the start of the log, without a gap.
async fn shown(base: &str, task: &str, known: &Known) -> Option<String> {
    let first = known.frames.first()?;
    let log = events(
        &format!("{base}/tasks/{task}:subscribe"),
        first.id.as_deref()?,
    )
    .await;
    let log: Vec<_> = log.iter().skip(1).collect();
    let read: Vec<_> = known.frames.iter().skip(1).collect();
    let begins = log.get(..read.len()) == Some(read.as_slice());
    (!begins).then(|| format!("shown {read:?}, in the log {log:?}"))
}

/// Checks what the client finds when it continues.
async fn afterwards(scenario: Scenario, base: &str, task: Option<&String>) -> Option<String> {
    match scenario {
        Scenario::ClientId => {
            let reported = send_own_id(base).await.unwrap_or_default();
            let same = reported["id"] == OWN_ID && reported["status"]["state"] == "completed";
            (!same).then(|| format!("sent once more: {reported}"))
        }
        Scenario::Continued => {
            let before = get(&format!("{base}/tasks/{}", task?)).await?;
            let counted = u32::from(before["status"]["state"] == "TASK_STATE_COMPLETED");
            let mut next = message("steps 1", None);
            next["message"]["contextId"] = before["contextId"].clone();
            let sent = post(&format!("{base}/message:send"), &next).await;
            let sent = sent.unwrap_or_default();
            let reported = &sent["task"]["artifacts"][0]["parts"][0]["data"]["inConversation"];
            (*reported != counted + 1)
                .then(|| format!("the session counted {reported} after {before}"))
        }
        _ => None,
    }
}
