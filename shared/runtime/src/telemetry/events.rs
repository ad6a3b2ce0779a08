//! Writes the log lines that operators read and metrics count: one for each call, each
//! refused call, each turn and each start. Their targets and field names exist only here.

use super::scope::Units;
use tracing::Level;

/// The target of the line of a call.
pub const CALL: &str = "a2a_lambda::call";
/// The target of the line of a turn.
pub const TURN: &str = "a2a_lambda::turn";
/// The target of the line of a round of the sweep.
pub const SWEEP: &str = "a2a_lambda::sweep";
/// The target of the line of a start.
pub const START: &str = "a2a_lambda::start";

/// The fields of the line of a call. An absent value is an absent field.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallFields<'a> {
    pub(crate) method: Option<&'a str>,
    pub(crate) generation: Option<&'a str>,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) skill: Option<&'a str>,
    pub(crate) task: Option<&'a str>,
    pub(crate) status: u64,
    pub(crate) ms: u64,
    pub(crate) units: Option<Units>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) trace_id: Option<&'a str>,
}

/// Logs a call that got its answer.
pub(crate) fn call(line: &CallFields<'_>) {
    tracing::event!(
        target: CALL,
        Level::INFO,
        a2a.method = line.method,
        a2a.generation = line.generation,
        a2a.tenant = line.tenant,
        a2a.skill = line.skill,
        a2a.task = line.task,
        http.response.status_code = line.status,
        ms = line.ms,
        units.read = line.units.map(Units::read),
        units.write = line.units.map(Units::write),
        aws.request_id = line.request_id,
        trace_id = line.trace_id,
        "call"
    );
}

/// Logs a call that got an error. `left_out` is the number of such lines that were not
/// written since the last one.
pub(crate) fn refused(line: &CallFields<'_>, reason: &str, left_out: u64) {
    tracing::event!(
        target: CALL,
        Level::INFO,
        a2a.method = line.method,
        a2a.generation = line.generation,
        a2a.tenant = line.tenant,
        a2a.skill = line.skill,
        a2a.task = line.task,
        http.response.status_code = line.status,
        a2a.error = reason,
        a2a.left_out = (left_out > 0).then_some(left_out),
        ms = line.ms,
        units.read = line.units.map(Units::read),
        units.write = line.units.map(Units::write),
        aws.request_id = line.request_id,
        trace_id = line.trace_id,
        "refused"
    );
}

/// The fields of the line of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnFields<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) skill: Option<&'a str>,
    pub(crate) task: Option<&'a str>,
    pub(crate) state: Option<&'a str>,
    pub(crate) attempt: u64,
    pub(crate) error: Option<&'a str>,
    pub(crate) ms: u64,
    pub(crate) units: Option<Units>,
    pub(crate) trace_id: Option<&'a str>,
}

/// Logs a turn that this invocation has run.
pub(crate) fn turn(line: &TurnFields<'_>) {
    tracing::event!(
        target: TURN,
        Level::INFO,
        a2a.tenant = line.tenant,
        a2a.skill = line.skill,
        a2a.task = line.task,
        a2a.state = line.state,
        a2a.attempt = line.attempt,
        a2a.error = line.error,
        ms = line.ms,
        units.read = line.units.map(Units::read),
        units.write = line.units.map(Units::write),
        trace_id = line.trace_id,
        "turn"
    );
}

/// Logs that a function is ready. `ms` is the time since its `main` began.
#[cfg(feature = "lambda")]
pub(crate) fn cold_start(function: &str, ms: u64) {
    tracing::info!(target: START, function, ms, "cold start");
}
