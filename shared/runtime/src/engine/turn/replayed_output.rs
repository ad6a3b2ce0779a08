//! Drops the outputs that an earlier run of the turn has said.
//!
//! A step that was open when its process died runs again, and a model may then write another
//! text. So the chunks of an open step are compared with the stored artifact: where they
//! differ, the artifact begins again, and no artifact is made of two texts.

use crate::clock::lock;
use crate::store::Measured;
use crate::task::{Artifact as Stored, Part, PartContent, TaskRecord};
use a2a_lambda_skill::turn_host::Emission;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The outputs of a turn that runs again.
#[derive(Debug)]
pub(in crate::engine) struct ReplayedOutput {
    /// The artifacts as the turn began to run again.
    artifacts: Vec<Stored>,
    /// The artifacts whose chunks were dropped, by name.
    dropped_chunks: Mutex<BTreeMap<String, Chunks>>,
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
            artifacts: record.artifacts().to_vec(),
            dropped_chunks: Mutex::default(),
        }
    }

    /// What is left to say of `emission`. `is_said`: the earlier run has said an output at
    /// this position. `may_differ`: a step says it that has no result yet.
    pub(in crate::engine) fn remainder(
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
        let mut dropped_chunks = lock(&self.dropped_chunks);
        let chunks = dropped_chunks.remove(&artifact.name);
        let (chunks, append, is_left) = match chunks {
            // It says what was dropped before, and so it says what follows.
            Some(Chunks::Differ) => (Some(Chunks::Differ), append, true),
            None if append => (None, true, !is_said),
            Some(Chunks::Dropped(mut parts)) if append => {
                // What was said must be the same with this chunk, else without it.
                let before = parts.len();
                parts.extend(artifact.parts.iter().cloned());
                let length = if is_said { parts.len() } else { before };
                let is_same = !may_differ
                    || self.has(&artifact.name, parts.get(..length).unwrap_or_default());
                if is_same {
                    (is_said.then_some(Chunks::Dropped(parts)), true, !is_said)
                } else {
                    artifact.parts = parts;
                    (Some(Chunks::Differ), false, true)
                }
            }
            _ => {
                let chunks = is_said.then(|| Chunks::Dropped(artifact.parts.clone()));
                (chunks, false, !is_said)
            }
        };
        if let Some(chunks) = chunks {
            dropped_chunks.insert(artifact.name.clone(), chunks);
        }
        is_left.then_some(Emission::Artifact {
            artifact,
            append,
            last_chunk,
            writer,
        })
    }

    /// Whether the stored artifact begins with these parts.
    fn has(&self, name: &str, output: &[Part]) -> bool {
        let mut artifacts = self.artifacts.iter();
        let artifact = artifacts.find(|artifact| artifact.name.as_deref() == Some(name));
        let parts = artifact.and_then(|artifact| artifact.parts.get(..output.len()));
        parts.is_some_and(|parts| {
            let mut pairs = parts.iter().zip(output);
            pairs.all(|(old, new)| is_same(&old.content, &new.content))
        })
    }
}

/// Whether the content is the same, in the task or in an object.
fn is_same(old: &PartContent, new: &PartContent) -> bool {
    match (old, new) {
        (PartContent::Stored(old), PartContent::Stored(new)) => old.sha256 == new.sha256,
        (PartContent::Stored(old), PartContent::Raw(bytes)) => {
            old.sha256 == Measured::of(bytes).sha256
        }
        (old, new) => old == new,
    }
}

#[cfg(test)]
mod tests;
