//! The Lambda function `agent-card`: the public agent card. It keeps the allocator of the
//! system: a call allocates little, and another allocator takes longer to start.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::agent_card(reference_agent::agent).await?)
}
