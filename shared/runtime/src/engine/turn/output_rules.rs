//! The rules that the output of a skill keeps: its declared media types, one writer for an
//! artifact, and writers that end. The test bench fails where a rule is broken, and a server
//! warns once in a turn.

use crate::clock::lock;
use crate::task::{Part, TaskId};
use a2a_lambda_skill::turn_host::{ChunkWriter, Emission, ScopeId};
use a2a_lambda_skill::{AgentError, AgentResult, Artifact, SkillMetadata, SkillOutcome, media};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What is wrong with the output of a skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum OutputFault {
    /// A media type is not among the output modes of the skill.
    #[error(
        "skill `{skill}` gave `{media_type}` in `{output}`, which is not among its output modes"
    )]
    MediaType {
        /// The id of the skill.
        skill: String,
        /// The name of the artifact, or `the reply`.
        output: String,
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

/// Gets each fault in the output of a skill.
pub(in crate::engine) type ReportFault = Arc<dyn Fn(&OutputFault) + Send + Sync>;

/// Checks the output of one turn. It reports each fault once.
pub(in crate::engine) struct OutputRules<'e> {
    report: Option<&'e ReportFault>,
    task: TaskId,
    skill: Option<SkillMetadata>,
    /// The newest writer of each artifact, the step in which it writes, and whether it has
    /// finished.
    writers: Mutex<BTreeMap<String, (ChunkWriter, ScopeId, bool)>>,
    faults: Mutex<BTreeSet<OutputFault>>,
}

impl<'e> OutputRules<'e> {
    /// The rules of a turn of this task, of its skill if it runs one.
    pub(in crate::engine) fn new(
        report: Option<&'e ReportFault>,
        task: TaskId,
        skill: Option<SkillMetadata>,
    ) -> Self {
        Self {
            report,
            task,
            skill,
            writers: Mutex::default(),
            faults: Mutex::default(),
        }
    }

    /// The name of the artifact that holds the result of the turn: the id of its skill.
    pub(in crate::engine) fn result_name(&self) -> &str {
        self.skill.as_ref().map_or("result", |skill| skill.id)
    }

    /// Checks an emission in `step`.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for [`OutputFault::AcrossSteps`].
    pub(in crate::engine) fn check(&self, emission: &Emission, step: ScopeId) -> AgentResult<()> {
        let Emission::Artifact {
            artifact,
            append,
            last_chunk,
            writer,
        } = emission
        else {
            return Ok(());
        };
        self.check_media_type(&artifact.name, &artifact.parts);
        let Some(writer) = writer else {
            return Ok(());
        };
        let mut writers = lock(&self.writers);
        let artifact = artifact.name.clone();
        match writers.get(&artifact) {
            Some((newest, ..)) if *append && newest != writer => {
                self.report(OutputFault::TwoWriters { artifact });
            }
            Some((_, begun_in, _)) if *append && *begun_in != step => {
                let fault = OutputFault::AcrossSteps { artifact };
                let error = AgentError::internal(fault.to_string());
                self.report(fault);
                return Err(error);
            }
            _ => {
                writers.insert(artifact, (writer.clone(), step, *last_chunk));
            }
        }
        Ok(())
    }

    /// Checks an outcome. Questions and statuses are always text.
    pub(in crate::engine) fn check_outcome(&self, outcome: &SkillOutcome) {
        let mut results: &[Artifact] = &[];
        match outcome {
            SkillOutcome::Message { message: content } => {
                self.check_media_type("the reply", content.parts())
            }
            SkillOutcome::Completed { artifacts, .. } => results = artifacts,
            // An error may come before the end of an artifact.
            SkillOutcome::Failed { .. } => return,
            _ => {}
        }
        for artifact in results {
            self.check_media_type(&artifact.name, &artifact.parts);
        }
        for (name, (writer, _, is_finished)) in lock(&self.writers).iter() {
            let is_result = results.iter().any(|artifact| artifact.name == *name);
            if !writer.is_of_model && !is_finished && !is_result {
                let artifact = name.clone();
                self.report(OutputFault::Unfinished { artifact });
            }
        }
    }

    fn check_media_type(&self, location: &str, parts: &[Part]) {
        if let Some(skill) = &self.skill
            && let Some(media_type) = media::undeclared_output(skill, parts)
        {
            self.report(OutputFault::MediaType {
                skill: skill.id.to_owned(),
                output: location.to_owned(),
                media_type: media_type.to_owned(),
            });
        }
    }

    fn report(&self, fault: OutputFault) {
        let mut faults = lock(&self.faults);
        if faults.contains(&fault) {
            return;
        }
        let id = &self.task;
        tracing::warn!(a2a.task = %id, "the output of task `{id}`: {fault}");
        if let Some(report) = self.report {
            report(&fault);
        }
        faults.insert(fault);
    }
}
