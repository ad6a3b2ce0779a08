//! Hands an event of API Gateway to the HTTP edge.

use super::path;
use super::start::Process;
use crate::auth::Identity;
use crate::http::base_url::STAGE_VARIABLE;
use crate::http::{Body, HttpService, InvocationInfo, StageUrl};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use lambda_http::RequestExt as _;
use lambda_http::request::RequestContext;
use serde_json::{Map, Value};

/// Answers the request of an event.
pub(super) async fn answer(
    edge: &HttpService,
    process: Process,
    request: lambda_http::Request,
) -> Response<Body> {
    let identity = identity(&request);
    let context = request.lambda_context_ref();
    let deadline = context.and_then(|context| process.deadline(context.deadline));
    let invocation = context.map(|context| InvocationInfo {
        request_id: Some(context.request_id.clone()),
        x_ray: context.xray_trace_id.clone(),
    });
    let mut request = plain(request);
    request
        .extensions_mut()
        .insert(invocation.unwrap_or_default());
    let is_head = request.method() == Method::HEAD;
    let response = edge.handle(request, identity, deadline).await;
    if is_head {
        // RFC 9110 §9.3.2: a response to HEAD has no body.
        return response.map(|_| Empty::new().boxed_unsync());
    }
    response
}

/// The path of an event below the API.
pub(super) fn path_of(request: &lambda_http::Request) -> &str {
    path::below_the_api(request.raw_http_path(), resource(request))
}

/// The request without its Lambda envelope. Its path is the raw one, which has
/// no stage of API Gateway before it, without the base path of a custom domain.
pub(super) fn plain(request: lambda_http::Request) -> Request<Bytes> {
    let path = path_of(&request).to_owned();
    let stage = stage_url(&request);
    let query = request.uri().query().map(str::to_owned);
    let (mut parts, body) = request.into_parts();
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    if let Ok(uri) = target.parse() {
        parts.uri = uri;
    }
    if let Some(url) = stage {
        parts.extensions.insert(url);
    }
    let bytes = match body {
        lambda_http::Body::Text(text) => Bytes::from(text),
        lambda_http::Body::Binary(bytes) => Bytes::from(bytes),
        _ => Bytes::new(),
    };
    Request::from_parts(parts, bytes)
}

/// The resource of API Gateway that the path matched. Events of an HTTP API have none.
fn resource(request: &lambda_http::Request) -> Option<&str> {
    match request.request_context_ref()? {
        RequestContext::ApiGatewayV1(context) => context.resource_path.as_deref(),
        _ => None,
    }
}

/// The base URL that the stage of API Gateway names.
fn stage_url(request: &lambda_http::Request) -> Option<StageUrl> {
    let url = request.stage_variables_ref()?.first(STAGE_VARIABLE)?;
    Some(StageUrl(url.to_owned()))
}

/// The identity of the sender, from the authorizer of API Gateway and the headers.
pub(super) fn identity(request: &lambda_http::Request) -> Identity {
    Identity {
        authorizer: request.request_context_ref().and_then(authorizer_context),
        ..Identity::of(request.headers())
    }
}

fn authorizer_context(context: &RequestContext) -> Option<Map<String, Value>> {
    match context {
        RequestContext::ApiGatewayV1(context) => {
            Some(context.authorizer.fields.clone().into_iter().collect())
        }
        RequestContext::ApiGatewayV2(context) => {
            let authorizer = context.authorizer.as_ref()?;
            Some(authorizer.fields.clone().into_iter().collect())
        }
        _ => None,
    }
}
