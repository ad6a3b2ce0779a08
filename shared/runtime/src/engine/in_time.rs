//! No call is answered by the gateway's patience, and none by the end of its
//! invocation.

use super::{EngineError, Reader};
use crate::store::StoreError;
use crate::task::Timestamp;
use std::future::Future;
use std::time::Duration;

/// What a call that is no stream may take beyond the blocking budget, for what
/// it reads and writes. With the default budget it ends before the 29 s which
/// API Gateway gives a buffered integration (quotas for REST APIs).
const BEYOND: Duration = Duration::from_secs(3);

/// What is left of an invocation when a stream or a wait in it ends: time for
/// the last look at the store and the last bytes.
const LAST_BYTES: Duration = Duration::from_secs(2);

impl Reader {
    /// When a wait has to end that begins now and may last `longest`, in an
    /// invocation that ends at `deadline`.
    pub(super) fn ends(&self, longest: Duration, deadline: Option<Timestamp>) -> Timestamp {
        let end = self.clock.now().plus(longest);
        deadline.map_or(end, |at| end.min(at.minus(LAST_BYTES)))
    }

    /// When a call that begins now and is no stream has to have its answer.
    pub(crate) fn answered_by(&self) -> Timestamp {
        self.clock.now().plus(self.policy.blocking_budget + BEYOND)
    }

    /// What `work` comes to, if it does so before `by`. Work that does not is
    /// dropped: it has died like a process would, and what it has committed
    /// stands.
    ///
    /// # Errors
    /// Those of the work. [`Refusal::Unavailable`](crate::task::Refusal) when
    /// its time is over: a store that does not answer has decided nothing that
    /// could be told.
    pub(crate) async fn in_time<T>(
        &self,
        by: Timestamp,
        work: impl Future<Output = Result<T, EngineError>> + Send,
    ) -> Result<T, EngineError> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.clock.sleep_until(by) => {
                Err(StoreError::Unavailable("no answer in time".to_owned()).into())
            }
        }
    }
}
