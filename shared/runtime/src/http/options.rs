//! Answers OPTIONS: the methods that a path has (RFC 9110 §9.3.7).

use super::encode;
use super::encode::Body;
use super::ops::OpsPath;
use a2a_lambda_wire::{Endpoint, site};
use http::header::{ALLOW, HeaderValue};
use http::{Response, StatusCode};

/// The response for a path that has a route; `None` for the others.
pub(super) fn respond(path: &str) -> Option<Response<Body>> {
    let methods = HeaderValue::from_str(&allow_header(path)?).ok()?;
    let mut response = Response::new(encode::full_body(Vec::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, methods);
    Some(response)
}

/// The value of `Allow` (RFC 9110 §10.2.1).
fn allow_header(path: &str) -> Option<String> {
    let has = |method: &&str| {
        site(method, path) != Endpoint::Nowhere || OpsPath::of(method, path).is_some()
    };
    let methods: Vec<&str> = ["DELETE", "GET", "HEAD", "POST"]
        .into_iter()
        .filter(has)
        .collect();
    (!methods.is_empty()).then(|| format!("{}, OPTIONS", methods.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_route_names_its_methods_and_other_paths_none() {
        let rows = [
            ("/", "POST, OPTIONS"),
            ("/.well-known/agent-card.json", "GET, HEAD, OPTIONS"),
            ("/message:send", "POST, OPTIONS"),
            ("/tasks/t1:subscribe", "GET, HEAD, POST, OPTIONS"),
            (
                "/tasks/t1/pushNotificationConfigs/c",
                "DELETE, GET, HEAD, OPTIONS",
            ),
            ("/acme/tasks", "GET, HEAD, OPTIONS"),
            ("/health", "GET, HEAD, OPTIONS"),
        ];
        each_row(rows, |(path, methods)| {
            assert_eq!(allow_header(path).as_deref(), Some(methods), "{path}");
        });
        for path in ["/nowhere", "/tasks/x/y/z", "/v1/nothing"] {
            assert_eq!(allow_header(path), None, "{path}");
        }
    }
}
