//! Verifies JWTs of one issuer (RFC 7519; algorithms as RFC 8725 advises).

use super::issuer::JwtIssuer;
use super::jwks::{FetchKeys, KeySet, TIMEOUT};
use super::signatures::{is_signed, scheme};
use super::{AuthError, Authenticated, Caller, RefusalReason, is_word, scopes};
use crate::clock::Clock;
use crate::outbound::{AddressPolicy, Fetcher};
use crate::task::{Owner, Subject, TenantId, Timestamp};
use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::{Header, decode_header};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How far the clocks of the issuer and of this program may differ, in seconds.
const LEEWAY: f64 = 60.0;
/// The latest time of a claim, in seconds since 1970: the end of the year 9999.
const LATEST: f64 = 253_402_300_799.0;

/// Verifies the JWTs of one issuer.
pub struct JwtVerifier {
    issuer: JwtIssuer,
    keys: KeySet,
    clock: Arc<dyn Clock>,
}

impl JwtVerifier {
    /// A verifier that fetches the issuer's keys when it needs one, from the addresses that
    /// `reach` allows.
    #[must_use]
    pub fn new(issuer: JwtIssuer, reach: AddressPolicy, clock: Arc<dyn Clock>) -> Self {
        Self::with(issuer, Arc::new(Fetcher::new(reach, TIMEOUT)), clock)
    }

    fn with(issuer: JwtIssuer, fetch: Arc<dyn FetchKeys>, clock: Arc<dyn Clock>) -> Self {
        Self {
            keys: KeySet::new(&issuer, fetch, clock.clone()),
            issuer,
            clock,
        }
    }

    /// The caller with this token.
    ///
    /// # Errors
    /// [`AuthError::Refused`] for a token that is not valid; [`AuthError::Unavailable`]
    /// when the issuer's keys were never read.
    pub(super) async fn verify(&self, token: &str) -> Result<Authenticated, AuthError> {
        let refusal = AuthError::Refused;
        let header = decode_header(token).map_err(|_| refusal(RefusalReason::Malformed))?;
        if !self.is_allowed(&header) {
            return Err(refusal(RefusalReason::TokenHeader));
        }
        let key = self.keys.key(header.kid.as_deref(), header.alg).await?;
        if !is_signed(token, header.alg, &key) {
            return Err(refusal(RefusalReason::TokenSignature));
        }
        // The library reads the claims and checks nothing.
        let result = insecure_decode::<Map<String, Value>>(token);
        let claims = result
            .map_err(|_| refusal(RefusalReason::Malformed))?
            .claims;
        let ends = self.times(&claims);
        let ends = ends.ok_or_else(|| refusal(RefusalReason::TokenTime))?;
        let caller = self.caller(&claims);
        let caller = caller.ok_or_else(|| refusal(RefusalReason::TokenClaims))?;
        Ok(Authenticated {
            caller,
            ends: Some(ends),
        })
    }

    /// Whether the header is one that the lists allow: the token does not choose.
    fn is_allowed(&self, header: &Header) -> bool {
        // RFC 8725 §3.11: an ID token is no access token. RFC 7515 §4.1.9: a media type.
        let name = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        let name = name.strip_prefix("application/").unwrap_or(&name);
        let mut types = self.issuer.types.iter();
        // RFC 7515 §4.1.11: a header with extensions that are not understood is not valid.
        types.any(|it| it.eq_ignore_ascii_case(name))
            && header.crit.is_none()
            && scheme(header.alg).is_some()
    }

    /// Whether the token is for this agent (RFC 7519 §4.1.3): one text, or one of several.
    fn is_audience(&self, claims: &Map<String, Value>) -> bool {
        let is_ours = |name: &Value| name.as_str() == Some(&self.issuer.audience);
        match claims.get("aud") {
            Some(Value::Array(list)) => {
                list.iter().all(Value::is_string) && list.iter().any(is_ours)
            }
            Some(one) => is_ours(one),
            None => false,
        }
    }

    /// Checks the times of the claims, and returns when the token ends.
    fn times(&self, claims: &Map<String, Value>) -> Option<Timestamp> {
        let seconds = |name: &str| match claims.get(name) {
            None => Some(None),
            Some(value) => {
                let seconds = value.as_f64();
                let valid = seconds.filter(|it| (0.0..=LATEST).contains(it));
                valid.map(Some)
            }
        };
        let (exp, nbf, iat) = (seconds("exp")??, seconds("nbf")?, seconds("iat")?);
        let now = self.clock.now().as_millis() as f64 / 1000.0;
        let has_begun = |at: Option<f64>| at.is_none_or(|at| at <= now + LEEWAY);
        let valid = now < exp + LEEWAY && has_begun(nbf) && has_begun(iat);
        valid.then(|| Timestamp::from_millis(((exp + LEEWAY) * 1000.0) as i64))
    }

    fn caller(&self, claims: &Map<String, Value>) -> Option<Caller> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss")? != self.issuer.issuer || !self.is_audience(claims) {
            return None;
        }
        let tier = match claims.get(&self.issuer.tier_claim) {
            None => Caller::DEFAULT_TIER,
            Some(tier) => tier.as_str().filter(|tier| is_word(tier))?,
        };
        Some(Caller {
            owner: Owner {
                tenant: TenantId::parse(text(&self.issuer.tenant_claim)?).ok()?,
                subject: Subject::parse(text("sub")?).ok()?,
            },
            tier: tier.to_owned(),
            scopes: read_scopes(claims, &self.issuer.scope_claims),
        })
    }
}

/// The scopes in the claims with these names: a text with spaces (RFC 8693 §4.2) or a list.
fn read_scopes(claims: &Map<String, Value>, names: &[String]) -> BTreeSet<String> {
    let mut scope_set = BTreeSet::new();
    for name in names {
        match claims.get(name) {
            Some(Value::String(text)) => scope_set.extend(scopes(text)),
            Some(Value::Array(list)) => {
                scope_set.extend(list.iter().filter_map(Value::as_str).flat_map(scopes));
            }
            _ => {}
        }
    }
    scope_set
}

debug_as_name!(JwtVerifier { issuer });

#[cfg(test)]
mod tests;
