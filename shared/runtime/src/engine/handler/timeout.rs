//! Limits the time of calls, so that each call responds before API Gateway or Lambda
//! ends it.

use crate::engine::{EngineError, Reader};
use crate::store::StoreError;
use crate::task::Timestamp;
use std::future::Future;
use std::time::Duration;

/// How long a unary call may take beyond the blocking budget, for its reads and writes.
/// With the default budget of 25 s it ends before the 29 s that API Gateway gives a
/// buffered integration (Amazon API Gateway quotas for REST APIs).
const BEYOND: Duration = Duration::from_secs(3);

/// Time reserved at the end of an invocation for the last read of the store and the
/// last bytes of the response.
const LAST_BYTES: Duration = Duration::from_secs(2);

impl Reader {
    /// When a wait that starts now has to end: after `longest`, and in time before
    /// `deadline`, the end of the invocation.
    pub(in crate::engine) fn ends(
        &self,
        longest: Duration,
        deadline: Option<Timestamp>,
    ) -> Timestamp {
        let end = self.clock.now().plus(longest);
        deadline.map_or(end, |at| end.min(at.minus(LAST_BYTES)))
    }

    /// When a unary call that starts now must have its response.
    pub(crate) fn answer_deadline(&self) -> Timestamp {
        self.clock.now().plus(self.policy.blocking_budget + BEYOND)
    }

    /// Runs `work` until `by`. Work that takes longer is dropped, like work of a
    /// process that died: what it has committed stays committed.
    ///
    /// # Errors
    /// Those of the work. [`A2aError::Unavailable`](crate::task::A2aError) when the time
    /// is over: the result of a store call without a response is unknown.
    pub(crate) async fn with_timeout<T>(
        &self,
        by: Timestamp,
        work: impl Future<Output = Result<T, EngineError>> + Send,
    ) -> Result<T, EngineError> {
        tokio::select! {
            // Work that is finished wins over the clock.
            biased;
            done = work => done,
            () = self.clock.sleep_until(by) => {
                Err(StoreError::Unavailable("the call did not finish in time".to_owned()).into())
            }
        }
    }
}
