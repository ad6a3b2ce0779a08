//! The conformance agent as the functions of a deployment, in one program.

use reference_agent::conformance;
use std::time::Duration;

/// The conformance kits alone use this time; no case of `tests/stack` does.
const KIT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::function(|| conformance::agent(KIT)).await?)
}
