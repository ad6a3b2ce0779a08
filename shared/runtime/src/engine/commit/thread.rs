//! Stores the thread of a context: the one that a task opens, and the one that a message
//! refreshes.

use super::Commits;
use crate::engine::error::EngineError;
use crate::store::{StoreError, ThreadWrite};
use crate::task::TaskRecord;

impl Commits {
    /// Stores what the context of a task has to hold before the task is stored: the pointer
    /// to the task, and the thread that it opens. A context that knows a task without items
    /// shows nothing. A task that its context does not know would be missing in each list
    /// of the context, and outlive its deletion.
    pub(in crate::engine) async fn link_context(
        &self,
        pointer: Option<TaskRecord>,
        opens: Option<ThreadWrite>,
    ) -> Result<(), EngineError> {
        let life = self.reader.policy.task_ttl;
        let point = async {
            match &pointer {
                Some(record) => {
                    let until = record.first_kept_until(life);
                    Ok(self.records.link_context(record, until).await?)
                }
                None => Ok::<(), EngineError>(()),
            }
        };
        let open = async {
            match opens {
                Some(opens) => self.open_thread(opens).await,
                None => Ok(()),
            }
        };
        let result = futures::try_join!(point, open);
        // What is too large ends its task in a smaller write. This is not the task's, and the
        // task must not be stored without it.
        result
            .map(|_| ())
            .map_err(|error| match error.ends_task(0) {
                Some(_) => StoreError::Refused(error.to_string()).into(),
                None => error,
            })
    }

    /// Stores the thread of a new context, unless another task of the context has stored it
    /// meanwhile. One that the table would remove too early is refreshed: another release may
    /// have a shorter lifetime of tasks. The thread it replaces may be gone since it was read:
    /// native TTL removes a thread after its tombstone.
    async fn open_thread(&self, mut opens: ThreadWrite) -> Result<(), EngineError> {
        if self.put_contended(&opens).await? {
            return Ok(());
        }
        let now = self.reader.clock.now();
        let (owner, id) = (&opens.record.owner, &opens.record.context_id);
        match self.records.load_thread_head(owner, id).await? {
            None => {
                opens.expect = 0;
                opens.record.version = 1;
            }
            Some(head) if head.lives(now) && self.is_stale(&head, now) => {
                opens = self.thread_refresh(&head, false, now);
            }
            Some(_) => return Ok(()),
        }
        // If this loses too, the next check of the turn refreshes the thread.
        self.put_contended(&opens).await?;
        Ok(())
    }

    /// Stores a thread, and again while transactions of other tasks have its item.
    async fn put_contended(&self, write: &ThreadWrite) -> Result<bool, EngineError> {
        let mut races = self.races(None);
        loop {
            match self.records.put_thread(write).await {
                Err(StoreError::Contended(_)) if self.back_off(&mut races).await => {}
                result => return Ok(result?),
            }
        }
    }
}
