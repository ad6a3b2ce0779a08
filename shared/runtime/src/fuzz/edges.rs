//! The fuzz targets for whole requests, for URLs of clients and for queue messages.

use super::{Broken, ensure};
use crate::auth::Identity;
use crate::http::{Function, HttpService};

use crate::outbound::{AddressPolicy, OutboundUrl, is_public};
use crate::runtime::Runtime;
use crate::settings::{Settings, Source};
use a2a_lambda_skill::AgentDefinition;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body_util::BodyExt as _;
use std::net::IpAddr;
use std::time::Duration;

/// A text in a task of another tenant. No response may contain it.
const CANARY: &str = "canary-of-another-tenant";
/// Who sends the canary.
const OTHER: &str = "Bearer dev:other:alice";

/// Sends whole requests to every function of an agent, over stores in memory.
#[derive(Debug)]
pub struct HttpTarget {
    runtime: tokio::runtime::Runtime,
    agent: Runtime,
}

/// Settings under which no request waits.
struct Impatient;

impl Source for Impatient {
    fn get(&self, name: &str) -> Option<String> {
        let value = match name {
            "A2A_AUTH" => "dev",
            "A2A_BLOCKING_BUDGET" => "50ms",
            "A2A_FLUSH_INTERVAL" => "1ms",
            _ => return None,
        };
        Some(value.to_owned())
    }
}

impl HttpTarget {
    /// A target for `agent`. It has a task of another tenant, which contains the canary.
    ///
    /// # Errors
    /// [`Broken`] when the agent cannot be served.
    pub fn new(agent: AgentDefinition) -> Result<Self, Broken> {
        let broken = |error: &dyn std::fmt::Display| Broken(error.to_string());
        let mut settings = Settings::read(&Impatient).map_err(|error| broken(&error))?;
        settings.policy.stream_max_age = Duration::from_millis(1);
        let agent = Runtime::builder(agent, settings).build();
        let target = Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .map_err(|error| broken(&error))?,
            agent: agent.map_err(|error| broken(&error))?,
        };
        let body = format!(
            r#"{{"id":"t","message":{{"role":"user","parts":[{{"type":"text","text":"{CANARY}"}}]}}}}"#
        );
        let head =
            format!("POST /tasks/send\nContent-Type: application/json\nAuthorization: {OTHER}\n\n");
        target.run([head, body].concat().as_bytes())?;
        Ok(target)
    }

    /// Sends one request. Its first line is `METHOD target`, each further line up to an
    /// empty one is a header, the rest is the body.
    ///
    /// # Errors
    /// [`Broken`] if the response is a server error or contains data of another tenant.
    pub fn run(&self, bytes: &[u8]) -> Result<(), Broken> {
        let Some(request) = read(bytes) else {
            return Ok(());
        };
        let identity = Identity::of(request.headers());
        let other = identity.authorization.as_deref() == Some(OTHER);
        let line = format!("{} {}", request.method(), request.uri());
        let function = Function::of(request.method().as_str(), request.uri().path());
        let edge: HttpService = self.agent.edge(function);
        let (status, body) = self.runtime.block_on(async {
            let (head, body) = edge.handle(request, identity, None).await.into_parts();
            match body.collect().await {
                Ok(body) => (head.status, body.to_bytes()),
                // The error type of a body is empty.
                Err(never) => match never {},
            }
        });
        ensure(!status.is_server_error(), || {
            format!(
                "{line} is answered {status}: {:?}",
                String::from_utf8_lossy(&body)
            )
        })?;
        let seen = body
            .windows(CANARY.len())
            .any(|window| window == CANARY.as_bytes());
        ensure(other || !seen, || {
            format!("{line} shows another tenant's data")
        })
    }
}

/// The request in these bytes; `None` if no HTTP server would read one.
fn read(bytes: &[u8]) -> Option<Request<Bytes>> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = bytes.split_at_checked(end?)?;
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        let value = value.get(1..)?.trim_ascii();
        request = request.header(
            HeaderName::from_bytes(name).ok()?,
            HeaderValue::from_bytes(value).ok()?,
        );
    }
    request
        .body(Bytes::copy_from_slice(body.get(2..)?))
        .ok()
        .filter(|request| request.uri().path().starts_with('/'))
}

/// Checks a URL of a client, and compares what was checked with what the HTTP client reads
/// in it.
///
/// # Errors
/// [`Broken`] if an accepted URL leads the HTTP client elsewhere.
pub fn url(bytes: &[u8]) -> Result<(), Broken> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    let Ok(accepted) = OutboundUrl::parse(text, AddressPolicy::Public) else {
        return Ok(());
    };
    let read: Option<Uri> = accepted.as_str().parse().ok();
    let host = read.as_ref().and_then(Uri::host);
    let (Some(read), Some(host)) = (&read, host) else {
        return Err(Broken(format!("the HTTP client cannot read {text:?}")));
    };
    let plain = read.scheme_str() == Some("https")
        && read
            .authority()
            .is_some_and(|it| !it.as_str().contains('@'));
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let public = match bare.parse::<IpAddr>() {
        Ok(address) => is_public(address),
        // No resolver may read the name as an address.
        Err(_) => {
            let last = bare.rsplit('.').next().unwrap_or_default();
            bare.contains('.')
                && !last.starts_with(|first: char| first.is_ascii_digit())
                && !["localhost", "local", "internal"].contains(&last.to_ascii_lowercase().as_str())
        }
    };
    ensure(plain && public, || format!("{text:?} leads to `{host}`"))
}

/// Reads a message of the work queue and of the push queue.
///
/// # Errors
/// [`Broken`] if an accepted message changes when it is written and read again.
#[cfg(feature = "aws")]
pub fn queue(bytes: &[u8]) -> Result<(), Broken> {
    use crate::store::sqs;
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    if let Ok(item) = sqs::decode(text) {
        let again = sqs::decode(&sqs::encode(&item)).ok();
        ensure(again.as_ref() == Some(&item), || {
            format!("{item:?} changes to {again:?}")
        })?;
    }
    if let Ok(item) = sqs::push::decode(text) {
        let again = sqs::push::decode(&sqs::push::encode(&item)).ok();
        ensure(again.as_ref() == Some(&item), || {
            format!("{item:?} changes to {again:?}")
        })?;
    }
    Ok(())
}
