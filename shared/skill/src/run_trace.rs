//! Records one run of a turn: its steps, its tools and its calls of a model.

use super::model::ModelRequest;
use super::trace::{RecordTrace, TraceRow};
use super::turn_host::{ScopeId, Step};
use super::{AgentError, AgentResult};
use a2a_lambda_model::task::{TaskKey, TaskRecord, Timestamp, WriteId};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The trace of one run of a turn, and of the call before it.
pub struct RunTrace {
    recorder: Arc<dyn RecordTrace>,
    /// The id of the row of the turn; those of the other rows begin with it.
    run: String,
    state: Mutex<RunState>,
}

#[derive(Default)]
struct RunState {
    /// `None` until the turn begins; until then the rows wait.
    task: Option<(TaskKey, WriteId)>,
    waiting: Vec<TraceRow>,
    /// Whether the message that began the turn is not kept: then no content is.
    is_private: bool,
    turn: TraceRow,
    /// The text of the panic that has ended the skill.
    panic: Option<String>,
    /// The steps that are open.
    steps: BTreeMap<ScopeId, TraceRow>,
    /// The innermost step around what runs now.
    step: Option<ScopeId>,
    count: u32,
}

impl RunTrace {
    /// A trace whose ids begin with `run`.
    pub fn new(recorder: Arc<dyn RecordTrace>, run: String) -> Self {
        Self {
            recorder,
            run,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        self.recorder.now().as_millis()
    }

    fn put(&self, state: &mut RunState, mut row: TraceRow) {
        if state.is_private {
            row.content.clear();
        }
        match &state.task {
            Some((task, incarnation)) => self.recorder.record(task, incarnation, row),
            None => state.waiting.push(row),
        }
    }

    /// Puts a row that has no end yet. Its content is then in the trace.
    fn begin(&self, state: &mut RunState, row: &mut TraceRow) {
        self.put(state, row.clone());
        row.content.clear();
    }

    fn row(&self, state: &mut RunState, kind: &'static str, name: &str) -> TraceRow {
        state.count += 1;
        let step = state.step.and_then(|step| state.steps.get(&step));
        TraceRow {
            parent: Some(step.map_or_else(|| self.run.clone(), |step| step.id.clone())),
            ..TraceRow::new(
                format!("{}.{}", self.run, state.count),
                kind,
                name,
                self.now(),
            )
        }
    }

    /// A call of `model` begins.
    pub(crate) fn begin_call(&self, model: &str, request: &ModelRequest) -> TraceRow {
        let mut state = self.state();
        let step = state.step.and_then(|step| state.steps.get(&step));
        let name = match (&state.task, step) {
            // Before the turn begins, the router asks.
            (None, _) => "router".to_owned(),
            (Some(_), Some(step)) if step.kind == "model" => step.name.clone(),
            (Some(_), _) => "model".to_owned(),
        };
        let mut row = self.row(&mut state, "model", &name);
        if !model.is_empty() {
            row.fact("model", model);
        }
        match request.options.is_empty() {
            true => row.add("request", request),
            false => row.add("request", &request.clone().without_secrets()),
        }
        self.begin(&mut state, &mut row);
        row
    }

    /// What a row is about has ended.
    pub(crate) fn end(&self, mut row: TraceRow) {
        row.end = Some(self.now());
        self.put(&mut self.state(), row);
    }

    /// The turn of `task` begins. `is_private`: its message is not kept.
    pub fn begin_turn(&self, task: &TaskRecord, is_private: bool, name: &str, facts: Value) {
        let mut state = self.state();
        state.turn = TraceRow::new(self.run.clone(), "turn", name, self.now());
        state.turn.add_facts(facts);
        // A trace begins with its turn.
        let turn = state.turn.clone();
        state.waiting.insert(0, turn);
        drop(state);
        self.name_task(task, is_private);
    }

    /// The rows so far belong to `task`. `is_private`: its message is not kept.
    pub fn name_task(&self, task: &TaskRecord, is_private: bool) {
        let mut state = self.state();
        state.task = Some((task.key(), task.incarnation.clone()));
        state.is_private = is_private;
        for row in std::mem::take(&mut state.waiting) {
            self.put(&mut state, row);
        }
    }

    /// The skill has panicked. The text may have content, so it is in no log and no response.
    pub fn note_panic(&self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        self.state().panic = text.or_else(|| panic.downcast_ref::<String>().cloned());
    }

    /// The run of the turn has ended.
    pub fn end_turn(&self, facts: Value) {
        let mut state = self.state();
        let mut turn = std::mem::take(&mut state.turn);
        turn.end = Some(self.now());
        turn.add_facts(facts);
        self.put(&mut state, turn);
    }

    /// Removes the trace: nobody can ask for it.
    pub fn forget(&self) {
        if let Some((task, incarnation)) = &self.state().task {
            self.recorder.forget(task, incarnation);
        }
    }

    /// Records what happened to `task` since `start`.
    pub fn event(
        &self,
        task: &TaskRecord,
        (kind, name): (&'static str, &str),
        start: Timestamp,
        fill: impl FnOnce(&mut TraceRow),
    ) {
        let mut state = self.state();
        let mut row = self.row(&mut state, kind, name);
        (row.start, row.end) = (start.as_millis(), Some(self.now()));
        fill(&mut row);
        if let Some(text) = state.panic.take_if(|_| kind == "failure") {
            row.add("cause", &text);
        }
        // Without a turn it is not known whether the message is kept.
        if state.is_private || state.task.is_none() {
            row.content.clear();
        }
        self.recorder.record(&task.key(), &task.incarnation, row);
    }

    /// A step begins. One with a stored `result` does not run: an earlier run has kept it.
    pub fn begin_step(
        &self,
        around: Option<ScopeId>,
        step: &Step,
        result: Option<&AgentResult<Value>>,
    ) {
        let mut state = self.state();
        state.step = around;
        let input = step.input.row.as_deref().cloned().unwrap_or_default();
        let TraceRow { facts, content, .. } = input;
        let kind = if input.kind.is_empty() {
            "step"
        } else {
            input.kind
        };
        let mut row = self.row(&mut state, kind, &step.key);
        (row.facts, row.content) = (facts, content);
        let Some(result) = result else {
            self.begin(&mut state, &mut row);
            state.steps.insert(step.scope, row);
            return;
        };
        row.note("output", result.as_ref());
        row.fact("kept", true);
        row.end = Some(row.start);
        self.put(&mut state, row);
    }

    /// The innermost step around what runs from now on.
    pub fn enter(&self, step: Option<ScopeId>) {
        self.state().step = step;
    }

    /// The result of a step that is about to be stored, or the error of a try.
    pub fn note(&self, step: ScopeId, result: Result<&Value, &AgentError>) {
        if let Some(row) = self.state().steps.get_mut(&step) {
            row.note("output", result);
        }
    }

    /// A step has ended. One without a result or an error was dropped: its turn has ended.
    pub fn leave(&self, step: ScopeId) {
        let mut state = self.state();
        if let Some(mut row) = state.steps.remove(&step) {
            if !row.content.contains_key("output") && !row.facts.contains_key("error") {
                row.fact("dropped", true);
            }
            row.end = Some(self.now());
            self.put(&mut state, row);
        }
    }
}

impl fmt::Debug for RunTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunTrace")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}
