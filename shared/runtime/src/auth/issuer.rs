//! Describes an issuer of JWTs, as the settings name it.

/// An algorithm that signs JWTs (RFC 7518 §3.1, RFC 8037). All are asymmetric: a key that
/// verifies cannot sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// RSA with SHA-384.
    Rs384,
    /// RSA with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// RSA-PSS with SHA-384.
    Ps384,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl JwtAlgorithm {
    /// Every algorithm with its name in a JWT header.
    pub(crate) const ALL: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// The algorithm with this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        let entry = Self::ALL.into_iter().find(|(word, _)| *word == name);
        entry.map(|(_, algorithm)| algorithm)
    }
}

/// An issuer of JWTs, and which of its tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtIssuer {
    /// The claim `iss` of its tokens.
    pub issuer: String,
    /// The audience that the claim `aud` names.
    pub audience: String,
    /// The URL of its keys; else its `OpenID` configuration names it.
    pub jwks_url: Option<String>,
    /// The accepted algorithms.
    pub algorithms: Vec<JwtAlgorithm>,
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
