//! Answers each request with one call of DynamoDB.

use bench_floor::Table;
use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let table = &Table::connect().await?;
    run(service_fn(move |request: Request| async move {
        let body = table.answer(&request).await?;
        let answer = Response::builder().header("content-type", "application/json");
        Ok::<_, Error>(answer.body(Body::from(body))?)
    }))
    .await
}
