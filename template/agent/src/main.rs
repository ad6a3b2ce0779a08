//! The program for AWS Lambda: every function of the deployment.

use a2a_lambda::serve::{Allocator, ServeError, function};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    function(agent::agent).await
}
