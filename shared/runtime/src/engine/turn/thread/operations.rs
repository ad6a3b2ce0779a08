//! What a turn does to the state of its thread.
//!
//! The operations can be applied again to a newer state, after another task was faster. Each
//! belongs to a scope of the turn. Those of a completed step are stored with its result. Each
//! has an id that is the same in each run of the turn, so that a run knows which of them the
//! commit of a step has applied.

use crate::store::ThreadState;
use crate::task::{Message, StepResult, ThreadOperation, is_below};
use a2a_lambda_skill::AgentResult;
use a2a_lambda_skill::turn_host::SessionUpdate;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The operations of a turn, in order.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct Operations {
    entries: Vec<ScopedOperation>,
    /// How many operations each scope has made.
    counts: BTreeMap<Arc<str>, u32>,
    /// Those that the commit of a step has applied in an earlier run.
    applied_ids: BTreeSet<OperationId>,
}

/// The scope that made an operation, and its number there.
type OperationId = Arc<str>;

/// What the commit of a step applies to the session.
#[derive(Debug)]
pub(in crate::engine) struct StepUpdates {
    step: Arc<str>,
    /// The keys that the step updates, each with its operations, also those before the step in
    /// the scopes around it.
    keys: BTreeMap<String, Vec<OperationId>>,
}

#[derive(Debug, Clone)]
struct ScopedOperation {
    id: OperationId,
    /// The path of the scope that it belongs to.
    scope: Arc<str>,
    operation: TurnOperation,
}

#[derive(Debug, Clone)]
enum TurnOperation {
    /// Adds the event, unless an event with its id is there.
    Append(Message),
    Set {
        key: String,
        value: Value,
    },
    Update {
        key: String,
        update: SessionUpdate,
    },
    /// The commit of a step has applied the operations of the step, and these outside of it.
    /// The value is known if this run of the turn made the commit.
    Applied {
        key: String,
        value: Option<Value>,
        outside: Vec<OperationId>,
    },
}

impl TurnOperation {
    fn key(&self) -> Option<&str> {
        match self {
            Self::Append(_) => None,
            Self::Set { key, .. } | Self::Update { key, .. } | Self::Applied { key, .. } => {
                Some(key)
            }
        }
    }

    fn apply(&self, state: &mut ThreadState) -> AgentResult<()> {
        match self {
            Self::Append(event) => {
                if !state.events.iter().any(|there| there.id == event.id) {
                    state.events.push(event.clone());
                }
            }
            Self::Set { key, value } => {
                state.session.insert(key.clone(), value.clone());
            }
            Self::Update { key, update } => {
                let value = update.0(state.session.get(key).cloned())?;
                state.session.insert(key.clone(), value);
            }
            Self::Applied { .. } => {}
        }
        Ok(())
    }
}

/// A session value as the turn sees it.
pub(in crate::engine) enum SessionView {
    /// The turn knows it.
    Known(Value),
    /// The stored value, changed by these updates.
    Stored(Vec<SessionUpdate>),
}

impl Operations {
    fn push(&mut self, scope: Arc<str>, operation: TurnOperation) {
        let number = self.counts.entry(Arc::clone(&scope)).or_default();
        *number += 1;
        let id = format!("{scope}/{number}").into();
        if !self.applied_ids.contains(&id) {
            self.add(id, scope, operation);
        }
    }

    fn add(&mut self, id: OperationId, scope: Arc<str>, operation: TurnOperation) {
        self.entries.push(ScopedOperation {
            id,
            scope,
            operation,
        });
    }

    pub(in crate::engine) fn append(&mut self, scope: Arc<str>, event: Message) {
        self.push(scope, TurnOperation::Append(event));
    }

    pub(in crate::engine) fn set(&mut self, scope: Arc<str>, key: String, value: Value) {
        self.push(scope, TurnOperation::Set { key, value });
    }

    pub(in crate::engine) fn update(
        &mut self,
        scope: Arc<str>,
        key: String,
        update: SessionUpdate,
    ) {
        self.push(scope, TurnOperation::Update { key, update });
    }

    /// The events that the turn adds.
    pub(in crate::engine) fn events(&self) -> impl Iterator<Item = Message> {
        let events = self.entries.iter().map(|entry| match &entry.operation {
            TurnOperation::Append(event) => Some(event.clone()),
            _ => None,
        });
        events.flatten()
    }

    /// Whether there is nothing to apply.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.entries.iter().all(ScopedOperation::is_applied)
    }

    /// The session value `key` as the turn sees it. An update fails with the error of its
    /// value.
    pub(in crate::engine) fn view(&self, key: &str) -> AgentResult<SessionView> {
        let mut view = SessionView::Stored(Vec::new());
        let of_key = |entry: &&ScopedOperation| entry.operation.key() == Some(key);
        for entry in self.entries.iter().filter(of_key) {
            view = match (&entry.operation, view) {
                (TurnOperation::Set { value, .. }, _) => SessionView::Known(value.clone()),
                (TurnOperation::Applied { value, .. }, _) => match value {
                    Some(value) => SessionView::Known(value.clone()),
                    None => SessionView::Stored(Vec::new()),
                },
                (TurnOperation::Update { update, .. }, SessionView::Known(value)) => {
                    SessionView::Known(update.0(Some(value))?)
                }
                (TurnOperation::Update { update, .. }, SessionView::Stored(mut updates)) => {
                    updates.push(update.clone());
                    SessionView::Stored(updates)
                }
                (TurnOperation::Append(_), view) => view,
            };
        }
        Ok(view)
    }

    /// How many operations a scope has made.
    pub(in crate::engine) fn count(&self, scope: &str) -> u32 {
        self.counts.get(scope).copied().unwrap_or(0)
    }

    /// A scope continues behind so many operations: their ids are taken.
    pub(in crate::engine) fn pass(&mut self, scope: Arc<str>, count: u32) {
        let total = self.counts.entry(scope).or_default();
        *total = (*total).max(count);
    }

    /// Drops what a try of a step did that failed: the next one begins as a run does.
    pub(in crate::engine) fn take_back(&mut self, step: &str) {
        self.entries.retain(|entry| !is_within(&entry.scope, step));
        self.counts.retain(|scope, _| !is_within(scope, step));
    }

    /// Moves the operations of an ended step or scope to the scope around it.
    pub(in crate::engine) fn leave(&mut self, path: &str, outer: &Arc<str>) {
        for entry in &mut self.entries {
            if is_within(&entry.scope, path) {
                entry.scope = Arc::clone(outer);
            }
        }
    }

    /// What the commit of a step has to apply.
    pub(in crate::engine) fn updates_of(&self, step: &str) -> StepUpdates {
        let mut keys: BTreeMap<String, Vec<OperationId>> = BTreeMap::new();
        for entry in self.in_step(step) {
            if let TurnOperation::Update { key, .. } = &entry.operation {
                keys.entry(key.clone()).or_default();
            }
        }
        // Operations have an order if one of their scopes contains the other.
        let is_related = |scope: &str| is_within(scope, step) || is_within(step, scope);
        for entry in &self.entries {
            let ids = entry.operation.key().and_then(|key| keys.get_mut(key));
            if !entry.is_applied() && is_related(&entry.scope) {
                ids.into_iter()
                    .for_each(|ids| ids.push(Arc::clone(&entry.id)));
            }
        }
        let step = step.into();
        StepUpdates { step, keys }
    }

    /// What is stored with the result of a step. Its commit applies the `updates`.
    pub(in crate::engine) fn stored_of(&self, updates: &StepUpdates) -> Vec<ThreadOperation> {
        let operation_of = |key: &String, outside: &mut dyn Iterator<Item = &OperationId>| {
            let (key, outside) = (key.clone(), outside.map(ToString::to_string).collect());
            ThreadOperation::Applied { key, outside }
        };
        let operations = self.in_step(&updates.step);
        let operations = operations.filter_map(|entry| match &entry.operation {
            TurnOperation::Append(event) => Some(ThreadOperation::Append(event.clone())),
            TurnOperation::Set { key, value } if !updates.keys.contains_key(key) => {
                Some(ThreadOperation::Set {
                    id: entry.id.to_string(),
                    key: key.clone(),
                    value: value.clone(),
                })
            }
            TurnOperation::Applied { key, outside, .. } => {
                Some(operation_of(key, &mut outside.iter()))
            }
            TurnOperation::Set { .. } | TurnOperation::Update { .. } => None,
        });
        let keys = updates.keys.keys();
        let applications = keys.map(|key| operation_of(key, &mut updates.outside(key)));
        operations.chain(applications).collect()
    }

    /// The operations in a step.
    fn in_step(&self, step: &str) -> impl Iterator<Item = &ScopedOperation> {
        let entries = self.entries.iter();
        entries.filter(move |entry| is_within(&entry.scope, step))
    }

    /// Adds what a step did in an earlier run of the turn.
    pub(in crate::engine) fn replay(&mut self, step: &Arc<str>, result: &StepResult) {
        for operation in &result.operations {
            let (id, operation) = match operation.clone() {
                ThreadOperation::Append(event) => (no_id(), TurnOperation::Append(event)),
                ThreadOperation::Set { id, key, value } => {
                    (id.into(), TurnOperation::Set { key, value })
                }
                ThreadOperation::Applied { key, outside } => {
                    let outside: Vec<OperationId> = outside.into_iter().map(Arc::from).collect();
                    self.applied_ids.extend(outside.iter().cloned());
                    let operation = TurnOperation::Applied {
                        key,
                        value: None,
                        outside,
                    };
                    (no_id(), operation)
                }
            };
            self.add(id, Arc::clone(step), operation);
        }
        let applied_ids = &self.applied_ids;
        self.entries
            .retain(|entry| !applied_ids.contains(&entry.id));
    }

    /// Applies the operations that `which` selects.
    pub(in crate::engine) fn apply(
        &self,
        state: &mut ThreadState,
        which: Option<&[StepUpdates]>,
    ) -> AgentResult<()> {
        for entry in &self.entries {
            if which.is_none_or(|updates| updates.iter().any(|update| update.has(entry))) {
                entry.operation.apply(state)?;
            }
        }
        Ok(())
    }

    /// The session values that [`apply`](Self::apply) changes.
    pub(in crate::engine) fn keys(&self, which: Option<&[StepUpdates]>) -> BTreeSet<String> {
        let is_chosen = |entry: &&ScopedOperation| {
            let has = |all: &[StepUpdates]| all.iter().any(|updates| updates.has(entry));
            !entry.is_applied() && which.is_none_or(has)
        };
        let entries = self.entries.iter().filter(is_chosen);
        let keys = entries.filter_map(|entry| entry.operation.key());
        keys.map(str::to_owned).collect()
    }

    /// Notes that a commit of steps has applied these updates. `state` is what it stored.
    pub(in crate::engine) fn note_applied(&mut self, updates: &[StepUpdates], state: &ThreadState) {
        for updates in updates {
            for key in updates.keys.keys() {
                let operation = TurnOperation::Applied {
                    key: key.clone(),
                    value: state.session.get(key).cloned(),
                    outside: updates.outside(key).cloned().collect(),
                };
                let is_of_key = |entry: &ScopedOperation| {
                    entry.operation.key() == Some(key.as_str()) && updates.has(entry)
                };
                // The commit of a failed step may be late: what the turn has done since then to
                // the value comes after it.
                let last = self.entries.iter().rposition(is_of_key);
                let entry = ScopedOperation {
                    id: no_id(),
                    scope: Arc::clone(&updates.step),
                    operation,
                };
                self.entries
                    .insert(last.map_or(self.entries.len(), |index| index + 1), entry);
            }
            self.entries.retain(|entry| !updates.has(entry));
        }
    }
}

impl StepUpdates {
    /// The updates, if there is something to apply.
    pub(in crate::engine) fn into_some(self) -> Option<Self> {
        (!self.keys.is_empty()).then_some(self)
    }

    fn has(&self, entry: &ScopedOperation) -> bool {
        let ids = entry.operation.key().and_then(|key| self.keys.get(key));
        ids.is_some_and(|ids| ids.contains(&entry.id))
    }

    /// The operations of `key` that the step did not make: the id of an operation has the path
    /// of the scope that made it.
    fn outside(&self, key: &str) -> impl Iterator<Item = &OperationId> {
        let is_own = |id: &str| {
            let scope = id.rsplit_once('/');
            scope.is_some_and(|(scope, _)| is_within(scope, &self.step))
        };
        let ids = self.keys.get(key).into_iter().flatten();
        ids.filter(move |id| !is_own(id))
    }
}

impl ScopedOperation {
    /// Whether a commit of a step has applied it.
    fn is_applied(&self) -> bool {
        matches!(self.operation, TurnOperation::Applied { .. })
    }
}

/// The id of what no commit of a step applies.
fn no_id() -> OperationId {
    "".into()
}

/// Whether `scope` is the step or inside it.
fn is_within(scope: &str, step: &str) -> bool {
    scope == step || is_below(scope, step)
}

#[cfg(test)]
mod tests;
