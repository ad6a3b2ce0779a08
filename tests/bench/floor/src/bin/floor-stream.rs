//! Answers each request with a stream of a hundred events that are ready.

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use lambda_http::{Error, Request, Response, run_with_streaming_response, service_fn};
use std::convert::Infallible;

const EVENTS: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run_with_streaming_response(service_fn(|_: Request| async {
        let event = Bytes::from_static(b"data: {\"text\":\"chunk\"}\n\n");
        let events = (0..EVENTS).map(move |_| Ok::<_, Infallible>(Frame::data(event.clone())));
        let answer = Response::builder().header("content-type", "text/event-stream");
        Ok::<_, Error>(answer.body(StreamBody::new(stream::iter(events)))?)
    }))
    .await
}
