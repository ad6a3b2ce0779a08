//! Restores a task from its own item and its children, whole or in part.

use super::children::{ChildContent, ChildName};
use super::encoded::Encoded;
use super::place::{self, OwnIds, into_owned};
use super::schema::corrupt;
use super::task::StateContent;
use crate::store::{Projection, StoreError};
use crate::task::{
    Artifact, LoggedEvent, MovedContent, MovedParts, StoredValue, TaskFields, TaskRecord,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A child as the store found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundChild {
    /// The version of the commit that wrote it.
    pub version: u64,
    /// Its content.
    pub content: Encoded<'static>,
}

/// The content of children, by their versions.
type ChildContents = BTreeMap<u64, ChildContent<'static>>;

/// Restores the children of a task into the record of its own item. Returns `false` if one is
/// missing or of another commit than the item says.
///
/// Of the rest it restores the newest messages up to the first missing child, and the artifacts
/// up to the first incomplete one. Such a record stays partial.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn join(
    record: &mut TaskRecord,
    child_items: &BTreeMap<ChildName, FoundChild>,
) -> Result<bool, StoreError> {
    let fields = record.fields_mut();
    let mut contents = ChildContents::new();
    for entry in &fields.layout.children {
        if let Some(child) = child_items.get(&ChildName::of(entry)) {
            contents.insert(entry.version, child.content.read()?);
        }
    }
    let has_values = join_values(fields, child_items.get(&ChildName::State))?;
    let is_whole = has_values && contents.len() == fields.layout.children.len();
    join_messages(fields, &mut contents)?;
    let content = &mut fields.content;
    let children = &content.layout.children;
    join_parts(&mut content.artifacts, children, &contents, |it| {
        &it.artifacts
    })?;
    join_parts(&mut content.replaced, children, &contents, |it| {
        &it.replaced
    })?;
    if is_whole {
        join_log(fields, contents)?;
    }
    place::fill_record(fields);
    fields.is_partial &= !is_whole;
    Ok(is_whole)
}

/// Returns whether all moved values are there.
fn join_values(record: &mut TaskFields, child: Option<&FoundChild>) -> Result<bool, StoreError> {
    let Some(values) = &record.layout.state else {
        return Ok(true);
    };
    let Some(child) = child.filter(|child| child.version == values.version) else {
        return Ok(false);
    };
    let state: StateContent<'_> = child.content.read()?;
    if let Some(saved) = state.saved {
        record.saved = saved.into_owned();
    }
    if let Some(metadata) = state.metadata {
        record.metadata = metadata.into_owned();
    }
    if let Some(secret) = state.secret {
        record.secret = Some(secret.into_owned());
    }
    Ok(true)
}

fn join_messages(record: &mut TaskFields, contents: &mut ChildContents) -> Result<(), StoreError> {
    let mut newest_first = Vec::new();
    for entry in record.layout.children.iter().rev() {
        if entry.messages == 0 {
            continue;
        }
        let Some(content) = contents.get_mut(&entry.version) else {
            break;
        };
        let mut messages = into_owned(std::mem::take(&mut content.history));
        if messages.len() < entry.messages {
            return Err(corrupt("a child has too few messages"));
        }
        messages.truncate(entry.messages);
        newest_first.push(messages);
    }
    let mut history: Vec<_> = newest_first.into_iter().rev().flatten().collect();
    if record.layout.status {
        record.status.message = history.pop();
    }
    history.append(&mut record.history);
    record.history = history;
    Ok(())
}

/// Puts the moved parts before those of the record's own item.
fn join_parts(
    artifacts: &mut Vec<Artifact>,
    children: &[MovedContent],
    contents: &ChildContents,
    lists: impl Fn(&MovedContent) -> &BTreeMap<String, MovedParts>,
) -> Result<(), StoreError> {
    let of = |id: &str| {
        let entries = children.iter();
        let entries = entries.filter_map(|it| Some((it.version, *lists(it).get(id)?)));
        entries.collect::<Vec<_>>()
    };
    let is_read = |artifact: &Artifact| {
        let mut entries = of(&artifact.id).into_iter();
        entries.all(|(version, _)| contents.contains_key(&version))
    };
    let complete = artifacts.iter().take_while(|it| is_read(it)).count();
    artifacts.truncate(complete);
    for artifact in artifacts {
        let mut parts = Vec::new();
        for (version, count) in of(&artifact.id) {
            let lists = contents.get(&version).map(|content| match count.replaced {
                true => &content.replaced,
                false => &content.artifacts,
            });
            let list = lists.and_then(|lists| lists.get(artifact.id.as_str()));
            let list = list.and_then(|list| list.get(..count.parts));
            let list = list.ok_or_else(|| corrupt("a child has too few parts"))?;
            parts.extend_from_slice(list);
        }
        parts.append(&mut artifact.parts);
        artifact.parts = parts;
    }
    Ok(())
}

fn join_log(record: &mut TaskFields, contents: ChildContents) -> Result<(), StoreError> {
    if record.layout.events_moved() == 0 {
        return Ok(());
    }
    let events = contents.into_values().flat_map(|content| content.log);
    let mut log = into_owned(events.collect());
    log.append(&mut record.log);
    if !log.iter().zip(1..).all(|(event, seq)| event.seq == seq) {
        return Err(corrupt("the event log has a gap"));
    }
    record.log = log;
    Ok(())
}

/// The events in a child of `record`.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn events_of(
    record: &TaskRecord,
    content: &Encoded<'_>,
) -> Result<Vec<LoggedEvent>, StoreError> {
    #[derive(Deserialize)]
    struct Log {
        #[serde(default)]
        log: Vec<LoggedEvent>,
    }
    let mut log = content.read::<Log>()?.log;
    let ids = OwnIds::of(record);
    log.iter_mut().for_each(|event| ids.fill_in(event));
    Ok(log)
}

/// Whether the layout of the task names this child.
#[must_use]
pub fn names(record: &TaskRecord, name: ChildName) -> bool {
    let layout = &record.layout;
    match name {
        ChildName::Moved { .. } => layout.children.iter().any(|it| ChildName::of(it) == name),
        ChildName::State => layout.state.is_some(),
    }
}

/// Whether the task has children that an earlier commit than its last wrote.
#[must_use]
pub fn has_older_children(record: &TaskRecord) -> bool {
    let (layout, version) = (&record.layout, record.version);
    let versions = layout.children.iter().map(|it| it.version);
    let mut versions = versions.chain(layout.state.as_ref().map(|it| it.version));
    versions.any(|it| it != version)
}

/// The children that a projection reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeededChildren {
    /// Their names.
    pub names: BTreeSet<ChildName>,
    /// Their bytes as JSON.
    pub bytes: usize,
    /// Whether they are all that the projection wants.
    pub complete: bool,
}

/// The children that `projection` needs in addition to `head`, as far as they fit: first those that
/// every response shows, then the newest messages, then the artifacts.
#[must_use]
pub fn needs(head: &TaskRecord, projection: Projection) -> NeededChildren {
    let layout = &head.layout;
    let mut children = NeededChildren {
        complete: true,
        ..NeededChildren::default()
    };
    if layout.has_value(StoredValue::Metadata)
        && let Some(state) = &layout.state
    {
        children.take(ChildName::State, state.bytes, projection.bytes);
    }
    // The moved messages are the oldest ones; the last of them may be that of the status.
    let mut missing = projection.history_length.saturating_sub(head.history.len());
    missing = missing.saturating_add(usize::from(layout.status));
    for entry in layout.children.iter().rev() {
        if missing == 0 || !children.complete {
            break;
        }
        if entry.messages > 0 {
            children.take(ChildName::of(entry), entry.bytes, projection.bytes);
            missing = missing.saturating_sub(entry.messages);
        }
    }
    for entry in layout.children.iter().filter(|_| projection.artifacts) {
        if !entry.artifacts.is_empty() && children.complete {
            children.take(ChildName::of(entry), entry.bytes, projection.bytes);
        }
    }
    children
}

impl NeededChildren {
    /// Adds a child, unless it exceeds the `most` bytes.
    fn take(&mut self, name: ChildName, bytes: usize, most: usize) {
        if self.names.contains(&name) {
            return;
        }
        let bytes = self.bytes.saturating_add(bytes);
        self.complete = bytes <= most;
        if self.complete {
            self.bytes = bytes;
            self.names.insert(name);
        }
    }
}

#[cfg(test)]
mod tests;
