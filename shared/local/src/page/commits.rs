//! The stored commits of each task: versions, attempts, hand-overs and finished steps.
//!
//! A task at rest keeps none of this. The stream of the table has an image of every commit
//! of the last day, also of those before a restart. What is read here is for people only:
//! a member of the stored form that is absent or has another form is left out.

use crate::stream::{Stream, TakeRecords};
use a2a_lambda::store::dynamodb::task_image;
use a2a_lambda::store::stored::Encoded;
use a2a_lambda::task::{Owner, TaskId};
use async_trait::async_trait;
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The most commits that are kept; the oldest ones go.
const MOST: usize = 100_000;
/// How long a reader waits for the newest commits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The commits of all tasks, from the stream of the table.
#[derive(Debug)]
pub(super) struct CommitHistory {
    commits: Arc<KeptCommits>,
    reader: JoinHandle<()>,
}

impl Drop for CommitHistory {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl CommitHistory {
    /// Reads the stream from its beginning, for as long as this value lives.
    pub(super) fn follow(stream: Stream) -> Self {
        let commits = Arc::new(KeptCommits::default());
        let reader = {
            let commits = Arc::clone(&commits);
            tokio::spawn(async move { stream.follow(commits.as_ref()).await })
        };
        Self { commits, reader }
    }

    /// Returns when the end of the stream was read once more, or after some seconds.
    pub(super) async fn caught_up(&self) {
        let mut ends = self.commits.ends.subscribe();
        // The read that runs now may have begun before the newest commit.
        for _ in 0..2 {
            let _late = timeout(PATIENCE, ends.changed()).await;
        }
    }

    /// How many records of the stream were read. It grows with each write of any task.
    pub(super) fn count(&self) -> u64 {
        self.commits.count.load(Ordering::Relaxed)
    }

    /// The commits of a task, oldest first.
    pub(super) fn of(&self, owner: &Owner, task: &TaskId) -> Value {
        let notes = self.commits.notes();
        shown(
            notes
                .iter()
                .filter(|it| it.owner == *owner && it.task == *task),
        )
    }
}

/// The commits among the notes of one task.
fn shown<'a>(notes: impl Iterator<Item = &'a CommitNote>) -> Value {
    let mut notes: Vec<&CommitNote> = notes.collect();
    // A heartbeat writes the item, and is no commit.
    notes.dedup_by(|a, b| (a.version, &a.incarnation) == (b.version, &b.incarnation));
    notes.into_iter().map(|note| note.facts.clone()).collect()
}

/// What is kept of the stream.
#[derive(Debug, Default)]
struct KeptCommits {
    notes: Mutex<VecDeque<CommitNote>>,
    /// How many records were read, also those that are no longer kept.
    count: AtomicU64,
    /// How often the end of the stream was read.
    ends: watch::Sender<u64>,
}

impl KeptCommits {
    fn notes(&self) -> MutexGuard<'_, VecDeque<CommitNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TakeRecords for KeptCommits {
    async fn take(&self, records: &[Record]) -> bool {
        if records.is_empty() {
            self.ends.send_modify(|ends| *ends = ends.wrapping_add(1));
        }
        let read = u64::try_from(records.len()).unwrap_or(u64::MAX);
        self.count.fetch_add(read, Ordering::Relaxed);
        let mut notes = self.notes();
        notes.extend(records.iter().filter_map(note));
        let surplus = notes.len().saturating_sub(MOST);
        notes.drain(..surplus);
        true
    }
}

/// One write of a task.
#[derive(Debug)]
struct CommitNote {
    owner: Owner,
    task: TaskId,
    incarnation: String,
    version: u64,
    /// What the page shows of it.
    facts: Value,
}

/// The write in a record; `None` if the record is about something else.
fn note(record: &Record) -> Option<CommitNote> {
    let image = record.dynamodb()?.new_image()?;
    let text = |name: &str| match image.get(name)? {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        _ => None,
    };
    let task = task_image(&text).ok()??;
    let body = match image.get("body")? {
        AttributeValue::S(text) => Encoded::Text(text.into()),
        AttributeValue::B(bytes) => Encoded::Deflated(bytes.as_ref().into()),
        _ => return None,
    };
    let body: Value = serde_json::from_str(&body.json().ok()?).ok()?;
    let number = |pointer: &str| body.pointer(pointer).and_then(Value::as_i64);
    let steps = body.pointer("/saved/steps").and_then(Value::as_object);
    let steps: Vec<&String> = steps.into_iter().flat_map(|steps| steps.keys()).collect();
    let facts = json!({
        "version": task.version,
        "epoch": text("epoch").and_then(|it| it.parse::<u64>().ok()),
        "turn": task.turn,
        "waitsForWorker": task.dispatch.is_some(),
        "state": text("state"),
        // The stored form leaves out the first attempt.
        "attempt": number("/attempt").unwrap_or(1),
        "handOvers": number("/used/handOvers"),
        "at": number("/updatedAt"),
        "steps": steps,
    });
    Some(CommitNote {
        owner: task.owner,
        task: task.task,
        incarnation: task.incarnation.to_string(),
        version: task.version,
        facts,
    })
}

#[cfg(test)]
mod tests {
    use super::{CommitNote, shown};
    use a2a_lambda::task::{Owner, Subject, TaskId, TenantId};
    use serde_json::json;

    fn note(version: u64) -> CommitNote {
        CommitNote {
            owner: Owner {
                tenant: TenantId::parse("t").unwrap(),
                subject: Subject::parse("s").unwrap(),
            },
            task: TaskId::parse("task").unwrap(),
            incarnation: "one".to_owned(),
            version,
            facts: json!(version),
        }
    }

    #[test]
    fn a_heartbeat_is_no_commit() {
        let notes = [1, 1, 2].map(note);
        assert_eq!(shown(notes.iter()), json!([1, 2]));
    }
}
