//! The Lambda function `sweep`: finds turns whose process died and queues them again.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::sweep(reference_agent::agent).await?)
}
