//! The engine: loads a task, applies changes, commits them, runs the skill and finishes
//! the turn.
//!
//! - `handler` has one file a method of the protocol, and one for each method of ours.
//! - `accept` finds the task, context and skill of a message before anything is written;
//!   `accept::idempotency` recognises a send that a client repeats.
//! - `turn` runs one turn of a skill. Unary, streaming and background calls share it;
//!   they differ only in the event sink.
//! - `commit` is the only writer of tasks.
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
mod seal;
mod secret_keys;
mod slots;
mod turn;

/// The functions and types that the fuzz targets test.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz {
    pub(crate) use super::SecretKeySet;
    pub(crate) use super::files::{content_type, disposition};
    pub(crate) use super::handler::page_token::{PagePosition, PagedList, TaskPosition};
}

pub use crate::clock::{Clock, Ids, RandomIds, SystemClock};
pub use a2a_lambda_skill::route::STEPS as ROUTE_STEPS;
pub use accept::RoutePreview;
pub use background::collect_objects::CollectReport;
pub use background::expire_contexts::ThreadSweepReport;
pub use background::push_delivery::{
    PushDelivery, PushDeliveryError, PushDispatcher, PushServices, SendPush,
};
pub use background::relay::{relay, relay_pushes};
pub use background::sweep::{Leases, SweepPlaces, SweepReport, SweepRound};
pub use budget::CallBudget;
pub use error::EngineError;
pub use limit_policy::{CallRate, LimitPolicy, RatePolicy, SharedStreams};
pub(crate) use secret_keys::SecretKeySet;
pub use secret_keys::{ReadSecretKeys, SECRET_KEY_MIN, SecretKeys};
pub(crate) use slots::StopFrames;
pub use turn::event_sink::Frames;
pub use turn::output_rules::OutputFault;

use crate::outbound::{AddressPolicy, UrlError};
use crate::store::brake::Brakes;
use crate::store::documents::Documents;
use crate::store::limits::Limits;
use crate::store::queue::PushQueue;
use crate::store::records::{RecordReader, Records};
use crate::store::{Blobs, ReadBlobs};
use a2a_lambda_skill::model::Model;
use a2a_lambda_skill::route::RouterModel;
use a2a_lambda_skill::{
    AgentDefinition, AgentError, CallNames, LoggedModel, RecordTrace, RunTrace,
};
use brake::BrakeView;
use lots::TokenCache;
use std::sync::Arc;
use std::time::Duration;

/// Durations and sizes that the engine uses; `settings` reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How long a task is kept, counted from its last rest.
    pub task_ttl: Duration,
    /// How long a thread lives after its last activity.
    pub thread_ttl: Duration,
    /// How long the state of a thread is kept after its last activity.
    pub state_ttl: Duration,
    /// How long the tombstone of an expired client-made context id is kept.
    pub thread_tombstone: Duration,
    /// How long after its last heartbeat a running turn cannot be taken over.
    pub lease: Duration,
    /// How long a blocking call may wait for its turn.
    pub blocking_budget: Duration,
    /// How many attempts a turn has before its task fails. A run that an outage ended is
    /// no attempt.
    pub max_attempts: u32,
    /// How long a turn may take without stored progress.
    pub task_run_max: Duration,
    /// How often the turns of a task may be handed over together.
    pub task_hand_overs_max: u32,
    /// How long the first write of a short send may wait while the skill runs.
    pub deferral: Duration,
    /// How long an event may wait for others before its commit.
    pub flush_interval: Duration,
    /// How long a stream may stay open that follows a turn of another invocation.
    pub stream_max_age: Duration,
    /// Parts above this many bytes are kept in the blob store.
    pub inline_max: usize,
    /// The most bytes of a response; a file that does not fit is returned as a URL.
    pub response_max: usize,
    /// The most bytes of an uploaded file.
    pub upload_max: usize,
    /// The most bytes that slot, steps and saved data of a task have together, and the
    /// most bytes of the thread state of a context.
    pub state_max_bytes: usize,
    /// A list counts at most this many tasks for its total.
    pub list_count_max: usize,
    /// Whether the message id is the idempotency key when the client gives none.
    pub idempotent_message_id: bool,
    /// Which addresses requests to URLs of clients may reach.
    pub reach: AddressPolicy,
    /// Whether the operator may allow webhooks in private networks: the program is no deployed
    /// function.
    pub may_reach_private: bool,
    /// What the callers of one tenant may use.
    pub limits: LimitPolicy,
    /// Authenticate page tokens, and seal secrets at rest.
    pub secrets: SecretKeys,
}

impl Policy {
    /// The sentence for a webhook that is refused. It names the way out if there is one.
    pub(crate) fn why_refused(&self, fault: UrlError) -> String {
        let is_private = matches!(fault, UrlError::Scheme | UrlError::NotPublic);
        match is_private && self.may_reach_private {
            true => format!("{fault}, unless the agent runs with `A2A_PUSH_ALLOW_PRIVATE=on`"),
            false => fault.to_string(),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            task_ttl: Duration::from_secs(30 * 24 * 3600),
            thread_ttl: Duration::from_secs(24 * 3600),
            state_ttl: Duration::from_secs(3600),
            thread_tombstone: Duration::from_secs(7 * 24 * 3600),
            lease: Duration::from_secs(60),
            blocking_budget: Duration::from_secs(25),
            max_attempts: 5,
            task_run_max: Duration::from_secs(24 * 3600),
            task_hand_overs_max: 1000,
            deferral: Duration::from_millis(250),
            flush_interval: Duration::from_millis(275),
            stream_max_age: Duration::from_secs(300),
            inline_max: 32 * 1024,
            response_max: 4_500_000,
            upload_max: 100 * 1024 * 1024,
            state_max_bytes: 1024 * 1024,
            list_count_max: 1000,
            reach: AddressPolicy::Public,
            may_reach_private: false,
            idempotent_message_id: false,
            limits: LimitPolicy::default(),
            secrets: SecretKeys::default(),
        }
    }
}

/// The read-only methods; the function `tasks-get` has only these.
#[derive(Clone)]
pub struct Reader {
    pub(crate) records: RecordReader,
    pub(crate) blobs: Arc<dyn ReadBlobs>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: Arc<Policy>,
    /// The response budget in bytes: `Policy::response_max`, or a share of it.
    pub(crate) answer_max: usize,
    /// Whether tasks have push configs.
    pub(crate) push: bool,
    /// Counts what a tenant uses; `None` when nothing is limited.
    pub(crate) limits: Option<Limits>,
    /// The tokens that this process has taken; all copies of the reader share them.
    lots: Arc<TokenCache>,
    /// What this process knows of the brake; `None` when nobody can brake it.
    brake: Option<Arc<BrakeView>>,
    /// Makes the ids of the holders of slots.
    ids: Arc<dyn Ids>,
}

/// All methods.
#[derive(Clone)]
pub struct Engine {
    pub(crate) reader: Reader,
    pub(crate) records: Records,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) model: Option<Arc<dyn Model>>,
    /// The model that chooses a skill, if there is one.
    pub(crate) router: Option<Arc<RouterModel>>,
    /// What skills keep beside their tasks.
    pub(crate) documents: Option<Documents>,
    /// The queue with which a sweep repeats push deliveries.
    pub(crate) push_queue: Option<Arc<dyn PushQueue>>,
    /// Gets the error of each turn that fails, with its private cause. Tests of skills use it.
    pub(crate) failures: Option<ReportFailure>,
    /// Records what turns do, for the author of the agent. Deployed functions have none.
    pub(crate) recorder: Option<Arc<dyn RecordTrace>>,
    /// Gets each fault in the output of a skill. Tests of skills use it.
    pub(crate) output_faults: Option<ReportFault>,
}

/// Gets the error of a turn that fails.
type ReportFailure = Arc<dyn Fn(&AgentError) + Send + Sync>;

/// Gets a fault in the output of a skill.
type ReportFault = Arc<dyn Fn(&OutputFault) + Send + Sync>;

/// The services that an [`Engine`] uses.
#[derive(Clone)]
pub struct Services {
    /// Tasks, threads and push configs.
    pub records: Records,
    /// Files. The records keep their large values there too.
    pub blobs: Arc<dyn Blobs>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random ids.
    pub ids: Arc<dyn Ids>,
    /// The model that skills can call, if there is one.
    pub model: Option<Arc<dyn Model>>,
}

impl Reader {
    /// Creates a reader over these services.
    #[must_use]
    pub fn new(
        records: RecordReader,
        blobs: Arc<dyn ReadBlobs>,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        Self {
            records,
            blobs,
            clock,
            answer_max: policy.response_max,
            policy: Arc::new(policy),
            push: false,
            limits: None,
            lots: Arc::default(),
            brake: None,
            ids: Arc::new(RandomIds),
        }
    }

    /// The same reader with limits: `limits` counts what [`Policy::limits`] allows.
    #[must_use]
    pub(crate) fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// The same reader with at most `bytes` as its response budget.
    #[must_use]
    pub(crate) fn with_budget(mut self, bytes: usize) -> Self {
        self.answer_max = self.answer_max.min(bytes);
        self
    }
}

impl Engine {
    /// The same engine, which gives the error of each turn that fails to `failures`, and each
    /// fault in the output of a skill to `faults`.
    #[must_use]
    pub(crate) fn reporting(mut self, failures: ReportFailure, faults: ReportFault) -> Self {
        self.failures = Some(failures);
        self.output_faults = Some(faults);
        self
    }

    /// Creates an engine that serves `agent` with `services`.
    #[must_use]
    pub fn new(agent: Arc<AgentDefinition>, services: Services, policy: Policy) -> Self {
        let records = services.records.reader().clone();
        let reader = Reader::new(records, services.blobs.clone(), services.clock, policy);
        Self {
            reader: Reader {
                ids: services.ids.clone(),
                ..reader
            },
            records: services.records,
            blobs: services.blobs,
            ids: services.ids,
            agent,
            model: services
                .model
                .map(|model| Arc::new(LoggedModel(model)) as _),
            router: None,
            documents: None,
            push_queue: None,
            failures: None,
            recorder: None,
            output_faults: None,
        }
    }

    /// The trace of the call or turn that runs; `None` if nobody records one.
    fn trace(&self) -> Option<Arc<RunTrace>> {
        let recorder = self.recorder.as_ref()?;
        let names = CallNames::current();
        let make = || {
            let run = format!("{:08x}", self.ids.next() & u128::from(u32::MAX));
            RunTrace::new(Arc::clone(recorder), run).into()
        };
        Some(Arc::clone(names.trace.get_or_init(make)))
    }

    /// The same engine with limits: `limits` counts what [`Policy::limits`] allows.
    #[must_use]
    pub(crate) fn with_limits(mut self, limits: Limits) -> Self {
        self.reader = self.reader.with_limits(limits);
        self
    }

    /// The same engine, which operators can brake.
    #[must_use]
    pub fn with_brake(mut self, brakes: Brakes) -> Self {
        self.reader.brake = Some(Arc::new(BrakeView::new(brakes)));
        self
    }

    /// The same engine with a store for the documents of skills.
    #[must_use]
    pub(crate) fn with_documents(mut self, documents: Documents) -> Self {
        self.documents = Some(documents);
        self
    }

    /// The same engine with push notifications.
    #[must_use]
    pub const fn with_push(mut self) -> Self {
        self.reader.push = true;
        self
    }

    /// The same engine with a sweep that sends unconfirmed push deliveries to `queue`
    /// again.
    #[must_use]
    pub fn with_push_queue(mut self, queue: Arc<dyn PushQueue>) -> Self {
        self.push_queue = Some(queue);
        self
    }

    /// The same engine with at most `bytes` as its response budget.
    #[must_use]
    pub(crate) fn with_budget(mut self, bytes: usize) -> Self {
        self.reader = self.reader.with_budget(bytes);
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
        &self.agent
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
