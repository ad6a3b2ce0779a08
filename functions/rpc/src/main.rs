//! The Lambda function `rpc`: JSON-RPC, all methods on one URL.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::rpc(reference_agent::agent).await?)
}
