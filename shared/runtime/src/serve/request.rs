//! Hands an event of API Gateway to the HTTP edge.

use super::event::GatewayEvent;
use super::start::Process;
use crate::http::{Body, HttpService};
use http::{Method, Response};
use http_body_util::{BodyExt as _, Empty};

/// Answers the request of an event.
pub(super) async fn answer(
    edge: &HttpService,
    process: Process,
    event: GatewayEvent,
) -> Response<Body> {
    let GatewayEvent {
        request,
        identity,
        deadline,
    } = event;
    let is_head = request.method() == Method::HEAD;
    let response = edge
        .handle(request, identity, process.deadline(deadline))
        .await;
    if is_head {
        // RFC 9110 §9.3.2: a response to HEAD has no body.
        return response.map(|_| Empty::new().boxed_unsync());
    }
    response
}
