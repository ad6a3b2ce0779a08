//! Waits for the turn of a send that was accepted before.

use super::subscribe::{LONG, SHORT};
use crate::auth::Caller;
use crate::engine::error::EngineError;
use crate::engine::reader::Reader;
use crate::task::{A2aError, TaskRecord, Timestamp};

impl Reader {
    /// The task when it is at rest, or as it is at `until`.
    pub(in crate::engine) async fn wait_for_rest(
        &self,
        caller: &Caller,
        record: TaskRecord,
        until: Timestamp,
    ) -> Result<TaskRecord, EngineError> {
        if record.state().is_at_rest() {
            return Ok(record);
        }
        let mut wait = SHORT;
        let mut now = self.clock.now();
        while now < until {
            self.clock.sleep_until(now.plus(wait).min(until)).await;
            wait = LONG.min(wait * 2);
            // No event has this number, so the store returns only the state.
            let tail = self.load_tail(caller, &record, u64::MAX).await?;
            if tail.state.is_at_rest() {
                break;
            }
            now = self.clock.now();
        }
        let current = self.load(caller, &record.id).await?;
        let same = Some(current).filter(|current| current.is_same_task(&record));
        Ok(same.ok_or(A2aError::TaskNotFound)?)
    }
}
