//! The Lambda function `sweep`: finds turns that died, and asks for workers again.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::sweep(reference_agent::agent()).await?)
}
