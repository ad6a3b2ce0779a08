//! Where the parts of a task lie.
//!
//! A task is one item while it is small. What grows is moved, a piece at a
//! time, to items of its own beside it, its children, and stays there. The
//! layout names the children which belong to the task; a child it does not name
//! is none of it. A store that keeps a task in one piece keeps the layout and
//! does not look at it.

use super::Timestamp;
use std::collections::BTreeMap;

/// Leading items of a list which one commit has moved to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The version of that commit, which is the child's name.
    pub version: u64,
    /// How many items of the child, from its first, belong to the list.
    pub items: usize,
}

/// The events that have been moved: the log from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// The number of the last of them, which is the name of the last batch.
    pub upto: u64,
    /// The number of the first event of the last batch.
    pub from: u64,
    /// The version of the commit that moved the last batch.
    pub version: u64,
}

/// A value that lies apart and is replaced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doc {
    /// Slot, data and steps.
    Saved,
    /// Metadata of the request.
    Metadata,
    /// The message of the status.
    Status,
    /// An answer that stays out of the history.
    Secret,
    /// Artifacts which the turn has replaced.
    Replaced,
}

impl Doc {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Saved,
        Self::Metadata,
        Self::Status,
        Self::Secret,
        Self::Replaced,
    ];

    /// Its name in a stored form.
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

/// Which value lies apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// The version of the commit that stored it.
    pub version: u64,
    /// The hash of its stored form, by which it is known to be the same.
    pub sha256: String,
}

/// How much has been moved, of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Bytes ever moved.
    pub bytes: u64,
    /// Bytes that had been moved before the commit of `version`.
    pub before: u64,
    /// The version of the commit that moved the last of them.
    pub version: u64,
}

/// How long the children stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// All of them, at least until then.
    pub until: Timestamp,
    /// The version of the commit that saw to it.
    pub version: u64,
}

/// Where the parts of a task lie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// The moved events.
    pub events: Option<Batches>,
    /// The moved messages of the history.
    pub history: Vec<Segment>,
    /// The moved parts of each artifact, by its id.
    pub artifacts: BTreeMap<String, Vec<Segment>>,
    /// The same of the artifacts which the turn has replaced.
    pub replaced: BTreeMap<String, Vec<Segment>>,
    /// Values that lie apart.
    pub docs: BTreeMap<Doc, Apart>,
    /// How much has been moved.
    pub volume: Volume,
    /// How long the children stay; `None` while there are none.
    pub kept: Option<Kept>,
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

    /// At most so many bytes of lists and shown values lie apart; `None` if that
    /// is not known.
    #[must_use]
    pub fn most(&self) -> Option<usize> {
        let shown = [Doc::Metadata, Doc::Status];
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

    /// Takes back what the commit of `version` has moved, so that it can be
    /// laid out anew.
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
            self.events = (upto > 0).then_some(Batches {
                upto,
                from: upto,
                version: 0,
            });
        }
    }

    /// Notes that the commit of `version` moves `bytes`.
    pub(crate) const fn moves(&mut self, version: u64, bytes: u64) {
        if self.volume.version != version {
            self.volume.before = self.volume.bytes;
            self.volume.version = version;
        }
        self.volume.bytes = self.volume.bytes.saturating_add(bytes);
    }

    /// The artifact is replaced by another of its id. `keep` says whether the
    /// turn has to be able to put it back.
    pub(super) fn replace(&mut self, artifact: &str, keep: bool) {
        if let Some(segments) = self.artifacts.remove(artifact)
            && keep
        {
            self.replaced.insert(artifact.to_owned(), segments);
        }
    }

    /// The artifact that was replaced is put back.
    pub(super) fn put_back(&mut self, artifact: &str) {
        self.artifacts.remove(artifact);
        if let Some(segments) = self.replaced.remove(artifact) {
            self.artifacts.insert(artifact.to_owned(), segments);
        }
    }
}

/// How many items of a list lie in `segments`.
#[must_use]
pub fn moved(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.items).sum()
}

/// Leaves only what belongs to the first `items` of the list.
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
        let segment = |&(version, items)| Segment { version, items };
        of.iter().map(segment).collect()
    }

    #[test]
    fn a_list_that_is_cut_names_what_is_left_of_it() {
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
    fn a_commit_that_is_taken_back_leaves_what_lay_there_before() {
        let mut layout = Layout {
            history: segments(&[(2, 3), (5, 2)]),
            events: Some(Batches {
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
