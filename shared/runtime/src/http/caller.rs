//! Finds the caller of a request, once for all calls in it.

use super::call_context::CallContext;
use crate::auth::Admitted;
use crate::engine::{Clock as _, EngineError, SystemClock};
use crate::task::A2aError;

impl CallContext<'_> {
    /// The caller of this request. The calls of a batch share one lookup, and the cause of a
    /// failure is logged once.
    pub(super) async fn admitted(&self) -> Result<Admitted, A2aError> {
        let look = || async {
            let now = self.edge.reader().map(|reader| reader.clock.now());
            let now = now.unwrap_or_else(|_| SystemClock.now());
            let result = self.edge.auth.caller(&self.identity, now).await;
            result.map_err(|error| {
                let error = EngineError::from(error);
                error.log();
                error.a2a_error
            })
        };
        self.admission.get_or_init(look).await.clone()
    }

    /// Checks that the sender of an admitted request has credentials.
    pub(super) fn proven(&self) -> Result<(), A2aError> {
        if self.edge.auth.proves(&self.identity) {
            Ok(())
        } else {
            Err(A2aError::Unauthenticated)
        }
    }
}
