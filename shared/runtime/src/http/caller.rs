//! Finds the caller of a request.

use crate::auth::{Authenticated, Authentication, Identity};
use crate::engine::EngineError;
use crate::task::{A2aError, Timestamp};

/// The caller with this identity. The cause of a failure is logged.
pub(super) async fn caller(
    auth: &Authentication,
    identity: &Identity,
    now: Timestamp,
) -> Result<Authenticated, A2aError> {
    auth.caller(identity, now).await.map_err(|error| {
        let error = EngineError::from(error);
        error.log();
        error.a2a_error
    })
}
