//! Reads the events of API Gateway, as `lambda_http` decodes them.
//!
//! Source: Amazon API Gateway Developer Guide, "Input format of a Lambda function for proxy
//! integration" (format 1.0) and "Create AWS Lambda proxy integrations for HTTP APIs"
//! (formats 1.0 and 2.0).

use super::path::below_the_api;
use crate::auth::Identity;
use crate::http::InvocationInfo;
use crate::origin::{STAGE_VARIABLE, StageUrl};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Uri};
use lambda_http::RequestExt as _;
use lambda_http::request::{LambdaRequest, RequestContext};
use serde_json::Error;

/// Decodes an event for the adapters of `lambda_http`.
///
/// # Errors
/// [`Error`] if `text` is not an event of API Gateway for a proxy integration.
pub(super) fn decode(text: &[u8]) -> Result<LambdaRequest, Error> {
    let mut event = serde_json::from_slice(text)?;
    // `lambda_http` puts the stage before the path. Ours is the path below the stage.
    match &mut event {
        LambdaRequest::ApiGatewayV1(event) => {
            event.request_context.stage = None;
            encode(&mut event.path);
            // These have only the last of several values, and would replace them all.
            if !event.multi_value_headers.is_empty() {
                event.headers = HeaderMap::new();
            }
        }
        LambdaRequest::ApiGatewayV2(event) => {
            event.request_context.stage = None;
            encode(&mut event.raw_path);
        }
        _ => {}
    }
    Ok(event)
}

/// Encodes what would end the path of a URL. A front end may have decoded it.
fn encode(path: &mut Option<String>) {
    if let Some(path) = path.as_mut().filter(|it| it.contains(['?', '#'])) {
        *path = path.replace('?', "%3F").replace('#', "%23");
    }
}

/// What an event says.
#[derive(Debug)]
pub struct GatewayEvent {
    /// The request with the path of the event. In format 1.0 that has no stage, and the base
    /// path of a custom domain is cut off.
    pub request: Request<Bytes>,
    /// The identity of the sender, from the authorizer of API Gateway and the headers.
    pub identity: Identity,
    /// The end of the invocation, in milliseconds since 1970.
    pub deadline: u64,
}

impl GatewayEvent {
    /// Reads an event.
    ///
    /// # Errors
    /// Those of the decoder, if `text` is not an event of API Gateway.
    pub fn read(text: &[u8]) -> Result<Self, Error> {
        decode(text).map(|event| Self::of(event.into()))
    }

    /// What the event of `request` says.
    #[must_use]
    pub fn of(request: lambda_http::Request) -> Self {
        let (resource, authorizer) = match request.request_context_ref() {
            Some(RequestContext::ApiGatewayV1(context)) => {
                (context.resource_path.as_deref(), Some(&context.authorizer))
            }
            Some(RequestContext::ApiGatewayV2(context)) => (None, context.authorizer.as_ref()),
            _ => (None, None),
        };
        let authorizer = authorizer.map(|it| it.fields.clone().into_iter().collect());
        let target = target(request.uri(), resource);
        let stage = request.stage_variables_ref();
        let stage = stage.and_then(|it| it.first(STAGE_VARIABLE).map(str::to_owned));
        let identity = Identity {
            authorizer,
            ..Identity::of(request.headers())
        };
        let context = request.lambda_context_ref().cloned().unwrap_or_default();
        let mut request = request.map(|body| Bytes::from(body.to_vec()));
        request.extensions_mut().clear();
        request.extensions_mut().insert(InvocationInfo {
            request_id: Some(context.request_id),
            x_ray: context.xray_trace_id,
        });
        if let Some(url) = stage {
            request.extensions_mut().insert(StageUrl(url));
        }
        *request.uri_mut() = target;
        Self {
            request,
            identity,
            deadline: context.deadline,
        }
    }
}

/// The target of a request below the API: without a host, and without the base path of a
/// custom domain.
fn target(uri: &Uri, resource: Option<&str>) -> Uri {
    let path = below_the_api(uri.path(), resource);
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    // A part of a valid target at a slash is one.
    target
        .parse()
        .map_or_else(|_| Uri::default(), |target: PathAndQuery| target.into())
}

#[cfg(test)]
mod tests;
