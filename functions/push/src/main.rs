//! The Lambda function `push`: tells webhooks what happens to their tasks.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::push().await?)
}
