//! What a turn does to the state of its thread.
//!
//! The operations can be applied again to a newer state, after another task was faster. Each
//! belongs to a scope of the turn. Those of a completed step are stored with its result.

use crate::skill::AgentResult;
use crate::skill::turn_host::SessionUpdate;
use crate::store::ThreadState;
use crate::task::{Message, StepResult, ThreadOperation, is_below};
use serde_json::Value;
use std::sync::Arc;

/// The operations of a turn, in order.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct Operations {
    entries: Vec<ScopedOperation>,
    next_id: u64,
}

#[derive(Debug, Clone)]
struct ScopedOperation {
    id: u64,
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
    /// The commit of a step has applied what came before. The value is known if this run of the
    /// turn made the commit.
    Applied {
        key: String,
        value: Option<Value>,
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
        let id = self.next_id;
        self.next_id += 1;
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
        let mut entries = self.entries.iter();
        entries.all(|entry| matches!(entry.operation, TurnOperation::Applied { .. }))
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

    /// The session keys that the step updates, with the ids of the operations that its commit
    /// has to apply.
    pub(in crate::engine) fn updates_of(&self, step: &str) -> (Vec<String>, Vec<u64>) {
        let within = |entry: &&ScopedOperation| is_within(&entry.scope, step);
        let is_update =
            |entry: &ScopedOperation| matches!(entry.operation, TurnOperation::Update { .. });
        let mut keys: Vec<String> = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(within)
            .filter(|it| is_update(it))
        {
            keys.extend(entry.operation.key().map(str::to_owned));
        }
        keys.sort_unstable();
        keys.dedup();
        let mut ids = Vec::new();
        for entry in &self.entries {
            let key = entry.operation.key();
            let is_updated = key.is_some_and(|key| keys.iter().any(|it| it == key));
            if is_updated && is_related(&entry.scope, step) {
                ids.push(entry.id);
            }
        }
        (keys, ids)
    }

    /// What is stored with the result of a step. Its commit applies the changes of
    /// `updated_keys`.
    pub(in crate::engine) fn stored_of(
        &self,
        step: &str,
        updated_keys: &[String],
    ) -> Vec<ThreadOperation> {
        let within = self.entries.iter().filter(|it| is_within(&it.scope, step));
        let stored = within.filter_map(|entry| match &entry.operation {
            TurnOperation::Append(event) => Some(ThreadOperation::Append(event.clone())),
            TurnOperation::Set { key, .. } if updated_keys.contains(key) => None,
            TurnOperation::Set { key, value } => Some(ThreadOperation::Set {
                key: key.clone(),
                value: value.clone(),
            }),
            TurnOperation::Applied { key, .. } => {
                Some(ThreadOperation::Applied { key: key.clone() })
            }
            TurnOperation::Update { .. } => None,
        });
        let applied = updated_keys
            .iter()
            .map(|key| ThreadOperation::Applied { key: key.clone() });
        stored.chain(applied).collect()
    }

    /// Adds what a step did in an earlier run of the turn.
    pub(in crate::engine) fn replay(&mut self, step: &Arc<str>, result: &StepResult) {
        for operation in &result.operations {
            let operation = match operation.clone() {
                ThreadOperation::Append(event) => TurnOperation::Append(event),
                ThreadOperation::Set { key, value } => TurnOperation::Set { key, value },
                ThreadOperation::Applied { key } => {
                    self.entries.retain(|entry| {
                        entry.operation.key() != Some(&key) || !is_related(&entry.scope, step)
                    });
                    TurnOperation::Applied { key, value: None }
                }
            };
            self.push(Arc::clone(step), operation);
        }
    }

    /// Applies the operations that `which` selects.
    ///
    /// # Errors
    /// The error of an update.
    pub(in crate::engine) fn apply(
        &self,
        state: &mut ThreadState,
        which: Option<&[u64]>,
    ) -> AgentResult<()> {
        for entry in &self.entries {
            if which.is_none_or(|ids| ids.contains(&entry.id)) {
                entry.operation.apply(state)?;
            }
        }
        Ok(())
    }

    /// Notes that a commit of steps has applied these operations. `state` is what it stored.
    pub(in crate::engine) fn note_applied(&mut self, ids: &[u64], state: &ThreadState) {
        let mut last: Vec<(Arc<str>, String)> = Vec::new();
        self.entries.retain(|entry| {
            let is_applied = ids.contains(&entry.id);
            if let Some(key) = entry.operation.key().filter(|_| is_applied) {
                last.retain(|(_, other)| other != key);
                last.push((Arc::clone(&entry.scope), key.to_owned()));
            }
            !is_applied
        });
        for (scope, key) in last {
            let value = state.session.get(&key).cloned();
            self.push(scope, TurnOperation::Applied { key, value });
        }
    }
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
