//! Identifies the sender of a request as a [`Caller`].
//!
//! The tenant never comes from a body or a path, which a client could forge.
//!
//! - `authentication`: the caller of a request at the HTTP edge, in every mode
//! - `gateway`: what the authorizer of API Gateway said; `dev`: development tokens
//! - `credentials`: the decision about a bearer token, for the authorizer and `cargo run`
//! - `api_key`, `first_key`: API keys
//! - `issuer`, `jwt`, `jwks`, `signatures`: JWTs, their issuer, its keys and what they signed

mod api_key;
mod authentication;
pub(crate) mod credentials;
mod dev;
mod first_key;
mod gateway;
mod issuer;
#[cfg(feature = "jwt")]
mod jwks;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "jwt")]
mod signatures;

pub use self::api_key::{ApiKey, NoRandomError};
pub use self::authentication::Authentication;
pub use self::credentials::Credentials;
pub use self::first_key::{FIRST, FirstKey, FirstSecret};
pub use self::issuer::{JwtIssuer, configuration_url};
#[cfg(feature = "jwt")]
pub use self::jwt::JwtVerifier;
pub use crate::task::Caller;

use crate::store::StoreError;
use crate::store::api_keys::ApiKeyId;
use crate::task::Timestamp;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A caller, and until when its credentials say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// The caller.
    pub caller: Caller,
    /// When the credentials end; `None` if they do not.
    pub ends: Option<Timestamp>,
}

/// Why a sender is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// It has no valid credentials. There is one answer for all reasons, so that a sender
    /// learns nothing from it.
    #[error("the credentials are not valid")]
    Refused(RefusalReason),
    /// Whether the credentials are valid cannot be decided now.
    #[error("the credentials cannot be checked: {0}")]
    Unavailable(#[from] StoreError),
}

/// Why credentials are not valid: for the log of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalReason {
    /// There are none, or they have no form of a key or a token.
    Malformed,
    /// No key with this id and secret was made, or it was removed.
    UnknownKey(ApiKeyId),
    /// The time of the key is over.
    ExpiredKey(ApiKeyId),
    /// The settings name no issuer of tokens.
    NoIssuer,
    /// The type, the algorithm or an extension of the token is not allowed.
    TokenHeader,
    /// The issuer has no such key, or it has not signed the token.
    TokenSignature,
    /// The time of the token is over, or has not begun.
    TokenTime,
    /// Issuer, audience, tenant, subject or tier of the token are not valid.
    TokenClaims,
    /// The authorizer in front of the function named no caller, or one whose time is over.
    Gateway,
}

#[cfg_attr(
    not(all(feature = "jwt", feature = "lambda", feature = "secrets")),
    expect(dead_code, reason = "the authorizer calls them")
)]
impl RefusalReason {
    /// The reason as a word.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Malformed => "MALFORMED",
            Self::UnknownKey(_) => "UNKNOWN_KEY",
            Self::ExpiredKey(_) => "EXPIRED_KEY",
            Self::NoIssuer => "NO_ISSUER",
            Self::TokenHeader => "TOKEN_HEADER",
            Self::TokenSignature => "TOKEN_SIGNATURE",
            Self::TokenTime => "TOKEN_TIME",
            Self::TokenClaims => "TOKEN_CLAIMS",
            Self::Gateway => "GATEWAY",
        }
    }

    /// The public part of the key.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey(id) | Self::ExpiredKey(id) => Some(id.as_str()),
            _ => None,
        }
    }
}

/// The source of identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// The authorizer in front of the function. A deployed function accepts only this
    /// mode.
    Gateway,
    /// A bearer token that anybody can make, for a developer's machine. Without a
    /// token the caller belongs to the tenant `local`.
    Dev,
    /// API keys, which this program checks itself.
    Keys,
    /// JWTs and API keys, which this program checks itself.
    Jwt,
}

impl AuthMode {
    /// The value of `A2A_AUTH`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Dev => "dev",
            Self::Keys => "keys",
            Self::Jwt => "jwt",
        }
    }

    /// Whether this program checks the credentials itself.
    #[must_use]
    pub const fn checks_credentials(self) -> bool {
        matches!(self, Self::Keys | Self::Jwt)
    }
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
    /// The identity in the headers alone. An `Authorization` header that is not text, or
    /// that occurs twice, becomes an empty one, which no mode accepts. If it counted as
    /// absent, its sender would become the tenant `local`.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let authorization = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(value.to_str().unwrap_or_default().to_owned()),
            (Some(_), Some(_)) => Some(String::new()),
        };
        Self {
            authorizer: None,
            authorization,
        }
    }
}

/// The scopes in a text with spaces.
fn scopes(text: &str) -> impl Iterator<Item = String> {
    text.split_ascii_whitespace().map(str::to_owned)
}

/// Whether `text` can name a tier: 1 to 64 letters, digits, `.`, `_` or `-`.
#[must_use]
pub fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}
