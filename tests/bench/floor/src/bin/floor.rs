//! Answers each request with the same JSON.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: Request| async {
        let answer = Response::builder().header("content-type", "application/json");
        Ok::<_, Error>(answer.body(Body::from(r#"{"ok":true}"#))?)
    }))
    .await
}
