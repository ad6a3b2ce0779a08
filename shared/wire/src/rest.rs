//! Routes an HTTP method and a path to an operation and its generation.

use super::Operation;
use a2a_lambda_model::task::{Generation, TenantId};

/// The route of a method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathRoute {
    /// The base URL: the body names the JSON-RPC method.
    JsonRpc,
    /// The path names an operation.
    Operation(PathTarget),
}

/// The kind of a route, for code that picks the function of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// JSON-RPC: the body names the operation.
    JsonRpc,
    /// The path names an operation.
    Operation {
        /// The operation.
        operation: Operation,
        /// Whether the path names the task (`/tasks/{id}:cancel`), and not only
        /// the method (`/tasks/cancel`).
        below_task: bool,
    },
    /// There is no route.
    Nowhere,
}

/// The kind of the route of a method and a raw path.
#[must_use]
pub fn site(method: &str, path: &str) -> Endpoint {
    endpoint(route(method, path).as_ref())
}

/// The kind of a route.
pub(super) const fn endpoint(route: Option<&PathRoute>) -> Endpoint {
    match route {
        None => Endpoint::Nowhere,
        Some(PathRoute::JsonRpc) => Endpoint::JsonRpc,
        Some(PathRoute::Operation(target)) => Endpoint::Operation {
            operation: target.operation,
            below_task: target.id.is_some(),
        },
    }
}

/// An operation named by a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathTarget {
    pub(super) operation: Operation,
    pub(super) generation: Generation,
    /// The tenant at the start of the path: a routing value.
    pub(super) tenant: Option<String>,
    /// The task or context that the path names, decoded and unchecked.
    pub(super) id: Option<String>,
    /// The push config that the path names.
    pub(super) config_id: Option<String>,
}

impl PathTarget {
    pub(super) const fn new(operation: Operation, generation: Generation) -> Self {
        Self {
            operation,
            generation,
            tenant: None,
            id: None,
            config_id: None,
        }
    }

    fn of(mut self, id: String) -> Self {
        self.id = Some(id);
        self
    }
}

/// Finds the route of a raw path; `None` if there is none.
///
/// The base URL has a route with and without its trailing slash, as clients build
/// both from one card.
pub(super) fn route(method: &str, path: &str) -> Option<PathRoute> {
    // RFC 9110 §9.3.2: HEAD is GET without a body. The `http` edge drops the body.
    let method = if method == "HEAD" { "GET" } else { method };
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return (method == "POST").then_some(PathRoute::JsonRpc);
    }
    let segments: Vec<&str> = path.split('/').collect();
    target(method, &segments).map(PathRoute::Operation)
}

/// The generation of the error for a path without a route.
pub(super) fn family(path: &str) -> Generation {
    if path == "/v1" || path.starts_with("/v1/") {
        Generation::V03
    } else {
        Generation::V10
    }
}

fn target(method: &str, segments: &[&str]) -> Option<PathTarget> {
    if let Some(path_target) = card(method, segments).or_else(|| path_a_method(method, segments)) {
        return Some(path_target);
    }
    match segments {
        ["a2a-lambda", rest @ ..] => ours(method, rest),
        ["v1", rest @ ..] => v03(method, rest),
        ["agent", "authenticatedExtendedCard"] if method == "GET" => {
            Some(PathTarget::new(Operation::ExtendedCard, Generation::V03))
        }
        _ => v10(method, segments),
    }
}

fn card(method: &str, segments: &[&str]) -> Option<PathTarget> {
    let operation = match segments {
        // A2A 1.0 §8.2, A2A 0.3 §5.3: the well-known path. The others are of 0.1 and 0.2.
        [".well-known", "agent-card.json"] => Operation::Card,
        [".well-known", "agent.json"] | ["agent.json"] => Operation::LegacyCard,
        _ => return None,
    };
    (method == "GET").then(|| PathTarget::new(operation, Generation::V10))
}

/// The paths of 0.1. They do not collide with the task routes of 1.0: there, POST
/// needs a verb, and GET has no segment `get` after an id.
fn path_a_method(method: &str, segments: &[&str]) -> Option<PathTarget> {
    let operation = match (method, segments) {
        ("POST", ["tasks", "send"]) => Operation::Send,
        ("POST", ["tasks", "sendSubscribe" | "stream"]) => Operation::Stream,
        ("POST", ["tasks", "get"]) => Operation::Get,
        ("POST", ["tasks", "cancel"]) => Operation::Cancel,
        ("POST", ["tasks", "resubscribe"]) => Operation::Subscribe,
        ("POST", ["tasks", "pushNotification", "set"]) => Operation::CreatePushConfig,
        ("POST", ["tasks", "pushNotification", "get"]) => Operation::GetPushConfig,
        ("GET", ["tasks", id, "get"]) => {
            return Some(PathTarget::new(Operation::Get, Generation::V01).of(decode(id)?));
        }
        _ => return None,
    };
    Some(PathTarget::new(operation, Generation::V01))
}

fn ours(method: &str, segments: &[&str]) -> Option<PathTarget> {
    let (operation, id) = match (method, segments) {
        ("POST", ["uploads"]) => (Operation::CreateUpload, None),
        ("GET", ["contexts"]) => (Operation::ListContexts, None),
        ("DELETE", ["contexts", id]) => (Operation::DeleteContext, Some(decode(id)?)),
        ("DELETE", ["tasks", id]) => (Operation::DeleteTask, Some(decode(id)?)),
        ("GET", ["skills"]) => (Operation::ListSkills, None),
        ("GET", ["schemas"]) => (Operation::Schemas, None),
        _ => return None,
    };
    if id.as_ref().is_some_and(String::is_empty) {
        return None;
    }
    let mut target = PathTarget::new(operation, Generation::V10);
    target.id = id;
    Some(target)
}

/// The routes of 0.3, below `/v1`.
fn v03(method: &str, segments: &[&str]) -> Option<PathTarget> {
    // A2A 0.3 §3.5.6: the routes of 1.0 below `/v1`, except that of the extended card.
    match (method, segments) {
        ("GET", ["card"]) => Some(PathTarget::new(Operation::ExtendedCard, Generation::V03)),
        (_, ["extendedAgentCard"]) => None,
        _ => operation(method, segments, Generation::V03),
    }
}

/// The routes of 1.0, at the root or below a tenant.
fn v10(method: &str, segments: &[&str]) -> Option<PathTarget> {
    if let Some(path_target) = operation(method, segments, Generation::V10) {
        return Some(path_target);
    }
    let (first, rest) = segments.split_first()?;
    let tenant = TenantId::parse(decode(first)?).ok()?;
    let mut path_target = operation(method, rest, Generation::V10)?;
    path_target.tenant = Some(tenant.as_str().to_owned());
    Some(path_target)
}

/// The routes that 0.3 and 1.0 share.
fn operation(method: &str, segments: &[&str], generation: Generation) -> Option<PathTarget> {
    // A2A 1.0 §11.3; A2A 0.3 §3.5.6: paths and HTTP methods of the operations.
    let target = |operation| Some(PathTarget::new(operation, generation));
    match (method, segments) {
        ("POST", [verb]) => match split_verb(verb)? {
            ("message", "send") => target(Operation::Send),
            ("message", "stream") => target(Operation::Stream),
            _ => None,
        },
        ("GET", ["tasks"]) => target(Operation::List),
        ("GET", ["extendedAgentCard"]) => target(Operation::ExtendedCard),
        (_, ["tasks", task]) => {
            let (id, operation) = task_operation(method, task)?;
            Some(PathTarget::new(operation, generation).of(decode(id)?))
        }
        (_, ["tasks", task, "pushNotificationConfigs", rest @ ..]) => {
            let (operation, config) = match (method, rest) {
                ("POST", []) => (Operation::CreatePushConfig, None),
                ("GET", []) => (Operation::ListPushConfigs, None),
                ("GET", [config]) => (Operation::GetPushConfig, Some(decode(config)?)),
                ("DELETE", [config]) => (Operation::DeletePushConfig, Some(decode(config)?)),
                _ => return None,
            };
            let mut path_target = PathTarget::new(operation, generation).of(decode(task)?);
            path_target.config_id = config;
            Some(path_target)
        }
        _ => None,
    }
}

/// Splits `{noun}:{verb}` at the last colon. A client may encode it: it is the same path
/// (RFC 3986 §2.2 leaves the colon of a segment to the scheme, and frameworks decode it).
fn split_verb(segment: &str) -> Option<(&str, &str)> {
    let by_code = || {
        segment
            .rsplit_once("%3A")
            .or_else(|| segment.rsplit_once("%3a"))
    };
    segment.rsplit_once(':').or_else(by_code)
}

/// Splits `{id}:{verb}`, and only for a known verb, as ids that clients of 0.1 make may hold
/// colons.
fn task_operation<'a>(method: &str, segment: &'a str) -> Option<(&'a str, Operation)> {
    let (id, verb) = match split_verb(segment) {
        // No verb of a GET: an encoded colon belongs to the id.
        Some((_, "cancel")) if method == "GET" && !segment.contains(':') => (segment, None),
        Some((id, verb @ ("cancel" | "subscribe"))) => (id, Some(verb)),
        _ => (segment, None),
    };
    let operation = match (method, verb) {
        ("GET", None) => Operation::Get,
        ("POST", Some("cancel")) => Operation::Cancel,
        // A2A 1.0 §11.3.2 says POST, the proto says GET, and clients use both.
        ("GET" | "POST", Some("subscribe")) => Operation::Subscribe,
        _ => return None,
    };
    (!id.is_empty()).then_some((id, operation))
}

/// Percent-decodes a path segment; `None` if it is malformed or not UTF-8.
fn decode(segment: &str) -> Option<String> {
    String::from_utf8(percent_decode(segment.as_bytes(), false)?).ok()
}

/// The pairs of a query string, in order, without those that have no name. Text
/// that cannot be decoded stays as it is, so that the decoder of the parameter
/// refuses it.
pub(super) fn query_pairs(query: Option<&str>) -> Vec<(String, String)> {
    let text = |raw: &str| {
        percent_decode(raw.as_bytes(), true)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_else(|| raw.to_owned())
    };
    query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (text(name), text(value))
        })
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

fn percent_decode(raw: &[u8], plus_is_space: bool) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_digit(*rest.next()?)? * 16 + hex_digit(*rest.next()?)?,
            b'+' if plus_is_space => b' ',
            byte => *byte,
        });
    }
    Some(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests;
