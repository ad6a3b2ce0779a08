//! Says in the log how a turn ended, and gives all other lines of the turn its fields.

use super::spec::{TurnEnd, TurnInput, TurnSpec};
use crate::engine::error::EngineError;
use crate::engine::turn::Turns;
use crate::task::{Change, TaskRecord, TaskState, Timestamp, metadata_keys};
use crate::telemetry::TraceContext;
use crate::telemetry::events::{self, TurnFields};
use crate::telemetry::outcomes::{OK, TASKS, class_of};
use crate::telemetry::scope::{CallScope, TurnNote};
use a2a_lambda_skill::{CallNames, RunTrace};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::{Instrument as _, Span};

/// A turn while it runs.
pub(in crate::engine) struct TurnReport<'e> {
    turns: &'e Turns,
    tenant: String,
    task: String,
    skill: Option<String>,
    makes_task: bool,
    attempt: u32,
    began: Timestamp,
    /// Whether a worker runs the turn. The units of another turn are in the line of its call,
    /// and metrics would count them twice.
    is_claimed: bool,
    scope: CallScope,
    run: Option<Arc<RunTrace>>,
    span: Span,
}

impl<'e> TurnReport<'e> {
    /// Begins the report of `spec`. `is_claimed`: a worker runs the turn.
    pub(in crate::engine) fn begin(turns: &'e Turns, spec: &TurnSpec, is_claimed: bool) -> Self {
        let record = &spec.record;
        let skill = note(spec);
        let task = record.id.to_string();
        // An inline turn is claimed by its opening, which is not stored yet.
        let attempt = record.attempt.max(1);
        let scope = CallScope::current();
        let (turn, attempt_text) = (spec.facts.turn.to_string(), attempt.to_string());
        let trace = scope.trace();
        let trace = trace.map(|trace| trace.child(&["turn", &task, &turn, &attempt_text]));
        let makes_task = spec.input.makes_task();
        let run = turns.commits.trace();
        if let Some(run) = &run {
            let text = |trace: TraceContext| trace.to_string();
            let facts = json!({
                "task": task, "context": record.context_id.to_string(), "turn": spec.facts.turn,
                "attempt": attempt, "worker": is_claimed,
                "traceparent": trace.map(text), "calledBy": scope.trace().map(text),
            });
            let name = skill.unwrap_or_default();
            run.begin_turn(record, spec.hides_message(), name, facts);
        }
        Self {
            turns,
            tenant: record.owner.tenant.to_string(),
            makes_task,
            attempt,
            began: turns.reader.clock.now(),
            is_claimed,
            scope: scope.in_span(trace),
            run,
            // The highest level: lines of every filter have the fields of the span. The span of
            // a call around it has the id of the trace.
            span: tracing::error_span!(
                target: events::TURN,
                "turn",
                a2a.task = makes_task.then_some(task.as_str()),
                a2a.skill = skill,
                a2a.turn = spec.facts.turn,
                trace_id = trace.filter(|_| is_claimed).map(|trace| trace.trace_id()),
            ),
            skill: skill.map(str::to_owned),
            task,
        }
    }

    /// `turn` in the scope of this report, which ends with it.
    pub(in crate::engine) fn follow<T>(self, turn: T) -> impl Future<Output = T::Output> + Send
    where
        T: Future<Output = Result<TurnEnd, EngineError>> + Send,
    {
        let turn = turn.instrument(self.span.clone());
        let turn = self.scope.clone().run(turn);
        turn.inspect(move |result| self.end(result))
    }

    /// Reports how the turn ended: in the line of its call, else in a line of its own, and in its
    /// trace. A repeated send runs no turn, and has no line.
    fn end(&self, result: &Result<TurnEnd, EngineError>) {
        let (end, record) = match result {
            Ok(TurnEnd::AtRest(record)) => ("atRest", Some(record)),
            Ok(TurnEnd::HandedOver(record)) => ("handedOver", Some(record)),
            Ok(TurnEnd::Superseded(record)) => ("superseded", record.as_ref()),
            Ok(TurnEnd::Duplicate(_)) => ("duplicate", None),
            Ok(TurnEnd::Message(_)) => ("message", None),
            Err(_) => ("broken", None),
        };
        let state = record.map(|record| record.state().as_str());
        let error = record.and_then(error_code);
        if let Some(run) = &self.run {
            run.end_turn(json!({"ended": end, "state": state, "error": error}));
        }
        let class = match result {
            Ok(TurnEnd::Duplicate(_)) => return,
            Ok(TurnEnd::AtRest(_)) => Some(error.map_or(OK, |code| class_of(TASKS, code).word())),
            Ok(TurnEnd::Message(_)) => {
                // The reply is no task.
                if let Some(run) = &self.run {
                    run.forget();
                }
                Some(OK)
            }
            _ => None,
        };
        let shows_task = self.makes_task || record.is_some();
        if shows_task {
            CallNames::note(|names| &names.task, &self.task);
        }
        let took = self.turns.reader.clock.now().since(self.began);
        let note = TurnNote {
            state,
            attempt: u64::from(self.attempt),
            error: error.map(str::to_owned),
            class,
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        // A client that leaves a stream ends its call before the turn.
        let Err(note) = self.scope.note_turn(note) else {
            return;
        };
        let line = TurnFields {
            tenant: &self.tenant,
            skill: self.skill.as_deref(),
            task: shows_task.then_some(self.task.as_str()),
            units: match self.is_claimed {
                true => self.scope.units(),
                false => self.scope.units_since_log(),
            },
            trace: self.scope.trace(),
        };
        events::turn(&line, &note);
    }
}

/// Notes tenant, task, skill and route of a turn, for the line of its call and of its model, and
/// returns the skill: that which the turn runs, else the one that its task is pinned to.
pub(in crate::engine) fn note(spec: &TurnSpec) -> Option<&str> {
    let skill = spec.input.skill().map(|skill| skill.metadata().id);
    let skill = skill.or_else(|| spec.record.skill_name());
    let tenant = &spec.record.owner.tenant;
    CallNames::note(|names| &names.tenant, tenant.as_str());
    if spec.input.makes_task() {
        CallNames::note(|names| &names.task, spec.record.id.as_str());
    }
    if let Some(skill) = skill {
        CallNames::note(|names| &names.skill, skill);
    }
    let choice = spec.opening.iter().find_map(|change| match change {
        Change::Pin(_, Some(route)) => Some(route.how.as_str()),
        Change::Pin(_, None) => Some("named"),
        _ => None,
    });
    let question = matches!(spec.input, TurnInput::Ask { .. }).then_some("ask");
    if let Some(how) = choice.or(question) {
        CallNames::note(|names| &names.route, how);
    }
    skill
}

/// Logs a turn that the engine has failed without running it.
pub(in crate::engine) fn log_given_up(record: &TaskRecord, code: &str) {
    let note = TurnNote {
        state: Some(TaskState::Failed.as_str()),
        attempt: u64::from(record.attempt),
        error: Some(code.to_owned()),
        class: Some(class_of(TASKS, code).word()),
        ms: 0,
    };
    let line = TurnFields {
        tenant: record.owner.tenant.as_str(),
        skill: record.skill_name(),
        task: Some(record.id.as_str()),
        units: None,
        trace: CallScope::current().trace(),
    };
    events::turn(&line, &note);
}

/// The error code of a failed task.
fn error_code(record: &TaskRecord) -> Option<&str> {
    let status = &record.status;
    let message = status.message.as_ref();
    let message = message.filter(|_| status.state == TaskState::Failed)?;
    let code = message.metadata.get(metadata_keys::ERROR_CODE);
    code.and_then(Value::as_str)
}
