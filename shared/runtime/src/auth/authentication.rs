//! Finds the caller of a request at the HTTP edge.

use super::{
    AuthError, AuthMode, Authenticated, Credentials, Identity, RefusalReason, dev, gateway,
};
use crate::task::Timestamp;
use std::sync::Arc;

/// Finds the caller of each request, as a mode says.
#[derive(Debug, Clone)]
pub struct Authentication {
    mode: AuthMode,
    /// Without them the modes that check credentials refuse everybody.
    credentials: Option<Arc<Credentials>>,
}

impl Authentication {
    /// The authentication of a mode.
    #[must_use]
    pub const fn new(mode: AuthMode, credentials: Option<Arc<Credentials>>) -> Self {
        Self { mode, credentials }
    }

    /// The mode.
    #[must_use]
    pub const fn mode(&self) -> AuthMode {
        self.mode
    }

    /// The caller with this identity at the time `now`.
    ///
    /// # Errors
    /// [`AuthError`] when the identity does not name a valid tenant and subject, or its
    /// credentials have ended. Only [`AuthMode::Dev`] has a default caller.
    pub async fn caller(
        &self,
        identity: &Identity,
        now: Timestamp,
    ) -> Result<Authenticated, AuthError> {
        let authorization = identity.authorization.as_deref();
        let admission = match (self.mode, &self.credentials) {
            (AuthMode::Gateway, _) => {
                let context = identity.authorizer.as_ref();
                context
                    .and_then(gateway::caller)
                    .ok_or(AuthError::Refused(RefusalReason::Gateway))?
            }
            (AuthMode::Dev, _) => {
                let caller = dev::caller(authorization);
                let caller = caller.ok_or(AuthError::Refused(RefusalReason::Malformed))?;
                Authenticated { caller, ends: None }
            }
            (AuthMode::Keys | AuthMode::Jwt, Some(credentials)) => {
                credentials.admit(authorization).await?
            }
            (AuthMode::Keys | AuthMode::Jwt, None) => {
                return Err(AuthError::Refused(RefusalReason::NoIssuer));
            }
        };
        // API Gateway uses the result of an authorizer for minutes. The token may end first.
        if admission.ends.is_some_and(|end| end <= now) {
            return Err(AuthError::Refused(RefusalReason::Gateway));
        }
        Ok(admission)
    }

    /// Whether the sender of an admitted request has credentials. The extended card and the
    /// whole catalogue require them. In development a sender without a token may use tasks
    /// of the tenant `local`, but has no credentials.
    #[must_use]
    pub(crate) fn proves(&self, identity: &Identity) -> bool {
        self.mode != AuthMode::Dev || identity.authorization.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use http::{HeaderMap, HeaderValue, header};
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn dev(values: &[&[u8]]) -> Result<Authenticated, AuthError> {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value).unwrap();
            headers.append(header::AUTHORIZATION, value);
        }
        let edge = Authentication::new(AuthMode::Dev, None);
        block_on(edge.caller(&Identity::of(&headers), NOW))
    }

    #[test]
    fn an_unreadable_or_repeated_authorization_header_is_refused() {
        assert!(dev(&[b"Bearer dev:acme:ann"]).is_ok());
        assert!(dev(&[]).is_ok());
        for lines in [
            &[&b"Bearer dev:acme:\xff"[..]][..],
            &[&b"Bearer dev:acme:ann"[..]; 2],
        ] {
            assert!(
                matches!(dev(lines), Err(AuthError::Refused(_))),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn a_cached_decision_ends_with_its_token() {
        let gateway = Authentication::new(AuthMode::Gateway, None);
        let admitted = |end: &str| {
            let context = json!({"tenant": "acme", "subject": "ann", "expires_at": end});
            let identity = Identity {
                authorizer: context.as_object().cloned(),
                authorization: None,
            };
            block_on(gateway.caller(&identity, NOW)).is_ok()
        };
        assert!(admitted("1800000001"));
        assert!(!admitted("1800000000"));
    }

    #[test]
    fn modes_that_check_credentials_admit_nobody_without_them() {
        for mode in [AuthMode::Keys, AuthMode::Jwt] {
            let edge = Authentication::new(mode, None);
            let nobody = block_on(edge.caller(&Identity::default(), NOW));
            assert!(matches!(nobody, Err(AuthError::Refused(_))));
        }
    }
}
