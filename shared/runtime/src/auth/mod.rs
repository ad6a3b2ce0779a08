//! Who calls: one [`Caller`] from whatever the edge knows about a request.
//!
//! Nothing here reads a tenant from a body or a path.

mod dev;
mod gateway;

use crate::task::{Owner, Refusal, TurnRequest};
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

/// Where identities come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// From the authorizer in front of the function. The only mode of a
    /// deployed function.
    Gateway,
    /// From a made-up bearer token, on one's own machine; without one the
    /// caller is the tenant `local`.
    Dev,
}

/// What the edge knows about the sender of a request.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The context which the gateway's authorizer attached.
    pub authorizer: Option<Map<String, Value>>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
}

impl Identity {
    /// What a request with these headers says by itself. A header that cannot
    /// be read is a bad one, not none: without one the caller is somebody.
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
    /// The caller behind a stored turn, on whose behalf a worker goes on with
    /// it: a turn that kept nothing was asked for by an ordinary caller.
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

    /// What a turn of this caller keeps; `None` if it is what a turn that kept
    /// nothing is given.
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
    /// The caller, or why there is none.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`] when the identity names no tenant and
    /// subject in the form of this mode. There is no default when deployed.
    pub fn caller(self, identity: &Identity) -> Result<Caller, Refusal> {
        let found = match self {
            Self::Gateway => identity.authorizer.as_ref().and_then(gateway::caller),
            Self::Dev => dev::caller(identity.authorization.as_deref()),
        };
        found.ok_or(Refusal::Unauthenticated)
    }

    /// Whether the sender proved who it is, which what is kept from the public
    /// asks for. In development a caller without a token is the tenant `local`
    /// for its tasks, and proved nothing.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`].
    pub fn proven(self, identity: &Identity) -> Result<(), Refusal> {
        match self {
            Self::Gateway => self.caller(identity).map(|_| ()),
            Self::Dev if identity.authorization.is_some() => self.caller(identity).map(|_| ()),
            Self::Dev => Err(Refusal::Unauthenticated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuthMode, Identity};
    use http::{HeaderMap, HeaderValue, header};

    #[test]
    fn an_authorization_that_cannot_be_read_is_a_bad_one() {
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
