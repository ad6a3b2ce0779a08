//! The conformance agent as the functions of a deployment.
//!
//! `tests/stack` deploys this program in place of those functions that serve an agent. It
//! makes the same calls as their `main`, with another agent. The name of the function decides
//! which call, so all of them share one program and it is linked once.

use a2a_lambda::health::Checks;
use a2a_lambda::serve;
use lambda_runtime::Error;
use reference_agent::conformance;
use std::time::Duration;

/// The conformance kits alone use this time; no case of `tests/stack` does.
const KIT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let agent = || conformance::agent(KIT);
    let function = function();
    // `<name of the stack>-<folder of the function>`.
    let is = |folder: &str| function.ends_with(&format!("-{folder}"));
    if is("agent-card") {
        serve::agent_card(agent).await?;
    } else if is("tasks-send") {
        serve::tasks_send(agent).await?;
    } else if is("tasks-get") {
        serve::tasks_get(agent).await?;
    } else if is("tasks-stream") {
        serve::tasks_stream(agent).await?;
    } else if is("rpc") {
        serve::rpc(agent).await?;
    } else if is("worker") {
        serve::worker(agent).await?;
    } else if is("sweep") {
        serve::sweep(agent).await?;
    } else if is("ops") {
        serve::ops(agent, Checks::new()).await?;
    } else {
        return Err(format!("no function of an agent is called `{function}`").into());
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "Lambda sets the variable; it is no setting"
)]
fn function() -> String {
    std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default()
}
