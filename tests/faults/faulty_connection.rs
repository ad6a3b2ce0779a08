//! Injects faults below the SDK's retries: each attempt of a call is counted here and may
//! fail.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use std::sync::{Arc, Mutex};

/// The fault of one attempt of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// The call does not reach the service.
    Refuse,
    /// The service executes the call; the connection breaks before the response.
    DropAfter,
    /// The service executes the call; the response is too late.
    TimeoutAfter,
    /// The service does not execute the call and responds with this error.
    Reply(Answer),
    /// The service executes the call; the body of the response is incomplete.
    Truncate,
    /// The call is sent twice; the second response counts.
    Twice,
}

/// An error of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Too many calls.
    Throttled,
    /// An internal error of the service.
    Internal,
    /// Another transaction uses the item.
    Conflict,
    /// The same transaction is still running.
    InProgress,
    /// The item is too large, so no retry can store it.
    TooLarge,
}

impl Answer {
    /// The status and body as DynamoDB or S3 send them.
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

/// The attempts that fail, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of the first attempt, from 0.
    pub(crate) at: usize,
    /// The number of attempts.
    pub(crate) count: usize,
    /// The fault.
    pub(crate) fault: Fault,
    /// A text that the body of the call has, or nothing for all calls.
    pub(crate) only: &'static str,
}

/// The connection of one case's clients.
#[derive(Debug, Default)]
pub(crate) struct FaultyConnection {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    seen: Vec<String>,
}

impl FaultyConnection {
    /// A connection with the faults of `plan`.
    pub(crate) fn new(plan: Option<Plan>) -> Arc<Self> {
        let state = State {
            plan,
            seen: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// Ends the faults.
    pub(crate) fn mend(&self) {
        self.state.lock().unwrap().plan = None;
    }

    /// The operations so far, in order.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Begins these faults, counted from the first call of all.
    pub(crate) fn spoil(&self, plan: Plan) {
        self.state.lock().unwrap().plan = Some(plan);
    }

    fn next(&self, operation: &str, body: &[u8]) -> Fault {
        let mut state = self.state.lock().unwrap();
        let n = state.seen.len();
        state.seen.push(operation.to_owned());
        match state.plan {
            Some(plan)
                if (plan.at..plan.at.saturating_add(plan.count)).contains(&n)
                    && String::from_utf8_lossy(body).contains(plan.only) =>
            {
                plan.fault
            }
            _ => Fault::None,
        }
    }
}

/// An HTTP client or connector that sends through a [`FaultyConnection`].
#[derive(Debug, Clone)]
pub(crate) struct Faulty<T> {
    pub(crate) inner: T,
    pub(crate) line: Arc<FaultyConnection>,
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
            match me
                .line
                .next(&operation, request.body().bytes().unwrap_or_default())
            {
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
                // An object has a `content-length`, so the HTTP client detects missing bytes.
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

/// The name of the operation: DynamoDB has it in a header; for S3 it follows from the
/// method.
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
