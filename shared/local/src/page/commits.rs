//! The stored commits of each task: versions, attempts, hand-overs and finished steps.
//!
//! A task at rest keeps none of this. The stream of the table has an image of every commit
//! of the last day, also of those before a restart. What is read here is for people only:
//! a member of the stored form that is absent or has another form is left out.

use crate::stream::{Batch, Stream, TakeRecords};
use a2a_lambda::store::dynamodb::task_image;
use a2a_lambda::task::{Owner, TaskId};
use async_trait::async_trait;
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The most commits that are kept; the oldest ones go.
const MOST: usize = 100_000;
/// How long a reader waits for the newest commits.
const PATIENCE: Duration = Duration::from_secs(3);

/// Which task: tenant, subject, task.
type OwnedTask = (String, String, String);

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

    /// The commits of a task, oldest first.
    pub(super) fn of(&self, owner: &Owner, task: &TaskId) -> Value {
        let table = self.commits.kept();
        let commits = table.of.get(&whose(owner, task));
        commits
            .into_iter()
            .flatten()
            .map(CommitNote::to_json)
            .collect()
    }
}

fn whose(owner: &Owner, task: &TaskId) -> OwnedTask {
    let Owner { tenant, subject } = owner;
    (tenant.to_string(), subject.to_string(), task.to_string())
}

/// What is kept of the stream.
#[derive(Debug)]
struct KeptCommits {
    commits: Mutex<Commits>,
    /// How often the end of the stream was read.
    ends: watch::Sender<u64>,
}

impl Default for KeptCommits {
    fn default() -> Self {
        Self {
            commits: Mutex::default(),
            ends: watch::Sender::new(0),
        }
    }
}

#[derive(Debug, Default)]
struct Commits {
    of: BTreeMap<OwnedTask, VecDeque<CommitNote>>,
    /// The owners of the kept commits, in the order of the commits.
    order: VecDeque<OwnedTask>,
}

impl KeptCommits {
    fn kept(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TakeRecords for KeptCommits {
    async fn take(&self, batch: &Batch) -> bool {
        if batch.is_empty() {
            self.ends.send_modify(|ends| *ends = ends.wrapping_add(1));
            return true;
        }
        let mut table = self.kept();
        for record in &batch.records {
            if let Some((whose, commit)) = commit_of(record) {
                table.add(whose, commit);
            }
        }
        true
    }
}

impl Commits {
    fn add(&mut self, whose: OwnedTask, commit: CommitNote) {
        let commits = self.of.entry(whose.clone()).or_default();
        // A heartbeat writes the item, and is no commit.
        if commits.back().is_some_and(|last| last.is_same_as(&commit)) {
            return;
        }
        commits.push_back(commit);
        self.order.push_back(whose);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
            && let Some(commits) = self.of.get_mut(&oldest)
        {
            commits.pop_front();
            if commits.is_empty() {
                self.of.remove(&oldest);
            }
        }
    }
}

/// One commit of a task.
#[derive(Debug)]
struct CommitNote {
    incarnation: String,
    version: u64,
    epoch: Option<u64>,
    turn: u32,
    dispatch: Option<u64>,
    state: Option<String>,
    attempt: Option<u64>,
    hand_overs: Option<u64>,
    at: Option<i64>,
    steps: BTreeSet<String>,
}

impl CommitNote {
    fn is_same_as(&self, other: &Self) -> bool {
        self.incarnation == other.incarnation && self.version == other.version
    }

    fn to_json(&self) -> Value {
        json!({
            "version": self.version,
            "epoch": self.epoch,
            "turn": self.turn,
            "waitsForWorker": self.dispatch.is_some(),
            "state": self.state,
            "attempt": self.attempt,
            "handOvers": self.hand_overs,
            "at": self.at,
            "steps": self.steps,
        })
    }
}

/// The commit in a record; `None` if the record is about something else.
fn commit_of(record: &Record) -> Option<(OwnedTask, CommitNote)> {
    let image = record.dynamodb()?.new_image()?;
    let text = |name: &str| match image.get(name)? {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        _ => None,
    };
    let task = task_image(&text).ok()??;
    let body: Value = serde_json::from_str(&text("body")?).ok()?;
    let used = |name: &str| body.get("us")?.get(name)?.as_u64();
    let created_at = body.get("at").and_then(Value::as_i64);
    let later = body.get("up").and_then(Value::as_i64).unwrap_or_default();
    let steps = body.get("sv").and_then(|values| values.get("s"));
    let steps = steps.and_then(Value::as_object);
    let commit = CommitNote {
        version: task.version,
        epoch: text("epoch").and_then(|it| it.parse().ok()),
        turn: task.turn,
        dispatch: task.dispatch,
        state: text("state"),
        // The stored form leaves out the first attempt.
        attempt: body.get("att").map_or(Some(1), Value::as_u64),
        hand_overs: used("h"),
        at: created_at.map(|created_at| created_at.saturating_add(later)),
        steps: steps
            .map(|steps| steps.keys().cloned().collect())
            .unwrap_or_default(),
        incarnation: task.incarnation.to_string(),
    };
    Some((whose(&task.owner, &task.task), commit))
}

#[cfg(test)]
mod tests {
    use super::{CommitNote, Commits, OwnedTask};

    fn commit(version: u64) -> CommitNote {
        CommitNote {
            incarnation: "one".to_owned(),
            version,
            epoch: Some(1),
            turn: 1,
            dispatch: None,
            state: None,
            attempt: None,
            hand_overs: None,
            at: None,
            steps: [].into(),
        }
    }

    #[test]
    fn a_heartbeat_is_no_commit() {
        let whose: OwnedTask = ("t".into(), "s".into(), "task".into());
        let mut commits = Commits::default();
        for version in [1, 1, 2] {
            commits.add(whose.clone(), commit(version));
        }
        let versions: Vec<u64> = commits.of[&whose].iter().map(|it| it.version).collect();
        assert_eq!(versions, [1, 2]);
    }
}
