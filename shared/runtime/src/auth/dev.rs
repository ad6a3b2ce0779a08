//! Reads development identities: `Bearer dev:<tenant>:<subject>[:<tier>[:<scopes>]]`, where
//! commas separate the scopes.

use super::Caller;
use crate::task::{Owner, Subject, TenantId};

/// The scopes of a caller without a token: the one user of a laptop may do everything.
const LOCAL: &str = "role:admin,project:local,team:local,org:local";

/// The caller that a development token names. Without a token it is the subject
/// `local` of the tenant `local`. `None` for a token of another form.
pub(super) fn caller(authorization: Option<&str>) -> Option<Caller> {
    let Some(header) = authorization else {
        return parse_caller("local", "local", Caller::DEFAULT_TIER, LOCAL);
    };
    let (scheme, token) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut fields = token.trim().strip_prefix("dev:")?.splitn(4, ':');
    let tenant = fields.next()?;
    let subject = fields.next()?;
    let tier = fields.next().unwrap_or(Caller::DEFAULT_TIER);
    parse_caller(tenant, subject, tier, fields.next().unwrap_or_default())
}

fn parse_caller(tenant: &str, subject: &str, tier: &str, scopes: &str) -> Option<Caller> {
    let scopes = scopes.split(',').filter(|scope| !scope.is_empty());
    Some(Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).ok()?,
            subject: Subject::parse(subject).ok()?,
        },
        tier: tier.to_owned(),
        scopes: scopes.map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::caller;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_development_token_names_tenant_subject_and_tier() {
        let found = caller(Some("Bearer dev:acme:ann:gold")).unwrap();
        assert_eq!(found.owner.tenant.as_str(), "acme");
        assert_eq!(found.owner.subject.as_str(), "ann");
        assert_eq!(found.tier, "gold");
        assert!(found.scopes.is_empty());
        assert_eq!(caller(None).unwrap().owner.tenant.as_str(), "local");
    }

    #[test]
    fn a_development_token_names_scopes_and_the_caller_without_a_token_is_an_admin() {
        let found = caller(Some("Bearer dev:acme:ann:gold:role:viewer,project:shop,"));
        let scopes: Vec<_> = found.unwrap().scopes.into_iter().collect();
        assert_eq!(scopes, ["project:shop", "role:viewer"]);
        let local = caller(None).unwrap().scopes;
        assert!(local.contains("role:admin") && local.contains("project:local"));
    }

    #[test]
    fn a_token_of_another_form_is_refused() {
        let rows = [
            "",
            "Bearer",
            "Bearer x",
            "Basic dev:a:b",
            "Bearer dev:a",
            "Bearer dev:v1:x",
        ];
        each_row(rows, |bad| {
            assert!(caller(Some(bad)).is_none(), "{bad}");
        });
    }
}
