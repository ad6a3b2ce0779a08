//! The Lambda function `worker`: runs the turns of the work queue.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::worker(reference_agent::agent).await?)
}
