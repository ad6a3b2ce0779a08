//! Drops the outputs that an earlier run of the turn, or an earlier try of a step, has said.
//!
//! A step that was open when its process died runs again, and a model may then write another
//! text. So the chunks of an open step are compared with the artifact so far: where they
//! differ, the artifact begins again, and no artifact is made of two texts.

use crate::clock::lock;
use crate::store::Measured;
use crate::task::{Part, PartContent, TaskRecord};
use a2a_lambda_skill::Artifact;
use a2a_lambda_skill::turn_host::Emission;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// The outputs of a turn that runs again.
#[derive(Debug)]
pub(in crate::engine) struct ReplayedOutput(Mutex<Outputs>);

#[derive(Debug)]
struct Outputs {
    /// The parts of the artifacts as the turn began to run again, and of those that its steps have
    /// written since, by name.
    artifacts: BTreeMap<String, Vec<Part>>,
    /// The names of artifacts that have begun. The first chunk of any other name begins its artifact.
    names: BTreeSet<String>,
    /// The artifacts whose chunks were dropped, by name.
    dropped_chunks: BTreeMap<String, Chunks>,
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
        let artifacts = record.artifacts.iter().cloned();
        let artifacts = artifacts.filter_map(|artifact| Some((artifact.name?, artifact.parts)));
        let artifacts: BTreeMap<_, _> = artifacts.collect();
        Self(Mutex::new(Outputs {
            names: artifacts.keys().cloned().collect(),
            artifacts,
            dropped_chunks: BTreeMap::new(),
        }))
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
        let mut outputs = lock(&self.0);
        let chunks = outputs.dropped_chunks.remove(&artifact.name);
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
                    || outputs.has(&artifact.name, parts.get(..length).unwrap_or_default());
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
            let name = artifact.name.clone();
            outputs.dropped_chunks.insert(name, chunks);
        }
        if is_left && may_differ {
            outputs.add(&artifact, append);
        }
        is_left.then_some(Emission::Artifact {
            artifact,
            append,
            last_chunk,
            writer,
        })
    }

    /// Whether the artifact of this name has begun; from now on it has. The chunk that begins it
    /// must be on its way: an artifact does not begin with one that is dropped before.
    pub(in crate::engine) fn begin(&self, name: &str) -> bool {
        !lock(&self.0).names.insert(name.to_owned())
    }
}

impl Outputs {
    /// Notes what a step writes: another try of it may write the same.
    fn add(&mut self, artifact: &Artifact, append: bool) {
        let parts = self.artifacts.entry(artifact.name.clone()).or_default();
        if !append {
            parts.clear();
        }
        parts.extend(artifact.parts.iter().cloned());
    }

    /// Whether the artifact begins with these parts.
    fn has(&self, name: &str, output: &[Part]) -> bool {
        let parts = self.artifacts.get(name);
        let parts = parts.and_then(|parts| parts.get(..output.len()));
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
