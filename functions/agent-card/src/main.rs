//! The Lambda function `agent-card`: the public agent card.

#[global_allocator]
static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::agent_card(reference_agent::agent).await?)
}
