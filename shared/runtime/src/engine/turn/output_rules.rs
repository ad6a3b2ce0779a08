//! The rules that the output of a skill keeps: its declared media types, one writer for an
//! artifact, and writers that end. The test bench fails where a rule is broken, and a server
//! warns once in a turn.

use crate::engine::Engine;
use crate::engine::clock::lock;
use crate::task::{Part, TaskId};
use a2a_lambda_skill::turn_host::{ChunkWriter, Emission, ScopeId};
use a2a_lambda_skill::{AnySkill, Artifact, SkillMetadata, SkillOutcome, media};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// What is wrong with the output of a skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum OutputFault {
    /// A media type is not among the output modes of the skill.
    #[error(
        "skill `{skill}` gave `{media_type}` in `{place}`, which is not among its output modes"
    )]
    MediaType {
        /// The id of the skill.
        skill: String,
        /// The name of the artifact, or `the reply`.
        place: String,
        /// The media type.
        media_type: String,
    },
    /// Two writers wrote the same artifact in turns, and each replaced what the other wrote.
    #[error("two writers write the artifact `{artifact}` at the same time")]
    TwoWriters {
        /// The name of the artifact.
        artifact: String,
    },
    /// A writer wrote in two steps, or in a step and outside of it. A turn that runs again skips
    /// the finished step, and would lose its chunks.
    #[error(
        "the artifact `{artifact}` is written in more than one step: each needs a writer of its own"
    )]
    AcrossSteps {
        /// The name of the artifact.
        artifact: String,
    },
    /// A writer was dropped before its artifact was complete.
    #[error("the writer of the artifact `{artifact}` was not finished: call `finish`")]
    Unfinished {
        /// The name of the artifact.
        artifact: String,
    },
}

/// Checks the output of one turn.
#[derive(Debug)]
pub(in crate::engine) struct OutputRules {
    skill: Option<SkillMetadata>,
    /// The newest writer of each artifact, the step in which it writes, and whether it has
    /// finished.
    writers: Mutex<BTreeMap<String, (ChunkWriter, ScopeId, bool)>>,
    faults: Mutex<BTreeSet<OutputFault>>,
}

impl OutputRules {
    /// The rules of a turn, of this skill if it runs one.
    pub(in crate::engine) fn new(skill: Option<&dyn AnySkill>) -> Self {
        Self {
            skill: skill.map(|skill| *skill.metadata()),
            writers: Mutex::default(),
            faults: Mutex::default(),
        }
    }

    /// The name of the artifact that holds the result of the turn: the id of its skill.
    pub(in crate::engine) fn result_name(&self) -> &str {
        self.skill.as_ref().map_or("result", |skill| skill.id)
    }

    /// The faults of an emission in `step` that the turn has not had before.
    pub(in crate::engine) fn check(&self, emission: &Emission, step: ScopeId) -> Vec<OutputFault> {
        let Emission::Artifact {
            artifact,
            append,
            last_chunk,
            writer,
        } = emission
        else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        faults.extend(self.unpromised(&artifact.name, &artifact.parts));
        if let Some(writer) = writer {
            let mut writers = lock(&self.writers);
            match writers.get(&artifact.name) {
                Some((newest, ..)) if *append && newest != writer => {
                    let artifact = artifact.name.clone();
                    faults.push(OutputFault::TwoWriters { artifact });
                }
                Some((_, begun_in, _)) if *append && *begun_in != step => {
                    let artifact = artifact.name.clone();
                    faults.push(OutputFault::AcrossSteps { artifact });
                }
                _ => {
                    let newest = (writer.clone(), step, *last_chunk);
                    writers.insert(artifact.name.clone(), newest);
                }
            }
        }
        self.unknown(faults)
    }

    /// The faults of an outcome that the turn has not had before. Questions and statuses are
    /// always text.
    pub(in crate::engine) fn check_outcome(&self, outcome: &SkillOutcome) -> Vec<OutputFault> {
        let mut results: &[Artifact] = &[];
        let mut faults = Vec::new();
        match outcome {
            SkillOutcome::Message(content) => {
                faults.extend(self.unpromised("the reply", content.parts()));
            }
            SkillOutcome::Completed { artifacts, .. } => results = artifacts,
            // An error may come before the end of an artifact.
            SkillOutcome::Failed(_) => return faults,
            _ => {}
        }
        for artifact in results {
            faults.extend(self.unpromised(&artifact.name, &artifact.parts));
        }
        for (name, (writer, _, is_finished)) in lock(&self.writers).iter() {
            let is_result = results.iter().any(|artifact| artifact.name == *name);
            if writer.must_finish && !is_finished && !is_result {
                let artifact = name.clone();
                faults.push(OutputFault::Unfinished { artifact });
            }
        }
        self.unknown(faults)
    }

    fn unpromised(&self, location: &str, parts: &[Part]) -> Option<OutputFault> {
        let skill = self.skill.as_ref()?;
        let media_type = media::unpromised(skill, parts)?;
        Some(OutputFault::MediaType {
            skill: skill.id.to_owned(),
            place: location.to_owned(),
            media_type: media_type.to_owned(),
        })
    }

    fn unknown(&self, mut faults: Vec<OutputFault>) -> Vec<OutputFault> {
        let mut known_faults = lock(&self.faults);
        faults.retain(|fault| known_faults.insert(fault.clone()));
        faults
    }
}

impl Engine {
    /// Warns of a fault in the output of a skill.
    pub(in crate::engine) fn warn_of(&self, id: &TaskId, fault: &OutputFault) {
        tracing::warn!(task.id = %id, "the output of task `{id}`: {fault}");
        if let Some(report) = &self.output_faults {
            report(fault);
        }
    }
}
