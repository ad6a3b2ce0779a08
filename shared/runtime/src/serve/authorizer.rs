//! Runs the function `authorizer`, which says to API Gateway who calls.
//!
//! API Gateway keeps the result for a header and uses it for other paths. So the policy
//! covers every method of the stage, and the result names the caller and nothing of the
//! request.

use super::error::ServeError;
use super::services::clients;
use super::start::Start;
use crate::auth::{AuthError, Authenticated, Credentials, FirstKey, FirstSecret, JwtVerifier};
use crate::clock::{Clock, SystemClock, lock};
use crate::secrets::secrets_manager;
use crate::store::StoreError;
use crate::store::dynamodb::DynamoTable;
use crate::telemetry::events;
use crate::telemetry::outcomes::{EVENTS, class_of};
use crate::telemetry::sampling::Sampler;
use async_trait::async_trait;
use lambda_runtime::Diagnostic;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Runs the authorizer of API Gateway (payload REQUEST of a REST API). It accepts the API
/// keys in the table, the first key if the settings name its secret, and the JWTs of the
/// issuer if the settings name one.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn authorizer() -> Result<(), ServeError> {
    let start = Start::begin("authorizer")?;
    let settings = start.public_settings()?;
    let issuer = settings.credentials.issuer()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let table = DynamoTable::new(clients().await.dynamodb, &settings.table);
    let mut credentials = Credentials::new(Arc::new(table), clock.clone());
    if let Some(id) = &settings.credentials.first_key {
        let source = Arc::new(StoredSecret(id.clone()));
        let owner = settings.credentials.first_owner.clone();
        credentials = credentials.with_first_key(FirstKey::new(owner, source));
    }
    if let Some(issuer) = issuer {
        let reach = settings.credentials.reach;
        credentials = credentials.with_jwt(JwtVerifier::new(issuer, reach, clock));
    }
    let refusals = Mutex::default();
    let authorize = async |request, _| authorize(&credentials, &refusals, &request).await;
    start.ready(None).run(authorize).await
}

/// The secret of the first key, in Secrets Manager.
struct StoredSecret(String);

#[async_trait]
impl FirstSecret for StoredSecret {
    async fn secret(&self) -> Result<String, StoreError> {
        let secret = secrets_manager().await.secret(&self.0).await;
        secret.map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}

/// The part of an authorizer event that the decision reads (API Gateway Developer Guide,
/// "Input to an API Gateway Lambda authorizer").
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayRequest {
    method_arn: String,
    #[serde(default)]
    multi_value_headers: Option<BTreeMap<String, Vec<String>>>,
}

impl GatewayRequest {
    /// The `Authorization` header. One that occurs twice is none: API Gateway may keep the
    /// decision under the other value.
    fn authorization(&self) -> Option<&str> {
        let headers = self.multi_value_headers.iter().flatten();
        let headers = headers.filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let mut values = headers.flat_map(|(_, values)| values);
        match (values.next(), values.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// The ARN of every method of the API stage:
    /// `arn:aws:execute-api:<region>:<account>:<api>/<stage>/*/*`.
    fn stage(&self) -> Option<String> {
        let (api, rest) = self.method_arn.split_once('/')?;
        let (stage, _) = rest.split_once('/')?;
        (!api.is_empty() && !stage.is_empty()).then(|| format!("{api}/{stage}/*/*"))
    }
}

/// Why there is no decision that API Gateway could keep.
#[derive(Debug, thiserror::Error)]
enum DecisionError {
    /// API Gateway answers 401 to exactly this text.
    #[error("Unauthorized")]
    Refused,
    /// API Gateway answers 500.
    #[error("the authorizer failed")]
    Failed,
}

impl From<DecisionError> for Diagnostic {
    fn from(error: DecisionError) -> Self {
        Self {
            error_type: "DecisionError".to_owned(),
            error_message: error.to_string(),
        }
    }
}

/// The policy and the caller for a request. A refusal has a line, as far as `refusals` admits it.
async fn authorize(
    credentials: &Credentials,
    refusals: &Mutex<Sampler>,
    request: &GatewayRequest,
) -> Result<Value, DecisionError> {
    let identity = credentials.admit(request.authorization()).await;
    let identity = identity.map_err(|error| match error {
        AuthError::Refused(reason) => {
            let now = SystemClock.now();
            let mut refusals = lock(refusals);
            let left_out = refusals.admit(reason.word(), None, now);
            if let Some(left_out) = left_out {
                events::refused_caller(reason.word(), reason.key(), left_out);
            }
            DecisionError::Refused
        }
        AuthError::Unavailable(cause) => {
            let class = class_of(EVENTS, "failed to check credentials").word();
            tracing::error!(class, error.cause = %cause, "failed to check credentials");
            DecisionError::Failed
        }
    })?;
    let stage = request.stage().ok_or_else(|| {
        tracing::error!("the event of API Gateway has no valid `methodArn`");
        DecisionError::Failed
    })?;
    Ok(json!({
        // The subject is in the context alone: access logs of API Gateway show this member.
        "principalId": identity.caller.owner.tenant.as_str(),
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": stage}],
        },
        "context": context(&identity),
    }))
}

/// The caller as flat texts, the only values that API Gateway hands on.
fn context(identity: &Authenticated) -> Map<String, Value> {
    let Authenticated { caller, ends } = identity;
    let scopes: Vec<&str> = caller.scopes.iter().map(String::as_str).collect();
    let ends = ends.map(|end| ("expires_at", (end.as_millis() / 1000).to_string()));
    [
        ("tenant", caller.owner.tenant.as_str().to_owned()),
        ("subject", caller.owner.subject.as_str().to_owned()),
        ("tier", caller.tier.clone()),
        ("scopes", scopes.join(" ")),
    ]
    .into_iter()
    .chain(ends)
    .map(|(name, value)| (name.to_owned(), Value::String(value)))
    .collect()
}

#[cfg(test)]
mod tests;
