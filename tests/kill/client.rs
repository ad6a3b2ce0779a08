//! A client for a server that may die during a call.

use a2a_lambda_tests::frames::Frame;
use a2a_lambda_tests::remote;
use a2a_lambda_tests::world::{Live, Request};
use serde_json::Value;

/// Starts a call; `None` without a response, or for an error status.
pub(crate) async fn open(base: &str, request: &Request) -> Option<Live> {
    let live = remote::open(base, request).await.ok()?;
    (live.status == 200).then_some(live)
}

/// The whole response to a call; `None` without it, or for an error status.
pub(crate) async fn call(base: &str, request: &Request) -> Option<Value> {
    let reply = open(base, request).await?.finish().await;
    serde_json::from_slice(&reply.body).ok()
}

/// All events of a stream; none if there is no such stream.
pub(crate) async fn events(base: &str, request: &Request) -> Vec<Frame> {
    let mut frames = Vec::new();
    if let Some(mut live) = open(base, request).await {
        while let Some(frame) = live.next().await.unwrap() {
            frames.push(frame);
        }
    }
    frames
}
