//! What a turn reads outside of steps: a turn that runs again reads the same.

use super::TurnHandle;
use crate::clock::lock;
use crate::task::{SessionRead, SessionReads};
use a2a_lambda_skill::{AgentResult, MeterCalls as _};
use serde_json::Value;
use std::sync::Mutex;

/// The session values that a turn has loaded outside of steps.
#[derive(Debug)]
pub(super) struct ReadLog {
    /// What the earlier runs of the turn have loaded.
    earlier_reads: SessionReads,
    /// How many bytes may be kept.
    limit: usize,
    state: Mutex<ReadState>,
}

#[derive(Debug, Default)]
struct ReadState {
    /// What this run has loaded and no change has kept.
    unsent: Vec<SessionRead>,
    size: usize,
}

impl ReadLog {
    pub(super) fn new(earlier_reads: SessionReads, limit: usize) -> Self {
        let values = earlier_reads
            .values()
            .flat_map(|keys| keys.values().flatten());
        let size = values.map(|(_, value)| size_of_value(value.as_ref())).sum();
        let state = Mutex::new(ReadState {
            unsent: Vec::new(),
            size,
        });
        Self {
            earlier_reads,
            limit,
            state,
        }
    }

    /// What the load `number` of a key gave in an earlier run.
    fn earlier(&self, scope: &str, key: &str, number: u32) -> Option<Option<Value>> {
        let mut remaining = number;
        let loads = self.earlier_reads.get(scope)?.get(key)?;
        let load = loads.iter().find(|(count, _)| {
            let is_here = remaining <= *count;
            remaining = remaining.saturating_sub(*count);
            is_here
        });
        load.map(|(_, value)| value.clone())
    }

    /// What the next change of the turn keeps.
    pub(super) fn take(&self) -> Vec<SessionRead> {
        std::mem::take(&mut lock(&self.state).unsent)
    }

    /// Keeps a load; `false` if there are too many.
    fn keep(&self, read: SessionRead) -> bool {
        let mut state = lock(&self.state);
        state.size += read.key.len() + size_of_value(read.value.as_ref());
        let fits = state.size <= self.limit;
        if fits {
            state.unsent.push(read);
        }
        fits
    }
}

/// The key of the tokens that were left, in the namespace of this project: the keys of authors do
/// not begin like this.
const TOKENS_LEFT: &str = "a2a-lambda/tokens-left";

impl TurnHandle<'_> {
    /// Loads a session value. Outside of steps each run of the turn gets the same.
    pub(super) async fn read_session(&self, key: String) -> AgentResult<Option<Value>> {
        let _call = self.scopes.call();
        if self.scopes.is_in_step() {
            return self
                .value_or_end_turn(self.turn_thread.load(&key).await)
                .await?;
        }
        let (scope, number) = self.scopes.next_read(&key);
        if let Some(value) = self.reads.earlier(&scope, &key, number) {
            return Ok(value);
        }
        let value = self
            .value_or_end_turn(self.turn_thread.load(&key).await)
            .await??;
        self.keep_read(&scope, key, value.clone());
        Ok(value)
    }

    /// The tokens that the task may still use. Outside of steps each run of the turn gets the same.
    pub(super) fn read_tokens_left(&self) -> Option<u64> {
        if self.scopes.is_in_step() {
            return self.meter.tokens_left();
        }
        let (scope, number) = self.scopes.next_read(TOKENS_LEFT);
        if let Some(value) = self.reads.earlier(&scope, TOKENS_LEFT, number) {
            return value.as_ref().and_then(Value::as_u64);
        }
        let tokens = self.meter.tokens_left();
        self.keep_read(&scope, TOKENS_LEFT.to_owned(), tokens.map(Value::from));
        tokens
    }

    fn keep_read(&self, scope: &str, key: String, value: Option<Value>) {
        let scope = scope.to_owned();
        if !self.reads.keep(SessionRead { scope, key, value }) {
            let (id, limit) = (&self.task_id, self.reads.limit);
            tracing::warn!(a2a.task = %id, "task `{id}` has loaded more than {limit} bytes of session values outside of steps: another run of the turn may load others");
        }
    }
}

fn size_of_value(value: Option<&Value>) -> usize {
    value.map_or(0, |value| value.to_string().len())
}
