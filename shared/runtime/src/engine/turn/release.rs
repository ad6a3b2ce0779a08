//! Gives a turn back whose run was ended by an outage, or that was begun by another build.
//!
//! Neither is the fault of the task, so the run does not count as an attempt. The turn runs again later: the
//! wait is as long as the turn has made no progress, so it doubles by itself.

use super::spec::TurnEnd;
use crate::engine::commit::{Commit, OnConflict};
use crate::engine::{Engine, EngineError};
use crate::task::{Change, TaskRecord};
use std::time::Duration;

/// The shortest wait.
const FIRST: Duration = Duration::from_secs(10);
/// The longest wait: the longest delay of a message.
const LAST: Duration = crate::store::queue::DELAY_MAX;

impl Engine {
    /// Releases the turn that `record`, the task as this run last stored it, was in when
    /// `error` ended the run.
    ///
    /// # Errors
    /// `error`, if it is not an outage or the turn is not stored. When the release cannot
    /// be stored; then the lease runs out, which counts as an attempt.
    pub(in crate::engine) async fn release(
        &self,
        record: TaskRecord,
        error: EngineError,
    ) -> Result<TurnEnd, EngineError> {
        if !error.is_outage() || record.version == 0 || record.lease_until.is_none() {
            return Err(error);
        }
        let (id, cause) = (&record.id, error.cause.as_ref());
        tracing::warn!(task.id = %id, error.cause = cause.map(tracing::field::display), "an outage ended a run of task `{id}`");
        self.give_back(record).await
    }

    /// Stores that the turn of `record` runs again after a growing wait.
    pub(in crate::engine) async fn give_back(
        &self,
        record: TaskRecord,
    ) -> Result<TurnEnd, EngineError> {
        let now = self.reader.clock.now();
        let wait = now.since(record.progress_at()).clamp(FIRST, LAST);
        let not_before = now.plus(wait);
        let release = Commit {
            on_conflict: OnConflict::Reapply,
            ..self.commit_of(record, Change::Release { not_before })
        };
        let result = self.commit(release).await?.of_task()?;
        Ok(result.map_or_else(TurnEnd::Superseded, TurnEnd::HandedOver))
    }
}
