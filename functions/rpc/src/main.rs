//! The Lambda function `rpc`: JSON-RPC, all methods on one URL.

#[global_allocator]
static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::rpc(reference_agent::agent).await?)
}
