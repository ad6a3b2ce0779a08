//! Which parts of a task are in its own item and which in children.
//!
//! A small task is one item. Content that grows moves to items beside it, its children, and
//! stays there. The layout names the children that belong to the task; any other child does
//! not. A store that keeps a task in one piece stores the layout and ignores it.

use super::is_default;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Not;

/// Parts of an artifact in a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedParts {
    /// How many of the child's parts belong to the artifact, counted from the first.
    pub parts: usize,
    /// Whether the child has them among the replaced artifacts.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub replaced: bool,
}

/// What one commit has moved to a child.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedContent {
    /// The version of that commit.
    pub version: u64,
    /// The number of the last event that has moved, in this commit or before; 0 if none has.
    pub last_event: u64,
    /// How many messages of the child belong to the task, counted from the first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub messages: usize,
    /// The parts of artifacts, by artifact id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, MovedParts>,
    /// The parts of the artifacts that the turn has replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, MovedParts>,
    /// The bytes of the child as JSON, before it is compressed. The parts of artifacts, which
    /// are in the log too, count once.
    pub bytes: usize,
}

/// A value that moves as a whole to the item `STATE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredValue {
    /// Slot, data and steps.
    Saved,
    /// Metadata of the request.
    Metadata,
    /// An answer that stays out of the history (credentials).
    Secret,
}

impl StoredValue {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Saved, Self::Metadata, Self::Secret];
}

/// The values in `STATE`, which each change replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedValues {
    /// The version of the commit that stored them.
    pub version: u64,
    /// The hash of their JSON, to detect a change.
    pub sha256: String,
    /// Which values.
    pub values: BTreeSet<StoredValue>,
    /// The bytes of their JSON.
    pub bytes: usize,
}

/// Which parts of a task are in children.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Layout {
    /// What has moved, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<MovedContent>,
    /// Whether the last moved message is that of the status.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub status: bool,
    /// The values in `STATE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<MovedValues>,
}

impl Layout {
    /// Whether the task has no children.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.children.is_empty() && self.state.is_none()
    }

    /// Whether `STATE` has this value.
    #[must_use]
    pub(crate) fn has_value(&self, value: StoredValue) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.values.contains(&value))
    }

    /// The bytes of what has moved, as JSON, without `STATE`.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sizes = self.children.iter().map(|child| child.bytes);
        sizes.fold(0, usize::saturating_add)
    }

    /// The bytes in children that a response can show, at most.
    #[must_use]
    pub fn shown_bytes(&self) -> usize {
        let state = self.state.as_ref();
        let state = state.filter(|state| state.values.contains(&StoredValue::Metadata));
        self.bytes()
            .saturating_add(state.map_or(0, |state| state.bytes))
    }

    /// The number of the last moved event; 0 if there is none.
    #[must_use]
    pub fn events_moved(&self) -> u64 {
        self.children.last().map_or(0, |child| child.last_event)
    }

    /// How many messages have moved: those of the history, then that of the status.
    #[must_use]
    pub fn messages_moved(&self) -> usize {
        self.children.iter().map(|child| child.messages).sum()
    }

    /// How many parts of the artifact have moved.
    #[must_use]
    pub(crate) fn parts_moved(&self, artifact: &str) -> usize {
        let children = self.children.iter();
        let parts = children.filter_map(|child| child.artifacts.get(artifact));
        parts.map(|it| it.parts).sum()
    }

    /// How many parts of the replaced artifact have moved.
    #[must_use]
    pub(crate) fn replaced_moved(&self, artifact: &str) -> usize {
        let children = self.children.iter();
        let parts = children.filter_map(|child| child.replaced.get(artifact));
        parts.map(|it| it.parts).sum()
    }

    /// Takes back what the commit of `version` moved, so that its record can be laid out again.
    pub(crate) fn forget(&mut self, version: u64) {
        self.children.retain(|child| child.version != version);
        self.state = self.state.take().filter(|state| state.version != version);
    }

    /// Keeps only the first `messages` of those that have moved.
    pub(super) fn keep_messages(&mut self, messages: usize) {
        keep_first(
            self.children.iter_mut().map(|it| &mut it.messages),
            messages,
        );
    }

    /// Keeps only the first `parts` of the artifact.
    pub(super) fn keep_parts(&mut self, artifact: &str, parts: usize) {
        let children = self.children.iter_mut();
        let lists = children.filter_map(|child| child.artifacts.get_mut(artifact));
        keep_first(lists.map(|it| &mut it.parts), parts);
    }

    /// Keeps only the artifacts whose id `keep` accepts.
    pub(super) fn keep_artifacts(&mut self, keep: impl Fn(&str) -> bool) {
        for child in &mut self.children {
            child.artifacts.retain(|id, _| keep(id));
        }
    }

    /// Takes an artifact that another with its id replaces out of the items beside the task. With
    /// `keep`, a restart of the turn can put it back.
    pub(super) fn replace(&mut self, artifact: &str, keep: bool) {
        for child in &mut self.children {
            if let Some(parts) = child.artifacts.remove(artifact)
                && keep
            {
                child.replaced.insert(artifact.to_owned(), parts);
            }
        }
    }

    /// Restores the replaced artifact.
    pub(super) fn put_back(&mut self, artifact: &str) {
        for child in &mut self.children {
            child.artifacts.remove(artifact);
            if let Some(parts) = child.replaced.remove(artifact) {
                child.artifacts.insert(artifact.to_owned(), parts);
            }
        }
    }

    /// Forgets the replaced artifacts: no restart will restore them.
    pub(super) fn forget_replaced(&mut self) {
        for child in &mut self.children {
            child.replaced.clear();
        }
    }
}

/// Lowers counts so that the first ones have `items` together.
fn keep_first<'a>(counts: impl Iterator<Item = &'a mut usize>, items: usize) {
    let mut remainder = items;
    for count in counts {
        *count = (*count).min(remainder);
        remainder -= *count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    fn layout(messages: &[usize]) -> Layout {
        let child = |(version, &messages)| MovedContent {
            version,
            messages,
            ..MovedContent::default()
        };
        Layout {
            children: (1..).zip(messages).map(child).collect(),
            ..Layout::default()
        }
    }

    #[test]
    fn a_restart_keeps_the_first_messages_of_the_children() {
        let rows = [
            (0, [0, 0, 0]),
            (2, [2, 0, 0]),
            (3, [3, 0, 0]),
            (4, [3, 1, 0]),
            (9, [3, 2, 4]),
            (20, [3, 2, 4]),
        ];
        each_row(rows, |(items, left)| {
            let mut cut = layout(&[3, 2, 4]);
            cut.keep_messages(items);
            assert_eq!(cut, layout(&left), "{items}");
        });
    }

    #[test]
    fn forget_takes_back_the_child_of_one_commit() {
        let mut cut = layout(&[3, 2, 4]);
        cut.forget(3);
        assert_eq!(cut, layout(&[3, 2]));
        assert_eq!(cut.messages_moved(), 5);
    }
}
