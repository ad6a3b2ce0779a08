//! The steps and scopes of a running turn, and the stored results that belong to them.
//!
//! A turn that runs again has to begin the same steps. Each step is found by its path and
//! compared by its ordinal, its name and its input, so no step gets the result of another.
//!
//! - here: what has begun, and how it ends
//! - `order`: gives the results one at a time, in their order
//! - `paths`: what a path means

mod order;
mod paths;

use self::order::ResultOrder;
use self::paths::{NumberedPath, SAVE, WAIT, encode, is_wait, is_within, outer_path, saves_until};
use crate::clock::lock;
use crate::engine::turn_break::StepChangedError;
use crate::task::{
    Base, OutputCounts, PATH_SEPARATOR, SavePlace, Saved, StepOutcome, StepResult, Timestamp,
    is_below,
};
use a2a_lambda_skill::turn_host::{ScopeId, Step, StepInput};
use a2a_lambda_skill::{AgentError, AgentResult};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};

/// The turn itself, as the outermost scope.
const TURN: ScopeId = ScopeId(0);

/// The steps and scopes of a turn.
pub(in crate::engine) struct Scopes {
    state: Mutex<ScopeTable>,
    /// The stored steps by scope and ordinal, as the turn began.
    stored_steps: BTreeMap<(String, u32), String>,
}

struct ScopeTable {
    turn: OpenScope,
    /// The others: the first has the id 1.
    scopes: Vec<OpenScope>,
    current: ScopeId,
    /// The stored results that the skill has not asked for, and has to.
    leftovers: BTreeSet<String>,
    /// The stored results of a branch that another one may have won against.
    beside_branches: BTreeSet<String>,
    /// How many outputs the turn had sent before it began again, by scope.
    outputs: OutputCounts,
    order: ResultOrder,
    /// The steps, waits and saves that are open, by path.
    open: BTreeMap<String, StepProgress>,
    /// Calls of the skill that wait for the engine. Meanwhile no result is given.
    calls: usize,
}

/// How far a step, a wait or a save is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum StepProgress {
    /// It waits until all stored results were given.
    Held,
    /// An earlier run has stored its result.
    Asked,
    /// In an earlier run the skill has dropped it.
    Abandoned,
    /// Its work runs.
    Runs,
    /// It has its result, and the skill has not got it.
    Sent,
}

/// A step or scope that has begun.
struct OpenScope {
    path: Arc<str>,
    outer: ScopeId,
    /// How many steps, scopes, waits and saves of each name it has begun.
    counts: BTreeMap<String, u32>,
    /// How many steps it has begun.
    steps: u32,
    /// The innermost step around it, or itself; [`TURN`] outside of steps.
    step: ScopeId,
    /// The step that is open in it.
    open_step: Option<ScopeId>,
    /// The names of the scopes that are open in it.
    open_scopes: BTreeMap<ScopeId, String>,
    /// How many outputs it has sent.
    output_count: u32,
    /// How many of its next outputs an earlier run has sent.
    outputs_left: u32,
    /// How many events it has added to the thread.
    events: u32,
    /// How often it has loaded each session value.
    reads: BTreeMap<String, u32>,
    /// Whether a step in it has ended, so that it must not be tried again.
    has_ended_step: bool,
    /// The path and number of the saved value behind which it continues.
    continues_behind: Option<NumberedPath>,
}

impl Scopes {
    /// The scopes of a turn that began at `began_at` and begins now with these stored values.
    pub(in crate::engine) fn new(values: &Saved, base: &Base, began_at: Timestamp) -> Self {
        let entry = |(path, result): (&String, &StepResult)| {
            ((outer_path(path).to_owned(), result.ordinal), path.clone())
        };
        let order = values.steps.iter().filter_map(|(path, result)| {
            let number = result.number?;
            Some((number, path.clone(), result.ended_at))
        });
        let is_due = |result: &StepResult| {
            let outcome = &result.outcome;
            outcome.is_progress() || *outcome == StepOutcome::Waited
        };
        let due = values.steps.iter().filter(|(_, it)| is_due(it));
        let beside = values.steps.iter().filter(|(_, it)| it.is_beside_branch);
        let steps = values.steps.iter().filter(|(_, it)| it.ordinal > 0);
        Self {
            state: Mutex::new(ScopeTable {
                turn: OpenScope::new("".into(), TURN, TURN, &base.outputs),
                scopes: Vec::new(),
                current: TURN,
                leftovers: due.map(|(path, _)| path.clone()).collect(),
                beside_branches: beside.map(|(path, _)| path.clone()).collect(),
                outputs: base.outputs.clone(),
                order: ResultOrder::new(order, began_at),
                open: BTreeMap::new(),
                calls: 0,
            }),
            stored_steps: steps.map(entry).collect(),
        }
    }

    /// Begins a step in the current scope.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if another step of the scope is open.
    pub(in crate::engine) fn begin_step(&self, name: &str, input: StepInput) -> AgentResult<Step> {
        let mut state = lock(&self.state);
        let outer = state.current;
        if let Some(open) = state.scope(outer).open_step {
            let open = &state.scope(open).path;
            let what = format!("the step `{name}` begins while `{open}` is open");
            return Err(overlap(&what));
        }
        let scope = state.begin(&encode(name));
        let outer = state.scope_mut(outer);
        outer.steps += 1;
        outer.open_step = Some(scope);
        let ordinal = outer.steps;
        let step = state.scope_mut(scope);
        step.step = scope;
        let key = step.path.to_string();
        state.leftovers.remove(&key);
        Ok(Step {
            scope,
            key,
            ordinal,
            input,
        })
    }

    /// Checks that `result`, the stored result of a step, belongs to it.
    ///
    /// # Errors
    /// [`StepChangedError`] if the stored turn has another step at this position, or asked
    /// this one something else.
    pub(in crate::engine) fn check(
        &self,
        step: &Step,
        result: Option<&StepResult>,
    ) -> Result<(), StepChangedError> {
        let at = |key: &str, ordinal: u32| format!("`{key}` as step {ordinal}");
        let now = at(&step.key, step.ordinal);
        let position = (outer_path(&step.key).to_owned(), step.ordinal);
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
        // What an abandoned step was asked is not kept.
        if result.input_hash != step.input.hash && result.outcome != StepOutcome::Abandoned {
            let with = |hash: &Option<String>| {
                let hash = hash.as_deref().unwrap_or("none");
                format!("`{}` with the input hash {hash}", step.key)
            };
            let (before, now) = (with(&result.input_hash), with(&step.input.hash));
            return Err(StepChangedError { before, now });
        }
        Ok(())
    }

    /// Checks that a step asked for all stored results in it before it ended, or, with an empty
    /// path, the turn.
    ///
    /// # Errors
    /// [`StepChangedError`].
    pub(in crate::engine) fn check_end(&self, path: &str) -> Result<(), StepChangedError> {
        let state = lock(&self.state);
        let mut below = state.leftovers.iter().filter(|it| is_below(it, path));
        match below.find(|it| !state.has_lost(it)) {
            Some(leftover) => Err(StepChangedError {
                before: format!("`{leftover}`"),
                now: match path {
                    "" => "its end".to_owned(),
                    path => format!("the end of `{path}`"),
                },
            }),
            None => Ok(()),
        }
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
        let inner = state.begin(&encode(name));
        let open_scopes = &mut state.scope_mut(outer).open_scopes;
        open_scopes.insert(inner, name.to_owned());
        Ok(inner)
    }

    /// Begins a wait in the current scope; returns its path.
    pub(in crate::engine) fn begin_wait(&self, name: &str) -> String {
        let mut state = lock(&self.state);
        let path = state.next_path(&format!("{WAIT}{}", encode(name)));
        state.leftovers.remove(&path);
        path
    }

    /// Begins a save in the current scope; returns its path.
    pub(in crate::engine) fn begin_save(&self, key: &str) -> String {
        lock(&self.state).next_path(&format!("{SAVE}{}", encode(key)))
    }

    /// Sets how far a step, a wait or a save is.
    pub(in crate::engine) fn set_progress(&self, path: &str, progress: StepProgress) {
        lock(&self.state).open.insert(path.to_owned(), progress);
    }

    /// Waits until the stored result with this number is given. It is then over.
    pub(in crate::engine) async fn wait_for_stored(&self, path: &str, number: u64) {
        self.set_progress(path, StepProgress::Asked);
        lock(&self.state).order.make_ready(number);
        self.wait_until_given(path, number).await;
    }

    /// Waits until the result with this number is given. It is then over.
    pub(in crate::engine) async fn wait_until_given(&self, path: &str, number: u64) {
        poll_fn(|task| lock(&self.state).order.poll_given(number, task)).await;
        let mut state = lock(&self.state);
        state.open.remove(path);
        state.note_end(path);
    }

    /// Waits until all stored results were given. It does not wait if `has_inner`: an earlier run
    /// has stored a result below this path, so it began before.
    pub(in crate::engine) async fn wait_for_turn(&self, path: &str, has_inner: bool) {
        if !has_inner {
            self.set_progress(path, StepProgress::Held);
            poll_fn(|task| lock(&self.state).order.poll_stored(task)).await;
        }
        self.set_progress(path, StepProgress::Runs);
    }

    /// Whether a stored result was not given.
    pub(in crate::engine) fn has_stored(&self) -> bool {
        lock(&self.state).order.has_stored()
    }

    /// Numbers the result of a step, wait or save that came to be at `at`. The results below it
    /// are no longer given.
    pub(in crate::engine) fn number(&self, path: &str, at: Timestamp) -> u64 {
        let mut state = lock(&self.state);
        state.forget_below(path);
        state.open.insert(path.to_owned(), StepProgress::Sent);
        state.order.number(path, at)
    }

    /// Numbers a value that the skill saves at `at`. While stored results are left to give, the
    /// save does not wait for them: it only gets a number. Otherwise it has its place in the order.
    pub(in crate::engine) fn number_save(&self, path: &str, at: Timestamp) -> u64 {
        if self.has_stored() {
            return lock(&self.state).order.next_number();
        }
        self.number(path, at)
    }

    /// A result of this run may be given.
    pub(in crate::engine) fn make_ready(&self, number: u64) {
        lock(&self.state).order.make_ready(number);
    }

    /// Gives the skill, which waits, its next result, or drops that of a branch that has lost;
    /// `false` if there is none, or if the skill waits for the engine.
    pub(in crate::engine) fn give(&self) -> bool {
        let mut state = lock(&self.state);
        if state.calls > 0 || state.order.give() {
            return state.calls == 0;
        }
        let next = state.order.next_stored();
        let loser = next.filter(|next| state.has_lost(next)).map(str::to_owned);
        if let Some(loser) = &loser {
            state.order.remove(|path| path == loser);
        }
        loser.is_some()
    }

    /// Whether another branch runs beside a step or wait: it is in a scope or step that is open, or
    /// waits for the engine.
    pub(in crate::engine) fn is_beside_branch(&self, path: &str) -> bool {
        let mut state = lock(&self.state);
        let open = |scope: &OpenScope| {
            let scopes = scope.open_scopes.keys().chain(&scope.open_step);
            scopes.copied().collect::<Vec<_>>()
        };
        let open: Vec<_> = state.all_mut().flat_map(|scope| open(scope)).collect();
        let mut others = open.iter().map(|id| &state.scope(*id).path);
        let is_related =
            |other: &str| other == path || is_below(other, path) || is_below(path, other);
        state.calls > 0 || others.any(|other| !is_related(other))
    }

    /// A call that waits for the engine, until this is dropped.
    pub(in crate::engine) fn call(&self) -> EngineCall<'_> {
        lock(&self.state).calls += 1;
        EngineCall(self)
    }

    /// Whether the skill can continue only if the engine gives it a result.
    pub(in crate::engine) fn is_stuck(&self) -> bool {
        let state = lock(&self.state);
        let mut innermost = state.innermost();
        !state.open.is_empty() && innermost.all(|(_, progress)| progress != StepProgress::Runs)
    }

    /// Whether no step works. One that waits, or only for what is below it, does not.
    pub(in crate::engine) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        let mut innermost = state.innermost();
        innermost.all(|(path, progress)| progress != StepProgress::Runs || is_wait(path))
    }

    /// The error of a turn that is stuck.
    pub(in crate::engine) fn stuck(&self) -> StepChangedError {
        let state = lock(&self.state);
        let open: Vec<_> = state.open.keys().map(String::as_str).collect();
        let leftovers: Vec<_> = state.leftovers.iter().map(String::as_str).collect();
        StepChangedError {
            before: format!("`{}`", leftovers.join("`, `")),
            now: format!("`{}` and does not continue", open.join("`, `")),
        }
    }

    /// Whether a step may give its turn back to wait: no other step runs.
    pub(in crate::engine) fn is_only_step(&self, path: &str) -> bool {
        let state = lock(&self.state);
        let mut others = state.open.iter().filter(|(other, _)| *other != path);
        !others.any(|(other, progress)| *progress == StepProgress::Runs || is_below(path, other))
    }

    /// Whether a step in this one has ended.
    pub(in crate::engine) fn has_ended_step(&self, scope: ScopeId) -> bool {
        lock(&self.state).scope(scope).has_ended_step
    }

    /// Begins another try of a step: it begins as in another run.
    pub(in crate::engine) fn begin_again(&self, scope: ScopeId) {
        let mut state = lock(&self.state);
        let path = Arc::clone(&state.scope(scope).path);
        let mut outputs = std::mem::take(&mut state.outputs);
        for inner in state.all_mut() {
            if is_within(&inner.path, &path) {
                let output_count = outputs.entry(inner.path.to_string()).or_default();
                *output_count = (*output_count).max(std::mem::take(&mut inner.output_count));
            }
        }
        let before = state.scope_mut(scope);
        *before = OpenScope {
            step: before.step,
            ..OpenScope::new(path, before.outer, before.step, &outputs)
        };
        state.outputs = outputs;
    }

    /// Makes a scope the current one; returns the one before it.
    pub(in crate::engine) fn enter(&self, scope: ScopeId) -> ScopeId {
        std::mem::replace(&mut lock(&self.state).current, scope)
    }

    /// The path and number of the saved value behind which a scope continues.
    pub(in crate::engine) fn save_before(&self, scope: ScopeId) -> Option<NumberedPath> {
        lock(&self.state).scope(scope).continues_behind.clone()
    }

    /// Ends a step or scope; returns its path, that of the scope around it, and its ordinal.
    pub(in crate::engine) fn leave(&self, id: ScopeId) -> (Arc<str>, Arc<str>, u32) {
        let mut state = lock(&self.state);
        let path = Arc::clone(&state.scope(id).path);
        let outer = state.scope(id).outer;
        let scope = state.scope_mut(outer);
        scope.open_step.take_if(|open| *open == id);
        scope.open_scopes.remove(&id);
        (path, Arc::clone(&scope.path), scope.steps)
    }

    /// The skill drops what is at this path: its results are no longer given. Returns how far it
    /// was, if it was a step, a wait or a save.
    pub(in crate::engine) fn drop_path(&self, path: &str) -> Option<StepProgress> {
        let mut state = lock(&self.state);
        let progress = state.open.remove(path);
        state.forget_below(path);
        state.order.remove(|it| it == path);
        if progress.is_some() {
            state.note_end(path);
        }
        progress
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

    /// The path of the current scope and the number of its next load of a session value, from 1.
    pub(in crate::engine) fn next_read(&self, key: &str) -> (Arc<str>, u32) {
        let mut state = lock(&self.state);
        let scope = state.current_mut();
        let number = scope.reads.entry(key.to_owned()).or_default();
        *number += 1;
        (Arc::clone(&scope.path), *number)
    }

    /// The path of the current scope, for its next output; `None` if an earlier run of the
    /// turn has said an output at this position.
    pub(in crate::engine) fn next_output(&self) -> Option<Arc<str>> {
        let mut state = lock(&self.state);
        let scope = state.current_mut();
        scope.output_count += 1;
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

    /// The path of the innermost step around what runs now; empty outside of steps.
    pub(in crate::engine) fn step_path(&self) -> Arc<str> {
        let step = self.step();
        Arc::clone(&lock(&self.state).scope(step).path)
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

    /// When the last result that the skill got came to be.
    pub(in crate::engine) fn given_at(&self) -> Timestamp {
        lock(&self.state).order.given_at()
    }

    /// Where the current scope is at `at`.
    pub(in crate::engine) fn save_place(&self, at: Timestamp) -> SavePlace {
        let mut state = lock(&self.state);
        let scope = state.current_mut();
        // The stored results have the counts of saved values: here they would grow with the square
        // of the number of keys.
        let counts = scope.counts.iter();
        let counts = counts.filter(|(name, _)| !name.starts_with(SAVE));
        SavePlace {
            scope: scope.path.to_string(),
            counts: counts.map(|(name, count)| (name.clone(), *count)).collect(),
            steps: scope.steps,
            outputs: scope.output_count,
            events: scope.events,
            operations: 0,
            reads: scope.reads.clone(),
            at,
        }
    }

    /// Checks that no step or scope is open in the current scope beside the call.
    ///
    /// # Errors
    /// `INTERNAL_ERROR`.
    pub(in crate::engine) fn check_alone(&self, key: &str) -> AgentResult<()> {
        let mut state = lock(&self.state);
        let scope = state.current_mut();
        if scope.open_step.is_none() && scope.open_scopes.is_empty() {
            return Ok(());
        }
        Err(overlap(&format!(
            "the value `{key}` is loaded while a step or scope is open beside it"
        )))
    }

    /// The skill has loaded the value `key`, which an earlier run of the turn saved at `save_place`.
    /// If it is in that scope it continues behind that place: returns whether a path is of what it
    /// passes. `steps` are the stored results.
    pub(in crate::engine) fn continue_behind(
        &self,
        key: &str,
        save_place: &SavePlace,
        steps: &BTreeMap<String, StepResult>,
    ) -> Option<impl Fn(&str) -> bool + use<>> {
        let mut state = lock(&self.state);
        state.order.pass(save_place.at);
        let scope = state.current_mut();
        if *scope.path != *save_place.scope {
            return None;
        }
        let output_count = save_place.outputs.saturating_sub(scope.output_count);
        scope.outputs_left = scope.outputs_left.saturating_sub(output_count);
        scope.output_count = scope.output_count.max(save_place.outputs);
        scope.steps = scope.steps.max(save_place.steps);
        scope.events = scope.events.max(save_place.events);
        for (key, count) in &save_place.reads {
            let reads = scope.reads.entry(key.clone()).or_default();
            *reads = (*reads).max(*count);
        }
        let mut counts = save_place.counts.clone();
        let last = format!("{SAVE}{}", encode(key));
        let (saves, end) = saves_until(&last, &save_place.scope, steps);
        let number = end.as_ref().map(|(_, number)| *number);
        scope.continues_behind = end;
        for (name, count) in saves {
            let last = counts.entry(name.to_owned()).or_default();
            *last = (*last).max(count);
        }
        let mut ranges = BTreeMap::new();
        for (name, count) in counts {
            let total = scope.counts.entry(name.clone()).or_default();
            ranges.insert(name, *total..count);
            *total = (*total).max(count);
        }
        let outer = save_place.scope.clone();
        let is_passed = move |path: &str| {
            let inner = match &*outer {
                "" => Some(path),
                outer => path
                    .strip_prefix(outer)
                    .and_then(|it| it.strip_prefix(PATH_SEPARATOR)),
            };
            let element = inner.and_then(|inner| inner.split(PATH_SEPARATOR).next());
            let Some((name, number)) = element.and_then(|element| element.rsplit_once('#')) else {
                return false;
            };
            let range = ranges.get(name);
            let number = number.parse::<u32>().ok().and_then(|it| it.checked_sub(1));
            number.is_some_and(|number| range.is_some_and(|range| range.contains(&number)))
        };
        state.leftovers.retain(|path| !is_passed(path));
        state.order.pass_until(number, &is_passed);
        Some(is_passed)
    }
}

/// A call of the skill that waits for the engine.
pub(in crate::engine) struct EngineCall<'a>(&'a Scopes);

impl Drop for EngineCall<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).calls -= 1;
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

    /// What is open and has nothing open below it.
    fn innermost(&self) -> impl Iterator<Item = (&str, StepProgress)> {
        let innermost = self.open.iter().filter(|(path, _)| {
            let mut others = self.open.keys();
            !others.any(|other| is_below(other, path))
        });
        innermost.map(|(path, progress)| (path.as_str(), *progress))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut OpenScope> {
        std::iter::once(&mut self.turn).chain(&mut self.scopes)
    }

    /// The next path of this name in the current scope. It has the number of the name there
    /// (`order#1>pay#2`), so a turn that runs again finds the stored result of the same step.
    fn next_path(&mut self, name: &str) -> String {
        let scope = self.current_mut();
        let number = scope.counts.entry(name.to_owned()).or_default();
        *number += 1;
        match &*scope.path {
            "" => format!("{name}#{number}"),
            path => format!("{path}{PATH_SEPARATOR}{name}#{number}"),
        }
    }

    /// Opens a step or scope inside of the current one. Scope 0 is the turn. The caller makes the
    /// new scope the current one.
    fn begin(&mut self, name: &str) -> ScopeId {
        let outer = self.current;
        let path = self.next_path(name);
        let step = self.scope(outer).step;
        let inner = OpenScope::new(path.into(), outer, step, &self.outputs);
        self.scopes.push(inner);
        ScopeId(self.scopes.len())
    }

    /// Whether the result of a path is of a branch that has lost a race before it began in this run.
    /// What the winner has done in earlier runs takes no time in this one, so it may be at its end
    /// before the skill polls the other branch. That branch may be only a wait: a timeout.
    fn has_lost(&self, path: &str) -> bool {
        let mut ends = path.match_indices(PATH_SEPARATOR).map(|(end, _)| end);
        let has_begun = |end| {
            let outer = path.get(..end).unwrap_or_default();
            self.scopes.iter().any(|scope| *scope.path == *outer)
        };
        self.beside_branches.contains(path) && (is_wait(path) || !ends.all(has_begun))
    }

    /// The skill can no longer ask for the results below this path.
    fn forget_below(&mut self, path: &str) {
        self.leftovers.retain(|left| !is_below(left, path));
        self.order.remove(|it| is_below(it, path));
    }

    /// A step, wait or save has ended: the step around it must not be tried again.
    fn note_end(&mut self, path: &str) {
        for scope in self.all_mut() {
            scope.has_ended_step |= is_below(path, &scope.path);
        }
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
            output_count: 0,
            events: 0,
            reads: BTreeMap::new(),
            has_ended_step: false,
            continues_behind: None,
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
