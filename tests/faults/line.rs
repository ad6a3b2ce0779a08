//! The line below the SDK's retries: each attempt passes here, is counted and
//! may be spoiled.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use std::sync::{Arc, Mutex};

/// What happens to one attempt of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing; it passes.
    None,
    /// It does not reach the service.
    Refuse,
    /// It is carried out; the connection breaks before the answer.
    DropAfter,
    /// It is carried out; the answer does not come in time.
    TimeoutAfter,
    /// It is not carried out; the service answers with this error.
    Reply(Answer),
    /// It is carried out; the answer breaks off in its body.
    Truncate,
    /// It is delivered twice; the second answer counts.
    Twice,
}

/// An error of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Too many calls.
    Throttled,
    /// The service's own trouble.
    Internal,
    /// Another transaction has the item.
    Conflict,
    /// The same transaction is still on its way.
    InProgress,
    /// The item is too large: never to be stored.
    TooLarge,
}

impl Answer {
    /// The reply as DynamoDB or S3 words it.
    fn http(self, operation: &str) -> (u16, String) {
        if operation.ends_with("Object") {
            let (status, code) = match self {
                Self::Throttled => (503, "SlowDown"),
                Self::Internal => (500, "InternalError"),
                Self::Conflict | Self::InProgress => (409, "ConditionalRequestConflict"),
                Self::TooLarge => (400, "EntityTooLarge"),
            };
            return (status, format!("<Error><Code>{code}</Code></Error>"));
        }
        let (status, name) = match self {
            Self::Throttled => (400, "ProvisionedThroughputExceededException"),
            Self::Internal => (500, "InternalServerError"),
            Self::Conflict if operation == "TransactWriteItems" => {
                let body = "{\"__type\":\"x#TransactionCanceledException\",\"CancellationReasons\":\
                            [{\"Code\":\"TransactionConflict\"},{\"Code\":\"None\"}]}";
                return (400, body.to_owned());
            }
            Self::Conflict => (400, "TransactionConflictException"),
            Self::InProgress => (400, "TransactionInProgressException"),
            Self::TooLarge => (400, "ValidationException"),
        };
        let message = "Item size has exceeded the maximum allowed size";
        (
            status,
            format!("{{\"__type\":\"x#{name}\",\"message\":\"{message}\"}}"),
        )
    }
}

/// Which attempts are spoiled, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The running number of the first.
    pub(crate) at: usize,
    /// How many from there on.
    pub(crate) count: usize,
    /// What happens to them.
    pub(crate) fault: Fault,
}

/// What passes over the clients of one case.
#[derive(Debug, Default)]
pub(crate) struct Line {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    seen: Vec<String>,
}

impl Line {
    /// A line on which `plan` happens.
    pub(crate) fn new(plan: Option<Plan>) -> Arc<Self> {
        let state = State {
            plan,
            seen: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// From now on everything passes.
    pub(crate) fn mend(&self) {
        self.state.lock().unwrap().plan = None;
    }

    /// The operations that came, in order.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.state.lock().unwrap().seen.clone()
    }

    fn next(&self, operation: &str) -> Fault {
        let mut state = self.state.lock().unwrap();
        let n = state.seen.len();
        state.seen.push(operation.to_owned());
        match state.plan {
            Some(plan) if (plan.at..plan.at.saturating_add(plan.count)).contains(&n) => plan.fault,
            _ => Fault::None,
        }
    }
}

/// A client or connector with the line in front of it.
#[derive(Debug, Clone)]
pub(crate) struct Faulty<T> {
    pub(crate) inner: T,
    pub(crate) line: Arc<Line>,
}

impl HttpClient for Faulty<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Faulty {
            inner: self.inner.http_connector(settings, components),
            line: Arc::clone(&self.line),
        })
    }
}

impl HttpConnector for Faulty<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let me = self.clone();
        HttpConnectorFuture::new(async move {
            let operation = operation(&request);
            match me.line.next(&operation) {
                Fault::None => me.inner.call(request).await,
                Fault::Refuse => Err(ConnectorError::io("refused".into())),
                Fault::DropAfter => {
                    me.inner.call(request).await?;
                    Err(ConnectorError::io("reset".into()))
                }
                Fault::TimeoutAfter => {
                    me.inner.call(request).await?;
                    Err(ConnectorError::timeout("late".into()))
                }
                Fault::Reply(answer) => {
                    let (status, body) = answer.http(&operation);
                    Ok(canned(status, body))
                }
                // The connection notices that bytes of an object are missing.
                Fault::Truncate if operation == "GetObject" => {
                    me.inner.call(request).await?;
                    Err(ConnectorError::io("cut".into()))
                }
                Fault::Truncate => {
                    let whole = me.inner.call(request).await?;
                    Ok(canned(whole.status().as_u16(), "{\"Attr".to_owned()))
                }
                Fault::Twice => {
                    if let Some(copy) = request.try_clone() {
                        me.inner.call(copy).await?;
                    }
                    me.inner.call(request).await
                }
            }
        })
    }
}

/// DynamoDB names the operation in a header, S3 by its method.
fn operation(request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target");
    let named = target.and_then(|target| target.rsplit('.').next());
    named.map_or_else(
        || match request.method() {
            "PUT" => "PutObject".to_owned(),
            "GET" => "GetObject".to_owned(),
            other => format!("{other} Object"),
        },
        str::to_owned,
    )
}

fn canned(status: u16, body: String) -> HttpResponse {
    HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))
}
