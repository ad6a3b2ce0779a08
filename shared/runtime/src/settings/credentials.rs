//! Reads the settings of API keys and JWTs.

use super::SettingsError;
use super::variables::{Variables, first_owner, or, words};
use crate::auth::JwtIssuer;
use crate::outbound::{AddressPolicy, OutboundUrl};
use crate::task::Owner;

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
    pub reach: AddressPolicy,
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
        let value_of = |value: &Option<String>, name, rule| {
            let value = value.clone();
            value.ok_or(SettingsError::Missing { name, rule })
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

impl Variables {
    /// The settings of API keys and JWTs. `is_deployed` means no HTTP.
    pub(super) fn credentials(
        self,
        is_deployed: bool,
    ) -> Result<CredentialSettings, SettingsError> {
        let reach = if is_deployed {
            AddressPolicy::Public
        } else {
            AddressPolicy::Loopback
        };
        // As it is written: a slash at the end of an issuer is part of its name.
        let issuer = self.a2a_jwt_issuer;
        if let Some(issuer) = &issuer
            && OutboundUrl::parse(issuer, reach).is_err()
        {
            return Err(SettingsError::Bad {
                name: "A2A_JWT_ISSUER",
                rule: ISSUER_URL.to_owned(),
            });
        }
        let owner = self.a2a_first_key_tenant.map(Into::into);
        let owner = owner.or_else(|| first_owner("main"));
        Ok(CredentialSettings {
            issuer,
            audience: self.a2a_jwt_audience,
            template: JwtIssuer {
                issuer: String::new(),
                audience: String::new(),
                types: or(self.a2a_jwt_types, words("JWT")),
                tenant_claim: or(self.a2a_jwt_tenant_claim, "tenant".to_owned()),
                scope_claims: or(self.a2a_jwt_scope_claims, words("scope,scp")),
                tier_claim: or(self.a2a_jwt_tier_claim, "tier".to_owned()),
            },
            first_key: self.a2a_first_key,
            first_owner: owner.ok_or(SettingsError::Missing {
                name: "A2A_FIRST_KEY_TENANT",
                rule: "a tenant",
            })?,
            reach,
        })
    }
}
