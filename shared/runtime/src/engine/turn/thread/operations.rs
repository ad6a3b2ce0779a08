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
    /// The keys that the step updates.
    keys: Vec<String>,
    /// The operations of these keys, also those before it in the scopes around it.
    ids: Vec<OperationId>,
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
        let within = self
            .entries
            .iter()
            .filter(|entry| is_within(&entry.scope, step));
        let keys = within.filter_map(|entry| match &entry.operation {
            TurnOperation::Update { key, .. } => Some(key.clone()),
            _ => None,
        });
        let keys: BTreeSet<String> = keys.collect();
        let entries = self.entries.iter().filter(|entry| {
            let is_updated = entry.operation.key().is_some_and(|key| keys.contains(key));
            is_updated && !entry.is_applied() && is_related(&entry.scope, step)
        });
        StepUpdates {
            step: step.into(),
            ids: entries.map(|entry| Arc::clone(&entry.id)).collect(),
            keys: keys.into_iter().collect(),
        }
    }

    /// What is stored with the result of a step. Its commit applies the `updates`.
    pub(in crate::engine) fn stored_of(&self, updates: &StepUpdates) -> Vec<ThreadOperation> {
        let step = &*updates.step;
        let within = self
            .entries
            .iter()
            .filter(|entry| is_within(&entry.scope, step));
        let operations = within.filter_map(|entry| match &entry.operation {
            TurnOperation::Append(event) => Some(ThreadOperation::Append(event.clone())),
            TurnOperation::Set { key, .. } if updates.keys.contains(key) => None,
            TurnOperation::Set { key, value } => Some(ThreadOperation::Set {
                id: entry.id.to_string(),
                key: key.clone(),
                value: value.clone(),
            }),
            TurnOperation::Applied { key, outside, .. } => Some(ThreadOperation::Applied {
                key: key.clone(),
                outside: outside.iter().map(ToString::to_string).collect(),
            }),
            TurnOperation::Update { .. } => None,
        });
        let applications = updates.keys.iter().map(|key| ThreadOperation::Applied {
            key: key.clone(),
            outside: self
                .outside_of(updates, key)
                .map(|id| id.to_string())
                .collect(),
        });
        operations.chain(applications).collect()
    }

    /// The operations of `key` that the commit of a step applies, and that it did not make.
    fn outside_of<'s>(
        &'s self,
        updates: &'s StepUpdates,
        key: &'s str,
    ) -> impl Iterator<Item = &'s OperationId> {
        let outside = self.entries.iter().filter(move |entry| {
            let is_of_key = entry.operation.key() == Some(key);
            is_of_key && updates.ids.contains(&entry.id) && !is_within(&entry.scope, &updates.step)
        });
        outside.map(|entry| &entry.id)
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
    ///
    /// # Errors
    /// The error of an update.
    pub(in crate::engine) fn apply(
        &self,
        state: &mut ThreadState,
        which: Option<&[StepUpdates]>,
    ) -> AgentResult<()> {
        let is_of = |entry: &ScopedOperation, updates: &[StepUpdates]| {
            updates.iter().any(|update| update.ids.contains(&entry.id))
        };
        for entry in &self.entries {
            if which.is_none_or(|updates| is_of(entry, updates)) {
                entry.operation.apply(state)?;
            }
        }
        Ok(())
    }

    /// Notes that a commit of steps has applied these updates. `state` is what it stored.
    pub(in crate::engine) fn note_applied(&mut self, updates: &[StepUpdates], state: &ThreadState) {
        for updates in updates {
            for key in &updates.keys {
                let operation = TurnOperation::Applied {
                    key: key.clone(),
                    value: state.session.get(key).cloned(),
                    outside: self.outside_of(updates, key).cloned().collect(),
                };
                self.add(no_id(), Arc::clone(&updates.step), operation);
            }
        }
        self.entries
            .retain(|entry| !updates.iter().any(|update| update.ids.contains(&entry.id)));
    }
}

impl StepUpdates {
    /// The updates, if there is something to apply.
    pub(in crate::engine) fn into_some(self) -> Option<Self> {
        (!self.keys.is_empty()).then_some(self)
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

/// Whether one of the two contains the other, so that their operations have an order.
fn is_related(scope: &str, step: &str) -> bool {
    is_within(scope, step) || is_within(step, scope)
}

#[cfg(test)]
mod tests;
