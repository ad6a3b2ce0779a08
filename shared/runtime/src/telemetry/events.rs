//! Writes the log lines that operators read and metrics count: one for each call, each
//! refused call, each turn that no such line contains and each start. Their targets and field
//! names exist only here. The line of a call of a model is in `a2a-lambda-skill`. A line with a
//! class is one that alarms count.

use super::TraceContext;
use super::outcomes::{CALLERS, EVENTS, class_of};
use super::scope::{CallScope, TurnNote, Units};
use tracing::Level;

/// The field that says who has to act. A metric filter of CloudWatch reads no name with a dot.
pub(crate) const CLASS: &str = "class";
/// The target of the line of a call.
pub const CALL: &str = "a2a_lambda::call";
/// The target of a caller whom the authorizer has refused.
pub(crate) const CALLER: &str = "a2a_lambda::caller";
/// The target of a refused call that is counted and has no line. [`start`](super::start)
/// keeps it out of the log.
pub const LEFT_OUT: &str = "a2a_lambda::left_out";
/// The target of the line of a turn.
pub const TURN: &str = "a2a_lambda::turn";
/// The target of the line of a round of the sweep.
pub const SWEEP: &str = "a2a_lambda::sweep";
/// The target of the line of a start.
pub const START: &str = "a2a_lambda::start";

/// The target of the lines of webhooks.
const PUSH: &str = "a2a_lambda::push";
/// The target of the line of a day whose tokens are scarce.
pub const SCARCE: &str = "a2a_lambda::scarce";

/// What is known only at the end of a call. Its scope has the rest of the line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallEnd {
    pub(crate) status: u16,
    /// Who has to act, or the word for nobody. `None` of a read that succeeded: alarms do not count
    /// it.
    pub(crate) class: Option<&'static str>,
    pub(crate) ms: u64,
}

/// Writes an event of a call: what its scope and its end say, and the fields that follow. An absent
/// value is an absent field.
macro_rules! call_event {
    ($target:expr, $message:literal, $scope:expr, $end:expr, { $($extra:tt)* }) => {{
        // Also if nobody reads the line: a turn that ends after it has one of its own.
        let (turn, units) = $scope.close();
        let (facts, names) = ($scope.facts(), $scope.names());
        tracing::event!(
            target: $target,
            Level::INFO,
            a2a.method = facts.method,
            a2a.generation = facts.generation,
            a2a.tenant = names.tenant.get().map(String::as_str),
            a2a.skill = names.skill.get().map(String::as_str),
            a2a.route = names.route.get().map(String::as_str),
            a2a.task = names.task.get().map(String::as_str),
            http.response.status_code = $end.status,
            ms = $end.ms,
            a2a.state = turn.and_then(|turn| turn.state),
            a2a.attempt = turn.map(|turn| turn.attempt),
            a2a.task_error = turn.and_then(|turn| turn.error.as_deref()),
            a2a.turn_ms = turn.map(|turn| turn.ms),
            units.read = units.map(|units| units.read),
            units.write = units.map(|units| units.write),
            aws.request_id = facts.request_id.as_deref(),
            trace_id = facts.trace_id.as_deref(),
            $($extra)*
            $message
        );
    }};
}

/// Logs a call that got its answer.
pub(crate) fn call(scope: &CallScope, end: CallEnd) {
    match end.class {
        Some(class) => call_event!(CALL, "call", scope, end, {
            class,
            turn_class = scope.close().0.and_then(|turn| turn.class),
        }),
        None => call_event!(CALL, "call", scope, end, {}),
    }
}

/// Logs a call that got an error. `left_out` is the number of such lines that were not written
/// since the last one; `None` counts the call without a line: a flood of calls is no flood of lines.
pub(crate) fn call_error(scope: &CallScope, end: CallEnd, reason: &str, left_out: Option<u64>) {
    match left_out {
        Some(left_out) => call_event!(CALL, "refused", scope, end, {
            class = end.class,
            turn_class = scope.close().0.and_then(|turn| turn.class),
            a2a.error = reason,
            a2a.left_out = (left_out > 0).then_some(left_out),
        }),
        None => call_event!(LEFT_OUT, "left out", scope, end, {
            class = end.class,
            a2a.error = reason,
        }),
    }
}

/// Logs a caller whom the authorizer has refused. The access log has the address.
#[cfg_attr(
    not(all(feature = "jwt", feature = "lambda", feature = "secrets")),
    expect(dead_code, reason = "the authorizer calls it")
)]
pub(crate) fn refused_caller(reason: &str, key: Option<&str>, left_out: u64) {
    let left_out = (left_out > 0).then_some(left_out);
    tracing::event!(
        target: CALLER,
        Level::WARN,
        class = class_of(CALLERS, reason).word(),
        a2a.error = reason,
        a2a.key = key,
        a2a.left_out = left_out,
        "refused a caller"
    );
}

/// Warns that a tenant has used four fifths of the tokens of its day.
pub(crate) fn scarce(tenant: &str) {
    tracing::event!(
        target: SCARCE,
        Level::WARN,
        class = class_of(EVENTS, "tokens of the day").word(),
        a2a.tenant = tenant,
        "four fifths of the tokens of this day are used (`A2A_TOKENS_PER_DAY`)"
    );
}

/// Logs that a webhook gets no more events of a task.
pub(crate) fn gave_up(task: &str, config: &str, trace_id: Option<&str>, why: &str) {
    tracing::event!(
        target: PUSH,
        Level::ERROR,
        class = class_of(EVENTS, "gave up a push config").word(),
        trace_id,
        a2a.task = task,
        a2a.push_config = config,
        "gave up push config `{config}` of task `{task}`: {why}"
    );
}

/// What the line of a turn contains besides how it ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnFields<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) skill: Option<&'a str>,
    pub(crate) task: Option<&'a str>,
    pub(crate) units: Option<Units>,
    pub(crate) trace: Option<TraceContext>,
}

/// Logs a turn that no line of a call contains.
pub(crate) fn turn(line: &TurnFields<'_>, note: &TurnNote) {
    tracing::event!(
        target: TURN,
        Level::INFO,
        a2a.tenant = line.tenant,
        a2a.skill = line.skill,
        a2a.task = line.task,
        a2a.state = note.state,
        a2a.attempt = note.attempt,
        a2a.error = note.error.as_deref(),
        class = note.class,
        ms = note.ms,
        units.read = line.units.map(|units| units.read),
        units.write = line.units.map(|units| units.write),
        trace_id = line.trace.map(|trace| trace.trace_id()).as_deref(),
        "turn"
    );
}

/// Logs that a function is ready. `ms` is the time since its `main` began, and `unknown` the
/// number of settings that it does not know.
#[cfg(feature = "lambda")]
pub(crate) fn cold_start(function: &str, ms: u64, unknown: usize) {
    let unknown = (unknown > 0).then_some(unknown);
    tracing::info!(target: START, function, ms, settings.unknown = unknown, "cold start");
}
