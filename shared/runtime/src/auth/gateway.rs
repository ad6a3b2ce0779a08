//! Reads the identities that the authorizer in front of a function attached.
//!
//! An API Gateway REST API passes the context of a Lambda authorizer on as flat
//! string members and adds its own. So this module reads only the members that it
//! knows.

use super::{Authenticated, Caller, scopes};
use crate::task::{Owner, Subject, TenantId, Timestamp};
use serde_json::{Map, Value};

/// The caller in an authorizer context: `tenant`, `subject`, and optionally `tier`,
/// `scopes` (separated by spaces) and `expires_at` (seconds since 1970). `principalId` does
/// not count: many authorizers set it to a constant, so all callers would be one subject.
/// `None` if one of them is missing or not valid.
pub(super) fn caller(context: &Map<String, Value>) -> Option<Authenticated> {
    let text = |name: &str| context.get(name).and_then(Value::as_str);
    // API Gateway hands numbers on as texts.
    let ends: Option<i64> = match context.get("expires_at") {
        None => None,
        Some(Value::String(end)) => Some(end.parse().ok()?),
        Some(end) => Some(end.as_i64()?),
    };
    Some(Authenticated {
        caller: Caller {
            owner: Owner {
                tenant: TenantId::parse(text("tenant")?).ok()?,
                subject: Subject::parse(text("subject")?).ok()?,
            },
            tier: text("tier").unwrap_or(Caller::DEFAULT_TIER).to_owned(),
            scopes: scopes(text("scopes").unwrap_or_default()).collect(),
        },
        ends: ends.map(|end| Timestamp::from_millis(end.saturating_mul(1000))),
    })
}

#[cfg(test)]
mod tests {
    use super::caller;
    use crate::task::Timestamp;
    use a2a_lambda_rows::each_row;
    use serde_json::json;

    #[test]
    fn the_authorizer_names_the_caller() {
        let context = json!({
            "tenant": "acme", "subject": "ann", "scopes": "ops read", "integrationLatency": 3
        });
        let found = caller(context.as_object().unwrap()).unwrap();
        assert_eq!(found.caller.owner.tenant.as_str(), "acme");
        assert_eq!(found.caller.tier, "default");
        assert!(found.caller.scopes.contains("ops"));
        assert_eq!(found.ends, None);
    }

    #[test]
    fn the_authorizer_says_until_when_it_knows_the_caller() {
        for end in [json!("1800000000"), json!(1_800_000_000)] {
            let context = json!({"tenant": "acme", "subject": "ann", "expires_at": end});
            let found = caller(context.as_object().unwrap()).unwrap();
            assert_eq!(found.ends, Some(Timestamp::from_millis(1_800_000_000_000)));
        }
    }

    #[test]
    fn an_authorizer_context_without_tenant_or_subject_is_refused() {
        let rows = [
            json!({"subject": "ann"}),
            json!({"tenant": "a#b", "subject": "x"}),
            json!({"tenant": "acme"}),
            json!({"tenant": "acme", "principalId": "user"}),
            json!({"tenant": "acme", "subject": "x", "expires_at": "soon"}),
        ];
        each_row(rows, |bad| {
            assert_eq!(caller(bad.as_object().unwrap()), None, "{bad}");
        });
    }
}
