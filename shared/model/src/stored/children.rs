//! Splits a task into its own item and the children beside it.
//!
//! [`arrange`] decides what moves to a child, [`pieces`] returns what one commit writes, and
//! `join` restores the task. All that one commit moves is one child, which is never written
//! again. `STATE` has values that each change replaces.

use super::encoded::{self, Encoded, exceeds, length};
use super::place::OwnIds;
use super::task::{StateContent, TaskBody, messages_left};
use super::{END_MARGIN, ITEM_MAX, MAX_BYTES};
use crate::store::{SizeError, StoreError};
use crate::task::{
    Artifact, Event, Layout, LoggedEvent, Message, MovedContent, MovedParts, MovedValues, Part,
    StoredValue, TaskFields, TaskRecord,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Stored bytes of growing content that an unfinished task keeps in its own item. Each commit
/// writes the whole item, so more of it is cheaper in a child.
const UNFINISHED: usize = 1_800;
/// Stored bytes of a value, or of the message of a status, that stay in the item. Such a value
/// often changes with the commit, so a child costs a second write.
const VALUE: usize = 16 * 1024;
/// Stored bytes that a finished task keeps in its item, which is not written again.
const FINISHED: usize = 32 * 1024;

/// The name of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildName {
    /// What one commit has moved.
    Moved {
        /// The number of the last event that has moved by then.
        last_event: u64,
        /// The version of the commit.
        version: u64,
    },
    /// The values that each change replaces.
    State,
}

impl ChildName {
    /// The child of one entry of a layout.
    #[must_use]
    pub const fn of(entry: &MovedContent) -> Self {
        Self::Moved {
            last_event: entry.last_event,
            version: entry.version,
        }
    }
}

/// A child to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its name, which its key contains.
    pub name: ChildName,
    /// Its content.
    pub content: Encoded<'static>,
}

/// What one commit writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// The body of the task's own item.
    pub head: Encoded<'static>,
    /// The new children.
    pub children: Vec<Child>,
    /// The bytes of the task as JSON, with all of its children but `STATE`.
    pub bytes: usize,
}

/// Parts by artifact id.
pub(super) type PartsById<'a> = BTreeMap<Cow<'a, str>, Cow<'a, [Part]>>;

/// What one commit moves.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct ChildContent<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) log: Vec<Cow<'a, LoggedEvent>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) history: Vec<Cow<'a, Message>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) artifacts: PartsById<'a>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) replaced: PartsById<'a>,
}

/// Lays out a record before its write: moves content that is too large for the task's own item
/// to children of this version. A repeat changes nothing. A store that keeps a task in one piece
/// does not need it.
pub fn arrange(record: &mut TaskRecord) {
    let fields = record.fields_mut();
    fields.content.layout.forget(fields.version);
    move_values(fields);
    move_content(fields);
    fields.layout.status = fields.layout.messages_moved() > fields.history.len();
}

/// Notes in the layout which values are too large for the task's item, so that the commit writes
/// them to the item `STATE` beside it. A value with the hash of the last commit is not written again.
fn move_values(record: &mut TaskFields) {
    let large = |value: &StoredValue| match value {
        StoredValue::Saved => exceeds(&record.saved, VALUE),
        StoredValue::Metadata => exceeds(&record.metadata, VALUE),
        StoredValue::Secret => {
            let secret = record.secret.as_ref();
            secret.is_some_and(|it| exceeds(it, VALUE))
        }
    };
    let values: BTreeSet<StoredValue> = StoredValue::ALL.into_iter().filter(large).collect();
    if values.is_empty() {
        record.layout.state = None;
        return;
    }
    // Infallible: plain values with text keys are always valid JSON.
    let state = StateContent::of(record, |it| values.contains(&it));
    let json = serde_json::to_string(&state).unwrap_or_default();
    let sha256 = hex::encode(Sha256::digest(&json));
    let before = record.layout.state.as_ref();
    if before.is_none_or(|state| state.sha256 != sha256) {
        record.layout.state = Some(MovedValues {
            version: record.version,
            sha256,
            values,
            bytes: json.len(),
        });
    }
}

/// Moves growing content to a child of this version, if the task's item would have too much.
fn move_content(record: &mut TaskFields) {
    let layout = &record.layout;
    let message = record.status.message.as_ref();
    let message = message.filter(|_| layout.messages_moved() <= record.history.len());
    let with_status = message.is_some_and(|message| exceeds(message, VALUE));
    let moves = if record.state().is_terminal() {
        exceeds(&TaskBody::of(record, layout), FINISHED)
    } else {
        with_status || exceeds(&ChildContent::of(record, layout, false), UNFINISHED)
    };
    if moves {
        let entry = ChildContent::of(record, layout, with_status).entry(record);
        record.layout.children.extend(entry);
    }
}

impl<'a> ChildContent<'a> {
    /// The growing content of the task that has not moved to a child by `layout`, without the
    /// task's own ids. `with_status`: the message of the status too, as the last of the history.
    fn of(record: &'a TaskFields, layout: &Layout, with_status: bool) -> Self {
        let ids = OwnIds::of(record);
        let message = record.status.message.iter().filter(|_| with_status);
        let history = messages_left(record, layout).iter().chain(message);
        let log = record.events_after(layout.events_moved());
        Self {
            log: log.map(|it| ids.leave_in(it)).collect(),
            history: history.map(|it| ids.leave(it)).collect(),
            artifacts: parts_left(&record.artifacts, |id| layout.parts_moved(id)),
            replaced: parts_left(&record.replaced, |id| layout.replaced_moved(id)),
        }
    }

    /// What the layout says of it; `None` if there is nothing to move.
    fn entry(&self, record: &TaskFields) -> Option<MovedContent> {
        let parts = |lists: &PartsById<'_>, replaced| {
            let count = |(id, parts): (&Cow<'_, str>, &Cow<'_, [Part]>)| {
                let parts = parts.len();
                (id.to_string(), MovedParts { parts, replaced })
            };
            lists.iter().map(count).collect()
        };
        let last = self.log.last().map(|event| event.seq);
        let entry = MovedContent {
            version: record.version,
            last_event: last.unwrap_or_else(|| record.layout.events_moved()),
            messages: self.history.len(),
            artifacts: parts(&self.artifacts, false),
            replaced: parts(&self.replaced, true),
            bytes: length(self).saturating_sub(part_bytes(&self.log)),
        };
        let is_some = last.is_some()
            || entry.messages > 0
            || !(entry.artifacts.is_empty() && entry.replaced.is_empty());
        is_some.then_some(entry)
    }
}

/// The bytes of parts in the log. They are those of the artifacts, so a task counts them once.
pub(super) fn part_bytes(log: &[Cow<'_, LoggedEvent>]) -> usize {
    let parts = log.iter().filter_map(|entry| match &entry.event {
        Event::Artifact(update) => Some(length(&update.artifact.parts)),
        Event::Status(_) => None,
    });
    parts.sum()
}

/// The parts that have not moved, of the artifacts that have some.
fn parts_left(artifacts: &[Artifact], start_of: impl Fn(&str) -> usize) -> PartsById<'_> {
    let rests = artifacts.iter().filter_map(|artifact| {
        let parts = artifact.parts.get(start_of(&artifact.id)..)?;
        let rest = (Cow::from(&artifact.id), Cow::from(parts));
        (!parts.is_empty()).then_some(rest)
    });
    rests.collect()
}

/// What the commit of `record` writes. The record must have been laid out by [`arrange`].
///
/// # Errors
/// [`StoreError::TooLarge`] for a task larger than [`MAX_BYTES`] in total, or than
/// [`OPEN_MAX_BYTES`](super::OPEN_MAX_BYTES) unless this write ends it; for one nested more
/// deeply than a reader follows, or with more artifacts than one item can name.
/// [`StoreError::Refused`] for a partial record, because the write would lose what it
/// lacks.
pub fn pieces(record: &TaskRecord) -> Result<Pieces, StoreError> {
    if record.is_partial {
        let why = "the commit is based on a partial record";
        return Err(StoreError::Refused(why.to_owned()));
    }
    // Whether this write ends the task: the task is terminal, or it expires.
    let ends = record.state().is_terminal() || record.expires_at <= record.updated_at;
    let space = if ends { 0 } else { END_MARGIN };
    let (layout, version) = (&record.layout, record.version);
    let body = TaskBody::of(record, layout);
    let head = encoded::json(&body)?;
    let bytes = layout.bytes().saturating_add(head.len()) - part_bytes(&body.log);
    SizeError::check(bytes, MAX_BYTES - space)?;
    let head = Encoded::of(head)?;
    SizeError::check(head.size(), ITEM_MAX - space)?;
    let mut children = Vec::new();
    if let Some(entry) = layout.children.last().filter(|it| it.version == version) {
        let mut before = layout.clone();
        before.forget(version);
        let with_status = layout.status && before.messages_moved() <= record.history.len();
        children.push(Child {
            name: ChildName::of(entry),
            content: encoded::encode(&ChildContent::of(record, &before, with_status))?,
        });
    }
    if let Some(state) = layout.state.as_ref().filter(|it| it.version == version) {
        children.push(Child {
            name: ChildName::State,
            content: encoded::encode(&StateContent::of(record, |it| state.values.contains(&it)))?,
        });
    }
    Ok(Pieces {
        head,
        children,
        bytes,
    })
}

/// Makes an arranged `record` as large as `bytes`, by what it says of the child of its version:
/// for tests of the limits, which are exact and cheap so.
#[cfg(any(test, feature = "contract-tests"))]
pub fn fill(record: &mut TaskRecord, bytes: usize) {
    let version = record.version;
    let last = record.layout.children.last();
    if last.is_none_or(|it| it.version != version) {
        let moved = ChildContent::of(record, &record.layout, false).entry(record);
        let nothing = MovedContent {
            version,
            last_event: record.layout.events_moved(),
            ..MovedContent::default()
        };
        record
            .fields_mut()
            .layout
            .children
            .push(moved.unwrap_or(nothing));
    }
    // The number of bytes is in the body too.
    for _ in 0..3 {
        let now = length(&TaskBody::of(record, &record.layout)) + record.layout.bytes();
        if let Some(moved) = record.fields_mut().layout.children.last_mut() {
            moved.bytes = (moved.bytes + bytes).saturating_sub(now);
        }
    }
}

#[cfg(test)]
mod tests;
