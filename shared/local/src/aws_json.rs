//! Reads signed requests of the AWS JSON protocol, and writes their responses, for the
//! embedded DynamoDB and SQS.

use crate::host::only_programs_here;
use crate::sigv4::{Claim, Unproven};
use a2a_lambda::http::hosts::HostError;
use a2a_lambda::store::aws::EmulatorKeys;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;

/// Most bytes of a request body. A DynamoDB batch has at most 16 MB of items.
const MOST: usize = 17 * 1024 * 1024;
/// How long a client may take to send its body.
const BODY: Duration = Duration::from_secs(30);
const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");

/// A request that a holder of the keys signed.
pub(crate) struct SignedRequest {
    /// What the header `X-Amz-Target` has: the service and its version, a dot, the name of
    /// the operation.
    pub(crate) target: String,
    pub(crate) body: Bytes,
}

/// Why a request is refused before its operation is looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{}", .0.text().trim_end())]
    Foreign(HostError),
    #[error("the request is not signed with the credentials of this run")]
    Unproven(Unproven),
    #[error("no such call")]
    Call,
    #[error("the body broke off, is too large, or came too slowly")]
    Body,
}

impl SignedRequest {
    /// Reads a request and checks its signature.
    ///
    /// # Errors
    /// [`RequestError`] when it does not come from a program on this machine that has
    /// `keys`, or has no whole body.
    pub(crate) async fn read(
        request: Request<Incoming>,
        keys: &EmulatorKeys,
    ) -> Result<Self, RequestError> {
        let (head, body) = request.into_parts();
        only_programs_here(&head.headers).map_err(RequestError::Foreign)?;
        let claim = Claim::of(&head.headers, keys).map_err(RequestError::Unproven)?;
        if head.method != Method::POST || head.uri != "/" {
            return Err(RequestError::Call);
        }
        let body = timeout(BODY, Limited::new(body, MOST).collect()).await;
        let Ok(Ok(body)) = body else {
            return Err(RequestError::Body);
        };
        let body = body.to_bytes();
        claim
            .check(&head, &body, keys)
            .map_err(RequestError::Unproven)?;
        let target = head.headers.get("x-amz-target");
        let target = target.and_then(|target| target.to_str().ok());
        Ok(Self {
            target: target.unwrap_or_default().to_owned(),
            body,
        })
    }
}

impl RequestError {
    /// Status and body of the response.
    pub(crate) fn answer(&self) -> (StatusCode, Bytes) {
        let (status, name) = match self {
            Self::Foreign(foreign) => (foreign.status(), "AccessDeniedException"),
            Self::Unproven(Unproven::Unsigned) => (
                StatusCode::BAD_REQUEST,
                "MissingAuthenticationTokenException",
            ),
            Self::Unproven(Unproven::UnknownKeys) => {
                (StatusCode::BAD_REQUEST, "UnrecognizedClientException")
            }
            Self::Unproven(Unproven::Wrong) => {
                (StatusCode::BAD_REQUEST, "InvalidSignatureException")
            }
            Self::Call => (StatusCode::BAD_REQUEST, "UnknownOperationException"),
            Self::Body => (StatusCode::BAD_REQUEST, "SerializationException"),
        };
        (status, error_body(name, &self.to_string()))
    }
}

/// The body of an error with this name.
pub(crate) fn error_body(name: &str, message: &str) -> Bytes {
    let body = serde_json::json!({
        "__type": format!("com.amazon.coral.service#{name}"),
        "message": message,
    });
    Bytes::from(body.to_string())
}

/// A response with this status and body.
pub(crate) fn response(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}
