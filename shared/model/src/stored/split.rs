//! Splits a task into its deciding item and the children beside it.
//!
//! [`arrange`] decides what moves to a child, [`split`] returns what one commit
//! writes, and `join` restores the task. A child is not rewritten; only a value that
//! is replaced as a whole is overwritten.

use super::message::{StoredArtifact, StoredMessage, StoredPart};
use super::part_list::PartList;
use super::runs::{self, StoredBatch};
use super::task::{Kept, StoredTask};
use super::{END_ROOM, ITEM_MAX, MAX_BYTES, checked, length};
use crate::store::{SizeError, StoreError};
use crate::task::{
    self, ChildLifetime, LoggedEvent, MovedEvents, MovedValue, Segment, StoredValue, TaskFields,
    TaskRecord,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Every child is larger than this. That includes a finished task: the largest of its
/// eight kinds moves, while they have more than 32 KB together.
pub const CHILD_MIN: usize = 2 * 1024;
/// Bytes of log, of history and of artifacts that an unfinished task keeps in its own
/// item. Each commit writes the whole item, so larger content is cheaper in a child.
const UNFINISHED: usize = 4 * 1024;
/// Bytes of artifacts that move in a batch of events. More have a child of their own, which is an
/// object (decision 0003).
const IN_BATCH: usize = 32 * 1024;
/// Bytes of a value replaced as a whole that stay in the item. Such a value often
/// changes with the commit, so a child costs a second write.
const DOC: usize = 16 * 1024;
/// Bytes that a finished task keeps in its item, which is not written again.
const FINISHED: usize = 32 * 1024;

/// The name of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildName {
    /// Parts of artifacts by artifact id; moved by the commit of this version.
    Parts(u64),
    /// A value that is replaced as a whole.
    Doc(StoredValue),
    /// Events up to this number.
    Events(u64),
    /// Messages of the history; moved by the commit of this version.
    History(u64),
}

/// A child to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its name, which its key contains.
    pub place: ChildName,
    /// Its content in the stored form.
    pub text: String,
}

/// What one commit writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// The content of the deciding item.
    pub head: String,
    /// The new children.
    pub children: Vec<Child>,
}

/// What can move to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MovableKind {
    Log,
    History,
    Parts,
    Doc(StoredValue),
}

/// Lays out a record before its write: moves content that is too large for the task's
/// own item to children of this version. A repeat changes nothing. A store that keeps
/// a task in one piece does not need it.
pub fn arrange(record: &mut TaskRecord) {
    let version = record.version;
    record.layout.forget(version);
    let mut sizes = sizes(record);
    // A value in a child that has not changed stays in its child.
    let same = |(doc, apart): (&StoredValue, &MovedValue)| {
        let text = doc_text(record, *doc)?;
        (digest(&text) == apart.sha256).then_some(*doc)
    };
    let same: Vec<StoredValue> = record.layout.docs.iter().filter_map(same).collect();
    record.layout.docs.retain(|doc, _| same.contains(doc));
    sizes.retain(|(_, kind)| !matches!(kind, MovableKind::Doc(doc) if same.contains(doc)));
    sizes.sort_unstable();
    if record.state().is_terminal() {
        let mut left: usize = sizes.iter().map(|(size, _)| size).sum();
        while left > FINISHED
            && let Some((size, kind)) = sizes.pop()
        {
            shift(record, kind, size);
            left -= size;
        }
    } else {
        let together = moves_output(record, &sizes);
        for (size, kind) in sizes {
            let limit = match kind {
                MovableKind::Doc(_) => DOC,
                MovableKind::Log | MovableKind::Parts if together => 0,
                _ => UNFINISHED,
            };
            if size > limit {
                shift(record, kind, size);
            }
        }
        if together {
            put_into_batch(record);
        }
    }
    keep(record);
}

/// Whether log and artifacts move in one child. The log of a stream has the texts of its
/// artifact, so the child, as the item, has them once. After its first batch of events a task
/// is a long stream; then it moves more often, which is cheaper. A reader of the artifact reads
/// the log with it, so they stay apart if most of the log is something else.
fn moves_output(record: &TaskRecord, sizes: &[(usize, MovableKind)]) -> bool {
    let size = |wanted| {
        let found = sizes.iter().find(|(_, kind)| *kind == wanted);
        found.map_or(0, |(size, _)| *size)
    };
    let (log, parts) = (size(MovableKind::Log), size(MovableKind::Parts));
    let is_large = log > UNFINISHED || parts > UNFINISHED || record.layout.events.is_some();
    let has_events = embedded_log(record).next().is_some();
    let is_log_of_parts = log <= 2 * parts + CHILD_MIN;
    is_large && has_events && is_log_of_parts && (CHILD_MIN + 1..=IN_BATCH).contains(&parts)
}

/// Makes the parts that this commit moves a part of its batch of events.
fn put_into_batch(record: &mut TaskRecord) {
    let (version, batch) = (record.version, record.layout.events.map(|it| it.upto));
    let segments = record.layout.artifacts.values_mut().flatten();
    for segment in segments.filter(|segment| segment.version == version) {
        segment.batch = batch;
    }
}

/// Children live one lifetime of the task longer than the task. Their expiry is
/// renewed only when the task would outlive it.
fn keep(record: &mut TaskRecord) {
    let version = record.version;
    if record.layout.is_empty() {
        record.layout.kept = None;
        return;
    }
    let lasts = |kept: ChildLifetime| kept.until >= record.expires_at && kept.version != version;
    if !record.layout.kept.is_some_and(lasts) {
        record.layout.kept = Some(ChildLifetime {
            until: child_expiry(record),
            version,
        });
    }
}

/// The expiry of a child written now.
pub fn child_expiry(record: &TaskRecord) -> task::Timestamp {
    let lifetime = record.expires_at.since(record.updated_at);
    record.expires_at.plus(lifetime)
}

/// The size in bytes of each kind of content in the task's own item.
fn sizes(record: &TaskRecord) -> Vec<(usize, MovableKind)> {
    let log = runs::entries(embedded_log(record));
    let history = embedded_history(record)
        .iter()
        .map(|it| length(&StoredMessage::from(it)));
    let parts = record.artifacts.iter().map(|artifact| {
        let moved = record.layout.parts_moved(&artifact.id);
        let parts = artifact.parts.iter().skip(moved);
        length(&PartList(parts.map(StoredPart::from).collect()))
    });
    let mut sizes = vec![
        (log.iter().map(length).sum(), MovableKind::Log),
        (history.sum(), MovableKind::History),
        (parts.sum(), MovableKind::Parts),
    ];
    let doc = |doc: StoredValue| Some((doc_size(record, doc)?, MovableKind::Doc(doc)));
    sizes.extend(StoredValue::ALL.into_iter().filter_map(doc));
    sizes
}

fn shift(record: &mut TaskFields, kind: MovableKind, size: usize) {
    let version = record.version;
    if !matches!(kind, MovableKind::Doc(_)) {
        record.layout.moves(version, size as u64);
    }
    match kind {
        MovableKind::Log => {
            let from = record.layout.events_moved() + 1;
            record.layout.events = Some(MovedEvents {
                upto: record.last_seq,
                from,
                version,
            });
        }
        MovableKind::History => {
            let items = embedded_history(record).len();
            record.layout.history.push(Segment {
                version,
                items,
                batch: None,
            });
        }
        MovableKind::Parts => {
            for artifact in &record.artifacts {
                let moved = record.layout.parts_moved(&artifact.id);
                let items = artifact.parts.len().saturating_sub(moved);
                if items > 0 {
                    let segments = record.layout.artifacts.entry(artifact.id.clone());
                    segments.or_default().push(Segment {
                        version,
                        items,
                        batch: None,
                    });
                }
            }
        }
        MovableKind::Doc(doc) => {
            let sha256 = doc_text(record, doc).map_or_else(String::new, |text| digest(&text));
            record
                .layout
                .docs
                .insert(doc, MovedValue { version, sha256 });
        }
    }
}

fn embedded_log(record: &TaskFields) -> impl Iterator<Item = &LoggedEvent> {
    record.events_after(record.layout.events_moved())
}

fn embedded_history(record: &TaskFields) -> &[task::Message] {
    let moved = task::moved(&record.layout.history);
    record.history.get(moved..).unwrap_or_default()
}

/// The stored form of the artifact without its moved parts.
fn embedded(artifact: &task::Artifact, moved: usize) -> StoredArtifact<'_> {
    let parts = artifact.parts.get(moved..).unwrap_or_default();
    StoredArtifact::with(artifact, parts)
}

fn replaced(record: &TaskFields) -> Vec<StoredArtifact<'_>> {
    let layout = &record.layout;
    let artifacts = record.replaced.iter();
    artifacts
        .map(|artifact| embedded(artifact, layout.replaced_moved(&artifact.id)))
        .collect()
}

/// Calls `give` with the stored form of a value; `None` if there is no value.
fn with_doc<T>(record: &TaskFields, doc: StoredValue, give: &dyn Fn(&dyn Form) -> T) -> Option<T> {
    match doc {
        StoredValue::Saved => {
            let kept = Kept::from(&record.saved);
            (!kept.is_empty()).then(|| give(&kept))
        }
        StoredValue::Metadata => (!record.metadata.is_empty()).then(|| give(&record.metadata)),
        StoredValue::Status => {
            let message = record.status().message.as_ref();
            message.map(|message| give(&StoredMessage::from(message)))
        }
        StoredValue::Secret => {
            let secret = record.secret.as_ref();
            secret.map(|sealed| give(&sealed.as_str()))
        }
        StoredValue::Replaced => (!record.replaced.is_empty()).then(|| give(&replaced(record))),
    }
}

/// Something with a JSON form.
trait Form {
    fn size(&self) -> usize;
    fn text(&self) -> String;
}

impl<T: Serialize> Form for T {
    fn size(&self) -> usize {
        length(self)
    }

    fn text(&self) -> String {
        // Infallible: plain values with text keys are always valid JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn doc_size(record: &TaskFields, doc: StoredValue) -> Option<usize> {
    with_doc(record, doc, &|form| form.size())
}

fn doc_text(record: &TaskFields, doc: StoredValue) -> Option<String> {
    with_doc(record, doc, &|form| form.text())
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// What the commit of `record` writes. The record must have been laid out by
/// [`arrange`].
///
/// # Errors
/// [`StoreError::TooLarge`] for a task larger than [`MAX_BYTES`] in total, or than
/// [`OPEN_MAX_BYTES`](super::OPEN_MAX_BYTES) unless this write ends it; for one nested more
/// deeply than a reader follows, or with more artifacts than one item can name.
/// [`StoreError::Refused`] for a partial record, because the write would lose what it
/// lacks.
pub fn pieces(record: &TaskRecord) -> Result<Pieces, StoreError> {
    if record.partial {
        let why = "the commit is based on a partial record";
        return Err(StoreError::Refused(why.to_owned()));
    }
    let room = if ends(record) { 0 } else { END_ROOM };
    let head = checked(head(record).text(), ITEM_MAX - room)?;
    let moved = usize::try_from(record.layout.volume.bytes).unwrap_or(usize::MAX);
    let all = moved.saturating_add(head.len() + status_apart(record));
    SizeError::check(all, MAX_BYTES - room)?;
    let mut children = Vec::new();
    let mut add = |place, form: &dyn Form| {
        let text = checked(form.text(), MAX_BYTES)?;
        children.push(Child { place, text });
        Ok::<(), StoreError>(())
    };
    let version = record.version;
    let layout = &record.layout;
    if let Some(batch) = layout.events.filter(|batch| batch.version == version) {
        let events = record.events_after(batch.from.saturating_sub(1));
        let output = StoredBatch::of(runs::entries(events), batch_artifacts(record));
        add(ChildName::Events(batch.upto), &output)?;
    }
    if let Some(messages) = fresh(&layout.history, &record.history, version) {
        let messages: Vec<StoredMessage<'_>> = messages.iter().map(StoredMessage::from).collect();
        add(ChildName::History(version), &messages)?;
    }
    let mut parts = BTreeMap::new();
    for artifact in &record.artifacts {
        let segments = layout.artifacts.get(&artifact.id);
        let segments = segments.map(Vec::as_slice).unwrap_or_default();
        let own = segments.last().is_some_and(|it| it.batch.is_none());
        if own && let Some(fresh) = fresh(segments, &artifact.parts, version) {
            let fresh = fresh.iter().map(StoredPart::from).collect();
            parts.insert(&artifact.id, PartList(fresh));
        }
    }
    if !parts.is_empty() {
        add(ChildName::Parts(version), &parts)?;
    }
    for (doc, apart) in &layout.docs {
        if apart.version == version {
            let text = with_doc(record, *doc, &|form| form.text());
            let text = text.map(|text| checked(text, MAX_BYTES)).transpose()?;
            children.extend(text.map(|text| Child {
                place: ChildName::Doc(*doc),
                text,
            }));
        }
    }
    Ok(Pieces { head, children })
}

/// Whether the write of this record ends the task: the task is terminal, or it expires.
fn ends(record: &TaskRecord) -> bool {
    record.state().is_terminal() || record.expires_at <= record.updated_at
}

/// Bytes of a status message in a child, if the next status moves it to the history. There
/// it counts, so it counts before: the client that cancels the task must find room for it.
fn status_apart(record: &TaskRecord) -> usize {
    let apart = record.layout.docs.contains_key(&StoredValue::Status);
    let stays = !apart || record.state().is_terminal();
    if stays {
        0
    } else {
        doc_size(record, StoredValue::Status).unwrap_or(0)
    }
}

/// The artifacts with the parts that the record's commit moves in its batch of events.
fn batch_artifacts(record: &TaskRecord) -> Vec<StoredArtifact<'_>> {
    let artifacts = record.artifacts.iter();
    let moved = artifacts.filter_map(|artifact| {
        let segments = record.layout.artifacts.get(&artifact.id)?;
        segments.last()?.batch?;
        let parts = fresh(segments, &artifact.parts, record.version)?;
        Some(StoredArtifact::with(artifact, parts))
    });
    moved.collect()
}

/// The items of a list that the commit of `version` moved.
fn fresh<'a, T>(segments: &[Segment], items: &'a [T], version: u64) -> Option<&'a [T]> {
    let (last, before) = segments.split_last()?;
    let start = task::moved(before);
    if last.version != version {
        return None;
    }
    items.get(start..start + last.items)
}

/// The content of the task's own item: without the children and without what the
/// item's attributes contain.
fn head(record: &TaskRecord) -> StoredTask<'_> {
    let layout = &record.layout;
    let apart = |doc: StoredValue| layout.docs.contains_key(&doc);
    let mut head = StoredTask::without_content(record);
    head.h = embedded_history(record)
        .iter()
        .map(StoredMessage::from)
        .collect();
    head.log = runs::entries(embedded_log(record));
    let artifacts = record.artifacts.iter();
    head.a = artifacts
        .map(|artifact| embedded(artifact, layout.parts_moved(&artifact.id)))
        .collect();
    if !apart(StoredValue::Metadata) {
        head.md = Cow::Borrowed(&record.metadata);
    }
    if apart(StoredValue::Status) {
        head.st.m = None;
    }
    if !apart(StoredValue::Saved) {
        head.sv = Kept::from(&record.saved);
    }
    if !apart(StoredValue::Secret) {
        head.sec = record.secret.as_ref().map(|it| it.as_str().to_owned());
    }
    if !apart(StoredValue::Replaced) {
        head.rp = replaced(record);
    }
    head.compact();
    head.leave_beside(record.state().is_at_rest());
    head
}

#[cfg(test)]
mod tests;
