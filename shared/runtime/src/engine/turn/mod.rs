//! One turn of a skill: its event loop, its writes and its end.

pub(super) mod command;
pub(super) mod event_loop;
pub(super) mod event_sink;
pub(super) mod finish;
pub(super) mod heartbeat;
pub(super) mod output_rules;
pub(super) mod references;
pub(super) mod replayed_output;
pub(super) mod report;
pub(super) mod run;
pub(super) mod run_limit;
pub(super) mod scopes;
pub(super) mod skill_future;
pub(super) mod skill_host;
pub(super) mod spec;
#[cfg(test)]
mod state_size_tests;
pub(super) mod thread;
pub(super) mod turn_brake;
pub(super) mod write_buffer;

use super::commit::Commits;
use super::reader::Reader;
use super::seal::Secrets;
use crate::store::documents::Documents;
use a2a_lambda_skill::model::Model;
use a2a_lambda_skill::{AgentDefinition, AgentError};
use output_rules::ReportFault;
use std::sync::Arc;

/// Gets the error of each turn that fails, with its private cause.
pub(in crate::engine) type ReportFailure = Arc<dyn Fn(&AgentError) + Send + Sync>;

/// Runs turns, in calls and in the worker.
#[derive(Clone)]
pub struct Turns {
    pub(in crate::engine) reader: Reader,
    pub(in crate::engine) commits: Arc<Commits>,
    pub(in crate::engine) secrets: Secrets,
    pub(crate) agent: Arc<AgentDefinition>,
    /// The model that skills can call, if there is one.
    pub(in crate::engine) model: Option<Arc<dyn Model>>,
    /// What skills keep beside their tasks.
    pub(in crate::engine) documents: Option<Documents>,
    /// Gets the error of each turn that fails, for the tests of skills.
    pub(in crate::engine) failures: Option<ReportFailure>,
    /// Gets each fault in the output of a skill, for the tests of skills.
    pub(in crate::engine) output_faults: Option<ReportFault>,
}
