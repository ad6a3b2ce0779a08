//! The client's side of the scenarios. Six match those of the suite `faults`; the seventh
//! reads a file.

use crate::case::{LOOK, LOOKS, Store};
use crate::client::{Frame, Live, get, post};
use serde_json::{Value, json};

/// The calls of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A short blocking send; the first write waits for the skill.
    Deferred,
    /// A 0.1 send with the client's own task id, repeated.
    ClientId,
    /// A queued send; a worker runs steps, and saves data and a session value.
    Queued,
    /// A stream.
    Stream,
    /// A question and its answer, with steps and a session value.
    Continued,
    /// A cancel during the work, with an artifact in the bucket.
    Cancel,
    /// A file in the bucket that the client reads again.
    File,
}

/// What the client knows at the end.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The tasks of the responses, each as in its last response.
    pub(crate) reported: Vec<Value>,
    /// The frames of a stream.
    pub(crate) frames: Vec<Frame>,
    /// Whether a response said that the task is canceled.
    pub(crate) canceled: bool,
    /// Whether the client got all its responses.
    pub(crate) finished: bool,
    /// The violations that the client has seen.
    pub(crate) wrong: Vec<String>,
}

/// The task id of [`Scenario::ClientId`].
pub(crate) const OWN_ID: &str = "mine-1";

/// The size in bytes of the files in [`Scenario::File`] and [`Scenario::Cancel`]: more than
/// a task's DynamoDB item may hold.
pub(crate) const BYTES: usize = 40_000;

/// A message of 1.0.
pub(crate) fn message(text: &str, task: Option<&str>) -> Value {
    let mut message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(id) = task {
        message["messageId"] = json!("m2");
        message["taskId"] = json!(id);
    }
    json!({"message": message})
}

/// The send of [`Scenario::ClientId`].
pub(crate) async fn send_own_id(base: &str) -> Option<Value> {
    let parts = json!([{"type": "text", "text": "echo hello"}]);
    let body = json!({"id": OWN_ID, "message": {"role": "user", "parts": parts}});
    post(&format!("{base}/tasks/send"), &body).await
}

/// Whether a task is at rest.
pub(crate) fn rests(task: &Value) -> bool {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    !["", "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state)
}

/// The id of a task.
pub(crate) fn id(task: &Value) -> String {
    task["id"].as_str().unwrap_or_default().to_owned()
}

impl Scenario {
    pub(crate) const ALL: [Self; 7] = [
        Self::Deferred,
        Self::ClientId,
        Self::Queued,
        Self::Stream,
        Self::Continued,
        Self::Cancel,
        Self::File,
    ];

    /// Runs the scenario until it ends or the program dies.
    pub(crate) async fn run(self, base: &str, store: &Store, known: &mut Known) {
        // After a broken call the client keeps what it knew before.
        let _broken = match self {
            Self::Deferred => deferred(base, known).await,
            Self::ClientId => client_id(base, known).await,
            Self::Queued => queued(base, store, known).await,
            Self::Stream => stream(base, known).await,
            Self::Continued => continued(base, known).await,
            Self::Cancel => cancel(base, known).await,
            Self::File => file(base, known).await,
        };
    }
}

async fn deferred(base: &str, known: &mut Known) -> Option<()> {
    let url = format!("{base}/message:send");
    let sent = post(&url, &message("echo hello", None)).await?;
    known.reported = vec![sent["task"].clone()];
    known.finished = true;
    Some(())
}

async fn client_id(base: &str, known: &mut Known) -> Option<()> {
    let first = send_own_id(base).await?;
    known.reported = vec![json!({"id": first["id"]})];
    let second = send_own_id(base).await?;
    known.finished = first["status"]["state"] == "completed";
    if first != second {
        known.wrong.push(format!("sent again {first}: {second}"));
    }
    Some(())
}

async fn queued(base: &str, store: &Store, known: &mut Known) -> Option<()> {
    let mut body = message("steps 2", None);
    body["configuration"] = json!({"returnImmediately": true});
    let sent = post(&format!("{base}/message:send"), &body).await?;
    known.reported = vec![sent["task"].clone()];
    let id = id(&sent["task"]);
    // Reads the store directly, so that polls are not counted as calls of the program.
    let mut looks = 0..LOOKS;
    while !store.task(&id).await?.state().is_at_rest() {
        looks.next()?;
        tokio::time::sleep(LOOK).await;
    }
    let task = get(&format!("{base}/tasks/{id}")).await?;
    if !rests(&task) {
        known
            .wrong
            .push(format!("at rest in the store, but the client sees {task}"));
    }
    known.reported = vec![task];
    known.finished = true;
    Some(())
}

async fn stream(base: &str, known: &mut Known) -> Option<()> {
    let url = format!("{base}/message:stream");
    let mut live = Live::post(&url, &message("chunks 3 200", None)).await?;
    while let Some(frame) = live.next().await {
        known.frames.push(frame);
        known.reported = known
            .frames
            .first()
            .map(|f| f.data["task"].clone())
            .into_iter()
            .collect();
    }
    let last = known.frames.last()?.data.to_string();
    known.finished = last.contains("TASK_STATE_COMPLETED");
    Some(())
}

async fn continued(base: &str, known: &mut Known) -> Option<()> {
    let url = format!("{base}/message:send");
    let asked = post(&url, &message("anything", None)).await?;
    known.reported = vec![asked["task"].clone()];
    let id = id(&asked["task"]);
    let done = post(&url, &message("steps 1", Some(&id))).await?;
    known.reported = vec![done["task"].clone()];
    known.finished = true;
    Some(())
}

async fn cancel(base: &str, known: &mut Known) -> Option<()> {
    let url = format!("{base}/message:stream");
    let body = message(&format!("file {BYTES} 2000"), None);
    let mut live = Live::post(&url, &body).await?;
    while let Some(frame) = live.next().await {
        let shown = frame.data.get("artifactUpdate").is_some();
        known.frames.push(frame);
        let task = &known.frames.first()?.data["task"];
        known.reported = vec![task.clone()];
        if shown && !known.canceled {
            let url = format!("{base}/tasks/{}:cancel", id(task));
            let canceled = post(&url, &json!({})).await?;
            known.canceled = canceled["status"]["state"] == "TASK_STATE_CANCELED";
            known.reported = vec![canceled];
        }
    }
    let last = known.frames.last()?.data.to_string();
    known.finished = known.canceled && last.contains("TASK_STATE_CANCELED");
    Some(())
}

async fn file(base: &str, known: &mut Known) -> Option<()> {
    let url = format!("{base}/message:send");
    let sent = post(&url, &message(&format!("file {BYTES}"), None)).await?;
    known.reported = vec![sent["task"].clone()];
    let task = get(&format!("{base}/tasks/{}", id(&sent["task"]))).await?;
    if task["artifacts"] != sent["task"]["artifacts"] {
        known
            .wrong
            .push("the file of the response differs from the stored file".to_owned());
    }
    known.finished = true;
    Some(())
}
