//! The Lambda function `relay`: moves turns from the table's stream to the queue.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::relay().await?)
}
