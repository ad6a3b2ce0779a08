//! Reads development identities: `Bearer dev:<tenant>:<subject>[:<tier>]`.

use super::{Caller, DEFAULT_TIER};
use crate::task::{Owner, Subject, TenantId};
use std::collections::BTreeSet;

/// The caller that a development token names. Without a token it is the subject
/// `local` of the tenant `local`. `None` for a token of another form.
pub(super) fn caller(authorization: Option<&str>) -> Option<Caller> {
    let Some(header) = authorization else {
        return named("local", "local", DEFAULT_TIER);
    };
    let (scheme, token) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut fields = token.trim().strip_prefix("dev:")?.splitn(3, ':');
    let tenant = fields.next()?;
    let subject = fields.next()?;
    named(tenant, subject, fields.next().unwrap_or(DEFAULT_TIER))
}

fn named(tenant: &str, subject: &str, tier: &str) -> Option<Caller> {
    Some(Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).ok()?,
            subject: Subject::parse(subject).ok()?,
        },
        tier: tier.to_owned(),
        scopes: BTreeSet::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::caller;

    #[test]
    fn a_development_token_names_tenant_subject_and_tier() {
        let found = caller(Some("Bearer dev:acme:ann:gold")).unwrap();
        assert_eq!(found.owner.tenant.as_str(), "acme");
        assert_eq!(found.owner.subject.as_str(), "ann");
        assert_eq!(found.tier, "gold");
        assert_eq!(caller(None).unwrap().owner.tenant.as_str(), "local");
    }

    #[test]
    fn a_token_of_another_form_is_refused() {
        for bad in [
            "",
            "Bearer",
            "Bearer x",
            "Basic dev:a:b",
            "Bearer dev:a",
            "Bearer dev:v1:x",
        ] {
            assert!(caller(Some(bad)).is_none(), "{bad}");
        }
    }
}
