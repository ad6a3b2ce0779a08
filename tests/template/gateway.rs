//! The responses that API Gateway sends itself are errors of the protocol too.

use a2a_lambda::task::A2aError;
use a2a_lambda_rows::each_row;
use a2a_lambda_wire::{RawRequest, RoutedRequest};
use std::fmt::Write as _;

const TEMPLATE: &str = include_str!("../../template.yaml");

/// The error for each kind of response (API Gateway Developer Guide, "Gateway response
/// types"). A kind that is not here has the default of its class, status included: an integration
/// or authorizer that fails, and a function that Lambda throttles, have `DEFAULT_5XX`.
fn errors() -> Vec<(&'static str, A2aError)> {
    let why = |text: &str| A2aError::InvalidRequest {
        why: text.to_owned(),
    };
    let wait = |retry_after| A2aError::Unavailable { retry_after };
    vec![
        ("ACCESS_DENIED", A2aError::Forbidden),
        ("API_CONFIGURATION_ERROR", A2aError::Internal),
        ("AUTHORIZER_CONFIGURATION_ERROR", A2aError::Internal),
        ("DEFAULT_4XX", why("the request is not readable")),
        ("DEFAULT_5XX", wait(1)),
        ("EXPIRED_TOKEN", A2aError::Unauthenticated),
        ("INVALID_API_KEY", A2aError::Forbidden),
        ("INVALID_SIGNATURE", A2aError::Unauthenticated),
        // The response to a path without a route.
        ("MISSING_AUTHENTICATION_TOKEN", A2aError::MethodNotFound),
        // A quota of a usage plan is per day or longer.
        ("QUOTA_EXCEEDED", A2aError::RateLimited { retry_after: 60 }),
        // API Gateway accepts bodies of up to 10 MB.
        (
            "REQUEST_TOO_LARGE",
            A2aError::PayloadTooLarge { limit: 10_485_760 },
        ),
        ("RESOURCE_NOT_FOUND", A2aError::MethodNotFound),
        ("THROTTLED", A2aError::RateLimited { retry_after: 1 }),
        ("UNAUTHORIZED", A2aError::Unauthenticated),
        ("UNSUPPORTED_MEDIA_TYPE", A2aError::UnsupportedMediaType),
        ("WAF_FILTERED", A2aError::Forbidden),
    ]
}

/// The headers of each response: the two that its error sets, and the one that lets a page of
/// the allowed origin read it.
const ORIGIN: &str = r#"Access-Control-Allow-Origin: !If [HasCorsOrigin, !Sub "'${CorsOrigin}'", "'https://off.invalid'"]"#;

/// The entry of the template for a kind of response.
fn entry(kind: &str, error: A2aError) -> String {
    let request = RawRequest {
        method: "GET",
        path: "/tasks/x",
        version: Some("1.0"),
        ..RawRequest::default()
    };
    let response = RoutedRequest::of(request).reject(error).answer();
    let mut text = format!(
        "        {kind}:\n          StatusCode: {}\n",
        response.status
    );
    let mut headers = ORIGIN.to_owned();
    for (name, value) in &response.headers {
        let name = match *name {
            "retry-after" => "Retry-After",
            "www-authenticate" => "WWW-Authenticate",
            // The key of the template below is the content type.
            _ => continue,
        };
        write!(headers, ", {name}: \"'{value}'\"").unwrap();
    }
    writeln!(
        text,
        "          ResponseParameters: {{Headers: {{{headers}}}}}"
    )
    .unwrap();
    let body = String::from_utf8(response.body)
        .unwrap()
        .replace('\'', "''");
    writeln!(
        text,
        "          ResponseTemplates: {{application/json: '{body}'}}"
    )
    .unwrap();
    text
}

#[test]
fn api_gateway_answers_with_the_errors_of_the_protocol() {
    let entries: String = errors()
        .into_iter()
        .map(|(kind, error)| entry(kind, error))
        .collect();
    let (_, rest) = TEMPLATE.split_once("      GatewayResponses:\n").unwrap();
    let deeper = |line: &&str| line.starts_with("        ");
    let written: String = rest
        .lines()
        .take_while(deeper)
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(
        written == entries,
        "the section GatewayResponses has to be:\n{entries}"
    );
}

#[test]
fn what_may_succeed_later_says_when_to_try_again() {
    each_row(errors(), |(kind, error)| {
        let text = entry(kind, error);
        let later = text.contains("StatusCode: 429") || text.contains("StatusCode: 503");
        assert_eq!(text.contains("Retry-After"), later, "{text}");
        // A `$` would begin a variable of API Gateway, which could contain internal text.
        let body = text.split_once("ResponseTemplates").unwrap().1;
        assert!(!body.contains('$'), "{text}");
    });
}
