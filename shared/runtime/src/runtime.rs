//! Joins an agent, its settings and concrete stores: the composition root.

mod agent_card;
mod model;
mod table_documents;

pub use agent_card::cards;
pub use model::{NoModelProvider, models_of};
pub use table_documents::tenant_documents;

use crate::auth::{Authentication, Credentials};
use crate::engine::{Clock, Engine, Ids, RandomIds, RatePolicy, Services, SystemClock};
use crate::health::{Checks, Health};
use crate::http::{Backend, CardsByUrl, EdgeLog, Edges, Function, HttpService, MetricsSource, Ops};
use crate::panics::{self, PanicAborts};
use crate::settings::{Routing, Settings};
use crate::store::Blobs;
use crate::store::brake::Brakes;
use crate::store::counters::Counters;
use crate::store::documents::Documents;
#[cfg(feature = "aws")]
use crate::store::dynamodb::DynamoTable;
use crate::store::health::HealthCheck;
use crate::store::limits::Limits;
use crate::store::memory::{MemoryBlobs, MemoryTable};
use crate::store::records::Records;
use crate::store::table::Table;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::MetricsMode;
use a2a_lambda_skill::model::Model;
use a2a_lambda_skill::route::RouterModel;
use a2a_lambda_skill::{AgentDefinition, RecordTrace};
use a2a_lambda_wire::CardError;
use model::ConfiguredModel;
use std::sync::Arc;

/// An agent with its settings and services, from which the functions get their
/// [`HttpService`].
#[derive(Debug, Clone)]
pub struct Runtime {
    engine: Engine,
    cards: Arc<CardsByUrl>,
    settings: Arc<Settings>,
    log: EdgeLog,
    credentials: Option<Arc<Credentials>>,
    ops: Arc<Ops>,
}

/// Why a runtime cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The agent has no valid card.
    #[error("failed to make the agent card: {0}")]
    Card(#[from] CardError),
    /// The program is compiled so that a panic ends it.
    #[error(transparent)]
    Panic(#[from] PanicAborts),
    /// The settings name a model of a provider that the program does not have.
    #[error(transparent)]
    Model(#[from] NoModelProvider),
    /// The settings let this program check credentials, and it has none to compare with.
    #[error("`A2A_AUTH` is `{0}`, and the program has no credentials to compare with")]
    NoCredentials(&'static str),
}

/// Builds a [`Runtime`]. A service that is not set is the in-memory one, whose
/// data ends with the process.
#[derive(Clone)]
pub struct RuntimeBuilder {
    agent: AgentDefinition,
    settings: Settings,
    table: Option<Arc<dyn Table>>,
    blobs: Option<Arc<dyn Blobs>>,
    model: Option<Arc<dyn Model>>,
    router_model: Option<Arc<dyn Model>>,
    credentials: Option<Arc<Credentials>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    checks: Checks,
    metrics: Option<Metrics>,
    recorder: Option<Arc<dyn RecordTrace>>,
}

impl Runtime {
    /// Begins to build a runtime.
    #[must_use]
    pub fn builder(agent: AgentDefinition, settings: Settings) -> RuntimeBuilder {
        RuntimeBuilder {
            agent,
            settings,
            table: None,
            blobs: None,
            model: None,
            router_model: None,
            credentials: None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            checks: Checks::new(),
            metrics: None,
            recorder: None,
        }
    }

    /// The engine, for programs that send messages without HTTP.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The edges of all functions.
    #[must_use]
    pub fn edges(&self) -> Edges {
        Edges::of(|function| self.edge(function))
    }

    /// The edge of one function. It has only the part of the engine that the
    /// function needs: nothing, the reader, or everything.
    #[must_use]
    pub fn edge(&self, function: Function) -> HttpService {
        match function {
            Function::AgentCard => self.edge_with(function, Backend::Cards),
            Function::TasksGet => self.reader_edge(),
            Function::TasksSend | Function::TasksStream | Function::Rpc => {
                self.engine_edge(function)
            }
            Function::Ops => self.ops_edge(),
        }
    }

    /// The edge of a function that reads tasks. A program that makes only this one does not link
    /// what runs turns.
    pub(crate) fn reader_edge(&self) -> HttpService {
        let reader = Arc::new(self.engine.reader().clone());
        self.edge_with(Function::TasksGet, Backend::Calls(reader))
    }

    /// The edge of a function that runs skills.
    pub(crate) fn engine_edge(&self, function: Function) -> HttpService {
        self.edge_with(function, Backend::Calls(Arc::new(self.engine.clone())))
    }

    /// The edge for operators. A program that makes only this one does not link what reads tasks
    /// and runs turns.
    pub(crate) fn ops_edge(&self) -> HttpService {
        self.edge_with(Function::Ops, Backend::Ops(self.ops.clone()))
    }

    fn edge_with(&self, function: Function, backend: Backend) -> HttpService {
        HttpService {
            auth: Authentication::new(self.settings.auth, self.credentials.clone()),
            log: self.log.clone(),
            ..edge(function, backend, &self.cards, &self.settings)
        }
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
) -> (Records, crate::store::s3::S3Blobs) {
    use crate::store::s3::S3Blobs;
    use crate::telemetry::CurrentMeter;
    let blobs = S3Blobs::new(clients.s3.clone(), &settings.bucket);
    let table = DynamoTable::new(clients.dynamodb.clone(), &settings.table);
    let records = Records::new(Arc::new(table.with_meter(Arc::new(CurrentMeter))))
        .with_blobs(Arc::new(blobs.clone()));
    (records, blobs)
}

impl RuntimeBuilder {
    /// Sets all services to the DynamoDB table and the S3 bucket of the settings.
    #[cfg(feature = "aws")]
    #[must_use]
    pub fn aws(mut self, clients: &crate::store::aws::AwsClients) -> Self {
        let (records, blobs) = stores(clients, &self.settings);
        let (table, blobs) = (records.table(), Arc::new(blobs));
        let health = DynamoTable::new(clients.dynamodb.clone(), &self.settings.table);
        self.checks = self.checks.with("table", Arc::new(health));
        self.checks = self.checks.with("bucket", blobs.clone());
        self.table(table).blobs(blobs)
    }

    /// Sets the table that keeps tasks, threads, push configs and the documents of skills, and
    /// that counts what tenants use and what all processes do. `GET /metrics` shows these
    /// counters if `A2A_METRICS` sends them there. Without a table each process keeps its own,
    /// in memory.
    #[must_use]
    pub fn table(mut self, table: Arc<dyn Table>) -> Self {
        self.table = Some(table);
        self
    }

    /// Sets the store of large values and files.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Sets the language model that skills get. Without one it is the model of the settings.
    #[must_use]
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the language model that chooses the skill of a message when no rule decides.
    /// Without one it is that of `A2A_ROUTER_MODEL_ID`, and else the model of the skills.
    #[must_use]
    pub fn router_model(mut self, model: impl Model + 'static) -> Self {
        self.router_model = Some(Arc::new(model));
        self
    }

    /// Sets the credentials that the program compares with if `A2A_AUTH` is `keys` or `jwt`.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// Adds a dependency to the health report. An agent that uses a service of its own adds
    /// a check of it here.
    #[must_use]
    pub fn health(mut self, name: impl Into<String>, check: Arc<dyn HealthCheck>) -> Self {
        self.checks = self.checks.with(name, check);
        self
    }

    /// Adds dependencies to the health report.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = self.checks.and(checks);
        self
    }

    /// Shows what this process alone has counted at `GET /metrics`, for an agent that is one
    /// process.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Records what turns do and what their models are asked, for a program on the machine of the
    /// agent's author. A deployed function records no content, so it has none.
    #[must_use]
    pub fn recorder(mut self, recorder: Arc<dyn RecordTrace>) -> Self {
        self.recorder = Some(recorder);
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
    /// [`RuntimeError::Card`] when the agent has no valid card, [`RuntimeError::Panic`]
    /// when a panic would end the process, [`RuntimeError::NoCredentials`] when the
    /// settings require credentials.
    pub fn build(mut self) -> Result<Runtime, RuntimeError> {
        if self.credentials.is_none() && self.settings.auth.checks_credentials() {
            return Err(RuntimeError::NoCredentials(self.settings.auth.word()));
        }
        let settings = self.settings.clone();
        let log = EdgeLog::new(self.clock.clone(), self.ids.clone());
        // A process that counts its own shows them; deployed functions have many processes, which
        // add up in the table.
        let metrics = match (self.metrics.take(), &self.table) {
            (Some(metrics), _) => MetricsSource::Process(metrics),
            (None, Some(table)) if settings.metrics == MetricsMode::Table => {
                MetricsSource::Table(Counters::new(table.clone()))
            }
            _ => MetricsSource::Off,
        };
        let (mut checks, clock) = (std::mem::take(&mut self.checks), Arc::clone(&self.clock));
        let credentials = self.credentials.take();
        let table = self
            .table
            .get_or_insert_with(|| Arc::new(MemoryTable::default()));
        let limits = Limits::new(Arc::clone(table));
        let engine = self.build_engine()?;
        let cards = cards_by_url(Arc::clone(&engine.turns.agent), &settings)?;
        for name in engine.agent().kept_in_table() {
            checks = checks.like("table", name);
        }
        let ops = Ops {
            health: Health::new(checks, clock),
            metrics,
            limits,
            reader: engine.reader.clone(),
            operator: settings.credentials.first_owner.tenant.clone(),
            settings: settings.fingerprint(),
        };
        Ok(Runtime {
            engine,
            cards,
            ops: Arc::new(ops),
            settings: Arc::new(settings),
            log,
            credentials,
        })
    }

    /// Builds only the engine, for a function that answers no requests: it does not link the
    /// cards.
    ///
    /// # Errors
    /// Those of [`RuntimeBuilder::build`], except of the card and the credentials.
    pub(crate) fn build_engine(self) -> Result<Engine, RuntimeError> {
        panics::check()?;
        let settings = self.settings;
        let has_model = self.model.is_some() || settings.model.is_some();
        let agent = Arc::new(adapt_to_model(self.agent, has_model));
        let router = match agent.skills().nth(1) {
            Some(_) => router(self.router_model, self.model.as_ref(), &settings)?,
            // There is nothing to choose.
            None => None,
        };
        let table = self
            .table
            .unwrap_or_else(|| Arc::new(MemoryTable::default()));
        let blobs = self
            .blobs
            .unwrap_or_else(|| Arc::new(MemoryBlobs::default()));
        let records = Records::new(table.clone()).with_blobs(blobs.clone());
        let services = Services {
            clock: self.clock,
            ids: self.ids,
            model: match (self.model, &settings.model) {
                (None, Some(model)) => Some(Arc::new(ConfiguredModel::new(model)?)),
                (model, _) => model,
            },
            router: router.map(Arc::new),
            documents: Some(Documents::new(table.clone())),
            brakes: Some(Brakes::new(table.clone())),
            limits: Some(Limits::new(table)),
            push: settings.push,
            recorder: self.recorder,
            ..Services::new(records, blobs)
        };
        warn_of_unknown(&agent, &settings.policy.limits.rates);
        Ok(Engine::new(agent, services, settings.policy))
    }
}

/// The model of the router: the one that the program gives, that of the settings, or that of
/// the skills.
fn router(
    own_model: Option<Arc<dyn Model>>,
    skills: Option<&Arc<dyn Model>>,
    settings: &Settings,
) -> Result<Option<RouterModel>, NoModelProvider> {
    if settings.routing == Routing::Never {
        return Ok(None);
    }
    let model = match (own_model, skills, &settings.model) {
        (Some(model), ..) => model,
        (None, Some(skills), _) => Arc::clone(skills),
        (None, None, Some(model)) => {
            if model.router_id.is_none() {
                tracing::warn!("`A2A_ROUTER_MODEL_ID` is not set: `A2A_MODEL_ID` chooses skills");
            }
            Arc::new(ConfiguredModel::new(&model.of_router())?)
        }
        (None, None, None) => return Ok(None),
    };
    Ok(Some(RouterModel::new(model)))
}

/// Logs a warning for each rate of a skill or tag that the agent does not have.
fn warn_of_unknown(agent: &AgentDefinition, rates: &RatePolicy) {
    let skills = || agent.manifest().skills.iter().map(|skill| skill.metadata);
    for name in rates.skills.keys() {
        let is_known = match name.strip_prefix('#') {
            Some(tag) => skills().any(|skill| skill.tags.contains(&tag)),
            None => skills().any(|skill| skill.id == name),
        };
        if !is_known {
            tracing::warn!("setting `A2A_RATE_SKILLS` limits `{name}`, which no skill has");
        }
    }
}

/// The edge of the card function, which needs no store.
///
/// # Errors
/// [`RuntimeError::Card`] when the agent has no valid card, [`RuntimeError::Panic`] when
/// a panic would end the process.
pub fn card_edge(agent: AgentDefinition, settings: &Settings) -> Result<HttpService, RuntimeError> {
    panics::check()?;
    let cards = cards_by_url(
        Arc::new(adapt_to_model(agent, settings.model.is_some())),
        settings,
    )?;
    Ok(edge(Function::AgentCard, Backend::Cards, &cards, settings))
}

/// The agent as a program serves it that has a model or not, and a line in the log about the skill
/// that it then lacks.
#[must_use]
pub fn adapt_to_model(agent: AgentDefinition, has_model: bool) -> AgentDefinition {
    match agent.fallback() {
        Some(skill) if !has_model => {
            tracing::info!("no model is configured (`A2A_MODEL_ID`): the agent has no `{skill}`");
            agent.without_model()
        }
        _ => agent,
    }
}

/// The cards of the agent for each base URL.
fn cards_by_url(
    agent: Arc<AgentDefinition>,
    settings: &Settings,
) -> Result<Arc<CardsByUrl>, CardError> {
    agent_card::check(&agent, settings)?;
    let card_settings = settings.clone();
    let make = move |url: &str| cards(&agent, &card_settings, url);
    Ok(Arc::new(CardsByUrl::new(settings.public_url.clone(), make)))
}

fn edge(
    function: Function,
    backend: Backend,
    cards: &Arc<CardsByUrl>,
    settings: &Settings,
) -> HttpService {
    let auth = Authentication::new(settings.auth, None);
    HttpService {
        push: settings.push,
        streaming: settings.streaming,
        hosts: settings.hosts.clone(),
        cors: settings.cors.clone(),
        backend,
        ..HttpService::of_cards(function, Arc::clone(cards), auth)
    }
}

debug_as_name!(RuntimeBuilder);
