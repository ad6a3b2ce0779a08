//! Runs each Lambda function: its `main` calls one function of this module.
//!
//! - here: the functions that answer HTTP requests
//! - `start`: the settings, the log and the counters of a function
//! - `request`: an event of API Gateway as a request
//! - `function`: one program for all functions of a deployment
//! - `authorizer`: the function that says to API Gateway who calls
//! - `relay`, `worker`, `push`, `sweep`: the functions that the table's stream, the
//!   queues and the schedule start

#[cfg(all(feature = "jwt", feature = "secrets"))]
mod authorizer;
#[cfg(feature = "aws")]
mod batch;
#[cfg(all(feature = "jwt", feature = "secrets"))]
mod function;
mod path;
#[cfg(feature = "aws")]
mod push;
#[cfg(feature = "aws")]
mod relay;
mod request;
mod start;
#[cfg(feature = "secrets")]
mod stored_keys;
#[cfg(feature = "aws")]
mod streaming;
#[cfg(feature = "aws")]
mod sweep;
#[cfg(feature = "aws")]
mod worker;

#[cfg(all(feature = "jwt", feature = "secrets"))]
pub use self::{authorizer::authorizer, function::function};
#[cfg(feature = "aws")]
pub use self::{push::push, relay::relay, sweep::sweep, worker::worker};

use crate::http::{Body, HttpService};
use crate::panics::PanicAborts;
use crate::settings::SettingsError;
use crate::skill::{AgentBuildError, BuildAgent, StateError};
use crate::telemetry::metrics::Reporter;
use futures::{StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use lambda_http::service_fn;
use start::{Start, Started};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "aws")]
use crate::health::Checks;
#[cfg(feature = "aws")]
use crate::http::Function;
#[cfg(feature = "aws")]
use crate::runtime::{Runtime, stores};
#[cfg(feature = "aws")]
use crate::settings::{Environment, Settings, Source as _};
#[cfg(feature = "aws")]
use crate::store::aws::{AwsClients, Endpoints, sqs_client};
#[cfg(feature = "aws")]
use crate::store::counters::Counters;
#[cfg(feature = "aws")]
use crate::store::sqs::SqsQueue;

/// Why a function does not start. `main` returns it, and Rust prints the `Debug` form of
/// such an error: it is the text for the operator.
#[derive(thiserror::Error)]
pub enum ServeError {
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// `A2A_FUNCTION` names no function.
    #[error("setting `A2A_FUNCTION` is `{name}`: one of {known}")]
    Function {
        /// Its value.
        name: String,
        /// The names of the functions.
        known: String,
    },
    /// The agent cannot be built.
    #[error("failed to build the agent: {0}")]
    Agent(#[source] AgentBuildError),
    /// A state of the skills cannot be made.
    #[error(transparent)]
    State(#[from] StateError),
    /// The agent has no valid card.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::RuntimeError),
    /// The program is compiled so that a panic ends it.
    #[error(transparent)]
    Panic(#[from] PanicAborts),
    /// The Lambda runtime ended with an error.
    #[error("the lambda runtime failed: {0}")]
    Lambda(#[from] lambda_http::Error),
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Serves the public agent card.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn agent_card(agent: impl BuildAgent) -> Result<(), ServeError> {
    let start = Start::begin("agent-card")?;
    let settings = start.public_settings()?;
    let agent = agent.build().map_err(ServeError::Agent)?;
    let edge = crate::runtime::card_edge(agent, &settings)?;
    buffered(edge, start.ready(&settings, None)).await
}

/// Serves the path operations that write.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_send(agent: impl BuildAgent) -> Result<(), ServeError> {
    let (edge, started) = edge(agent, "tasks-send", Function::TasksSend).await?;
    buffered(edge, started).await
}

/// Serves the path operations that read, and `GET /tasks/{id}:subscribe`.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_get(agent: impl BuildAgent) -> Result<(), ServeError> {
    let (edge, started) = edge(agent, "tasks-get", Function::TasksGet).await?;
    streaming(edge, started).await
}

/// Serves the path operations that stream, and `POST /tasks/{id}:cancel`.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_stream(agent: impl BuildAgent) -> Result<(), ServeError> {
    let (edge, started) = edge(agent, "tasks-stream", Function::TasksStream).await?;
    streaming(edge, started).await
}

/// Serves JSON-RPC: all methods on one URL.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn rpc(agent: impl BuildAgent) -> Result<(), ServeError> {
    let (edge, started) = edge(agent, "rpc", Function::Rpc).await?;
    streaming(edge, started).await
}

/// Serves health and metrics, for operators. `own` are the dependencies of the skills.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn ops(agent: impl BuildAgent, own: Checks) -> Result<(), ServeError> {
    let start = Start::begin("ops")?;
    let settings = start.public_settings()?;
    let mut checks = own;
    if settings.work_queue_url.is_some() {
        checks = checks.with("work-queue", Arc::new(queue(&settings).await?));
    }
    if let Some(queue) = push_queue(&settings).await {
        checks = checks.with("push-queue", Arc::new(queue));
    }
    let agent = agent.build().map_err(ServeError::Agent)?;
    let runtime = Runtime::builder(agent, settings.clone()).aws(&clients().await);
    let edge = runtime.checks(checks).build()?.edge(Function::Ops);
    // It has no right to write, so it reports to CloudWatch alone.
    buffered(edge, start.ready(&settings, None)).await
}

/// The edge of a function with a store.
#[cfg(feature = "aws")]
async fn edge(
    agent: impl BuildAgent,
    name: &'static str,
    function: Function,
) -> Result<(HttpService, Started), ServeError> {
    let start = Start::begin(name)?;
    let settings = start.settings()?;
    let agent = agent.build().map_err(ServeError::Agent)?;
    if function.runs_skills() {
        agent.make_states().await?;
    }
    let clients = clients().await;
    let counters = counters(&clients, &settings);
    let runtime = Runtime::builder(agent, settings.clone()).aws(&clients);
    let edge = runtime.build()?.edge(function);
    Ok((edge, start.ready(&settings, counters)))
}

/// The counters of all processes, if the settings send counters there.
#[cfg(feature = "aws")]
fn counters(clients: &AwsClients, settings: &Settings) -> Option<Arc<dyn Counters>> {
    let store = || Arc::new(stores(clients, settings).0) as Arc<dyn Counters>;
    settings.metrics.stores().then(store)
}

/// Clients of AWS, or of the emulator that `AWS_ENDPOINT_URL…` names.
#[cfg(feature = "aws")]
async fn clients() -> AwsClients {
    let endpoints = Endpoints {
        dynamodb: endpoint("AWS_ENDPOINT_URL_DYNAMODB"),
        s3: endpoint("AWS_ENDPOINT_URL_S3"),
        keys: None,
    };
    AwsClients::connect(&endpoints).await
}

/// The work queue.
///
/// # Errors
/// [`ServeError::Settings`] when the settings name none.
#[cfg(feature = "aws")]
async fn queue(settings: &Settings) -> Result<SqsQueue, ServeError> {
    let url = settings.work_queue()?;
    let client = sqs_client(endpoint("AWS_ENDPOINT_URL_SQS").as_deref()).await;
    Ok(SqsQueue::new(client, url))
}

/// The push queue, if the settings name one and push notifications are on.
#[cfg(feature = "aws")]
async fn push_queue(settings: &Settings) -> Option<SqsQueue> {
    let url = settings
        .push_queue_url
        .as_deref()
        .filter(|_| settings.push)?;
    let client = sqs_client(endpoint("AWS_ENDPOINT_URL_SQS").as_deref()).await;
    Some(SqsQueue::new(client, url))
}

/// The endpoint in the variable `name`, else in `AWS_ENDPOINT_URL`; `None` means
/// AWS itself.
#[cfg(feature = "aws")]
fn endpoint(name: &str) -> Option<String> {
    let everywhere = || Environment.get("AWS_ENDPOINT_URL");
    Environment.get(name).or_else(everywhere)
}

/// Serves a function whose API Gateway integration sends whole responses.
async fn buffered(edge: HttpService, started: Started) -> Result<(), ServeError> {
    let (edge, started) = (&edge, &started);
    let handler = service_fn(move |request: lambda_http::Request| async move {
        let response = Box::pin(request::answer(edge, started.process, request)).await;
        let response = counted(response, Arc::clone(&started.reporter));
        let (parts, body) = response.into_parts();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            // The error type of a body is empty, see `Body`.
            Err(never) => match never {},
        };
        let body = match String::from_utf8(bytes.to_vec()) {
            Ok(text) => lambda_http::Body::Text(text),
            Err(error) => lambda_http::Body::Binary(error.into_bytes()),
        };
        Ok::<_, Infallible>(Response::from_parts(parts, body))
    });
    Ok(lambda_http::run(handler).await?)
}

/// Serves a function whose API Gateway integration streams, also responses that are
/// not streams.
#[cfg(feature = "aws")]
async fn streaming(edge: HttpService, started: Started) -> Result<(), ServeError> {
    let handler = move |request| {
        let (edge, started) = (edge.clone(), started.clone());
        async move {
            let response = Box::pin(request::answer(&edge, started.process, request)).await;
            counted(response, started.reporter)
        }
    };
    Ok(streaming::run(handler).await?)
}

/// The response, which ends once the reporter has sent what was counted. Lambda freezes a
/// process after the end of its response.
fn counted(response: Response<Body>, reporter: Arc<Reporter>) -> Response<Body> {
    let report = stream::once(async move {
        reporter.end_of_invocation().await;
        None
    });
    response.map(|body| {
        let frames = BodyStream::new(body).chain(report.filter_map(std::future::ready));
        StreamBody::new(frames).boxed_unsync()
    })
}

#[cfg(test)]
mod tests;
