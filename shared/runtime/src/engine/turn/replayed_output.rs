//! Drops the outputs that an earlier run of the turn has said.
//!
//! A step that was open when its process died runs again, and a model may then write another
//! text. So the chunks of an open step are compared with the stored artifact: where they
//! differ, the artifact begins again, and no artifact is made of two texts.

use crate::engine::clock::lock;
use crate::skill::turn_host::Emission;
use crate::store::Measured;
use crate::task::{Artifact as Stored, Part, PartContent, TaskRecord};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The outputs of a turn that runs again.
#[derive(Debug)]
pub(in crate::engine) struct ReplayedOutput {
    /// The artifacts as the turn began to run again.
    stored: Vec<Stored>,
    /// The artifacts whose chunks were dropped, by name.
    dropped: Mutex<BTreeMap<String, Chunks>>,
}

/// The chunks of an artifact.
#[derive(Debug)]
enum Chunks {
    /// The parts that this run has written; the task has them already.
    Dropped(Vec<Part>),
    /// This run writes other parts than the task has.
    Differ,
}

impl ReplayedOutput {
    pub(in crate::engine) fn new(record: &TaskRecord) -> Self {
        Self {
            stored: record.artifacts().to_vec(),
            dropped: Mutex::default(),
        }
    }

    /// What is left to say of `emission`. `is_said`: the earlier run has said an output at
    /// this position. `may_differ`: a step says it that has no result yet.
    pub(in crate::engine) fn left(
        &self,
        emission: Emission,
        is_said: bool,
        may_differ: bool,
    ) -> Option<Emission> {
        let Emission::Artifact {
            mut artifact,
            append,
            last_chunk,
            writer,
        } = emission
        else {
            return (!is_said).then_some(emission);
        };
        let mut dropped = lock(&self.dropped);
        let chunks = dropped.remove(&artifact.name);
        let (chunks, append, is_left) = match chunks {
            // It says what was dropped before, and so it says what follows.
            Some(Chunks::Differ) => (Some(Chunks::Differ), append, true),
            None if append => (None, true, !is_said),
            Some(Chunks::Dropped(mut written)) if append => {
                // What was said must be the same with this chunk, else without it.
                let before = written.len();
                written.extend(artifact.parts.iter().cloned());
                let compared = if is_said { written.len() } else { before };
                let is_same = !may_differ
                    || self.has(&artifact.name, written.get(..compared).unwrap_or_default());
                if is_same {
                    (is_said.then_some(Chunks::Dropped(written)), true, !is_said)
                } else {
                    artifact.parts = written;
                    (Some(Chunks::Differ), false, true)
                }
            }
            _ => {
                let chunks = is_said.then(|| Chunks::Dropped(artifact.parts.clone()));
                (chunks, false, !is_said)
            }
        };
        if let Some(chunks) = chunks {
            dropped.insert(artifact.name.clone(), chunks);
        }
        is_left.then_some(Emission::Artifact {
            artifact,
            append,
            last_chunk,
            writer,
        })
    }

    /// Whether the stored artifact begins with these parts.
    fn has(&self, name: &str, written: &[Part]) -> bool {
        let mut stored = self.stored.iter();
        let stored = stored.find(|artifact| artifact.name.as_deref() == Some(name));
        let parts = stored.and_then(|artifact| artifact.parts.get(..written.len()));
        parts.is_some_and(|parts| {
            let mut pairs = parts.iter().zip(written);
            pairs.all(|(stored, written)| is_same(&stored.content, &written.content))
        })
    }
}

/// Whether the content is the same, in the task or in an object.
fn is_same(stored: &PartContent, written: &PartContent) -> bool {
    match (stored, written) {
        (PartContent::Stored(stored), PartContent::Stored(written)) => {
            stored.sha256 == written.sha256
        }
        (PartContent::Stored(stored), PartContent::Raw(bytes)) => {
            stored.sha256 == Measured::of(bytes).sha256
        }
        (stored, written) => stored == written,
    }
}

#[cfg(test)]
mod tests;
