//! Projections: which children contain the wanted content of a task, and how they
//! restore it.

use super::join::{FoundChild, PartsByPlace, parsed, parts_of, place_of, prepend};
use super::message::{StoredMessage, all};
use super::schema::corrupt;
use super::split::ChildName;
use crate::store::StoreError;
use crate::task::{Metadata, Segment, StoredValue, TaskFields, TaskRecord};
use std::collections::{BTreeMap, BTreeSet};

/// The children that a projection needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeededChildren {
    /// Values shown with every task.
    pub docs: Vec<StoredValue>,
    /// Messages, newest first.
    pub history: Vec<u64>,
    /// Parts of artifacts.
    pub parts: BTreeSet<u64>,
    /// Batches of events that have parts of artifacts.
    pub batches: BTreeSet<u64>,
}

impl NeededChildren {
    /// Whether all of these children were found.
    pub fn are_met(&self, found: &BTreeMap<ChildName, FoundChild>) -> bool {
        let docs = self.docs.iter().map(|doc| ChildName::Doc(*doc));
        let history = self
            .history
            .iter()
            .map(|version| ChildName::History(*version));
        let parts = self.parts.iter().map(|version| ChildName::Parts(*version));
        let batches = self.batches.iter().map(|upto| ChildName::Events(*upto));
        let mut places = docs.chain(history).chain(parts).chain(batches);
        places.all(|place| found.contains_key(&place))
    }

    /// Whether the projection needs this child.
    #[must_use]
    pub fn has(&self, place: ChildName) -> bool {
        match place {
            ChildName::Doc(doc) => self.docs.contains(&doc),
            ChildName::History(version) => self.history.contains(&version),
            ChildName::Parts(version) => self.parts.contains(&version),
            ChildName::Events(upto) => self.batches.contains(&upto),
        }
    }
}

/// The children needed in addition to `head` to show `history_length` messages, and
/// the artifacts if `artifacts`.
pub fn needs(head: &TaskRecord, history_length: usize, artifacts: bool) -> NeededChildren {
    let layout = &head.layout;
    let mut docs = vec![StoredValue::Status, StoredValue::Metadata];
    docs.retain(|doc| layout.docs.contains_key(doc));
    // The moved messages are the oldest ones.
    let mut missing = history_length.saturating_sub(head.history.len());
    let mut history = Vec::new();
    for segment in layout.history.iter().rev() {
        if missing == 0 {
            break;
        }
        history.push(segment.version);
        missing = missing.saturating_sub(segment.items);
    }
    let segments = layout.artifacts.values().filter(|_| artifacts).flatten();
    let (mut parts, mut batches) = (BTreeSet::new(), BTreeSet::new());
    for segment in segments {
        match segment.batch {
            Some(upto) => batches.insert(upto),
            None => parts.insert(segment.version),
        };
    }
    NeededChildren {
        docs,
        history,
        parts,
        batches,
    }
}

/// Restores the found children into a head: values, the newest messages up to the
/// first missing segment, and the artifacts up to the first incomplete one.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn join_some(
    record: &mut TaskRecord,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<(), StoreError> {
    if let Some(child) = found.get(&ChildName::Doc(StoredValue::Status)) {
        let mut status = record.status().clone();
        status.message = Some(parsed::<StoredMessage<'_>>(&child.text)?.into_message()?);
        record.restore_status(status);
    }
    if let Some(child) = found.get(&ChildName::Doc(StoredValue::Metadata)) {
        record.metadata = parsed::<Metadata>(&child.text)?;
    }
    join_newest(record, found)?;
    join_complete(record, found)
}

fn join_newest(
    record: &mut TaskRecord,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<(), StoreError> {
    let mut newest_first = Vec::new();
    for segment in record.layout.history.iter().rev() {
        let Some(child) = found.get(&ChildName::History(segment.version)) else {
            break;
        };
        let messages: Vec<StoredMessage<'_>> = parsed(&child.text)?;
        let mut messages = all(messages, StoredMessage::into_message)?;
        if messages.len() < segment.items {
            return Err(corrupt("a segment of the history is too short"));
        }
        messages.truncate(segment.items);
        newest_first.push(messages);
    }
    let mut history: Vec<_> = newest_first.into_iter().rev().flatten().collect();
    history.append(&mut record.history);
    record.history = history;
    Ok(())
}

fn join_complete(
    record: &mut TaskFields,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<(), StoreError> {
    let mut read = PartsByPlace::new();
    for (place, child) in found {
        if matches!(place, ChildName::Parts(_) | ChildName::Events(_)) {
            read.insert((*place, child.version), parts_of(*place, &child.text)?);
        }
    }
    let layout = &record.layout;
    let is_read =
        |segments: &Vec<Segment>| segments.iter().all(|it| read.contains_key(&place_of(it)));
    let whole = record
        .artifacts
        .iter()
        .take_while(|artifact| layout.artifacts.get(&artifact.id).is_none_or(is_read))
        .count();
    record.artifacts.truncate(whole);
    for artifact in &mut record.artifacts {
        prepend(artifact, layout.artifacts.get(&artifact.id), &read)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
