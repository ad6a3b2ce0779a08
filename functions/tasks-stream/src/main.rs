//! The Lambda function `tasks-stream`: the path operations that stream.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::tasks_stream(reference_agent::agent).await?)
}
