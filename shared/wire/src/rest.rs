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

/// HTTP method, path and operation. A path names a task or context by `{id}`, by `{task}` where
/// no verb follows, and a push config by `{config}`.
type PathRow = (&'static str, &'static str, Operation);

/// The routes that have a path of their own, with their generation. Those of 0.1 do not collide
/// with the task routes of 1.0: there, POST needs a verb, and GET has no segment `get` after an
/// id.
const OWN: [(Generation, PathRow); 20] = {
    use Generation::{V01, V03, V10};
    use Operation as O;
    [
        // A2A 1.0 §8.2, A2A 0.3 §5.3: the well-known path. The others are of 0.1 and 0.2.
        (V10, ("GET", ".well-known/agent-card.json", O::Card)),
        (V10, ("GET", ".well-known/agent.json", O::LegacyCard)),
        (V10, ("GET", "agent.json", O::LegacyCard)),
        (V01, ("POST", "tasks/send", O::Send)),
        (V01, ("POST", "tasks/sendSubscribe", O::Stream)),
        (V01, ("POST", "tasks/stream", O::Stream)),
        (V01, ("POST", "tasks/get", O::Get)),
        (V01, ("GET", "tasks/{id}/get", O::Get)),
        (V01, ("POST", "tasks/cancel", O::Cancel)),
        (V01, ("POST", "tasks/resubscribe", O::Subscribe)),
        (
            V01,
            ("POST", "tasks/pushNotification/set", O::CreatePushConfig),
        ),
        (
            V01,
            ("POST", "tasks/pushNotification/get", O::GetPushConfig),
        ),
        (V10, ("POST", "a2a-lambda/uploads", O::CreateUpload)),
        (V10, ("GET", "a2a-lambda/contexts", O::ListContexts)),
        (
            V10,
            ("DELETE", "a2a-lambda/contexts/{id}", O::DeleteContext),
        ),
        (V10, ("DELETE", "a2a-lambda/tasks/{id}", O::DeleteTask)),
        (V10, ("GET", "a2a-lambda/skills", O::ListSkills)),
        (V10, ("GET", "a2a-lambda/schemas", O::Schemas)),
        (V03, ("GET", "v1/card", O::ExtendedCard)),
        (
            V03,
            ("GET", "agent/authenticatedExtendedCard", O::ExtendedCard),
        ),
    ]
};

/// The routes of 1.0 at the root or below a tenant, and of 0.3 below `/v1` (A2A 1.0 §11.3; A2A
/// 0.3 §3.5.6).
const SHARED: [PathRow; 12] = {
    use Operation as O;
    const CONFIGS: &str = "tasks/{id}/pushNotificationConfigs";
    const CONFIG: &str = "tasks/{id}/pushNotificationConfigs/{config}";
    [
        ("POST", "message:send", O::Send),
        ("POST", "message:stream", O::Stream),
        ("GET", "tasks", O::List),
        // A2A 1.0 §11.3.2 says POST, the proto says GET, and clients use both.
        ("POST", "tasks/{id}:subscribe", O::Subscribe),
        ("GET", "tasks/{id}:subscribe", O::Subscribe),
        ("POST", "tasks/{id}:cancel", O::Cancel),
        ("GET", "tasks/{task}", O::Get),
        ("POST", CONFIGS, O::CreatePushConfig),
        ("GET", CONFIGS, O::ListPushConfigs),
        ("GET", CONFIG, O::GetPushConfig),
        ("DELETE", CONFIG, O::DeletePushConfig),
        ("GET", "extendedAgentCard", O::ExtendedCard),
    ]
};

fn target(method: &str, segments: &[&str]) -> Option<PathTarget> {
    let mut rows = OWN.iter();
    let row = rows.find_map(|(generation, route)| matches(route, *generation, method, segments));
    row.or_else(|| match segments {
        ["a2a-lambda", ..] | ["v1", "extendedAgentCard"] => None,
        ["v1", rest @ ..] => shared(method, rest, Generation::V03),
        _ => v10(method, segments),
    })
}

/// The routes of 1.0, at the root or below a tenant.
fn v10(method: &str, segments: &[&str]) -> Option<PathTarget> {
    if let Some(path_target) = shared(method, segments, Generation::V10) {
        return Some(path_target);
    }
    let (first, rest) = segments.split_first()?;
    let tenant = TenantId::parse(decode(first)?).ok()?;
    let mut path_target = shared(method, rest, Generation::V10)?;
    path_target.tenant = Some(tenant.as_str().to_owned());
    Some(path_target)
}

fn shared(method: &str, segments: &[&str], generation: Generation) -> Option<PathTarget> {
    let mut routes = SHARED.iter();
    routes.find_map(|route| matches(route, generation, method, segments))
}

/// What the route names, if it is the one of this method and path.
fn matches(
    (of_method, path, operation): &PathRow,
    generation: Generation,
    method: &str,
    segments: &[&str],
) -> Option<PathTarget> {
    let mut path_target = PathTarget::new(*operation, generation);
    let mut names = path.split('/');
    let id = |text: &str| decode(text).filter(|id| !id.is_empty());
    // Only a known verb is one, as ids that clients of 0.1 make may hold colons. An encoded colon
    // belongs to the id where no verb follows.
    let has_verb = |segment: &str| segment.ends_with(":cancel") || segment.ends_with(":subscribe");
    for segment in segments {
        let name = names.next()?;
        match split_verb(name) {
            _ if name == "{id}" => path_target.id = Some(id(segment)?),
            _ if name == "{task}" && !has_verb(segment) => path_target.id = Some(id(segment)?),
            _ if name == "{config}" => path_target.config_id = Some(id(segment)?),
            Some(("{id}", verb)) => {
                let (task, _) = split_verb(segment).filter(|it| it.1 == verb)?;
                path_target.id = Some(id(task)?);
            }
            Some(verb) if split_verb(segment) == Some(verb) => {}
            None if name == *segment => {}
            _ => return None,
        }
    }
    (*of_method == method && names.next().is_none()).then_some(path_target)
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
