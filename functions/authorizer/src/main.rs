//! The Lambda function `authorizer`: says to API Gateway who calls.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    Ok(a2a_lambda::serve::authorizer().await?)
}
