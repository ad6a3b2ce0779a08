//! The Lambda function `ops`: health and metrics, for operators.

use a2a_lambda::health::Checks;

#[global_allocator]
static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    // A service that your skills use is a dependency too: add its check here.
    let checks = Checks::new();
    Ok(a2a_lambda::serve::ops(reference_agent::agent, checks).await?)
}
