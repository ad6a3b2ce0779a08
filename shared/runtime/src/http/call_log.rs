//! Writes the log line of each call, when its answer is complete.
//!
//! - [`EdgeLog`]: what the calls of a process share
//! - [`CallLog`]: one call, or one entry of a batch

use crate::clock::{Clock, Ids, lock};
use crate::engine::EngineError;
use crate::task::{A2aError, Generation, Timestamp};
use crate::telemetry::TraceContext;
use crate::telemetry::events::{self, CallEnd};
use crate::telemetry::outcomes::{CALLS, FaultClass, OK, class_of};
use crate::telemetry::sampling::Sampler;
use crate::telemetry::scope::{CallFacts, CallScope};
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
        // What reads the log may block.
        drop(warned_at);
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
        let mut log = self.log_of(Some(call.operation.name()), Some(call.dialect));
        if in_batch {
            log.began = self.edge.clock.now();
        }
        log
    }

    /// A log; without a method of a request that is refused before it becomes a call.
    fn log_of(&self, method: Option<&'static str>, dialect: Option<Dialect>) -> CallLog {
        let facts = CallFacts {
            method,
            generation: dialect.map(|dialect| dialect.generation.as_str()),
            request_id: self.request_id.clone(),
            trace_id: self.trace.map(|trace| trace.trace_id()),
        };
        CallLog {
            // The level of the span is the highest one, so that lines of every filter have
            // the fields of the span.
            span: tracing::error_span!(
                target: events::CALL,
                "call",
                trace_id = facts.trace_id.as_deref(),
                aws.request_id = facts.request_id.as_deref(),
            ),
            edge: self.edge.clone(),
            scope: CallScope::of_call(self.trace, facts),
            began: self.began,
        }
    }

    /// Logs a request that is refused before it becomes a call.
    pub(super) fn log_rejection(&self, rejection: &Rejected) {
        let log = self.log_of(None, Some(rejection.dialect));
        let row = ErrorRow::of(&rejection.error, rejection.dialect.generation);
        let status = row.http_status(rejection.dialect.binding);
        log.log_reason(status, row.reason, class_of(CALLS, row.reason));
    }

    /// Logs a request to a foreign host or from a foreign page, for which A2A has no error.
    pub(super) fn foreign(&self, status: StatusCode, reason: &'static str) {
        let log = self.log_of(None, None);
        log.log_reason(status.as_u16(), reason, FaultClass::Caller);
    }
}

/// The log of one call.
#[derive(Clone)]
pub(super) struct CallLog {
    edge: EdgeLog,
    scope: CallScope,
    span: Span,
    began: Timestamp,
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
    pub(super) fn log_response(&self, status: u16) {
        // Alarms count no polls, which would hide failures.
        let reads = |method: &&str| READS.iter().any(|read| method.starts_with(read));
        let method = self.scope.facts().method;
        let class = method.filter(|method| !reads(method)).map(|_| OK);
        events::call(&self.scope, self.end(status, class));
    }

    /// Logs that the call got an error, and its cause.
    pub(super) fn log_error(&self, call: &Call, error: &EngineError) {
        self.in_span(|| error.log());
        let row = ErrorRow::of(&error.a2a_error, call.dialect.generation);
        self.log_reason(
            row.http_status(call.dialect.binding),
            row.reason,
            error.class(),
        );
    }

    fn log_reason(&self, status: u16, reason: &'static str, class: FaultClass) {
        let left_out = match (self.scope.close().0, class) {
            (None, FaultClass::Caller) => {
                let tenant = self.scope.names().tenant.get().map(String::as_str);
                let now = self.edge.clock.now();
                lock(&self.edge.process.sampler).admit(reason, tenant, now)
            }
            // Alarms count each, and its turn has no other line.
            _ => Some(0),
        };
        let end = self.end(status, Some(class.word()));
        events::call_error(&self.scope, end, reason, left_out);
    }

    fn end(&self, status: u16, class: Option<&'static str>) -> CallEnd {
        let took = self.edge.clock.now().since(self.began);
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        CallEnd { status, class, ms }
    }
}

/// The log of a stream. Its line is written when the stream is dropped: then its last frame is sent,
/// or its client has gone. A client that has gone before the first frame gets no line, and its turn
/// one of its own.
pub(super) struct StreamLog {
    pub(super) log: CallLog,
    /// Whether it has a first frame.
    pub(super) is_open: bool,
    /// The error that ended the frames.
    pub(super) error: Option<A2aError>,
}

impl Drop for StreamLog {
    fn drop(&mut self) {
        if !self.is_open {
            return self.log.scope.without_line();
        }
        let status = StatusCode::OK.as_u16();
        let Some(error) = self.error.take().map(EngineError::from) else {
            return self.log.log_response(status);
        };
        let row = ErrorRow::of(&error.a2a_error, Generation::V10);
        self.log.log_reason(status, row.reason, error.class());
    }
}

debug_as_name!(EdgeLog);
