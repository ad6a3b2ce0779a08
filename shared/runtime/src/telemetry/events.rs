//! Writes the log lines that operators read and metrics count: one for each call, each
//! refused call, each turn that no such line contains and each start. Their targets and field
//! names exist only here. The line of a call of a model is in `a2a-lambda-skill`. A line with a
//! class is one that alarms count.

use super::outcomes::{CALLERS, EVENTS, class_of};
use super::scope::{TurnNote, Units};
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

/// The fields of the line of a call. An absent value is an absent field.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallFields<'a> {
    pub(crate) method: Option<&'a str>,
    pub(crate) generation: Option<&'a str>,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) skill: Option<&'a str>,
    pub(crate) route: Option<&'a str>,
    pub(crate) task: Option<&'a str>,
    pub(crate) status: u64,
    /// Who has to act, or the word for nobody. `None` of a read that succeeded: alarms do not count
    /// it.
    pub(crate) class: Option<&'a str>,
    pub(crate) ms: u64,
    /// How the turn ended that the call has run.
    pub(crate) turn: Option<&'a TurnNote>,
    pub(crate) units: Option<Units>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) trace_id: Option<&'a str>,
}

/// Writes an event of a call: the fields of `$line`, and those that follow.
macro_rules! call_event {
    ($target:expr, $line:expr, $message:literal, { $($extra:tt)* }) => {
        tracing::event!(
            target: $target,
            Level::INFO,
            a2a.method = $line.method,
            a2a.generation = $line.generation,
            a2a.tenant = $line.tenant,
            a2a.skill = $line.skill,
            a2a.route = $line.route,
            a2a.task = $line.task,
            http.response.status_code = $line.status,
            ms = $line.ms,
            a2a.state = $line.turn.and_then(|turn| turn.state),
            a2a.attempt = $line.turn.map(|turn| turn.attempt),
            a2a.task_error = $line.turn.and_then(|turn| turn.error.as_deref()),
            a2a.turn_ms = $line.turn.map(|turn| turn.ms),
            units.read = $line.units.map(Units::read),
            units.write = $line.units.map(Units::write),
            aws.request_id = $line.request_id,
            trace_id = $line.trace_id,
            $($extra)*
            $message
        )
    };
}

/// Logs a call that got its answer.
pub(crate) fn call(line: &CallFields<'_>) {
    match line.class {
        Some(class) => call_event!(CALL, line, "call", {
            class,
            turn_class = line.turn.and_then(|turn| turn.class),
        }),
        None => call_event!(CALL, line, "call", {}),
    }
}

/// Logs a call that got an error. `left_out` is the number of such lines that were not
/// written since the last one.
pub(crate) fn refused(line: &CallFields<'_>, reason: &str, left_out: u64) {
    let left_out = (left_out > 0).then_some(left_out);
    call_event!(CALL, line, "refused", {
        class = line.class,
        turn_class = line.turn.and_then(|turn| turn.class),
        a2a.error = reason,
        a2a.left_out = left_out,
    });
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

/// Counts a call that got an error, without a line: a flood of calls is no flood of lines.
pub(crate) fn left_out(line: &CallFields<'_>, reason: &str) {
    call_event!(LEFT_OUT, line, "left out", { class = line.class, a2a.error = reason, });
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
        task.id = task,
        push.config = config,
        "gave up push config `{config}` of task `{task}`: {why}"
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
    /// As in the line of a call; `None` of a turn that has not ended.
    pub(crate) class: Option<&'a str>,
    pub(crate) ms: u64,
    pub(crate) units: Option<Units>,
    pub(crate) trace_id: Option<&'a str>,
}

/// Logs a turn that no line of a call contains.
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
        class = line.class,
        ms = line.ms,
        units.read = line.units.map(Units::read),
        units.write = line.units.map(Units::write),
        trace_id = line.trace_id,
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
