//! Stores the thread of a context: the one that a commit opens, and the one that a
//! message refreshes.

use crate::engine::{Engine, EngineError};
use crate::store::ThreadWrite;

impl Engine {
    /// Stores the thread of a new context, unless another task of the context has stored
    /// it meanwhile. The thread it replaces may be gone since it was read: native TTL
    /// removes a thread after its tombstone.
    pub(super) async fn open_thread(&self, mut opens: ThreadWrite) -> Result<(), EngineError> {
        if self.keep_thread(&opens).await? || opens.expect == 0 {
            return Ok(());
        }
        let (owner, id) = (&opens.record.owner, &opens.record.context_id);
        if self.threads.load_thread_head(owner, id).await?.is_none() {
            opens.expect = 0;
            opens.record.version = 1;
            self.keep_thread(&opens).await?;
        }
        Ok(())
    }

    /// Stores a thread; `false` if another write came first.
    pub(in crate::engine) async fn keep_thread(
        &self,
        write: &ThreadWrite,
    ) -> Result<bool, EngineError> {
        Ok(self.threads.put_thread(write).await?)
    }
}
