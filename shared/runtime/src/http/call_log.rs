//! Writes the log line of each call, when its answer is complete.
//!
//! - [`EdgeLog`]: what the calls of a process share
//! - [`CallLog`]: one call, or one entry of a batch

use crate::clock::{Clock, Ids, RandomIds, SystemClock, lock};
use crate::engine::EngineError;
use crate::task::{A2aError, Generation, Timestamp};
use crate::telemetry::TraceContext;
use crate::telemetry::events::{self, CallFields};
use crate::telemetry::outcomes::{CALLS, FaultClass, OK, class_of};
use crate::telemetry::sampling::Sampler;
use crate::telemetry::scope::CallScope;
use crate::telemetry::trace::TRACEPARENT;
use a2a_lambda_wire::{Call, Dialect, ErrorRow, Rejected};
use bytes::Bytes;
use http::{Request, StatusCode};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::{Instrument as _, Span};

/// How the names of methods begin that only read.
const READS: [&str; 3] = ["Get", "List", "Subscribe"];
/// The shortest time between two warnings about newer protocol versions.
const VERSION_WARNINGS: Duration = Duration::from_secs(60);

/// What the platform says about the invocation of a request. The entry points put it into
/// the extensions of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationInfo {
    /// The id of the invocation.
    pub request_id: Option<String>,
    /// The trace header of AWS X-Ray.
    pub x_ray: Option<String>,
}

/// What the calls of one process share to write their lines.
#[derive(Clone)]
pub struct EdgeLog {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    process: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    sampler: Mutex<Sampler>,
    /// When the last warning about a newer version was written.
    warned_at: Mutex<Option<Timestamp>>,
}

impl Default for EdgeLog {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock), Arc::new(RandomIds))
    }
}

impl EdgeLog {
    /// A log that takes the times of calls from `clock`, and the ids of new traces from
    /// `ids`.
    #[must_use]
    pub(crate) fn new(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self {
            clock,
            ids,
            process: Arc::default(),
        }
    }

    /// Begins the log of a request.
    pub(super) fn begin(&self, request: &Request<Bytes>) -> RequestLog {
        let invocation = request.extensions().get::<InvocationInfo>();
        let invocation = invocation.cloned().unwrap_or_default();
        let header = request.headers().get(TRACEPARENT);
        let trace = header
            .and_then(|value| TraceContext::parse(value.to_str().ok()?))
            .or_else(|| TraceContext::parse_x_ray(invocation.x_ray.as_deref()?))
            .or_else(|| {
                let number = self.ids.next();
                let span = (number >> 64) ^ number;
                TraceContext::new(
                    self.ids.next(),
                    u64::try_from(span & u128::from(u64::MAX)).ok()?,
                )
            });
        RequestLog {
            edge: self.clone(),
            began: self.clock.now(),
            request_id: invocation.request_id,
            trace,
        }
    }

    /// Warns about a protocol version that is newer than this agent knows, at most once in
    /// [`VERSION_WARNINGS`].
    pub(super) fn newer_version(&self, version: &str) {
        let now = self.clock.now();
        let mut warned_at = lock(&self.process.warned_at);
        if warned_at.is_some_and(|at| now.since(at) < VERSION_WARNINGS) {
            return;
        }
        *warned_at = Some(now);
        tracing::warn!(
            a2a.version = version,
            "a client uses protocol version `{version}`, newer than this agent knows"
        );
    }
}

/// The log of one request.
pub(super) struct RequestLog {
    edge: EdgeLog,
    began: Timestamp,
    request_id: Option<String>,
    trace: Option<TraceContext>,
}

impl RequestLog {
    /// The log of a call. `in_batch`: its time begins now, and not with its request.
    pub(super) fn call(&self, call: &Call, in_batch: bool) -> CallLog {
        let method = call.operation.name();
        CallLog {
            began: if in_batch {
                self.edge.clock.now()
            } else {
                self.began
            },
            method: Some(method),
            ..self.unread(Some(call.dialect))
        }
    }

    /// The log of a request that is refused before it becomes a call.
    fn unread(&self, dialect: Option<Dialect>) -> CallLog {
        let scope = CallScope::of_call(self.trace);
        let trace_id = self.trace.map(|trace| trace.trace_id());
        CallLog {
            // The level of the span is the highest one, so that lines of every filter have
            // the fields of the span.
            span: tracing::error_span!(
                target: events::CALL,
                "call",
                trace_id = trace_id.as_deref(),
                aws.request_id = self.request_id.as_deref(),
            ),
            edge: self.edge.clone(),
            scope,
            began: self.began,
            method: None,
            generation: dialect.map(|dialect| dialect.generation.as_str()),
            request_id: self.request_id.clone(),
            trace_id,
        }
    }

    /// Logs a request that is refused before it becomes a call.
    pub(super) fn rejected(&self, rejection: &Rejected) {
        let log = self.unread(Some(rejection.dialect));
        let row = ErrorRow::of(&rejection.error, rejection.dialect.generation);
        let status = row.http_status(rejection.dialect.binding);
        log.refused(status, row.reason, class_of(CALLS, row.reason));
    }

    /// Logs a request to a foreign host or from a foreign page, for which A2A has no error.
    pub(super) fn foreign(&self, status: StatusCode, reason: &'static str) {
        let log = self.unread(None);
        log.refused(status.as_u16(), reason, FaultClass::Caller);
    }
}

/// The log of one call.
#[derive(Clone)]
pub(super) struct CallLog {
    edge: EdgeLog,
    scope: CallScope,
    span: Span,
    began: Timestamp,
    method: Option<&'static str>,
    generation: Option<&'static str>,
    request_id: Option<String>,
    trace_id: Option<String>,
}

impl CallLog {
    /// `future` as the work of this call.
    pub(super) fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let future = future.instrument(self.span.clone());
        self.scope.clone().run(future)
    }

    /// Runs `function`, which logs, in the span of this call.
    pub(super) fn in_span<T>(&self, function: impl FnOnce() -> T) -> T {
        self.span.in_scope(function)
    }

    /// Logs that the call got its answer.
    pub(super) fn answered(&self, status: u16) {
        // Alarms count no polls, which would hide failures.
        let reads = |method: &&str| READS.iter().any(|read| method.starts_with(read));
        let class = self.method.filter(|method| !reads(method)).map(|_| OK);
        events::call(&self.fields(status, class));
    }

    /// Logs that the call got an error.
    pub(super) fn failed(&self, call: &Call, error: &EngineError) {
        let row = ErrorRow::of(&error.a2a_error, call.dialect.generation);
        self.refused(
            row.http_status(call.dialect.binding),
            row.reason,
            error.class(),
        );
    }

    fn refused(&self, status: u16, reason: &'static str, class: FaultClass) {
        let fields = self.fields(status, Some(class.word()));
        let decision = match (fields.turn, class) {
            (None, FaultClass::Caller) => {
                let now = self.edge.clock.now();
                lock(&self.edge.process.sampler).admit(reason, fields.tenant, now)
            }
            // Alarms count each, and its turn has no other line.
            _ => Some(0),
        };
        match decision {
            Some(left_out) => events::refused(&fields, reason, left_out),
            None => events::left_out(&fields, reason),
        }
    }

    fn fields<'a>(&'a self, status: u16, class: Option<&'a str>) -> CallFields<'a> {
        let took = self.edge.clock.now().since(self.began);
        let names = self.scope.names();
        CallFields {
            method: self.method,
            generation: self.generation,
            tenant: names.tenant.get().map(String::as_str),
            skill: names.skill.get().map(String::as_str),
            route: names.route.get().map(String::as_str),
            task: names.task.get().map(String::as_str),
            status: u64::from(status),
            class,
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            turn: self.scope.turn_for_line(),
            units: self.scope.log_units(),
            request_id: self.request_id.as_deref(),
            trace_id: self.trace_id.as_deref(),
        }
    }
}

/// A call that waits for its first frame. If it is dropped before, its client has left, and
/// its turn gets a line of its own.
pub(super) struct OpeningStream<'l>(Option<&'l CallLog>);

impl<'l> OpeningStream<'l> {
    pub(super) const fn new(log: &'l CallLog) -> Self {
        Self(Some(log))
    }

    /// Ends the wait: the call gets its line.
    pub(super) fn opened(mut self) {
        self.0 = None;
    }
}

impl Drop for OpeningStream<'_> {
    fn drop(&mut self) {
        if let Some(log) = self.0 {
            log.scope.without_line();
        }
    }
}

/// The log of a stream. Its line is written when the stream is dropped: then its last
/// frame is sent, or its client has gone.
pub(super) struct StreamLog {
    pub(super) log: CallLog,
    /// The error that ended the frames.
    pub(super) error: Option<A2aError>,
}

impl Drop for StreamLog {
    fn drop(&mut self) {
        let status = StatusCode::OK.as_u16();
        let Some(error) = self.error.take().map(EngineError::from) else {
            return self.log.answered(status);
        };
        let row = ErrorRow::of(&error.a2a_error, Generation::V10);
        self.log.refused(status, row.reason, error.class());
    }
}

impl std::fmt::Debug for EdgeLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EdgeLog").finish_non_exhaustive()
    }
}
