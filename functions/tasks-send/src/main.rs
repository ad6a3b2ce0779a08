//! The Lambda function `tasks-send`: the path operations that write.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::tasks_send(reference_agent::agent).await?)
}
