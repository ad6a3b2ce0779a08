//! Lists of a caller's tasks: query, page and position.

use super::StoreError;
use crate::task::{ContextId, Owner, TaskId, TaskRecord, TaskState, Timestamp};
use std::cmp::Reverse;

/// A page of a caller's tasks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordPage {
    /// The records, newest status first, each as
    /// a read of one head gives it.
    pub records: Vec<TaskRecord>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<ListPosition>,
    /// How many records match the filter: exact up to `count_limit`.
    pub matching: usize,
}

/// The largest number of tasks in a context that a store lists from their heads. A
/// larger context is listed from the list index.
pub const IN_CONTEXT: usize = 200;

impl RecordPage {
    /// The page for `query` from `heads`, which must contain every head of `owner`
    /// that can match.
    #[must_use]
    pub fn of_all(mut heads: Vec<TaskRecord>, owner: &Owner, query: &RecordQuery) -> Self {
        heads.retain(|head| query.matches(owner, head));
        let matching = heads.len().min(query.count_limit);
        heads.sort_by_key(|head| Reverse(ListPosition::of(head)));
        let after = query.after.as_ref();
        heads.retain(|head| after.is_none_or(|after| ListPosition::of(head) < *after));
        let more = heads.len() > query.limit;
        heads.truncate(query.limit);
        let last = heads.last().filter(|_| more);
        Self {
            next: last.map(ListPosition::of),
            records: heads,
            matching,
        }
    }
}

/// A position in a list: after the task with this status time and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    /// The status time of the last task of the page.
    pub at: Timestamp,
    /// The id of that task.
    pub task: TaskId,
}

impl ListPosition {
    /// The position of `record`.
    #[must_use]
    pub fn of(record: &TaskRecord) -> Self {
        Self {
            at: record.status.timestamp,
            task: record.id.clone(),
        }
    }
}

impl std::fmt::Display for ListPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.at.as_millis(), self.task)
    }
}

impl ListPosition {
    /// The position that this text encodes.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the text is not a position.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let position = || {
            let (at, task) = text.split_once('#')?;
            Some(Self {
                at: Timestamp::from_millis(at.parse().ok()?),
                task: TaskId::parse(task).ok()?,
            })
        };
        position().ok_or_else(|| {
            StoreError::Refused(format!("list position `{text}` is not `<ms>#<task id>`"))
        })
    }
}

/// Which records to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Only this context.
    pub context_id: Option<ContextId>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only tasks with a status time at or after this.
    pub status_after: Option<Timestamp>,
    /// Continue after this position.
    pub after: Option<ListPosition>,
    /// At most this many records.
    pub limit: usize,
    /// Stop counting matches here.
    pub count_limit: usize,
    /// The time by which expiry is judged.
    pub now: Timestamp,
}

impl RecordQuery {
    /// Whether the list of `owner`'s tasks contains `record`, on any page.
    #[must_use]
    pub fn matches(&self, owner: &Owner, record: &TaskRecord) -> bool {
        let context = self.context_id.as_ref();
        &record.owner == owner
            && !record.is_expired(self.now)
            && context.is_none_or(|context| &record.context_id == context)
            && self.state.is_none_or(|state| record.state() == state)
            && self
                .status_after
                .is_none_or(|after| record.status.timestamp >= after)
    }
}
