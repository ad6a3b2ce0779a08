//! Hands an event of API Gateway to the HTTP edge.

use super::event::GatewayEvent;
use super::start::Process;
use crate::http::{Body, HttpService, InvocationInfo};
use http::{Method, Response};
use http_body_util::{BodyExt as _, Empty};
use lambda_runtime::Context;

/// Answers the request of an event.
pub(super) async fn answer(
    edge: &HttpService,
    process: Process,
    event: GatewayEvent,
    context: Context,
) -> Response<Body> {
    let GatewayEvent {
        mut request,
        identity,
        ..
    } = event;
    let deadline = process.deadline(context.deadline);
    request.extensions_mut().insert(InvocationInfo {
        request_id: Some(context.request_id),
        x_ray: context.xray_trace_id,
    });
    let is_head = request.method() == Method::HEAD;
    let response = edge.handle(request, identity, deadline).await;
    if is_head {
        // RFC 9110 §9.3.2: a response to HEAD has no body.
        return response.map(|_| Empty::new().boxed_unsync());
    }
    response
}
