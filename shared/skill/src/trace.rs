//! Records the work of a turn for the author of an agent: its steps, tools and calls of a model.
//!
//! A program on the author's machine gives the engine a recorder. Deployed functions have none,
//! so no content leaves a turn there. A value is cut where it is recorded: a large one costs
//! little.

use super::AgentError;
use super::CallNames;
use super::model::{ModelReply, ModelRequest};
use super::turn_host::{ScopeId, Step};
use a2a_lambda_model::task::{TaskId, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of JSON that a row has of one value.
const CONTENT: usize = 128 * 1024;
/// The bytes of a longer value that it has.
const HEAD: usize = 8 * 1024;

/// Takes the rows of traces. It does not wait, and drops what it cannot take.
pub trait RecordTrace: Send + Sync {
    /// The time.
    fn now(&self) -> Timestamp;

    /// Takes a row of a task: as it begins, without its end, and again as it ends.
    fn record(&self, task: &TaskId, row: TraceRow);

    /// Removes the trace of a task.
    fn forget(&self, task: &TaskId);
}

/// Something that a turn did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TraceRow {
    /// Its id, unique within its task.
    pub id: String,
    /// The row that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it is, such as `model`, `tool` or `write`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// When it began, in milliseconds since 1970.
    pub start: i64,
    /// When it ended; `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// What is known of it, without content.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
    /// What it got and gave.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub content: Map<String, Value>,
}

impl TraceRow {
    /// Adds a fact.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds content. A value of more than 128 KiB becomes its first 8 KiB as text.
    pub fn add(&mut self, name: &str, value: &impl Serialize) {
        let mut text = Bounded(Vec::new());
        let value = match serde_json::to_writer(&mut text, value) {
            Ok(()) => serde_json::from_slice(&text.0).unwrap_or_default(),
            Err(_) => {
                self.fact("cut", name);
                let head = text.0.get(..HEAD).unwrap_or(&text.0);
                String::from_utf8_lossy(head).into()
            }
        };
        self.content.insert(name.to_owned(), value);
    }
}

/// The first bytes of a value. Writing more is an error.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CONTENT.saturating_sub(self.0.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.0.extend_from_slice(taken);
        match taken.len() {
            0 if !bytes.is_empty() => Err(io::ErrorKind::FileTooLarge.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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
    task: Option<TaskId>,
    waiting: Vec<TraceRow>,
    /// Whether the message that began the turn is not kept: then no content is.
    hides: bool,
    turn: TraceRow,
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

    /// The trace of the running call; `None` if nobody records one.
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        CallNames::current().trace.get().cloned()
    }

    /// What a step of this `kind` is asked, for its row; `None` if nobody records it.
    pub fn asked(kind: &'static str, input: Option<&impl Serialize>) -> Option<Box<TraceRow>> {
        Self::current()?;
        let mut row = TraceRow {
            kind,
            ..TraceRow::default()
        };
        if let Some(input) = input {
            row.add("input", input);
        }
        Some(row.into())
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        self.recorder.now().as_millis()
    }

    fn put(&self, state: &mut RunState, mut row: TraceRow) {
        if state.hides {
            row.content.clear();
        }
        match &state.task {
            Some(task) => self.recorder.record(task, row),
            None => state.waiting.push(row),
        }
    }

    fn row(&self, state: &mut RunState, kind: &'static str, name: &str) -> TraceRow {
        state.count += 1;
        let step = state.step.and_then(|step| state.steps.get(&step));
        TraceRow {
            id: format!("{}.{}", self.run, state.count),
            parent: Some(step.map_or_else(|| self.run.clone(), |step| step.id.clone())),
            kind,
            name: name.to_owned(),
            start: self.now(),
            ..TraceRow::default()
        }
    }

    /// The turn of `task` begins. `hides`: its message is not kept.
    pub fn begin_turn(&self, task: &TaskId, hides: bool, name: &str, facts: Value) {
        let mut state = self.state();
        state.task = Some(task.clone());
        state.hides = hides;
        state.turn = TraceRow {
            id: self.run.clone(),
            kind: "turn",
            name: name.to_owned(),
            start: self.now(),
            ..TraceRow::default()
        };
        state.turn.facts.extend(members(facts));
        let turn = state.turn.clone();
        self.put(&mut state, turn);
        for row in std::mem::take(&mut state.waiting) {
            self.put(&mut state, row);
        }
    }

    /// The run of the turn has ended.
    pub fn end_turn(&self, facts: Value) {
        let mut state = self.state();
        let mut turn = std::mem::take(&mut state.turn);
        turn.end = Some(self.now());
        turn.facts.extend(members(facts));
        self.put(&mut state, turn);
    }

    /// Records what happened to `task` since `start`.
    pub fn event(
        &self,
        task: &TaskId,
        (kind, name): (&'static str, &str),
        start: Timestamp,
        fill: impl FnOnce(&mut TraceRow),
    ) {
        let mut state = self.state();
        let mut row = self.row(&mut state, kind, name);
        (row.start, row.end) = (start.as_millis(), Some(self.now()));
        fill(&mut row);
        if state.hides {
            row.content.clear();
        }
        self.recorder.record(task, row);
    }

    /// A step begins. One with a value does not run: an earlier run has kept it.
    pub fn begin_step(&self, around: Option<ScopeId>, step: &Step) {
        let mut state = self.state();
        state.step = around;
        let asked = step.input.asked.as_deref();
        let mut row = self.row(&mut state, asked.map_or("step", |it| it.kind), &step.key);
        row.content = asked.map(|it| it.content.clone()).unwrap_or_default();
        row.facts = asked.map(|it| it.facts.clone()).unwrap_or_default();
        if let Some(value) = &step.value {
            row.add("output", value);
            row.fact("kept", true);
            row.end = Some(row.start);
        } else {
            state.steps.insert(step.scope, row.clone());
        }
        self.put(&mut state, row);
    }

    /// The innermost step around what runs from now on.
    pub fn enter(&self, step: Option<ScopeId>) {
        self.state().step = step;
    }

    /// The result of a step that is about to be stored.
    pub fn output(&self, step: ScopeId, value: &Value) {
        if let Some(row) = self.state().steps.get_mut(&step) {
            row.add("output", value);
        }
    }

    /// The step that runs now has failed.
    pub fn failed(&self, error: &AgentError) {
        let mut state = self.state();
        let step = state.step;
        if let Some(row) = step.and_then(|step| state.steps.get_mut(&step)) {
            row.fact("error", error.code().as_str());
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

fn members(facts: Value) -> Map<String, Value> {
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

/// The row of a call of a model while it runs. The end of this value ends it.
pub(crate) struct ModelRow {
    trace: Arc<RunTrace>,
    row: TraceRow,
}

impl ModelRow {
    /// The row of a call that begins; `None` if nobody records it.
    pub(crate) fn begin(request: &ModelRequest) -> Option<Self> {
        let trace = RunTrace::current()?;
        let row = {
            let mut state = trace.state();
            // Before the turn begins, the router asks.
            let name = state.task.as_ref().map_or("router", |_| "model");
            let mut row = trace.row(&mut state, "model", name);
            row.add("request", &request.clone().without_secrets());
            trace.put(&mut state, row.clone());
            row
        };
        Some(Self { trace, row })
    }

    /// A piece of the answer has arrived.
    pub(crate) fn delta(&mut self) {
        if !self.row.facts.contains_key("firstMs") {
            let took = self.trace.now().saturating_sub(self.row.start);
            self.row.fact("firstMs", took);
        }
    }

    pub(crate) fn end(&mut self, result: Result<&ModelReply, &AgentError>) {
        match result {
            Ok(reply) => {
                self.row.add("reply", reply);
                self.row.fact("stop", reply.stop.as_str());
                self.row.fact("inputTokens", reply.usage.input_tokens);
                self.row.fact("outputTokens", reply.usage.output_tokens);
            }
            Err(error) => self.row.fact("error", error.code().as_str()),
        }
    }
}

impl Drop for ModelRow {
    fn drop(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        row.end = Some(self.trace.now());
        self.trace.put(&mut self.trace.state(), row);
    }
}
