//! Reads the settings of API keys and JWTs.

use super::SettingsError;
use super::read::Read;
use crate::auth::JwtIssuer;
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
        // As it is written: a slash at the end of an issuer is part of its name.
        let issuer = self.parsed("A2A_JWT_ISSUER", ISSUER_URL, |text| {
            let url = OutboundUrl::parse(text, reach).ok();
            url.map(|_| text.to_owned())
        })?;
        let owner_of = |text: &str| {
            let (tenant, subject) = (TenantId::parse(text).ok()?, Subject::parse("owner").ok()?);
            Some(Owner { tenant, subject })
        };
        let (name, rule) = ("A2A_FIRST_KEY_TENANT", "a tenant");
        let first_owner = self.parsed(name, rule, owner_of)?;
        let first_owner = first_owner.or_else(|| owner_of("main"));
        Ok(CredentialSettings {
            issuer,
            audience: self.given("A2A_JWT_AUDIENCE"),
            template: JwtIssuer {
                issuer: String::new(),
                audience: String::new(),
                types: self.words("A2A_JWT_TYPES", "JWT"),
                tenant_claim: self.text("A2A_JWT_TENANT_CLAIM", "tenant"),
                scope_claims: self.words("A2A_JWT_SCOPE_CLAIMS", "scope,scp"),
                tier_claim: self.text("A2A_JWT_TIER_CLAIM", "tier"),
            },
            first_key: self.given("A2A_FIRST_KEY"),
            first_owner: first_owner.ok_or(SettingsError::Missing { name, rule })?,
            reach,
        })
    }

    fn words(&self, name: &str, default: &str) -> Vec<String> {
        let value = self.text(name, default);
        value.split(',').map(|it| it.trim().to_owned()).collect()
    }
}
