//! Says in the log how a turn ended, and gives all other lines of the turn its fields.

use super::spec::{TurnEnd, TurnInput, TurnSpec};
use crate::engine::{Engine, EngineError};
use crate::task::{Change, TaskKey, TaskRecord, TaskState, Timestamp, WriteId, metadata_keys};
use crate::telemetry::TraceContext;
use crate::telemetry::events::{self, TurnFields};
use crate::telemetry::outcomes::{OK, TASKS, class_of};
use crate::telemetry::scope::{self, CallScope, TurnNote};
use a2a_lambda_skill::RunTrace;
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::{Instrument as _, Span};

/// A turn while it runs.
pub(in crate::engine) struct TurnReport<'e> {
    engine: &'e Engine,
    tenant: String,
    task: String,
    trace_of: (TaskKey, WriteId),
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
    pub(in crate::engine) fn begin(engine: &'e Engine, spec: &TurnSpec, is_claimed: bool) -> Self {
        let record = &spec.record;
        let skill = skill_of(spec);
        let task = record.id().to_string();
        // An inline turn is claimed by its opening, which is not stored yet.
        let attempt = record.attempt().max(1);
        let scope = CallScope::current();
        let (turn, attempt_text) = (spec.facts.turn.to_string(), attempt.to_string());
        let trace = scope.trace();
        let trace = trace.map(|trace| trace.child(&["turn", &task, &turn, &attempt_text]));
        let makes_task = spec.input.makes_task();
        note(spec, skill.as_deref());
        let run = engine.trace_of(scope.names());
        if let Some(run) = &run {
            let text = |trace: TraceContext| trace.to_string();
            let facts = json!({
                "task": task, "context": record.context_id().to_string(), "turn": spec.facts.turn,
                "attempt": attempt, "worker": is_claimed,
                "traceparent": trace.map(text), "calledBy": scope.trace().map(text),
            });
            let name = skill.as_deref().unwrap_or_default();
            run.begin_turn(record, spec.hides_message(), name, facts);
        }
        Self {
            engine,
            tenant: record.owner().tenant.to_string(),
            makes_task,
            trace_of: (record.key(), record.incarnation().clone()),
            attempt,
            began: engine.reader.clock.now(),
            is_claimed,
            scope: scope.in_span(trace),
            run,
            // The highest level: lines of every filter have the fields of the span. The span of
            // a call around it has the id of the trace.
            span: tracing::error_span!(
                target: events::TURN,
                "turn",
                a2a.task = makes_task.then_some(task.as_str()),
                a2a.skill = skill.as_deref(),
                a2a.turn = spec.facts.turn,
                trace_id = trace.filter(|_| is_claimed).map(|trace| trace.trace_id()),
            ),
            task,
            skill,
        }
    }

    /// Runs `turn` as the work of this report.
    pub(in crate::engine) async fn run(
        self,
        turn: impl Future<Output = Result<TurnEnd, EngineError>> + Send,
    ) -> Result<TurnEnd, EngineError> {
        let turn = turn.instrument(self.span.clone());
        let result = self.scope.clone().run(turn).await;
        self.end(&result);
        self.end_trace(&result);
        result
    }

    fn end_trace(&self, result: &Result<TurnEnd, EngineError>) {
        let Some(run) = &self.run else { return };
        let (end, record) = match result {
            Ok(TurnEnd::Stopped(record)) => ("atRest", Some(record)),
            Ok(TurnEnd::HandedOver(record)) => ("handedOver", Some(record)),
            Ok(TurnEnd::Superseded(record)) => ("superseded", record.as_ref()),
            Ok(TurnEnd::Duplicate(_)) => ("duplicate", None),
            Ok(TurnEnd::Message(_)) => ("message", None),
            Err(_) => ("broken", None),
        };
        let state = record.map(|record| record.state().as_str());
        run.end_turn(json!({"ended": end, "state": state, "error": record.and_then(error_code)}));
        if let (Ok(TurnEnd::Message(_)), Some(recorder)) = (result, &self.engine.recorder) {
            // The reply is no task, so nobody can ask for its trace.
            recorder.forget(&self.trace_of.0, &self.trace_of.1);
        }
    }

    /// Says how the turn ended: in the line of its call, else in a line of its own. A repeated
    /// send runs no turn.
    fn end(&self, result: &Result<TurnEnd, EngineError>) {
        let record = match result {
            Ok(TurnEnd::Duplicate(_)) => return,
            Ok(TurnEnd::Stopped(record) | TurnEnd::HandedOver(record)) => Some(record),
            Ok(TurnEnd::Superseded(record)) => record.as_ref(),
            Ok(TurnEnd::Message(_)) | Err(_) => None,
        };
        let shows_task = self.makes_task || record.is_some();
        if shows_task {
            scope::note_task(&self.task);
        }
        let took = self.engine.reader.clock.now().since(self.began);
        let note = TurnNote {
            state: record.map(|record| record.state().as_str()),
            attempt: u64::from(self.attempt),
            error: record.and_then(error_code).map(str::to_owned),
            class: match result {
                Ok(TurnEnd::Stopped(record)) => Some(class_of_end(record)),
                Ok(TurnEnd::Message(_)) => Some(OK),
                _ => None,
            },
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        // A client that leaves a stream ends its call before the turn.
        let Err(note) = self.scope.note_turn(note) else {
            return;
        };
        let units = match self.is_claimed {
            true => self.scope.units(),
            false => self.scope.units_since_log(),
        };
        let trace_id = self.scope.trace().map(|trace| trace.trace_id());
        events::turn(&TurnFields {
            tenant: &self.tenant,
            skill: self.skill.as_deref(),
            task: shows_task.then_some(self.task.as_str()),
            state: note.state,
            attempt: note.attempt,
            error: note.error.as_deref(),
            class: note.class,
            ms: note.ms,
            units,
            trace_id: trace_id.as_deref(),
        });
    }
}

/// Notes tenant, task, skill and route of a turn, for the line of its call and of its model.
pub(in crate::engine) fn note(spec: &TurnSpec, skill: Option<&str>) {
    scope::note_tenant(spec.record.owner().tenant.as_str());
    if spec.input.makes_task() {
        scope::note_task(spec.record.id().as_str());
    }
    if let Some(skill) = skill {
        scope::note_skill(skill);
    }
    let choice = spec.opening.iter().find_map(|change| match change {
        Change::Pin(_, Some(route)) => Some(route.how.as_str()),
        Change::Pin(_, None) => Some("named"),
        _ => None,
    });
    let question = matches!(spec.input, TurnInput::Ask { .. }).then_some("ask");
    if let Some(how) = choice.or(question) {
        scope::note_route(how);
    }
}

/// The skill that a turn runs, else the one that its task is pinned to.
pub(in crate::engine) fn skill_of(spec: &TurnSpec) -> Option<String> {
    match &spec.input {
        TurnInput::Skill(skill, _) => Some(skill.metadata().id.to_owned()),
        TurnInput::Ask { .. } | TurnInput::Forward(..) | TurnInput::Fail(_) => {
            spec.record.skill().map(ToString::to_string)
        }
    }
}

/// Logs a turn that the engine has failed without running it.
pub(in crate::engine) fn log_given_up(record: &TaskRecord, code: &str) {
    let trace_id = CallScope::current().trace().map(|trace| trace.trace_id());
    events::turn(&TurnFields {
        tenant: record.owner().tenant.as_str(),
        skill: record.skill().map(crate::task::SkillId::as_str),
        task: Some(record.id().as_str()),
        state: Some(TaskState::Failed.as_str()),
        attempt: u64::from(record.attempt()),
        error: Some(code),
        class: Some(class_of(TASKS, code).word()),
        trace_id: trace_id.as_deref(),
        ..TurnFields::default()
    });
}

/// The class of the turn of a task at rest.
fn class_of_end(record: &TaskRecord) -> &'static str {
    error_code(record).map_or(OK, |code| class_of(TASKS, code).word())
}

/// The error code of a failed task.
fn error_code(record: &TaskRecord) -> Option<&str> {
    let status = record.status();
    let message = status.message.as_ref();
    let message = message.filter(|_| status.state == TaskState::Failed)?;
    let code = message.metadata.get(metadata_keys::ERROR_CODE);
    code.and_then(Value::as_str)
}
