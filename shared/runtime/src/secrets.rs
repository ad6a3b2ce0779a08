//! The secrets of skills: variables on one machine, a secret of Secrets Manager on AWS.

use crate::settings::{Environment, Source};
pub use crate::task::Secret;
use std::collections::BTreeMap;
use std::fmt;

/// The setting with the name or ARN of the secret.
const SETTING: &str = "A2A_SKILL_SECRET";

/// The secrets of the skills of a deployment.
///
/// A secret is a variable of the environment, or a member of the secret of Secrets Manager
/// that `A2A_SKILL_SECRET` names: a JSON object whose members are texts. The variable wins.
/// Read them in the factory of a [`State`](a2a_lambda_skill::State), so that only functions which
/// run skills need them.
///
/// ```
/// use a2a_lambda::secrets::{Secret, SecretsError, SkillSecrets};
///
/// struct Prices {
///     key: Secret,
/// }
///
/// impl Prices {
///     async fn load() -> Result<Self, SecretsError> {
///         let secrets = SkillSecrets::read().await?;
///         Ok(Self { key: secrets.get("PRICES_KEY")? })
///     }
/// }
/// ```
#[derive(Clone)]
pub struct SkillSecrets {
    members: BTreeMap<String, Secret>,
    /// The name of the secret that has the members.
    secret_name: Option<String>,
}

/// Why a secret is missing. The text holds nothing of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// The secret cannot be read.
    #[error("failed to read the secret of the skills: {0}")]
    Unavailable(String),
    /// The secret does not have the expected form.
    #[error("the secret `{0}` is not a JSON object whose members are texts")]
    Form(String),
    /// Neither the environment nor the secret has it.
    #[error("the secret `{name}` is missing: set the variable, or {}", place_of(secret_name.as_deref()))]
    Missing {
        /// Its name.
        name: String,
        /// The secret of Secrets Manager, if there is one.
        secret_name: Option<String>,
    },
}

fn place_of(secret_name: Option<&str>) -> String {
    match secret_name {
        Some(secret_name) => format!("add the member to the secret `{secret_name}`"),
        None => format!("name a secret of Secrets Manager in `{SETTING}`"),
    }
}

impl SkillSecrets {
    /// Reads the secret that `A2A_SKILL_SECRET` names, if it is set: one request.
    ///
    /// # Errors
    /// [`SecretsError`] when the secret cannot be read, or has another form.
    pub async fn read() -> Result<Self, SecretsError> {
        let secret_name = Environment
            .get(SETTING)
            .filter(|secret_name| !secret_name.is_empty());
        let Some(secret_name) = secret_name else {
            return Ok(Self::of_variables());
        };
        let text = fetch_secret(&secret_name).await?;
        Self::of(secret_name, &text)
    }

    /// Variables alone.
    const fn of_variables() -> Self {
        Self {
            members: BTreeMap::new(),
            secret_name: None,
        }
    }

    fn of(secret_name: String, text: &str) -> Result<Self, SecretsError> {
        let members: BTreeMap<String, String> =
            serde_json::from_str(text).map_err(|_| SecretsError::Form(secret_name.clone()))?;
        let members = members.into_iter();
        Ok(Self {
            members: members
                .map(|(name, text)| (name, Secret::new(text)))
                .collect(),
            secret_name: Some(secret_name),
        })
    }

    /// The secret `name`.
    ///
    /// # Errors
    /// [`SecretsError::Missing`] when it is not there, or empty.
    pub fn get(&self, name: &str) -> Result<Secret, SecretsError> {
        self.find(name, &Environment)
    }

    fn find(&self, name: &str, variables: &dyn Source) -> Result<Secret, SecretsError> {
        let set = variables.get(name).map(Secret::new);
        let secrets = set.into_iter().chain(self.members.get(name).cloned());
        let mut secrets = secrets.filter(|secret| !secret.expose().is_empty());
        secrets.next().ok_or_else(|| SecretsError::Missing {
            name: name.to_owned(),
            secret_name: self.secret_name.clone(),
        })
    }
}

/// Secrets Manager, or the emulator that the environment names. Most processes never read a
/// secret, so a client is made when it is needed.
#[cfg(feature = "secrets")]
pub(crate) async fn secrets_manager() -> crate::store::secretsmanager::SecretsClient {
    let endpoint = Environment::aws_endpoint("AWS_ENDPOINT_URL_SECRETS_MANAGER");
    crate::store::secretsmanager::SecretsClient::connect(endpoint.as_deref()).await
}

#[cfg(feature = "secrets")]
async fn fetch_secret(secret_name: &str) -> Result<String, SecretsError> {
    let result = secrets_manager().await.secret(secret_name).await;
    result.map_err(|error| SecretsError::Unavailable(error.to_string()))
}

#[cfg(not(feature = "secrets"))]
async fn fetch_secret(_: &str) -> Result<String, SecretsError> {
    let why = format!("`{SETTING}` needs the feature `secrets` of a2a-lambda");
    Err(SecretsError::Unavailable(why))
}

/// The names alone.
impl fmt::Debug for SkillSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Variables(&'static [(&'static str, &'static str)]);

    impl Source for Variables {
        fn get(&self, name: &str) -> Option<String> {
            let mut all = self.0.iter();
            let (_, value) = all.find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        }
    }

    fn fetch_secret() -> SkillSecrets {
        SkillSecrets::of("shop".to_owned(), r#"{"KEY": "canary-1", "EMPTY": ""}"#).unwrap()
    }

    #[test]
    fn a_variable_wins_over_the_secret_of_the_deployment() {
        let found = fetch_secret().find("KEY", &Variables(&[("KEY", "mine")]));
        assert_eq!(found.unwrap().expose(), "mine");
        for variables in [Variables(&[]), Variables(&[("KEY", "")])] {
            let found = fetch_secret().find("KEY", &variables);
            assert_eq!(found.unwrap().expose(), "canary-1");
        }
    }

    #[test]
    fn a_missing_secret_is_named_with_its_places() {
        let none = Variables(&[]);
        for name in ["EMPTY", "OTHER"] {
            let error = fetch_secret().find(name, &none).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("`shop`"), "{error}");
        }
        let error = SkillSecrets::of_variables().find("KEY", &none);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("A2A_SKILL_SECRET"), "{error}");
    }

    #[test]
    fn no_text_shows_a_secret() {
        assert_eq!(format!("{:?}", fetch_secret()), r#"{"EMPTY", "KEY"}"#);
        for text in ["canary-1", r#"["canary-1"]"#, r#"{"KEY": ["canary-1"]}"#] {
            let error = SkillSecrets::of("shop".to_owned(), text).unwrap_err();
            assert_eq!(error, SecretsError::Form("shop".to_owned()));
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }
}
