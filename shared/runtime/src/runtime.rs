//! Joins an agent, its settings and concrete stores: the composition root.

mod agent_card;

pub use agent_card::cards;

use crate::engine::{Clock, Engine, Ids, RandomIds, Services, SystemClock};
use crate::http::{Backend, Cards, Function, HttpService};
use crate::settings::Settings;
use crate::skill::AgentDefinition;
use crate::skill::model::Model;
use crate::store::memory::MemoryStore;
use crate::store::push::WritePushes;
use crate::store::{Blobs, WriteTasks, WriteThreads};
use a2a_lambda_wire::CardError;
use std::sync::Arc;

/// An agent with its settings and services, from which the functions get their
/// [`HttpService`].
#[derive(Debug, Clone)]
pub struct Runtime {
    engine: Engine,
    cards: Arc<Cards>,
    settings: Arc<Settings>,
}

/// Why a runtime cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The agent has no valid card.
    #[error("failed to make the agent card: {0}")]
    Card(#[from] CardError),
}

/// Builds a [`Runtime`]. A service that is not set is the in-memory one, whose
/// data ends with the process.
#[derive(Clone)]
pub struct RuntimeBuilder {
    agent: AgentDefinition,
    settings: Settings,
    tasks: Option<Arc<dyn WriteTasks>>,
    threads: Option<Arc<dyn WriteThreads>>,
    blobs: Option<Arc<dyn Blobs>>,
    pushes: Option<Arc<dyn WritePushes>>,
    model: Option<Arc<dyn Model>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

impl Runtime {
    /// Begins to build a runtime.
    #[must_use]
    pub fn builder(agent: AgentDefinition, settings: Settings) -> RuntimeBuilder {
        RuntimeBuilder {
            agent,
            settings,
            tasks: None,
            threads: None,
            blobs: None,
            pushes: None,
            model: None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        }
    }

    /// The engine, for programs that send messages without HTTP.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The edge of one function. It has only the part of the engine that the
    /// function needs: nothing, the reader, or everything.
    #[must_use]
    pub fn edge(&self, door: Function) -> HttpService {
        let backend = match door {
            Function::AgentCard => Backend::Cards,
            Function::TasksGet => Backend::Reader(self.engine.reader().clone()),
            Function::TasksSend | Function::TasksStream | Function::Rpc => {
                Backend::Engine(self.engine.clone())
            }
        };
        edge(door, backend, &self.cards, &self.settings)
    }
}

/// The stores over the table and the bucket of the settings. All functions of a
/// deployment have to use these two: the table store keeps large values of its
/// items in the bucket.
#[cfg(feature = "aws")]
#[must_use]
pub fn stores(
    clients: &crate::store::aws::AwsClients,
    settings: &Settings,
) -> (
    crate::store::dynamodb::DynamoStore,
    crate::store::s3::S3Blobs,
) {
    use crate::store::dynamodb::DynamoStore;
    use crate::store::s3::S3Blobs;
    let blobs = S3Blobs::new(clients.s3.clone(), &settings.bucket);
    let store = DynamoStore::new(clients.dynamodb.clone(), &settings.table)
        .with_blobs(Arc::new(blobs.clone()))
        .with_tombstone(settings.policy.thread_tombstone);
    (store, blobs)
}

impl RuntimeBuilder {
    /// Sets all services to the DynamoDB table and the S3 bucket of the settings.
    #[cfg(feature = "aws")]
    #[must_use]
    pub fn aws(mut self, clients: &crate::store::aws::AwsClients) -> Self {
        let (store, blobs) = stores(clients, &self.settings);
        let store = Arc::new(store);
        self.tasks = Some(store.clone());
        self.pushes = Some(store.clone());
        self.threads = Some(store);
        self.blobs = Some(Arc::new(blobs));
        self
    }

    /// Sets the store of tasks.
    #[must_use]
    pub fn tasks(mut self, tasks: Arc<dyn WriteTasks>) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Sets the store of threads.
    #[must_use]
    pub fn threads(mut self, threads: Arc<dyn WriteThreads>) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the store of large values and files.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Sets the store of push configs. It has to be the same store as that of
    /// [`RuntimeBuilder::tasks`], since a commit of a task also writes its push
    /// configs. A runtime that sets only the store of tasks has no push
    /// notifications, even if the settings turn them on.
    #[must_use]
    pub fn pushes(mut self, pushes: Arc<dyn WritePushes>) -> Self {
        self.pushes = Some(pushes);
        self
    }

    /// Sets the language model that skills get.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Sets the clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of ids, for tests.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// Builds the runtime.
    ///
    /// # Errors
    /// [`RuntimeError::Card`] when the agent has no valid card.
    pub fn build(self) -> Result<Runtime, RuntimeError> {
        let memory = Arc::new(MemoryStore::default());
        let mut settings = self.settings;
        // The memory store can hold push configs only if it holds the tasks too.
        let pushes = match (self.pushes, &self.tasks) {
            (None, None) => Some(memory.clone() as Arc<dyn WritePushes>),
            (pushes, _) => pushes,
        };
        // The card must not announce push notifications that have no store.
        settings.push &= pushes.is_some();
        let cards = Arc::new(cards(&self.agent, &settings)?);
        let services = Services {
            tasks: self.tasks.unwrap_or_else(|| memory.clone()),
            threads: self.threads.unwrap_or_else(|| memory.clone()),
            blobs: self.blobs.unwrap_or(memory),
            clock: self.clock,
            ids: self.ids,
            model: self.model,
        };
        let mut engine = Engine::new(Arc::new(self.agent), services, settings.policy.clone());
        if let Some(pushes) = pushes.filter(|_| settings.push) {
            engine = engine.with_pushes(pushes);
        }
        Ok(Runtime {
            engine,
            cards,
            settings: Arc::new(settings),
        })
    }
}

/// The edge of the card function, which needs no store.
///
/// # Errors
/// [`RuntimeError::Card`] when the agent has no valid card.
pub fn card_edge(
    agent: &AgentDefinition,
    settings: &Settings,
) -> Result<HttpService, RuntimeError> {
    let cards = Arc::new(cards(agent, settings)?);
    Ok(edge(Function::AgentCard, Backend::Cards, &cards, settings))
}

fn edge(door: Function, backend: Backend, cards: &Arc<Cards>, settings: &Settings) -> HttpService {
    HttpService::new(
        door,
        backend,
        Arc::clone(cards),
        settings.auth,
        settings.max_body,
    )
    .with_push(settings.push)
    .with_hosts(settings.hosts.clone())
}

impl std::fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeBuilder").finish_non_exhaustive()
    }
}
