//! Reads the identities that the authorizer in front of a function attached.
//!
//! An API Gateway REST API passes the context of a Lambda authorizer on as flat
//! string members and adds its own. So this module reads only the members that it
//! knows.

use super::{Caller, DEFAULT_TIER};
use crate::task::{Owner, Subject, TenantId};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The caller in an authorizer context: `tenant`, `subject` (else `principalId`),
/// and optionally `tier` and `scopes` (separated by spaces). `None` if tenant or
/// subject is missing or not valid.
pub(super) fn caller(context: &Map<String, Value>) -> Option<Caller> {
    let text = |name: &str| context.get(name).and_then(Value::as_str);
    let subject = text("subject").or_else(|| text("principalId"))?;
    Some(Caller {
        owner: Owner {
            tenant: TenantId::parse(text("tenant")?).ok()?,
            subject: Subject::parse(subject).ok()?,
        },
        tier: text("tier").unwrap_or(DEFAULT_TIER).to_owned(),
        scopes: scopes(text("scopes").unwrap_or_default()),
    })
}

fn scopes(text: &str) -> BTreeSet<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::caller;
    use serde_json::json;

    #[test]
    fn the_authorizer_names_the_caller() {
        let context = json!({
            "tenant": "acme", "subject": "ann", "scopes": "ops read", "integrationLatency": 3
        });
        let found = caller(context.as_object().unwrap()).unwrap();
        assert_eq!(found.owner.tenant.as_str(), "acme");
        assert_eq!(found.tier, "default");
        assert!(found.scopes.contains("ops"));
    }

    #[test]
    fn an_authorizer_context_without_tenant_or_subject_is_refused() {
        for bad in [
            json!({"subject": "ann"}),
            json!({"tenant": "a#b", "subject": "x"}),
            json!({"tenant": "acme"}),
        ] {
            assert!(caller(bad.as_object().unwrap()).is_none(), "{bad}");
        }
    }
}
