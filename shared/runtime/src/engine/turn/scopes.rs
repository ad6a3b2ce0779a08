//! The steps and scopes of a running turn, and the stored results that belong to them.
//!
//! A turn that runs again has to begin the same steps. Each step is found by its path and
//! compared by its ordinal, its name and its input, so no step gets the result of another.

use crate::engine::clock::lock;
use crate::task::{OutputCounts, PATH_SEPARATOR, Saved, StepResult};
use a2a_lambda_skill::turn_host::{ScopeId, StepInput};
use a2a_lambda_skill::{AgentError, AgentResult};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// The turn itself, as the outermost scope.
const TURN: ScopeId = ScopeId(0);

/// The steps and scopes of a turn.
pub(in crate::engine) struct Scopes {
    state: Mutex<ScopeTable>,
    /// The stored steps by scope and ordinal, as the turn began.
    stored_steps: BTreeMap<(String, u32), String>,
    /// How many outputs the turn has said before it began again, by scope.
    outputs: OutputCounts,
}

struct ScopeTable {
    turn: OpenScope,
    /// The others: the first has the id 1.
    scopes: Vec<OpenScope>,
    current: ScopeId,
    /// The stored steps that no step has asked for.
    leftovers: BTreeSet<String>,
}

/// A step or scope that has begun.
struct OpenScope {
    path: Arc<str>,
    outer: ScopeId,
    /// How many steps and scopes of each name it has begun.
    counts: BTreeMap<String, u32>,
    /// How many steps it has begun.
    steps: u32,
    /// The innermost step around it, or itself; [`TURN`] outside of steps.
    step: ScopeId,
    /// The step that is open in it.
    open_step: Option<ScopeId>,
    /// The names of the scopes that are open in it.
    open_scopes: BTreeMap<ScopeId, String>,
    /// How many of its next outputs an earlier run has said.
    outputs_left: u32,
    /// How many events it has added to the thread.
    events: u32,
}

/// A step that has begun, without its stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct StepPlace {
    pub(in crate::engine) scope: ScopeId,
    pub(in crate::engine) key: String,
    pub(in crate::engine) ordinal: u32,
    /// The path of the scope around it.
    outer: Arc<str>,
}

/// A step that the stored results do not fit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored turn has {before}, the skill asks for {now}")]
pub(in crate::engine) struct StepChangedError {
    before: String,
    now: String,
}

impl Scopes {
    /// The scopes of a turn that begins with these stored values.
    pub(in crate::engine) fn new(saved_turn: &Saved, outputs: OutputCounts) -> Self {
        let entry = |(path, result): (&String, &StepResult)| {
            let outer = path.rsplit_once(PATH_SEPARATOR);
            let outer = outer.map_or("", |(outer, _)| outer).to_owned();
            ((outer, result.ordinal), path.clone())
        };
        Self {
            state: Mutex::new(ScopeTable {
                turn: OpenScope::new("".into(), TURN, TURN, &outputs),
                scopes: Vec::new(),
                current: TURN,
                leftovers: saved_turn.steps.keys().cloned().collect(),
            }),
            stored_steps: saved_turn.steps.iter().map(entry).collect(),
            outputs,
        }
    }

    /// Begins a step in the current scope.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if another step of the scope is open.
    pub(in crate::engine) fn begin_step(&self, name: &str) -> AgentResult<StepPlace> {
        let mut state = lock(&self.state);
        let outer = state.current;
        if let Some(open) = state.scope(outer).open_step {
            let open = &state.scope(open).path;
            let what = format!("the step `{name}` begins while `{open}` is open");
            return Err(overlap(&what));
        }
        let inner = state.begin(name, &self.outputs);
        let scope = state.scope_mut(outer);
        scope.steps += 1;
        scope.open_step = Some(inner);
        let (path, ordinal) = (Arc::clone(&scope.path), scope.steps);
        let step = state.scope_mut(inner);
        step.step = inner;
        let key = step.path.to_string();
        state.leftovers.remove(&key);
        Ok(StepPlace {
            scope: inner,
            key,
            ordinal,
            outer: path,
        })
    }

    /// Checks that `result`, the stored result of a step, belongs to it.
    ///
    /// # Errors
    /// [`StepChangedError`] if the stored turn has another step at this position, or asked
    /// this one something else.
    pub(in crate::engine) fn check(
        &self,
        step: &StepPlace,
        result: Option<&StepResult>,
        input: &StepInput,
    ) -> Result<(), StepChangedError> {
        let at = |key: &str, ordinal: u32| format!("`{key}` as step {ordinal}");
        let now = at(&step.key, step.ordinal);
        let position = (step.outer.to_string(), step.ordinal);
        let there = self.stored_steps.get(&position);
        if let Some(there) = there.filter(|there| **there != step.key) {
            let before = at(there, step.ordinal);
            return Err(StepChangedError { before, now });
        }
        let Some(result) = result else {
            return Ok(());
        };
        if result.ordinal != step.ordinal {
            let before = at(&step.key, result.ordinal);
            return Err(StepChangedError { before, now });
        }
        if result.input_hash != input.hash {
            let with = |hash: &Option<String>| {
                let hash = hash.as_deref().unwrap_or("none");
                format!("`{}` with the input hash {hash}", step.key)
            };
            let (before, now) = (with(&result.input_hash), with(&input.hash));
            return Err(StepChangedError { before, now });
        }
        Ok(())
    }

    /// Begins a scope in the current one.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if a scope of this name is open.
    pub(in crate::engine) fn begin_scope(&self, name: &str) -> AgentResult<ScopeId> {
        let mut state = lock(&self.state);
        let outer = state.current;
        let mut open = state.scope(outer).open_scopes.values();
        if open.any(|open| open == name) {
            let what = format!("the scope `{name}` begins while it is open");
            return Err(overlap(&what));
        }
        let inner = state.begin(name, &self.outputs);
        let open_scopes = &mut state.scope_mut(outer).open_scopes;
        open_scopes.insert(inner, name.to_owned());
        Ok(inner)
    }

    /// Makes a scope the current one; returns the one before it.
    pub(in crate::engine) fn enter(&self, scope: ScopeId) -> ScopeId {
        std::mem::replace(&mut lock(&self.state).current, scope)
    }

    /// Ends a step or scope; returns its path and that of the scope around it.
    pub(in crate::engine) fn leave(&self, id: ScopeId) -> (Arc<str>, Arc<str>) {
        let mut state = lock(&self.state);
        let path = Arc::clone(&state.scope(id).path);
        let outer = state.scope(id).outer;
        let scope = state.scope_mut(outer);
        scope.open_step.take_if(|open| *open == id);
        scope.open_scopes.remove(&id);
        (path, Arc::clone(&scope.path))
    }

    /// The path of the current scope.
    pub(in crate::engine) fn path(&self) -> Arc<str> {
        Arc::clone(&lock(&self.state).current_mut().path)
    }

    /// The path of the current scope and the number of its next event of the thread, from 1.
    pub(in crate::engine) fn next_event(&self) -> (Arc<str>, u32) {
        let mut state = lock(&self.state);
        let scope = state.current_mut();
        scope.events += 1;
        (Arc::clone(&scope.path), scope.events)
    }

    /// The path of the current scope, for its next output; `None` if an earlier run of the
    /// turn has said an output at this position.
    pub(in crate::engine) fn next_output(&self) -> Option<Arc<str>> {
        let mut state = lock(&self.state);
        let scope = state.current_mut();
        match scope.outputs_left.checked_sub(1) {
            Some(remaining) => {
                scope.outputs_left = remaining;
                None
            }
            None => Some(Arc::clone(&scope.path)),
        }
    }

    /// The innermost step around what runs now; [`TURN`] outside of steps.
    pub(in crate::engine) fn step(&self) -> ScopeId {
        lock(&self.state).current_mut().step
    }

    /// The innermost step around what runs now, if there is one.
    pub(in crate::engine) fn around(&self) -> Option<ScopeId> {
        Some(self.step()).filter(|step| *step != TURN)
    }

    /// Whether a step is open around what runs now. It may do another thing than in an earlier
    /// run of the turn.
    pub(in crate::engine) fn is_in_step(&self) -> bool {
        self.around().is_some()
    }

    /// The skill has loaded a value that an earlier run of the turn saved after these outputs,
    /// and continues behind them.
    pub(in crate::engine) fn skip_outputs(&self, counts: &OutputCounts) {
        let mut state = lock(&self.state);
        for (path, count) in counts {
            let total = self.outputs.get(path).copied().unwrap_or(0);
            let remaining = total.saturating_sub(*count);
            for scope in state.all_mut().filter(|scope| *scope.path == **path) {
                scope.outputs_left = scope.outputs_left.min(remaining);
            }
        }
    }

    /// The paths of the stored steps that no step has asked for.
    pub(in crate::engine) fn unasked(&self) -> Vec<String> {
        lock(&self.state).leftovers.iter().cloned().collect()
    }
}

impl ScopeTable {
    fn scope(&self, id: ScopeId) -> &OpenScope {
        let index = id.0.checked_sub(1);
        let scope = index.and_then(|index| self.scopes.get(index));
        scope.unwrap_or(&self.turn)
    }

    fn scope_mut(&mut self, id: ScopeId) -> &mut OpenScope {
        let index = id.0.checked_sub(1);
        let scope = index.and_then(|index| self.scopes.get_mut(index));
        scope.unwrap_or(&mut self.turn)
    }

    fn current_mut(&mut self) -> &mut OpenScope {
        self.scope_mut(self.current)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut OpenScope> {
        std::iter::once(&mut self.turn).chain(&mut self.scopes)
    }

    /// Opens a step or scope inside of the current one. Its path has the number of this name there
    /// (`order#1>pay#2`), so a turn that runs again finds the stored result of the same step.
    /// Scope 0 is the turn. The caller makes the new scope the current one.
    fn begin(&mut self, name: &str, outputs: &OutputCounts) -> ScopeId {
        let outer = self.current;
        let scope = self.current_mut();
        let number = scope.counts.entry(name.to_owned()).or_default();
        *number += 1;
        // A name with a separator must not look like two elements.
        let name = name.replace('%', "%25").replace(PATH_SEPARATOR, "%3E");
        let path = match &*scope.path {
            "" => format!("{name}#{number}"),
            path => format!("{path}{PATH_SEPARATOR}{name}#{number}"),
        };
        let inner = OpenScope::new(path.into(), outer, scope.step, outputs);
        self.scopes.push(inner);
        ScopeId(self.scopes.len())
    }
}

impl OpenScope {
    fn new(path: Arc<str>, outer: ScopeId, step: ScopeId, outputs: &OutputCounts) -> Self {
        Self {
            outputs_left: outputs.get(&*path).copied().unwrap_or(0),
            path,
            outer,
            counts: BTreeMap::new(),
            steps: 0,
            step,
            open_step: None,
            open_scopes: BTreeMap::new(),
            events: 0,
        }
    }
}

fn overlap(what: &str) -> AgentError {
    AgentError::internal(format!(
        "{what}: futures that run at the same time each need a `cx.scope`"
    ))
}

#[cfg(test)]
mod tests;
