//! Which parts of a task are in its own item and which in children.
//!
//! A small task is one item. Content that grows moves in pieces to items beside it,
//! its children, and stays there. The layout names the children that belong to the
//! task; any other child does not. A store that keeps a task in one piece stores the
//! layout and ignores it.

use super::Timestamp;
use std::collections::BTreeMap;

/// Items of a list that one commit has moved to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The version of that commit.
    pub version: u64,
    /// How many items of the child belong to the list, counted from its first.
    pub items: usize,
    /// The number of the last event of the batch that has the items. Without one they have a
    /// child of their own, which the version names.
    pub batch: Option<u64>,
}

/// The events that have moved, from the start of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedEvents {
    /// The number of the last moved event; it is the name of the last batch.
    pub upto: u64,
    /// The number of the first event of the last batch.
    pub from: u64,
    /// The version of the commit that moved the last batch.
    pub version: u64,
}

/// A value in a child that is replaced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredValue {
    /// Slot, data and steps.
    Saved,
    /// Metadata of the request.
    Metadata,
    /// The message of the status.
    Status,
    /// An answer that stays out of the history (credentials).
    Secret,
    /// Artifacts that the turn has replaced.
    Replaced,
}

impl StoredValue {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Saved,
        Self::Metadata,
        Self::Status,
        Self::Secret,
        Self::Replaced,
    ];

    /// Its name in the stored form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Metadata => "metadata",
            Self::Status => "status",
            Self::Secret => "secret",
            Self::Replaced => "replaced",
        }
    }
}

/// A value that is in a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedValue {
    /// The version of the commit that stored it.
    pub version: u64,
    /// The hash of its stored form, to detect a change.
    pub sha256: String,
}

/// How much content of lists has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MovedSize {
    /// Bytes moved in total.
    pub bytes: u64,
    /// Bytes that had been moved before the commit of `version`.
    pub before: u64,
    /// The version of the last commit that moved some.
    pub version: u64,
}

/// How long the children stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildLifetime {
    /// All of them stay at least until then.
    pub until: Timestamp,
    /// The version of the commit that set this expiry.
    pub version: u64,
}

/// Which parts of a task are in children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// The moved events.
    pub events: Option<MovedEvents>,
    /// The moved messages of the history.
    pub history: Vec<Segment>,
    /// The moved parts of each artifact, by its id.
    pub artifacts: BTreeMap<String, Vec<Segment>>,
    /// The same for the artifacts that the turn has replaced.
    pub replaced: BTreeMap<String, Vec<Segment>>,
    /// The values in children.
    pub docs: BTreeMap<StoredValue, MovedValue>,
    /// How much has been moved.
    pub volume: MovedSize,
    /// How long the children stay; `None` while there are none.
    pub kept: Option<ChildLifetime>,
}

impl Layout {
    /// Whether the task has no children.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_none()
            && self.history.is_empty()
            && self.artifacts.values().all(Vec::is_empty)
            && self.replaced.values().all(Vec::is_empty)
            && self.docs.is_empty()
    }

    /// An upper bound of the bytes of lists and shown values in children; `None` if
    /// it is not known.
    #[must_use]
    pub fn most(&self) -> Option<usize> {
        let shown = [StoredValue::Metadata, StoredValue::Status];
        if shown.iter().any(|doc| self.docs.contains_key(doc)) {
            return None;
        }
        usize::try_from(self.volume.bytes).ok()
    }

    /// The number of the last moved event; 0 if there is none.
    #[must_use]
    pub fn events_moved(&self) -> u64 {
        self.events.map_or(0, |batches| batches.upto)
    }

    /// How many parts of the artifact have been moved.
    #[must_use]
    pub fn parts_moved(&self, artifact: &str) -> usize {
        self.artifacts.get(artifact).map_or(0, |it| moved(it))
    }

    /// How many parts of the replaced artifact have been moved.
    #[must_use]
    pub fn replaced_moved(&self, artifact: &str) -> usize {
        self.replaced.get(artifact).map_or(0, |it| moved(it))
    }

    /// Takes back what the commit of `version` moved, so that its record can be laid
    /// out again.
    pub(crate) fn forget(&mut self, version: u64) {
        let keep = |segments: &mut Vec<Segment>| segments.retain(|it| it.version != version);
        keep(&mut self.history);
        self.artifacts.values_mut().for_each(keep);
        self.replaced.values_mut().for_each(keep);
        self.docs.retain(|_, apart| apart.version != version);
        if self.volume.version == version {
            self.volume.bytes = self.volume.before;
        }
        if let Some(batches) = self.events.filter(|batches| batches.version == version) {
            let upto = batches.from.saturating_sub(1);
            // The start and version of the earlier batch are no longer known; no commit
            // has version 0.
            self.events = (upto > 0).then_some(MovedEvents {
                upto,
                from: upto,
                version: 0,
            });
        }
    }

    /// Records that the commit of `version` moves `bytes`.
    pub const fn moves(&mut self, version: u64, bytes: u64) {
        if self.volume.version != version {
            self.volume.before = self.volume.bytes;
            self.volume.version = version;
        }
        self.volume.bytes = self.volume.bytes.saturating_add(bytes);
    }

    /// Records that the artifact is replaced by another with its id. `keep` says
    /// whether a restart must be able to restore the old one.
    pub(super) fn replace(&mut self, artifact: &str, keep: bool) {
        if let Some(segments) = self.artifacts.remove(artifact)
            && keep
        {
            self.replaced.insert(artifact.to_owned(), segments);
        }
    }

    /// Restores the replaced artifact.
    pub(super) fn put_back(&mut self, artifact: &str) {
        self.artifacts.remove(artifact);
        if let Some(segments) = self.replaced.remove(artifact) {
            self.artifacts.insert(artifact.to_owned(), segments);
        }
    }
}

/// How many items of a list are in `segments`.
#[must_use]
pub fn moved(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.items).sum()
}

/// Keeps only the segments of the first `items` of the list.
pub(super) fn truncate(segments: &mut Vec<Segment>, items: usize) {
    let mut left = items;
    for segment in segments.iter_mut() {
        segment.items = segment.items.min(left);
        left -= segment.items;
    }
    segments.retain(|segment| segment.items > 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(of: &[(u64, usize)]) -> Vec<Segment> {
        let segment = |&(version, items)| Segment {
            version,
            items,
            batch: None,
        };
        of.iter().map(segment).collect()
    }

    #[test]
    fn truncate_keeps_the_segments_of_the_first_items() {
        let whole = [(2, 3), (5, 2), (9, 4)];
        for (items, left) in [
            (0, vec![]),
            (2, vec![(2, 2)]),
            (3, vec![(2, 3)]),
            (4, vec![(2, 3), (5, 1)]),
            (9, whole.to_vec()),
            (20, whole.to_vec()),
        ] {
            let mut cut = segments(&whole);
            truncate(&mut cut, items);
            assert_eq!(cut, segments(&left), "{items}");
        }
    }

    #[test]
    fn forget_removes_only_the_segments_of_one_commit() {
        let mut layout = Layout {
            history: segments(&[(2, 3), (5, 2)]),
            events: Some(MovedEvents {
                upto: 9,
                from: 7,
                version: 5,
            }),
            ..Layout::default()
        };
        layout.forget(5);
        assert_eq!(layout.history, segments(&[(2, 3)]));
        assert_eq!(layout.events_moved(), 6);
        layout.forget(2);
        assert!(layout.history.is_empty());
    }
}
