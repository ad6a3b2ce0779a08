//! The Lambda function `push`: posts the events of tasks to webhooks.

#[global_allocator]
static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::push().await?)
}
