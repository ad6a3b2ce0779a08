//! One program for all functions of a deployment.

use super::error::ServeError;
use super::event::GatewayEvent;
use super::invocation::Integration;
use super::services::over_stores;
use super::start::Start;
use super::{
    agent_card, authorizer, invocation, ops, push, relay, rpc, sweep, tasks_get, tasks_send,
    tasks_stream, worker,
};
use crate::health::Checks;
use crate::settings::{Environment, Source as _};
use a2a_lambda_skill::BuildAgent;
use std::sync::Arc;

/// The setting that names the function. A configuration file cannot set it, since all
/// functions share the file.
const FUNCTION: &str = "A2A_FUNCTION";

/// The values of [`FUNCTION`].
const NAMES: [&str; 11] = [
    "agent-card",
    "authorizer",
    "ops",
    "push",
    "relay",
    "rpc",
    "sweep",
    "tasks-get",
    "tasks-send",
    "tasks-stream",
    "worker",
];

/// Serves the function that `A2A_FUNCTION` names, so that one program is every function of a
/// deployment. Without the setting it answers every HTTP route, as under `cargo lambda
/// watch`. Nothing then runs the background work.
///
/// ```no_run
/// # use a2a_lambda::prelude::*;
/// # fn agent() -> Result<AgentDefinition, BuildError> {
/// #     Agent::builder("none").build()
/// # }
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), a2a_lambda::serve::ServeError> {
///     a2a_lambda::serve::function(agent).await
/// }
/// ```
///
/// # Errors
/// [`ServeError`] when the function cannot start, or has no such name.
pub async fn function(agent: impl BuildAgent) -> Result<(), ServeError> {
    let name = Environment.get(FUNCTION).unwrap_or_default();
    // Boxed, since each future holds a whole start.
    match name.as_str() {
        "" => Box::pin(every_route(agent)).await,
        "agent-card" => Box::pin(agent_card(agent)).await,
        "authorizer" => Box::pin(authorizer()).await,
        "ops" => Box::pin(ops(agent, Checks::new())).await,
        "push" => Box::pin(push()).await,
        "relay" => Box::pin(relay()).await,
        "rpc" => Box::pin(rpc(agent)).await,
        "sweep" => Box::pin(sweep(agent)).await,
        "tasks-get" => Box::pin(tasks_get(agent)).await,
        "tasks-send" => Box::pin(tasks_send(agent)).await,
        "tasks-stream" => Box::pin(tasks_stream(agent)).await,
        "worker" => Box::pin(worker(agent)).await,
        _ => Err(ServeError::Function {
            names: NAMES.join(", "),
        }),
    }
}

/// Answers every HTTP route of an agent.
async fn every_route(agent: impl BuildAgent) -> Result<(), ServeError> {
    let start = Start::begin("a2a-lambda")?;
    let settings = start.settings()?;
    let agent = agent.build().map_err(ServeError::Agent)?;
    agent.make_states().await?;
    let (runtime, counters) = over_stores(agent, &settings).await;
    let edges = runtime.build()?.edges();
    let function = start.ready(counters);
    let state = Arc::new((edges, function));
    let handler = move |request| {
        let state = Arc::clone(&state);
        async move {
            let (edges, function) = &*state;
            let event = GatewayEvent::of(request);
            let (method, uri) = (event.request.method().as_str(), event.request.uri());
            let edge = edges.for_route(method, uri.path());
            super::answer(edge, function, event).await
        }
    };
    Ok(invocation::run(Integration::Streaming, handler, None).await?)
}

#[cfg(test)]
mod tests {
    use super::NAMES;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_names_are_those_of_the_functions_in_the_template() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let template = std::fs::read_to_string(root.join("template.yaml")).unwrap();
        let folders = template.lines().filter_map(|line| {
            let folder = line.trim().strip_prefix("CodeUri: functions/")?;
            folder.strip_suffix('/')
        });
        let folders: BTreeSet<&str> = folders.collect();
        assert_eq!(folders, NAMES.into());
    }
}
