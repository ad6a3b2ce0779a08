//! Reads the settings of API keys and JWTs.

use super::SettingsError;
use super::read::Read;
use crate::auth::{JwtAlgorithm, JwtIssuer};
use crate::outbound::{OutboundUrl, Reach};
use crate::task::{Owner, Subject, TenantId};

/// The text of an error about a URL of the issuer.
const ISSUER_URL: &str = "an https URL of a public host; outside AWS also http to this machine";

/// Which credentials an agent accepts beside the API keys in its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialSettings {
    /// `A2A_JWT_ISSUER`: the issuer of JWTs. The card names it.
    pub issuer: Option<String>,
    /// `A2A_JWT_AUDIENCE`: the audience of its tokens.
    audience: Option<String>,
    /// The other `A2A_JWT_…`: which of its tokens are accepted, and what they say.
    template: JwtIssuer,
    /// `A2A_FIRST_KEY`: the name or ARN of the secret of the first API key.
    pub first_key: Option<String>,
    /// The callers with the first key, of the tenant `A2A_FIRST_KEY_TENANT`. The scope `ops`
    /// counts for this tenant alone.
    pub first_owner: Owner,
    /// Which addresses the issuer may have.
    pub reach: Reach,
}

impl CredentialSettings {
    /// The issuer of JWTs, if the settings name one.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when they name no audience. Without one the agent would
    /// accept tokens that the issuer made for other programs.
    pub fn issuer(&self) -> Result<Option<JwtIssuer>, SettingsError> {
        self.issuer
            .as_ref()
            .map(|_| self.required_issuer())
            .transpose()
    }

    /// The issuer of JWTs.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when the settings name no issuer or no audience.
    pub fn required_issuer(&self) -> Result<JwtIssuer, SettingsError> {
        let value_of = |value: &Option<String>, name, allowed| {
            let value = value.clone();
            value.ok_or(SettingsError::Missing { name, allowed })
        };
        Ok(JwtIssuer {
            issuer: value_of(&self.issuer, "A2A_JWT_ISSUER", ISSUER_URL)?,
            audience: value_of(
                &self.audience,
                "A2A_JWT_AUDIENCE",
                "the audience of the issuer's tokens for this agent",
            )?,
            ..self.template.clone()
        })
    }
}

impl Read<'_> {
    /// The settings of API keys and JWTs. `is_deployed` means no HTTP.
    pub(super) fn credentials(
        &self,
        is_deployed: bool,
    ) -> Result<CredentialSettings, SettingsError> {
        let reach = if is_deployed {
            Reach::Public
        } else {
            Reach::Loopback
        };
        Ok(CredentialSettings {
            issuer: self.issuer_url("A2A_JWT_ISSUER", reach)?,
            audience: self.given("A2A_JWT_AUDIENCE"),
            template: JwtIssuer {
                issuer: String::new(),
                audience: String::new(),
                jwks_url: self.issuer_url("A2A_JWT_JWKS_URL", reach)?,
                algorithms: self.algorithms("A2A_JWT_ALGORITHMS")?,
                types: self.words("A2A_JWT_TYPES", "JWT"),
                tenant_claim: self.text("A2A_JWT_TENANT_CLAIM", "tenant"),
                scope_claims: self.words("A2A_JWT_SCOPE_CLAIMS", "scope,scp"),
                tier_claim: self.text("A2A_JWT_TIER_CLAIM", "tier"),
            },
            first_key: self.given("A2A_FIRST_KEY"),
            first_owner: self.first_owner()?,
            reach,
        })
    }

    fn words(&self, name: &'static str, default: &str) -> Vec<String> {
        let value = self.text(name, default);
        value.split(',').map(|it| it.trim().to_owned()).collect()
    }

    pub(super) fn given(&self, name: &'static str) -> Option<String> {
        Some(self.text(name, "")).filter(|value| !value.is_empty())
    }

    /// A URL as it is written: a slash at the end of an issuer is part of its name.
    fn issuer_url(
        &self,
        name: &'static str,
        reach: Reach,
    ) -> Result<Option<String>, SettingsError> {
        let Some(value) = self.given(name) else {
            return Ok(None);
        };
        match OutboundUrl::parse(&value, reach) {
            Ok(_) => Ok(Some(value)),
            Err(_) => Err(SettingsError::Bad {
                name,
                value,
                allowed: ISSUER_URL,
            }),
        }
    }

    fn algorithms(&self, name: &'static str) -> Result<Vec<JwtAlgorithm>, SettingsError> {
        let value = self.text(name, "RS256,ES256");
        let algorithms = value.split(',').map(|it| JwtAlgorithm::named(it.trim()));
        let algorithms: Option<Vec<_>> = algorithms.collect();
        algorithms.ok_or(SettingsError::Bad {
            name,
            value,
            allowed: "names with commas between them: `RS256`, `RS384`, `RS512`, `PS256`, \
                      `PS384`, `PS512`, `ES256`, `ES384`, `EdDSA`",
        })
    }

    fn first_owner(&self) -> Result<Owner, SettingsError> {
        let name = "A2A_FIRST_KEY_TENANT";
        let value = self.text(name, "main");
        match (TenantId::parse(&value), Subject::parse("owner")) {
            (Ok(tenant), Ok(subject)) => Ok(Owner { tenant, subject }),
            _ => Err(SettingsError::Bad {
                name,
                value,
                allowed: "a tenant",
            }),
        }
    }
}
