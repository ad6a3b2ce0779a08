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
#[derive(Debug, PartialEq, Eq)]
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
        let turn = OpenScope::new("".into(), TURN, &outputs);
        Self {
            state: Mutex::new(ScopeTable {
                scopes: vec![turn],
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
        if let Some(open) = state.scope(outer).and_then(|scope| scope.open_step) {
            let open = state.path(open);
            return Err(overlap(&format!(
                "the step `{name}` begins while `{open}` is open"
            )));
        }
        let inner = state.begin(name, &self.outputs);
        let (key, path) = (state.path(inner).to_string(), state.path(outer));
        let mut ordinal = 0;
        if let Some(scope) = state.scope_mut(outer) {
            scope.steps += 1;
            ordinal = scope.steps;
            scope.open_step = Some(inner);
        }
        if let Some(scope) = state.scope_mut(inner) {
            scope.step = inner;
        }
        state.leftovers.remove(&key);
        Ok(StepPlace {
            scope: inner,
            key,
            ordinal,
            outer: path,
        })
    }

    /// The stored result of a step, if it has one.
    ///
    /// # Errors
    /// [`StepChangedError`] if the stored turn has another step at this position, or asked
    /// this one something else.
    pub(in crate::engine) fn find<'s>(
        &self,
        saved_turn: &'s Saved,
        step: &StepPlace,
        input: &StepInput,
    ) -> Result<Option<&'s StepResult>, StepChangedError> {
        let there = self
            .stored_steps
            .get(&(step.outer.to_string(), step.ordinal));
        let result = saved_turn.steps.get(&step.key);
        let fault = |before: String, now: String| Err(StepChangedError { before, now });
        let at = |key: &str, ordinal: u32| format!("`{key}` as step {ordinal}");
        match (there, result) {
            (Some(there), _) if *there != step.key => {
                fault(at(there, step.ordinal), at(&step.key, step.ordinal))
            }
            (_, Some(result)) if result.ordinal != step.ordinal => {
                fault(at(&step.key, result.ordinal), at(&step.key, step.ordinal))
            }
            (_, Some(result)) if result.input_hash != input.hash => {
                let hash = |hash: &Option<String>| hash.clone().unwrap_or_else(|| "none".into());
                fault(
                    format!(
                        "`{}` with the input hash {}",
                        step.key,
                        hash(&result.input_hash)
                    ),
                    format!("`{}` with the input hash {}", step.key, hash(&input.hash)),
                )
            }
            (_, result) => Ok(result),
        }
    }

    /// Begins a scope in the current one.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if a scope of this name is open.
    pub(in crate::engine) fn begin_scope(&self, name: &str) -> AgentResult<ScopeId> {
        let mut state = lock(&self.state);
        let outer = state.current;
        let mut open = state
            .scope(outer)
            .into_iter()
            .flat_map(|it| it.open_scopes.values());
        if open.any(|open| open == name) {
            return Err(overlap(&format!(
                "the scope `{name}` begins while it is open"
            )));
        }
        let inner = state.begin(name, &self.outputs);
        if let Some(scope) = state.scope_mut(outer) {
            scope.open_scopes.insert(inner, name.to_owned());
        }
        Ok(inner)
    }

    /// Makes a scope the current one; returns the one before it.
    pub(in crate::engine) fn enter(&self, scope: ScopeId) -> ScopeId {
        std::mem::replace(&mut lock(&self.state).current, scope)
    }

    /// Ends a step or scope; returns its path and that of the scope around it.
    pub(in crate::engine) fn leave(&self, id: ScopeId) -> (Arc<str>, Arc<str>) {
        let mut state = lock(&self.state);
        let outer = state.scope(id).map_or(TURN, |scope| scope.outer);
        if let Some(scope) = state.scope_mut(outer) {
            scope.open_step.take_if(|open| *open == id);
            scope.open_scopes.remove(&id);
        }
        (state.path(id), state.path(outer))
    }

    /// The path of the current scope.
    pub(in crate::engine) fn path(&self) -> Arc<str> {
        let state = lock(&self.state);
        state.path(state.current)
    }

    /// The path of the current scope and the number of its next event of the thread, from 1.
    pub(in crate::engine) fn next_event(&self) -> (Arc<str>, u32) {
        let mut state = lock(&self.state);
        let current = state.current;
        let number = state.scope_mut(current).map_or(1, |scope| {
            scope.events += 1;
            scope.events
        });
        (state.path(current), number)
    }

    /// The path of the current scope, for its next output; `None` if an earlier run of the
    /// turn has said an output at this position.
    pub(in crate::engine) fn next_output(&self) -> Option<Arc<str>> {
        let mut state = lock(&self.state);
        let current = state.current;
        let scope = state.scope_mut(current)?;
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
        let state = lock(&self.state);
        state.scope(state.current).map_or(TURN, |scope| scope.step)
    }

    /// Whether a step is open around what runs now. It may do another thing than in an earlier
    /// run of the turn.
    pub(in crate::engine) fn is_in_step(&self) -> bool {
        self.step() != TURN
    }

    /// The skill has loaded a value that an earlier run of the turn saved after these outputs,
    /// and continues behind them.
    pub(in crate::engine) fn skip_outputs(&self, counts: &OutputCounts) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        for (path, count) in counts {
            let total = self.outputs.get(path).copied().unwrap_or(0);
            let remaining = total.saturating_sub(*count);
            let of_path = |scope: &&mut OpenScope| *scope.path == **path;
            for scope in state.scopes.iter_mut().filter(of_path) {
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
    fn scope(&self, id: ScopeId) -> Option<&OpenScope> {
        self.scopes.get(id.0)
    }

    fn scope_mut(&mut self, id: ScopeId) -> Option<&mut OpenScope> {
        self.scopes.get_mut(id.0)
    }

    fn path(&self, id: ScopeId) -> Arc<str> {
        self.scope(id)
            .map_or_else(|| "".into(), |scope| Arc::clone(&scope.path))
    }

    /// Begins the next step or scope of this name in the current scope.
    fn begin(&mut self, name: &str, outputs: &OutputCounts) -> ScopeId {
        let (id, outer) = (ScopeId(self.scopes.len()), self.current);
        let step = self.scope(outer).map_or(TURN, |scope| scope.step);
        let mut path = String::new();
        if let Some(scope) = self.scope_mut(outer) {
            let number = scope.counts.entry(name.to_owned()).or_default();
            *number += 1;
            path.push_str(&scope.path);
            if !path.is_empty() {
                path.push(PATH_SEPARATOR);
            }
            // A name with a separator must not look like two elements.
            path.push_str(&name.replace('%', "%25").replace(PATH_SEPARATOR, "%3E"));
            path.push_str(&format!("#{number}"));
        }
        let mut inner = OpenScope::new(path.into(), outer, outputs);
        inner.step = step;
        self.scopes.push(inner);
        id
    }
}

impl OpenScope {
    fn new(path: Arc<str>, outer: ScopeId, outputs: &OutputCounts) -> Self {
        Self {
            outputs_left: outputs.get(&*path).copied().unwrap_or(0),
            path,
            outer,
            counts: BTreeMap::new(),
            steps: 0,
            step: TURN,
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
