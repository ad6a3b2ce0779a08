//! The engine: loads a task, applies changes, commits them, runs the skill and finishes
//! the turn.
//!
//! - `handler` has one file a method of the protocol, and one for each method of ours.
//! - `accept` finds the task, context and skill of a message before anything is written;
//!   `accept::idempotency` recognises a send that a client repeats.
//! - `turn` runs one turn of a skill. Unary, streaming and background calls share it;
//!   they differ only in the event sink.
//! - `commit` is the only writer of tasks and of threads.
//! - `files` moves large parts to the bucket and back into responses.
//! - `lots` charges calls to the rates of their tenant; `slots` leases a slot for each open
//!   stream and each turn from the queue; `day_limits` counts stored bytes and tokens of models.
//!   `brake` reads what an operator has stopped,
//!   and `admission` lets work begin.
//! - `background` has the steps behind the calls: the worker and the relay, push
//!   delivery, and the sweep, which finds what the others lost.
//!
//! The engine uses no status code, no JSON and no AWS type. It reaches the outside
//! through the store traits, [`Clock`] and [`Ids`], so that a simulation can replace
//! all of them.

mod accept;
mod admission;
mod background;
mod brake;
mod budget;
mod commit;
mod day_limits;
#[cfg(test)]
mod doubles;
mod error;
mod files;
mod handler;
mod limit_policy;
mod lots;
mod policy;
mod push_config;
mod reader;
mod repeat;
mod seal;
mod secret_keys;
mod services;
mod slots;
mod turn;
mod turn_break;

/// The functions and types that the fuzz targets test.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz {
    pub(crate) use super::SecretKeySet;
    pub(crate) use super::files::{content_type, disposition};
    pub(crate) use super::handler::page_token::{PagePosition, PagedList, TaskPosition};
}

pub use crate::clock::{Clock, Ids, RandomIds, SystemClock};
pub use a2a_lambda_skill::route::STEPS as ROUTE_STEPS;
use accept::Accept;
pub use accept::RoutePreview;
pub use background::Sweeper;
pub use background::collect_objects::CollectReport;
pub use background::expire_contexts::ThreadSweepReport;
pub use background::push_delivery::{
    PushDelivery, PushDeliveryError, PushDispatcher, PushServices, SendPush,
};
pub use background::relay::{relay, relay_pushes};
pub use background::sweep::{Leases, SweepPlaces, SweepReport, SweepRound};
pub use budget::CallBudget;
pub use error::EngineError;
pub use handler::Tasks;
pub use limit_policy::{CallRate, LimitPolicy, RatePolicy, SharedStreams};
pub use policy::Policy;
pub use reader::Reader;
pub(crate) use secret_keys::SecretKeySet;
pub use secret_keys::{ReadSecretKeys, SECRET_KEY_MIN, SecretKeys};
pub use services::Services;
pub(crate) use slots::StopFrames;
pub use turn::Turns;
pub use turn::event_sink::Frames;
pub use turn::output_rules::OutputFault;

use crate::store::queue::PushQueue;
use a2a_lambda_skill::{AgentDefinition, LoggedModel};
use brake::BrakeView;
use commit::Commits;
use files::Files;
use push_config::Pushes;
use seal::Secrets;
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
        let (records, ids) = (services.records, services.ids);
        let reads = (records.reader().clone(), services.blobs.clone());
        let reader = Reader {
            push: services.push,
            limits: services.limits,
            brake: services.brakes.map(|it| Arc::new(BrakeView::new(it))),
            ids: ids.clone(),
            ..Reader::new(reads.0, reads.1, services.clock, policy)
        };
        let files = Files::new(reader.clone(), services.blobs, ids.clone());
        let commits = Commits::new(files.clone(), records, services.recorder);
        let secrets = Secrets::new(&reader);
        let pushes = Pushes::new(commits.clone());
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
                commits,
                secrets,
                pushes: pushes.clone(),
                agent,
                router: services.router,
            },
            sweeper: Sweeper::new(tasks.clone()),
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

    /// The same engine with at most `bytes` as its response budget.
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

/// Shows the name of a type only: a service may hold secrets.
macro_rules! debug_as_name {
    ($($type:ident)+) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )+};
}

debug_as_name!(Reader Engine Services Accept Turns Tasks Pushes Sweeper);
