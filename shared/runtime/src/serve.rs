//! Runs each Lambda function: its `main` calls one function of this module.
//!
//! - here: the functions that answer HTTP requests
//! - `error`: why a function does not start
//! - `services`: the services of AWS that functions use
//! - `start`: the settings, the log and the counters of a function
//! - `event`: reads the events of API Gateway
//! - `function`: one program for all functions of a deployment
//! - `invocation`: answers the invocations of the functions behind API Gateway, whole or as a stream
//! - `check`: answers CloudFormation, which asks whether the settings can be used
//! - `authorizer`: the function that says to API Gateway who calls
//! - `relay`, `worker`, `push`, `sweep`: the functions that the table's stream, the
//!   queues and the schedule start

#[cfg(all(feature = "jwt", feature = "secrets"))]
mod authorizer;
#[cfg(feature = "aws")]
mod batch;
#[cfg(feature = "aws")]
mod check;
mod error;
mod event;
#[cfg(all(feature = "jwt", feature = "secrets"))]
mod function;
mod invocation;
mod path;
#[cfg(feature = "aws")]
mod push;
#[cfg(feature = "aws")]
mod relay;
#[cfg(feature = "aws")]
mod services;
mod start;
#[cfg(feature = "secrets")]
mod stored_keys;
#[cfg(feature = "aws")]
mod sweep;
#[cfg(feature = "aws")]
mod worker;

#[cfg(all(feature = "jwt", feature = "secrets"))]
pub use self::{authorizer::authorizer, function::function};
#[cfg(feature = "aws")]
pub use self::{push::push, relay::relay, sweep::sweep, worker::worker};

pub use self::error::ServeError;
pub use self::event::GatewayEvent;
/// The memory allocator of the functions. A short call allocates hundreds of times, and this one
/// takes less CPU for it than that of glibc. A program has one allocator, so the program names
/// it and not this library:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;
/// ```
pub use mimalloc::MiMalloc as Allocator;

use crate::http::{Body, HttpService};
use crate::telemetry::metrics::Reporter;
use a2a_lambda_skill::BuildAgent;
use futures::{StreamExt as _, stream};
use http::{Method, Response};
use http_body_util::{BodyExt as _, BodyStream, Empty, StreamBody};
use invocation::{Integration, OtherEvents};
use start::{Start, Started};
use std::sync::Arc;

#[cfg(feature = "aws")]
use crate::health::Checks;
#[cfg(feature = "aws")]
use crate::http::Function;
#[cfg(feature = "aws")]
use crate::runtime::Runtime;
#[cfg(all(feature = "aws", feature = "secrets"))]
use crate::settings::{Environment, Source as _};
#[cfg(feature = "aws")]
use crate::store::dynamodb::DynamoTable;
#[cfg(feature = "aws")]
use a2a_lambda_skill::check_turns;
#[cfg(feature = "aws")]
use services::{clients, over_stores, push_queue, queue};
#[cfg(all(feature = "aws", feature = "secrets"))]
use stored_keys::SecretsManagerKeys;

/// Serves the public agent card.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn agent_card(agent: impl BuildAgent) -> Result<(), ServeError> {
    let start = Start::begin("agent-card")?;
    let settings = start.public_settings()?;
    let agent = agent.build().map_err(ServeError::Agent)?;
    let edge = crate::runtime::card_edge(agent, &settings)?;
    serve(Integration::Buffered, edge, start.ready(None), None).await
}

/// Serves the path operations that write.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_send(agent: impl BuildAgent) -> Result<(), ServeError> {
    const { check_turns() };
    let (name, function) = ("tasks-send", Function::TasksSend);
    run_skills(agent, name, function, Integration::Buffered).await
}

/// Serves the path operations that read, and `GET /tasks/{id}:subscribe`.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_get(agent: impl BuildAgent) -> Result<(), ServeError> {
    let start = Start::begin("tasks-get")?;
    let settings = start.settings()?;
    let agent = agent.build().map_err(ServeError::Agent)?;
    let (runtime, counters) = over_stores(agent, &settings).await;
    let edge = runtime.build()?.reader_edge();
    serve(Integration::Streaming, edge, start.ready(counters), None).await
}

/// Serves the path operations that stream, and `POST /tasks/{id}:cancel`.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn tasks_stream(agent: impl BuildAgent) -> Result<(), ServeError> {
    const { check_turns() };
    let (name, function) = ("tasks-stream", Function::TasksStream);
    run_skills(agent, name, function, Integration::Streaming).await
}

/// Serves JSON-RPC: all methods on one URL.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn rpc(agent: impl BuildAgent) -> Result<(), ServeError> {
    const { check_turns() };
    run_skills(agent, "rpc", Function::Rpc, Integration::Streaming).await
}

/// Serves health and metrics, for operators. `checks` are the dependencies of the skills. It also
/// says to CloudFormation whether the program can use its settings and its table.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
#[cfg(feature = "aws")]
pub async fn ops(agent: impl BuildAgent, checks: Checks) -> Result<(), ServeError> {
    match Box::pin(ops_edge(agent, checks)).await {
        Ok((edge, instance, (unknown, table))) => {
            let also = Some(check::check(&unknown, table));
            serve(Integration::Buffered, edge, instance, also).await
        }
        Err(error @ (ServeError::Settings(_) | ServeError::Agent(_) | ServeError::Runtime(_))) => {
            check::refuse(&error).await
        }
        Err(error) => Err(error),
    }
}

/// The edge of `ops`, the settings that it does not know, and the table.
#[cfg(feature = "aws")]
async fn ops_edge(
    agent: impl BuildAgent,
    own_checks: Checks,
) -> Result<(HttpService, Started, (Vec<String>, DynamoTable)), ServeError> {
    let start = Start::begin("ops")?;
    let settings = start.public_settings()?;
    // The authorizer does not start without them.
    settings.credentials.issuer()?;
    let unknown = start.configuration.unknown().to_vec();
    let mut checks = own_checks;
    if settings.work_queue_url.is_some() {
        checks = checks.with("work-queue", Arc::new(queue(&settings).await?));
    }
    if let Some(queue) = push_queue(&settings).await {
        checks = checks.with("push-queue", Arc::new(queue));
    }
    #[cfg(feature = "secrets")]
    if let Some(id) = Environment.get("A2A_SECRET_KEY_ID") {
        checks = checks.with("secret-key", Arc::new(SecretsManagerKeys { id }));
    }
    let agent = agent.build().map_err(ServeError::Agent)?;
    let clients = clients().await;
    let runtime = Runtime::builder(agent, settings.clone()).aws(&clients);
    let edge = runtime.checks(checks).build()?.ops_edge();
    let table = DynamoTable::new(clients.dynamodb, &settings.table);
    // It has no right to write counters, so it reports only to CloudWatch.
    Ok((edge, start.ready(None), (unknown, table)))
}

/// Serves a function that runs skills.
#[cfg(feature = "aws")]
async fn run_skills(
    agent: impl BuildAgent,
    name: &'static str,
    function: Function,
    integration: Integration,
) -> Result<(), ServeError> {
    let start = Start::begin(name)?;
    let settings = start.settings()?;
    let agent = agent.build().map_err(ServeError::Agent)?;
    agent.make_states().await?;
    let (runtime, counters) = over_stores(agent, &settings).await;
    let edge = runtime.build()?.engine_edge(function);
    serve(integration, edge, start.ready(counters), None).await
}

async fn serve(
    integration: Integration,
    edge: HttpService,
    instance: Started,
    also: Option<OtherEvents>,
) -> Result<(), ServeError> {
    let pair = Arc::new((edge, instance));
    let handler = move |request| {
        let pair = Arc::clone(&pair);
        async move {
            let (edge, instance) = &*pair;
            answer(edge, instance, GatewayEvent::of(request)).await
        }
    };
    Ok(invocation::run(integration, handler, also).await?)
}

/// Answers the request of an event.
async fn answer(edge: &HttpService, instance: &Started, event: GatewayEvent) -> Response<Body> {
    let is_head = event.request.method() == Method::HEAD;
    let deadline = instance.process.deadline(event.deadline);
    let response = Box::pin(edge.handle(event.request, event.identity, deadline)).await;
    let response = match is_head {
        // RFC 9110 §9.3.2: a response to HEAD has no body.
        true => response.map(|_| Empty::new().boxed_unsync()),
        false => response,
    };
    report_at_end(response, Arc::clone(&instance.reporter))
}

/// The response, which ends once the reporter has sent what was counted. Lambda freezes a
/// process after the end of its response.
fn report_at_end(response: Response<Body>, reporter: Arc<Reporter>) -> Response<Body> {
    let report = stream::once(async move {
        reporter.end_of_invocation().await;
        None
    });
    response.map(|body| {
        let frames = BodyStream::new(body).chain(report.filter_map(std::future::ready));
        StreamBody::new(frames).boxed_unsync()
    })
}
