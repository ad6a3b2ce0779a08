//! Restores a task from its own item and its children.

use super::message::{StoredArtifact, StoredMessage, StoredPart, all};
use super::part_list::PartList;
use super::runs::StoredBatch;
use super::schema::corrupt;
use super::split::ChildName;
use super::task::Kept;
use crate::store::StoreError;
use crate::task::{
    self, LoggedEvent, Metadata, Sealed, Segment, StoredValue, TaskFields, TaskRecord,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A child as the store found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundChild {
    /// The version of the commit that wrote it.
    pub version: u64,
    /// Its content in the stored form.
    pub text: String,
}

/// Restores the children of a task into the record of its own item. Returns `false`
/// if a child is missing or of another commit than the item says: the item was read
/// too early and must be read again.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn join(
    record: &mut TaskRecord,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<bool, StoreError> {
    let whole = join_docs(record, found)?
        && join_log(record, found)?
        && join_history(record, found)?
        && join_parts(record, found)?;
    record.partial &= !whole;
    Ok(whole)
}

pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(corrupt)
}

fn join_docs(
    record: &mut TaskRecord,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<bool, StoreError> {
    for (doc, apart) in record.layout.docs.clone() {
        let child = found.get(&ChildName::Doc(doc));
        let Some(child) = child.filter(|child| child.version == apart.version) else {
            return Ok(false);
        };
        let text = &child.text;
        match doc {
            StoredValue::Saved => record.saved = parsed::<Kept<'_>>(text)?.into_saved()?,
            StoredValue::Metadata => record.metadata = parsed::<Metadata>(text)?,
            StoredValue::Status => {
                let mut status = record.status().clone();
                status.message = Some(parsed::<StoredMessage<'_>>(text)?.into_message()?);
                record.restore_status(status);
            }
            StoredValue::Secret => record.secret = Some(Sealed::stored(parsed::<String>(text)?)),
            StoredValue::Replaced => {
                record.replaced = all(parsed(text)?, StoredArtifact::into_artifact)?
            }
        }
    }
    Ok(true)
}

/// The events of a batch.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn events_of(text: &str) -> Result<Vec<LoggedEvent>, StoreError> {
    parsed::<StoredBatch<'_>>(text)?.events()
}

fn join_log(
    record: &mut TaskRecord,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<bool, StoreError> {
    let upto = record.layout.events_moved();
    let mut log = Vec::new();
    if upto > 0 {
        // A batch that a later commit than `record` wrote is not part of it.
        for (_, child) in found.range(ChildName::Events(0)..=ChildName::Events(upto)) {
            if child.version <= record.version {
                log.append(&mut events_of(&child.text)?);
            }
        }
    }
    log.append(&mut record.log);
    let whole = log.iter().zip(1..).all(|(event, seq)| event.seq == seq);
    let last = log.last().map_or(0, |event| event.seq);
    record.log = log;
    Ok(upto == 0 || (whole && last >= upto))
}

fn join_history(
    record: &mut TaskRecord,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<bool, StoreError> {
    let mut history = Vec::new();
    for segment in &record.layout.history {
        let Some(child) = found.get(&ChildName::History(segment.version)) else {
            return Ok(false);
        };
        let messages: Vec<StoredMessage<'_>> = parsed(&child.text)?;
        let mut messages = all(messages, StoredMessage::into_message)?;
        // A commit that lost may have left a longer list under the same name.
        messages.truncate(segment.items);
        history.append(&mut messages);
    }
    if history.len() != task::moved(&record.layout.history) {
        return Err(corrupt("a segment of the history is too short"));
    }
    history.append(&mut record.history);
    record.history = history;
    Ok(true)
}

/// Parts by artifact id.
pub(super) type PartsByArtifact = BTreeMap<String, Vec<task::Part>>;

/// The parts in the text of a child.
pub(super) fn parts_of(place: ChildName, text: &str) -> Result<PartsByArtifact, StoreError> {
    let lists: Vec<(String, Vec<StoredPart<'_>>)> = match place {
        ChildName::Events(_) => {
            let artifacts = parsed::<StoredBatch<'_>>(text)?.into_artifacts();
            artifacts
                .into_iter()
                .map(|it| (it.i.into_owned(), it.p))
                .collect()
        }
        ChildName::Parts(_) | ChildName::Doc(_) | ChildName::History(_) => {
            let lists = parsed::<BTreeMap<String, PartList<'_>>>(text)?;
            lists.into_iter().map(|(id, list)| (id, list.0)).collect()
        }
    };
    let mut parts = PartsByArtifact::new();
    for (id, list) in lists {
        parts.insert(id, all(list, StoredPart::into_part)?);
    }
    Ok(parts)
}

/// The parts in children, by the place of the child and the version of its commit.
pub(super) type PartsByPlace = BTreeMap<(ChildName, u64), PartsByArtifact>;

/// The child that has the items of a segment of an artifact.
pub(super) fn place_of(segment: &Segment) -> (ChildName, u64) {
    let batch = segment.batch.map(ChildName::Events);
    let name = batch.unwrap_or(ChildName::Parts(segment.version));
    (name, segment.version)
}

fn join_parts(
    record: &mut TaskFields,
    found: &BTreeMap<ChildName, FoundChild>,
) -> Result<bool, StoreError> {
    let layout = &record.layout;
    let named = layout.artifacts.values().chain(layout.replaced.values());
    let mut read = PartsByPlace::new();
    for segment in named.flatten() {
        let (name, version) = place_of(segment);
        if read.contains_key(&(name, version)) {
            continue;
        }
        let child = found.get(&name);
        let Some(child) = child.filter(|child| child.version == version) else {
            return Ok(false);
        };
        read.insert((name, version), parts_of(name, &child.text)?);
    }
    for artifact in &mut record.artifacts {
        prepend(artifact, layout.artifacts.get(&artifact.id), &read)?;
    }
    for artifact in &mut record.replaced {
        prepend(artifact, layout.replaced.get(&artifact.id), &read)?;
    }
    Ok(true)
}

pub(super) fn prepend(
    artifact: &mut task::Artifact,
    segments: Option<&Vec<Segment>>,
    read: &PartsByPlace,
) -> Result<(), StoreError> {
    let Some(segments) = segments else {
        return Ok(());
    };
    let mut parts = Vec::new();
    for segment in segments {
        let child = read.get(&place_of(segment));
        let list = child.and_then(|child| child.get(&artifact.id));
        let list = list.and_then(|list| list.get(..segment.items));
        let list = list.ok_or_else(|| corrupt("a segment of an artifact is too short"))?;
        parts.extend_from_slice(list);
    }
    parts.append(&mut artifact.parts);
    artifact.parts = parts;
    Ok(())
}

/// Whether the layout of the task names this child.
pub fn names(record: &TaskRecord, place: ChildName) -> bool {
    let layout = &record.layout;
    let has = |segments: &[Segment], version| segments.iter().any(|it| it.version == version);
    match place {
        ChildName::Parts(version) => {
            let lists = layout.artifacts.values().chain(layout.replaced.values());
            lists.into_iter().any(|segments| has(segments, version))
        }
        ChildName::Doc(doc) => layout.docs.contains_key(&doc),
        ChildName::Events(upto) => upto <= layout.events_moved(),
        ChildName::History(version) => has(&layout.history, version),
    }
}

/// Whether the task has children that an earlier commit than its last wrote.
pub fn has_older_children(record: &TaskRecord) -> bool {
    let (layout, version) = (&record.layout, record.version);
    let lists = layout.artifacts.values().chain(layout.replaced.values());
    let mut segments = lists.flatten().chain(&layout.history);
    layout.events.is_some_and(|it| it.from > 1)
        || layout.events.is_some_and(|it| it.version != version)
        || layout.docs.values().any(|apart| apart.version != version)
        || segments.any(|segment| segment.version != version)
}
