//! The Lambda function `agent-card`: the public agent card. It keeps the allocator of the
//! system: with the one of the other functions a call takes as much CPU, and a start more.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::agent_card(reference_agent::agent).await?)
}
