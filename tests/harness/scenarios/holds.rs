//! What must hold after the attack.

use super::{
    CHUNKS, Client, Known, LATE, OWN_ID, Scenario, file, get, ids, own_id, rests, state, subscribe,
    text,
};
use crate::dialect::{Dialect, at};
use a2a_lambda::task::TaskState;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The most reads before a task counts as open.
const LOOKS: usize = 400;
/// The time between two reads.
const LOOK: Duration = Duration::from_millis(25);

/// The violations of a scenario.
pub(super) async fn holds(scenario: Scenario, after: &dyn Client, known: &Known) -> Vec<String> {
    let mut wrong = known.wrong.clone();
    let mut ids = ids(after).await;
    // A task that is acknowledged and not stored does not come to rest.
    ids.extend(known.reported.iter().map(|it| text(it, "/id")));
    let sends = if scenario == Scenario::Context { 2 } else { 1 };
    if ids.len() > sends {
        wrong.push(format!("{sends} sends made the tasks {ids:?}"));
    }
    let mut first = None;
    for id in &ids {
        let Some(task) = rested(after, id).await else {
            wrong.push(format!("does not come to rest: {id}"));
            continue;
        };
        let found = about(scenario, after, known, &task);
        wrong.extend(found.into_iter().map(|what| format!("{what}: {task}")));
        wrong.extend(shown(after, id, known).await);
        first.get_or_insert(task);
    }
    wrong.extend(afterwards(scenario, after, known, first).await);
    wrong
}

/// A task, once it is at rest.
async fn rested(after: &dyn Client, id: &str) -> Option<Value> {
    for _ in 0..LOOKS {
        let task = after.call(&get(id)).await;
        if let Some(task) = task.filter(rests) {
            return Some(task);
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// The violations of a task at rest.
fn about(scenario: Scenario, after: &dyn Client, known: &Known, task: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let is = |wanted: TaskState| state(task) == Some(wanted);
    let (completed, failed) = (is(TaskState::Completed), is(TaskState::Failed));
    let asks = is(TaskState::InputRequired);
    let may_rest = match scenario {
        Scenario::Continued | Scenario::KeyedAnswer => completed || asks,
        Scenario::Cancel => completed || is(TaskState::Canceled),
        _ => completed,
    };
    check(!failed, "failed: at rest");
    check(failed || may_rest, "unexpected state at rest");
    check(!known.answered || !asks, "failed: asks after its answer");
    check(!known.canceled || !completed, "completed after its cancel");
    let of_it = |reported: &&Value| at(reported, "/id") == at(task, "/id") && rests(reported);
    for reported in known.reported.iter().filter(of_it) {
        let differs = ["/artifacts", "/status"].map(|it| at(reported, it) != at(task, it));
        // A later message may continue a task that asks.
        if differs.contains(&true) && state(reported) != Some(TaskState::InputRequired) {
            check(
                false,
                &format!("differs from the earlier response {reported}"),
            );
        }
    }
    if completed {
        check(content(scenario, after, task), "unexpected content");
        let made = at(task, "/artifacts").to_string();
        for run in &known.kept {
            check(made.contains(run.as_str()), &format!("{run} ran again"));
        }
    }
    if is(TaskState::Canceled) {
        let earlier = matches!(artifacts(task).as_slice(), [made] if is_file(made));
        check(earlier, "a canceled task has not only its earlier output");
    }
    let history = at(task, "/history").as_array().into_iter().flatten();
    let said = history
        .filter(|one| at(one, "/role") == "ROLE_USER")
        .count();
    // A message that can never be stored is missing from its failed task.
    check(
        (said > 0 || failed) && said <= known.messages,
        "unexpected number of user messages",
    );
    wrong
}

fn artifacts(task: &Value) -> Vec<&Value> {
    let artifacts = at(task, "/artifacts").as_array();
    artifacts.into_iter().flatten().collect()
}

/// Whether a completed task has its whole content exactly once.
fn content(scenario: Scenario, after: &dyn Client, task: &Value) -> bool {
    let mut made = artifacts(task);
    made.retain(|made| at(made, "/name") != LATE);
    let [made] = made.as_slice() else {
        return false;
    };
    let words = Dialect::Rest10.words(made);
    match scenario {
        Scenario::Deferred | Scenario::ClientId | Scenario::Keyed | Scenario::Context => {
            words == "echo: hello"
        }
        Scenario::Queued => steps(after, at(made, "/parts/0/data"), 2),
        Scenario::Stream => {
            let chunks = (1..=CHUNKS).map(|number| after.chunk(number));
            words == chunks.collect::<String>()
        }
        Scenario::Continued | Scenario::KeyedAnswer => steps(after, at(made, "/parts/0/data"), 1),
        Scenario::Cancel | Scenario::File => is_file(made),
    }
}

fn is_file(artifact: &Value) -> bool {
    let raw = at(artifact, "/parts/0/raw").as_str().unwrap_or_default();
    STANDARD.decode(raw).is_ok_and(|bytes| bytes == file())
}

/// Whether `count` different steps ran. The agent of `kill` also reports what it saved, and
/// how often it got this command in the context; that of `faults` counts in answers only.
fn steps(after: &dyn Client, reported: &Value, count: usize) -> bool {
    let steps = at(reported, "/steps");
    let runs = steps.as_array().into_iter().flatten();
    let runs: BTreeSet<&str> = runs.filter_map(Value::as_str).collect();
    let (saved, counted) = (reported.get("saved"), reported.get("inConversation"));
    let reports = !after.reports_saved() || (saved.is_some() && counted.is_some());
    runs.len() == count
        && reports
        && saved.is_none_or(|saved| saved == steps)
        && counted.is_none_or(|counted| *counted == 1)
}

/// Checks that the frames of a stream are the start of the log, without a gap.
async fn shown(after: &dyn Client, id: &str, known: &Known) -> Option<String> {
    let (first, read) = known.frames.split_first()?;
    let log = after.stream(&subscribe(id, first.id.as_deref()?)).await;
    let log = log.get(1..).unwrap_or_default();
    let begins = log.get(..read.len()) == Some(read);
    (!begins).then(|| format!("shown {read:?}, in the log {log:?}"))
}

/// Checks what the client finds when it continues.
async fn afterwards(
    scenario: Scenario,
    after: &dyn Client,
    known: &Known,
    task: Option<Value>,
) -> Option<String> {
    let ended = task.as_ref().and_then(state);
    match scenario {
        // A task that failed is a violation already.
        Scenario::ClientId if ended != Some(TaskState::Failed) => {
            let again = after.call(&own_id()).await.unwrap_or_default();
            let same = at(&again, "/id") == OWN_ID && Dialect::Path01.state(&again) == "completed";
            (!same).then(|| format!("sent once more: {again}"))
        }
        Scenario::Continued | Scenario::KeyedAnswer => {
            let task = task?;
            let expected = u64::from(ended == Some(TaskState::Completed));
            let counted = after.counted(&text(&task, "/contextId"), known).await;
            (counted != Some(expected))
                .then(|| format!("the session counted {counted:?} after {task}"))
        }
        _ => None,
    }
}
