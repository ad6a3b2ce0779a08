//! Identifies the sender of a request as a [`Caller`].
//!
//! The tenant never comes from a body or a path, which a client could forge.

mod dev;
mod gateway;

use crate::task::{A2aError, Owner, TurnRequest};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The authenticated caller of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Tenant and subject.
    pub owner: Owner,
    /// The rate tier.
    pub tier: String,
    /// Granted scopes.
    pub scopes: BTreeSet<String>,
}

/// The source of identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// The authorizer in front of the function. A deployed function accepts only this
    /// mode.
    Gateway,
    /// A bearer token that anybody can make, for a developer's machine. Without a
    /// token the caller belongs to the tenant `local`.
    Dev,
}

/// What the edge knows about the sender of a request.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The context that the authorizer of API Gateway attached.
    pub authorizer: Option<Map<String, Value>>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
}

impl Identity {
    /// The identity in the headers alone. An `Authorization` header that is not text
    /// becomes an empty one, which no mode accepts. If it counted as absent, its sender
    /// would become the tenant `local`.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let authorization = headers.get(AUTHORIZATION);
        Self {
            authorizer: None,
            authorization: authorization.map(|value| value.to_str().unwrap_or_default().to_owned()),
        }
    }
}

/// The tier of a caller whose credentials name none.
const DEFAULT_TIER: &str = "default";

impl Caller {
    /// The caller of a stored turn, for the worker that continues it. A turn without a
    /// stored request belongs to a caller of the default tier, without scopes.
    pub(crate) fn behind(owner: &Owner, request: Option<&TurnRequest>) -> Self {
        let request = request.cloned();
        Self {
            owner: owner.clone(),
            tier: request
                .as_ref()
                .map_or_else(|| DEFAULT_TIER.to_owned(), |kept| kept.tier.clone()),
            scopes: request.map(|kept| kept.scopes).unwrap_or_default(),
        }
    }

    /// What a stored turn keeps of this caller and the accepted output modes. `None`
    /// if [`Caller::behind`] restores all of it from nothing.
    pub(crate) fn request(&self, accepted_output_modes: &[String]) -> Option<TurnRequest> {
        let ordinary =
            self.tier == DEFAULT_TIER && self.scopes.is_empty() && accepted_output_modes.is_empty();
        (!ordinary).then(|| TurnRequest {
            tier: self.tier.clone(),
            scopes: self.scopes.clone(),
            accepted_output_modes: accepted_output_modes.to_vec(),
        })
    }
}

impl AuthMode {
    /// The caller with this identity.
    ///
    /// # Errors
    /// [`A2aError::Unauthenticated`] when the identity does not name a valid tenant and
    /// subject. [`AuthMode::Gateway`] has no default caller.
    pub fn caller(self, identity: &Identity) -> Result<Caller, A2aError> {
        let found = match self {
            Self::Gateway => identity.authorizer.as_ref().and_then(gateway::caller),
            Self::Dev => dev::caller(identity.authorization.as_deref()),
        };
        found.ok_or(A2aError::Unauthenticated)
    }

    /// Checks that the sender has credentials. The extended card and the whole
    /// catalogue require them. In development a sender without a token may use tasks of
    /// the tenant `local`, but has no credentials.
    ///
    /// # Errors
    /// [`A2aError::Unauthenticated`] when it has none.
    pub fn proven(self, identity: &Identity) -> Result<(), A2aError> {
        match self {
            Self::Gateway => self.caller(identity).map(|_| ()),
            Self::Dev if identity.authorization.is_some() => self.caller(identity).map(|_| ()),
            Self::Dev => Err(A2aError::Unauthenticated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuthMode, Identity};
    use http::{HeaderMap, HeaderValue, header};

    #[test]
    fn an_unreadable_authorization_header_is_refused() {
        let of = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
            AuthMode::Dev.caller(&Identity::of(&headers))
        };
        assert!(of(b"Bearer dev:acme:ann").is_ok());
        assert!(of(b"Bearer dev:acme:\xff").is_err());
        assert!(
            AuthMode::Dev
                .caller(&Identity::of(&HeaderMap::new()))
                .is_ok()
        );
    }
}
