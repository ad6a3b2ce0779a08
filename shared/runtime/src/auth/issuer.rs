//! Describes an issuer of JWTs, as the settings name it.

/// An issuer of JWTs, and which of its tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtIssuer {
    /// The claim `iss` of its tokens.
    pub issuer: String,
    /// The audience that the claim `aud` names.
    pub audience: String,
    /// The accepted types in the header of a token. A token without one has the type `JWT`.
    pub types: Vec<String>,
    /// The claim that names the tenant.
    pub tenant_claim: String,
    /// The claims with scopes.
    pub scope_claims: Vec<String>,
    /// The claim that names the rate tier.
    pub tier_claim: String,
}

/// The address of an issuer's configuration (`OpenID` Connect Discovery 1.0 §4).
#[must_use]
pub fn configuration_url(issuer: &str) -> String {
    format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    )
}
