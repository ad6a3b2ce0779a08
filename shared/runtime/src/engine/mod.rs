//! What happens to a task: load, apply, commit, run, settle.
//!
//! - one file a method: `send`, `stream`, `get`, `list`, `cancel`, `subscribe`;
//!   `push` for those about webhooks, `upload` for files sent by themselves
//! - `idempotent`: sends that come twice, under one key
//! - `background`: relay and work, the steps behind the calls; `sweep` finds what
//!   they lost, `expire` conversations whose time is up and what deletions (`clear`) have left; `deliver` brings events to webhooks, `tidy` removes objects nobody needs
//! - `commit` is the only writer of tasks
//! - `run` is one turn of a skill; unary and streaming calls share it and
//!   differ only in where committed events go
//!
//! The engine knows no status code, no JSON and no AWS type. It sees the world
//! through the store traits, [`Clock`] and [`Ids`], so that a simulation can
//! own all of them.

mod admit;
mod attend;
mod background;
mod blob;
mod cancel;
mod clear;
mod clock;
mod commit;
mod context;
mod contexts;
mod delete;
mod deliver;
#[cfg(test)]
mod doubles;
mod error;
mod expire;
mod get;
mod idempotent;
mod in_time;
mod journal;
mod list;
mod page;
mod pulse;
mod push;
mod race;
mod reference;
mod run;
mod seal;
mod send;
mod settle;
mod sink;
mod size;
mod stream;
mod subscribe;
mod sweep;
mod thread;
mod tidy;
mod turn;
mod upload;

/// What the fuzz targets look at.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz {
    pub(crate) use super::blob::{content_type, disposition};
    pub(crate) use super::page::{List, Place, TaskPlace};
}

pub use background::relay;
pub use blob::object::{below as objects_below, below_thread as state_objects_below};
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use deliver::{Courier, Notice, NoticeError, Outgoing, Webhooks, relay_pushes};
pub use error::EngineError;
pub use expire::ThreadSweep;
pub use sink::Frames;
pub use sweep::{Leases, SweepPlaces, SweepReport, Swept};
pub use tidy::{TidyReport, forget_objects, forget_state};

use crate::outbound::Reach;
use crate::skill::AgentDefinition;
use crate::skill::model::Model;
use crate::store::push::{DeliverPushes, ReadPushes, WritePushes};
use crate::store::queue::PushQueue;
use crate::store::{Blobs, ReadTasks, ReadThreads, WriteTasks, WriteThreads};
use std::sync::Arc;
use std::time::Duration;

/// Durations and sizes the engine goes by. `settings` reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How long a task lives after its last rest.
    pub task_ttl: Duration,
    /// How long a conversation goes on after its last activity.
    pub thread_ttl: Duration,
    /// How long the state of a conversation is kept after its last activity.
    pub state_ttl: Duration,
    /// How long a context id that a client made is known to have expired.
    pub thread_tombstone: Duration,
    /// How long a running turn may not be taken over without a sign of life.
    pub lease: Duration,
    /// How long a blocking call may wait for its turn.
    pub blocking_budget: Duration,
    /// How often a turn is tried before its task fails.
    pub max_attempts: u32,
    /// How long the first write of a short send may wait while the skill runs.
    pub deferral: Duration,
    /// How long an event may wait for others before its commit.
    pub flush_interval: Duration,
    /// How long a stream that only watches may stay open.
    pub stream_max_age: Duration,
    /// Parts above this many bytes are kept in the blob store.
    pub inline_max: usize,
    /// At most this many bytes of an answer: what is larger comes as a URL.
    pub response_max: usize,
    /// A file sent by itself may have this many bytes.
    pub upload_max: usize,
    /// Bytes that a task may keep in slot, steps and saved data together, and
    /// bytes of conversation state that a context may keep.
    pub state_max_bytes: usize,
    /// At most this many tasks are counted for a list's total.
    pub list_count_max: usize,
    /// Whether the id of a message stands for an idempotency key, where its
    /// client gives none.
    pub idempotent_message_id: bool,
    /// How far requests to addresses of clients may reach.
    pub reach: Reach,
    /// Authenticates page tokens, and seals the secrets of webhooks.
    pub secret: Vec<u8>,
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
            deferral: Duration::from_millis(250),
            flush_interval: Duration::from_millis(250),
            stream_max_age: Duration::from_secs(300),
            inline_max: 32 * 1024,
            response_max: 4_500_000,
            upload_max: 1024 * 1024 * 1024,
            state_max_bytes: 1024 * 1024,
            list_count_max: 1000,
            reach: Reach::Public,
            idempotent_message_id: false,
            secret: Vec::new(),
        }
    }
}

/// The methods which only read: what `tasks-get` is given.
#[derive(Clone)]
pub struct Reader {
    pub(crate) tasks: Arc<dyn ReadTasks>,
    pub(crate) threads: Arc<dyn ReadThreads>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: Arc<Policy>,
    /// At most this many bytes of the answer at hand: all that the policy
    /// allows, or a share of it.
    pub(crate) answer_max: usize,
    /// Absent where push is off.
    pub(crate) pushes: Option<Arc<dyn ReadPushes>>,
}

/// All methods.
#[derive(Clone)]
pub struct Engine {
    pub(crate) reader: Reader,
    pub(crate) tasks: Arc<dyn WriteTasks>,
    pub(crate) threads: Arc<dyn WriteThreads>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) model: Option<Arc<dyn Model>>,
    /// Absent where push is off.
    pub(crate) pushes: Option<Arc<dyn WritePushes>>,
    /// What a sweep asks for deliveries again with.
    pub(crate) push_queue: Option<(Arc<dyn DeliverPushes>, Arc<dyn PushQueue>)>,
}

/// The services an [`Engine`] stands on.
#[derive(Clone)]
pub struct Services {
    /// Tasks.
    pub tasks: Arc<dyn WriteTasks>,
    /// Conversations.
    pub threads: Arc<dyn WriteThreads>,
    /// Bytes.
    pub blobs: Arc<dyn Blobs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub ids: Arc<dyn Ids>,
    /// The model skills may ask.
    pub model: Option<Arc<dyn Model>>,
}

impl Reader {
    /// A reader of `tasks`.
    #[must_use]
    pub fn new(
        tasks: Arc<dyn ReadTasks>,
        threads: Arc<dyn ReadThreads>,
        blobs: Arc<dyn Blobs>,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        Self {
            tasks,
            threads,
            blobs,
            clock,
            answer_max: policy.response_max,
            policy: Arc::new(policy),
            pushes: None,
        }
    }

    /// The same reader for an answer of which others take a part.
    #[must_use]
    pub(crate) fn within(mut self, bytes: usize) -> Self {
        self.answer_max = self.answer_max.min(bytes);
        self
    }
}

impl Engine {
    /// An engine that serves `agent` with `services`.
    #[must_use]
    pub fn new(agent: Arc<AgentDefinition>, services: Services, policy: Policy) -> Self {
        let reading: Arc<dyn ReadTasks> = services.tasks.clone();
        let threads: Arc<dyn ReadThreads> = services.threads.clone();
        Self {
            reader: Reader::new(reading, threads, services.blobs, services.clock, policy),
            tasks: services.tasks,
            threads: services.threads,
            ids: services.ids,
            agent,
            model: services.model,
            pushes: None,
            push_queue: None,
        }
    }

    /// The same engine with push notifications: webhooks are kept in `pushes`,
    /// which has to be the store of the tasks.
    #[must_use]
    pub fn with_pushes(mut self, pushes: Arc<dyn WritePushes>) -> Self {
        self.reader.pushes = Some(pushes.clone());
        self.pushes = Some(pushes);
        self
    }

    /// The same engine, whose sweep asks `queue` again for the deliveries that
    /// nobody has confirmed.
    #[must_use]
    pub fn with_push_queue(
        mut self,
        pushes: Arc<dyn DeliverPushes>,
        queue: Arc<dyn PushQueue>,
    ) -> Self {
        self.push_queue = Some((pushes, queue));
        self
    }

    /// The same engine for an answer of which others take a part.
    #[must_use]
    pub(crate) fn within(mut self, bytes: usize) -> Self {
        self.reader = self.reader.within(bytes);
        self
    }

    /// The methods which only read.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The agent it serves.
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
