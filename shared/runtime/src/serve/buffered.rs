//! Answers the invocations of functions whose integration takes whole responses.
//!
//! `lambda_runtime` fetches the invocations and posts the responses. The envelope of API
//! Gateway is made here and not by `lambda_http`, which links the tables of every character
//! set for it. Our bodies are UTF-8 or binary.
//!
//! Source: Amazon API Gateway Developer Guide, "Output format of a Lambda function for proxy
//! integration"; for the format 2.0, "Create AWS Lambda proxy integrations for HTTP APIs".

use crate::http::Body;
use http::Response;
use http_body_util::BodyExt as _;
use lambda_http::aws_lambda_events::apigw::{ApiGatewayProxyResponse, ApiGatewayV2httpResponse};
use lambda_http::request::{LambdaRequest, RequestContext};
use lambda_http::{Body as EventBody, LambdaEvent, RequestExt as _};
use lambda_runtime::{Error, service_fn};
use serde::Serialize;
use std::convert::Infallible;
use std::future::Future;

/// Runs `handler` for each invocation until the Runtime API closes.
pub(super) async fn run<H, F>(handler: H) -> Result<(), Error>
where
    H: Fn(lambda_http::Request) -> F,
    F: Future<Output = Response<Body>>,
{
    let handler = &handler;
    lambda_runtime::run(service_fn(
        move |event: LambdaEvent<LambdaRequest>| async move {
            let LambdaEvent { payload, context } = event;
            let request = lambda_http::Request::from(payload).with_lambda_context(context);
            let is_http_api = matches!(
                request.request_context_ref(),
                Some(RequestContext::ApiGatewayV2(_))
            );
            let response = handler(request).await;
            Ok::<_, Infallible>(GatewayResponse::of(response, is_http_api).await)
        },
    ))
    .await
}

/// A response in the form of the API that sent the request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum GatewayResponse {
    Rest(ApiGatewayProxyResponse),
    Http(ApiGatewayV2httpResponse),
}

impl GatewayResponse {
    async fn of(response: Response<Body>, is_http_api: bool) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            // The error type of a body is empty, see `Body`.
            Err(never) => match never {},
        };
        let status = i64::from(parts.status.as_u16());
        let (body, is_binary) = match String::from_utf8(bytes.into()) {
            Ok(text) => (EventBody::Text(text), false),
            Err(error) => (EventBody::Binary(error.into_bytes()), true),
        };
        if is_http_api {
            let mut envelope = ApiGatewayV2httpResponse::default();
            envelope.status_code = status;
            envelope.headers = parts.headers;
            envelope.body = Some(body);
            envelope.is_base64_encoded = is_binary;
            return Self::Http(envelope);
        }
        let mut envelope = ApiGatewayProxyResponse::default();
        envelope.status_code = status;
        // Not also `headers`: API Gateway would send each header twice.
        envelope.multi_value_headers = parts.headers;
        envelope.body = Some(body);
        envelope.is_base64_encoded = is_binary;
        Self::Rest(envelope)
    }
}

#[cfg(test)]
mod tests {
    use super::GatewayResponse;
    use crate::http::Body;
    use bytes::Bytes;
    use http::Response;
    use http_body_util::{BodyExt as _, Full};
    use serde_json::json;

    fn response(body: &'static [u8]) -> Response<Body> {
        Response::builder()
            .status(201)
            .header("vary", "a")
            .header("vary", "b")
            .body(Full::new(Bytes::from_static(body)).boxed_unsync())
            .unwrap()
    }

    #[tokio::test]
    async fn a_rest_api_gets_every_value_of_a_header_once() {
        let envelope = GatewayResponse::of(response(b"{\"a\":1}"), false).await;
        assert_eq!(
            serde_json::to_value(envelope).unwrap(),
            json!({
                "statusCode": 201, "headers": {}, "multiValueHeaders": {"vary": ["a", "b"]},
                "body": "{\"a\":1}", "isBase64Encoded": false,
            })
        );
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_base64_and_said_to_be() {
        let envelope = GatewayResponse::of(response(&[0xff, 0]), true).await;
        let envelope = serde_json::to_value(envelope).unwrap();
        assert_eq!(envelope["body"], "/wA=");
        assert_eq!(envelope["isBase64Encoded"], true);
        assert_eq!(envelope["headers"], json!({"vary": "a"}));
    }
}
