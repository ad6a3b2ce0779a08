//! The program for AWS Lambda: every function of the deployment.

use a2a_lambda::serve::{ServeError, function};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    function(agent::agent).await
}
