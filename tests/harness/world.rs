//! A whole agent in one process that takes HTTP requests and returns responses.

use crate::tester::{self, Gate};
use crate::watched_store::WatchedStore;
use a2a_lambda::auth::{AuthMode, Identity};
use a2a_lambda::engine::{Clock as _, Engine, ThreadSweepReport};
use a2a_lambda::http::{Body, Function, HttpService};
use a2a_lambda::runtime::{Runtime, RuntimeBuilder};
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::skill::{AgentDefinition, BuildError};
use a2a_lambda::testing::{ScriptedModel, TestClock};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;

/// The URL of the agent in its card.
pub const BASE_URL: &str = "https://agent.example/a2a";

/// The entry points; each has its own edge.
pub const DOORS: [Function; 6] = [
    Function::AgentCard,
    Function::TasksSend,
    Function::TasksGet,
    Function::TasksStream,
    Function::Rpc,
    Function::Ops,
];

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The HTTP method.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Tenant and subject as `tenant:subject`; `None` means the default caller of a local
    /// agent.
    pub caller: Option<&'static str>,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: &'static str, target: impl Into<String>) -> Self {
        Self {
            method,
            target: target.into(),
            headers: Vec::new(),
            body: Vec::new(),
            caller: None,
        }
    }

    /// A POST with a JSON body.
    #[must_use]
    pub fn post(target: impl Into<String>, body: &Value) -> Self {
        Self::new("POST", target)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Sets a header and removes others of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a line of a header that may have several.
    #[must_use]
    pub fn line(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the caller, `tenant:subject`.
    #[must_use]
    pub const fn from(mut self, caller: &'static str) -> Self {
        self.caller = Some(caller);
        self
    }

    /// The path without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as JSON; `null` if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header, empty if absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

/// A response with an unread body.
pub struct Live {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) buffer: Vec<u8>,
}

impl Live {
    /// Creates a response from its parts.
    #[must_use]
    pub const fn new(status: u16, headers: HeaderMap, body: Body) -> Self {
        Self {
            status,
            headers,
            body,
            buffer: Vec::new(),
        }
    }

    /// Reads the body to its end.
    pub async fn finish(self) -> Reply {
        let mut body = self.buffer;
        // The error type is `Infallible`, so the default is never used.
        let rest = self.body.collect().await.map(|all| all.to_bytes());
        body.extend(rest.unwrap_or_default());
        Reply {
            status: self.status,
            headers: self.headers,
            body,
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// An agent with its own store.
#[derive(Debug)]
pub struct World {
    /// The store.
    pub store: Arc<WatchedStore>,
    /// Blocks the skill `slow`.
    pub gate: Gate,
    /// The clock of the agent.
    pub clock: Arc<TestClock>,
    runtime: Runtime,
}

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        let value = match name {
            "A2A_AUTH" => "dev",
            "A2A_PUBLIC_URL" => BASE_URL,
            _ => return None,
        };
        Some(value.to_owned())
    }
}

impl World {
    /// The test agent over an empty store, on tokio's clock.
    ///
    /// # Errors
    /// Never, unless settings or the agent have changed their rules.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        Self::with(|_| ())
    }

    /// The same agent with changed settings.
    ///
    /// # Errors
    /// Never, unless settings or the agent have changed their rules.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Result<Self, Box<dyn Error>> {
        Self::serving(tester::agent, change)
    }

    /// Another agent, with changed settings.
    ///
    /// # Errors
    /// When the agent cannot be published.
    pub fn serving(
        agent: impl FnOnce(Gate) -> Result<AgentDefinition, BuildError>,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, Box<dyn Error>> {
        Self::over(Arc::default(), Arc::default(), agent, change, |it| it)
    }

    /// Another agent, with a language model for its skills and one for the router.
    ///
    /// # Errors
    /// When the agent cannot be published.
    pub fn thinking(
        agent: impl FnOnce(Gate) -> Result<AgentDefinition, BuildError>,
        model: &ScriptedModel,
        router: &ScriptedModel,
    ) -> Result<Self, Box<dyn Error>> {
        let models = |runtime: RuntimeBuilder| {
            let runtime = runtime.model(model.clone());
            runtime.router_model(router.clone())
        };
        Self::over(Arc::default(), Arc::default(), agent, |_| (), models)
    }

    /// Another release over the same store and clock.
    ///
    /// # Errors
    /// When the agent cannot be published.
    pub fn redeployed(
        &self,
        agent: impl FnOnce(Gate) -> Result<AgentDefinition, BuildError>,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, Box<dyn Error>> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Self::over(store, clock, agent, change, |it| it)
    }

    /// Another agent over a store and a clock, with changed settings and services.
    ///
    /// # Errors
    /// When the agent cannot be published.
    pub fn over(
        store: Arc<WatchedStore>,
        clock: Arc<TestClock>,
        agent: impl FnOnce(Gate) -> Result<AgentDefinition, BuildError>,
        change: impl FnOnce(&mut Settings),
        services: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Result<Self, Box<dyn Error>> {
        let gate = Gate::default();
        let mut settings = Settings::read(&Local)?;
        change(&mut settings);
        let runtime = Runtime::builder(agent(gate.clone())?, settings)
            .table(store.table.clone())
            .blobs(store.blobs.clone())
            .clock(clock.clone());
        let runtime = services(runtime).build()?;
        Ok(Self {
            store,
            gate,
            clock,
            runtime,
        })
    }

    /// The engine, which runs turns as a worker.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        self.runtime.engine()
    }

    /// Runs the sweep of threads.
    ///
    /// # Errors
    /// When the store is not available.
    pub async fn sweep_threads(&self) -> Result<ThreadSweepReport, Box<dyn Error>> {
        let engine = self.runtime.engine();
        Ok(engine.sweeper.sweep_threads().await?)
    }

    /// Removes expired records from the store.
    pub fn clean_up(&self) {
        self.store.clean_up(self.clock.now());
    }

    /// The edge of one entry point.
    #[must_use]
    pub fn edge(&self, door: Function) -> HttpService {
        self.runtime.edge(door)
    }

    /// Sends a request to the function of its path and reads the whole response.
    pub async fn call(&self, request: &Request) -> Reply {
        self.open(request).await.finish().await
    }

    /// Sends a request to the function of its path and does not read the body.
    pub async fn open(&self, request: &Request) -> Live {
        self.open_at(Function::of(request.method, request.path()), request)
            .await
    }

    /// Sends a request to one function.
    pub async fn open_at(&self, door: Function, request: &Request) -> Live {
        let given = request.headers.iter();
        let given = given.filter(|(name, _)| name == "authorization");
        let identity = Identity {
            authorizer: None,
            authorization: match request.caller {
                Some(who) => Some(format!("Bearer dev:{who}")),
                None => given.map(|(_, value)| value.clone()).next(),
            },
        };
        send(&self.edge(door), request, identity).await
    }
}

/// Sends a request to an edge.
pub async fn send(edge: &HttpService, request: &Request, identity: Identity) -> Live {
    let mut builder = http::Request::builder()
        .method(request.method)
        .uri(&request.target);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let built = builder.body(Bytes::from(request.body.clone()));
    let Ok(built) = built else {
        // No HTTP server accepts such a request.
        return Live {
            status: 0,
            headers: HeaderMap::new(),
            body: http_body_util::Full::new(Bytes::from_static(b"not a request")).boxed_unsync(),
            buffer: Vec::new(),
        };
    };
    let response = edge.handle(built, identity, None).await;
    let (parts, body) = response.into_parts();
    Live {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
        buffer: Vec::new(),
    }
}

/// Sets the settings of a deployed function: the gateway identifies the caller.
pub const fn behind_a_gateway(settings: &mut Settings) {
    settings.auth = AuthMode::Gateway;
}
