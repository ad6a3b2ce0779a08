//! Runs each Lambda function: its `main` calls one function of this module.
//!
//! - here: the functions that answer HTTP requests
//! - `relay`, `worker`, `push`, `sweep`: the functions that the table's stream, the
//!   queues and the schedule start

#[cfg(feature = "aws")]
mod batch;
#[cfg(feature = "aws")]
mod push;
#[cfg(feature = "aws")]
mod relay;
#[cfg(feature = "aws")]
mod streaming;
#[cfg(feature = "aws")]
mod sweep;
#[cfg(feature = "aws")]
mod worker;

#[cfg(feature = "aws")]
pub use self::{push::push, relay::relay, sweep::sweep, worker::worker};

use crate::auth::Identity;
use crate::engine::{Clock as _, SystemClock};
use crate::http::{Body, HttpService};
use crate::settings::{self, Environment, Settings, SettingsError, Source as _};
use crate::skill::{AgentDefinition, BuildError};
use crate::task::Timestamp;
use crate::telemetry::{self, LogFormat};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use lambda_http::request::RequestContext;
use lambda_http::{RequestExt as _, service_fn};
use serde_json::{Map, Value};
use std::convert::Infallible;

#[cfg(feature = "aws")]
use crate::http::Function;
#[cfg(feature = "aws")]
use crate::runtime::Runtime;
#[cfg(feature = "aws")]
use crate::store::aws::{AwsClients, Endpoints, sqs_client};
#[cfg(feature = "aws")]
use crate::store::sqs::SqsQueue;

/// The result of an agent's builder. A function with an error does not start.
pub type Built = Result<AgentDefinition, BuildError>;

/// Why a function does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A skill cannot be published.
    #[error(transparent)]
    Agent(#[from] BuildError),
    /// The agent has no valid card.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::RuntimeError),
    /// The Lambda runtime ended with an error.
    #[error("the lambda runtime failed: {0}")]
    Lambda(#[from] lambda_http::Error),
}

/// Serves the public agent card.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn agent_card(agent: Built) -> Result<(), ServeError> {
    logging();
    let settings = Settings::read_public(&Environment)?;
    buffered(crate::runtime::card_edge(&agent?, &settings)?).await
}

/// Serves the path operations that write.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_send(agent: Built) -> Result<(), ServeError> {
    buffered(runtime(agent).await?.edge(Function::TasksSend)).await
}

/// Serves the path operations that read, and `GET /tasks/{id}:subscribe`.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_get(agent: Built) -> Result<(), ServeError> {
    streaming(runtime(agent).await?.edge(Function::TasksGet)).await
}

/// Serves the path operations that stream, and `POST /tasks/{id}:cancel`.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_stream(agent: Built) -> Result<(), ServeError> {
    streaming(runtime(agent).await?.edge(Function::TasksStream)).await
}

/// Serves JSON-RPC: all methods on one URL.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn rpc(agent: Built) -> Result<(), ServeError> {
    streaming(runtime(agent).await?.edge(Function::Rpc)).await
}

fn logging() {
    telemetry::start(LogFormat::Json, Environment.get("A2A_LOG").as_deref());
    settings::warn_of_unknown();
}

#[cfg(feature = "aws")]
async fn runtime(agent: Built) -> Result<Runtime, ServeError> {
    logging();
    let settings = Settings::read(&Environment)?;
    let agent = agent?;
    let clients = clients().await;
    Ok(Runtime::builder(agent, settings).aws(&clients).build()?)
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
async fn buffered(edge: HttpService) -> Result<(), ServeError> {
    let (edge, process) = (&edge, Process::start());
    let handler = service_fn(move |request: lambda_http::Request| async move {
        let response = Box::pin(answer(edge, process, request)).await;
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
async fn streaming(edge: HttpService) -> Result<(), ServeError> {
    let process = Process::start();
    let handler = move |request| {
        let edge = edge.clone();
        async move { Box::pin(answer(&edge, process, request)).await }
    };
    Ok(streaming::run(handler).await?)
}

async fn answer(
    edge: &HttpService,
    process: Process,
    request: lambda_http::Request,
) -> Response<Body> {
    let identity = identity(&request);
    let context = request.lambda_context_ref();
    let deadline = context.and_then(|context| process.deadline(context.deadline));
    edge.handle(plain(request), identity, deadline).await
}

/// The request without its Lambda envelope. Its path is the raw one, which has
/// no stage of API Gateway before it.
fn plain(request: lambda_http::Request) -> Request<Bytes> {
    let path = request.raw_http_path().to_owned();
    let query = request.uri().query().map(str::to_owned);
    let (mut parts, body) = request.into_parts();
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    if let Ok(uri) = target.parse() {
        parts.uri = uri;
    }
    let bytes = match body {
        lambda_http::Body::Text(text) => Bytes::from(text),
        lambda_http::Body::Binary(bytes) => Bytes::from(bytes),
        _ => Bytes::new(),
    };
    Request::from_parts(parts, bytes)
}

/// When this process started, to judge the deadlines of its invocations.
#[derive(Debug, Clone, Copy)]
struct Process {
    started: Timestamp,
}

impl Process {
    /// Notes the time of the start. Call it before the first invocation.
    fn start() -> Self {
        let started = SystemClock.now();
        Self { started }
    }

    /// Reads a deadline of the Lambda runtime, in milliseconds since 1970. `None`
    /// for a time before the start of the process: `cargo lambda watch` sends a
    /// constant of 1970. A later deadline counts even if it has passed.
    fn deadline(self, millis: u64) -> Option<Timestamp> {
        let at = i64::try_from(millis).ok().map(Timestamp::from_millis);
        at.filter(|at| *at >= self.started)
    }
}

/// The identity of the sender, from the authorizer of API Gateway and the headers.
fn identity(request: &lambda_http::Request) -> Identity {
    Identity {
        authorizer: request.request_context_ref().and_then(authorizer),
        ..Identity::of(request.headers())
    }
}

fn authorizer(context: &RequestContext) -> Option<Map<String, Value>> {
    match context {
        RequestContext::ApiGatewayV1(context) => {
            Some(context.authorizer.fields.clone().into_iter().collect())
        }
        RequestContext::ApiGatewayV2(context) => {
            let authorizer = context.authorizer.as_ref()?;
            Some(authorizer.fields.clone().into_iter().collect())
        }
        _ => None,
    }
}
