//! Answers each request with one call of DynamoDB, as a streamed response.

use bench_floor::Table;
use bytes::Bytes;
use http_body_util::Full;
use lambda_http::{Error, Request, Response, run_with_streaming_response, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let table = &Table::connect().await?;
    run_with_streaming_response(service_fn(move |request: Request| async move {
        let body = Bytes::from(table.answer(&request).await?);
        let answer = Response::builder().header("content-type", "application/json");
        Ok::<_, Error>(answer.body(Full::new(body))?)
    }))
    .await
}
