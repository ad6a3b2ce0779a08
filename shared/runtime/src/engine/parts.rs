//! Assembles the engine from its parts.

use super::accept::Accept;
use super::background::Sweeper;
use super::brake::BrakeView;
use super::commit::Commits;
use super::files::Files;
use super::handler::Tasks;
use super::policy::Policy;
use super::push_config::Pushes;
use super::reader::Reader;
use super::seal::Secrets;
use super::services::Services;
use super::turn::Turns;
use crate::store::queue::PushQueue;
use a2a_lambda_skill::{AgentDefinition, LoggedModel};
use std::sync::Arc;

/// The parts of the engine, each with the services that it uses.
#[derive(Clone)]
pub struct Engine {
    /// Reads tasks.
    pub(crate) reader: Reader,
    /// Keeps files.
    pub(crate) files: Files,
    /// Decides what becomes of a message.
    pub(crate) accept: Accept,
    /// Runs turns.
    pub turns: Turns,
    /// Cancels and deletes tasks, and deletes contexts.
    pub tasks: Tasks,
    /// Creates and deletes push configs.
    pub(crate) pushes: Pushes,
    /// Finds what the others lost.
    pub sweeper: Sweeper,
}

impl Engine {
    /// Creates an engine that serves `agent` with `services`.
    #[must_use]
    pub fn new(agent: Arc<AgentDefinition>, services: Services, policy: Policy) -> Self {
        let records = services.records;
        let reads = (records.reader().clone(), services.blobs.clone());
        let reader = Reader {
            push: services.push,
            limits: services.limits,
            brake: services.brakes.map(|it| Arc::new(BrakeView::new(it))),
            ids: services.ids,
            ..Reader::new(reads.0, reads.1, services.clock, policy)
        };
        let files = Files {
            reader: reader.clone(),
            blobs: services.blobs,
        };
        let commits = Arc::new(Commits {
            reader: reader.clone(),
            records,
            files: files.clone(),
            recorder: services.recorder,
        });
        let secrets = Secrets::new(&reader);
        let pushes = Pushes {
            reader: reader.clone(),
            commits: commits.clone(),
        };
        let turns = Turns {
            reader: reader.clone(),
            commits: commits.clone(),
            secrets: secrets.clone(),
            agent: agent.clone(),
            model: services
                .model
                .map(|model| Arc::new(LoggedModel(model)) as _),
            documents: services.documents,
            failures: services.failures,
            output_faults: services.output_faults,
        };
        let tasks = Tasks::new(turns.clone());
        Self {
            accept: Accept {
                reader: reader.clone(),
                commits: commits.clone(),
                secrets,
                pushes: pushes.clone(),
                agent,
                router: services.router,
            },
            sweeper: Sweeper {
                reader: reader.clone(),
                commits,
                turns: tasks.turns.clone(),
                tasks: Arc::new(tasks.clone()),
                push_queue: None,
            },
            reader,
            files,
            turns,
            tasks,
            pushes,
        }
    }

    /// The same engine with a sweep that sends unconfirmed push deliveries to `queue`
    /// again.
    #[must_use]
    pub fn with_push_queue(mut self, queue: Arc<dyn PushQueue>) -> Self {
        self.sweeper.push_queue = Some(queue);
        self
    }

    /// The same engine with at most `bytes` as its response budget. Only these parts respond.
    #[must_use]
    pub(crate) fn with_budget(mut self, bytes: usize) -> Self {
        let readers = [
            &mut self.reader,
            &mut self.turns.reader,
            &mut self.tasks.reader,
        ];
        for reader in readers {
            reader.answer_max = reader.answer_max.min(bytes);
        }
        self
    }

    /// The read-only methods.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The agent that the engine serves.
    #[must_use]
    pub fn agent(&self) -> &AgentDefinition {
        &self.turns.agent
    }
}

debug_as_name!(Reader Engine Services Accept Turns Tasks Pushes Sweeper);
