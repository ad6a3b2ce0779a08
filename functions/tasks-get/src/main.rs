//! The Lambda function `tasks-get`: the path operations that read.

#[global_allocator]
static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::tasks_get(reference_agent::agent).await?)
}
