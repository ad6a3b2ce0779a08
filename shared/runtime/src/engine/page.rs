//! Page tokens: a place in a list, authenticated and bound to the caller and
//! the filter, so that nobody can read with another's place.

use crate::auth::Caller;
use crate::store::ListPosition;
use crate::task::{ListQuery, TaskId, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::time::Duration;

/// How long a list may be gone on with.
pub(super) const LIFETIME: Duration = Duration::from_secs(3600);

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Token {
    /// After this task; `None` at the start.
    pub(super) after: Option<ListPosition>,
    /// Matches counted on the first page.
    pub(super) total: usize,
    /// Tasks delivered so far.
    pub(super) delivered: usize,
    /// From when on it is no token any more.
    pub(super) expires_at: Timestamp,
}

impl Token {
    /// The token as the client gets it.
    pub(super) fn seal(&self, secret: &[u8], caller: &Caller, query: &ListQuery) -> String {
        let Some(after) = &self.after else {
            return String::new();
        };
        let plain = format!(
            "{} {} {} {} {}",
            self.expires_at.as_millis(),
            after.at.as_millis(),
            self.total,
            self.delivered,
            after.task
        );
        let (status, at) = filter(query);
        seal(&plain, secret, &bound(caller, query, status, &at))
    }

    /// Reads a token back; `None` unless we made it for this caller and filter,
    /// and not too long ago.
    pub(super) fn open(
        text: &str,
        secret: &[u8],
        caller: &Caller,
        query: &ListQuery,
        now: Timestamp,
    ) -> Option<Self> {
        let (status, at) = filter(query);
        let plain = open(text, secret, &bound(caller, query, status, &at))?;
        let mut fields = plain.splitn(5, ' ');
        let expires_at = Timestamp::from_millis(fields.next()?.parse().ok()?);
        let at = Timestamp::from_millis(fields.next()?.parse().ok()?);
        let total = fields.next()?.parse().ok()?;
        let delivered = fields.next()?.parse().ok()?;
        let task = TaskId::parse(fields.next()?).ok()?;
        (now < expires_at).then_some(Self {
            after: Some(ListPosition { at, task }),
            total,
            delivered,
            expires_at,
        })
    }
}

/// The filter of a list as text.
fn filter(query: &ListQuery) -> (&'static str, String) {
    let after = query
        .status_after
        .map_or(String::new(), |at| at.as_millis().to_string());
    (query.status.map_or("", |state| state.as_str()), after)
}

/// What a token of a list is bound to, beside its place.
fn bound<'a>(
    caller: &'a Caller,
    query: &'a ListQuery,
    status: &'a str,
    after: &'a str,
) -> [&'a str; 6] {
    let owner = &caller.owner;
    let context = query.context_id.as_ref().map_or("", |id| id.as_str());
    let (tenant, subject) = (owner.tenant.as_str(), owner.subject.as_str());
    ["page", tenant, subject, context, status, after]
}

/// `plain` with its authentication, which also covers `bound`.
pub(super) fn seal(plain: &str, secret: &[u8], bound: &[&str]) -> String {
    let tag = mac(secret, bound, plain).finalize().into_bytes();
    format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(plain),
        URL_SAFE_NO_PAD.encode(tag)
    )
}

/// What [`seal`] made `text` of; `None` unless it was bound to the same.
pub(super) fn open(text: &str, secret: &[u8], bound: &[&str]) -> Option<String> {
    let (plain, tag) = text.split_once('.')?;
    let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(plain).ok()?).ok()?;
    let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
    mac(secret, bound, &plain).verify_slice(&tag).ok()?;
    Some(plain)
}

/// The authentication of a token. Lengths stand before the fields, so that two
/// different calls never feed the same bytes.
fn mac(secret: &[u8], bound: &[&str], plain: &str) -> Hmac<Sha256> {
    // HMAC takes keys of any length, so this cannot fail; an empty key would
    // only mean that no token verifies across processes.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .unwrap_or_else(|_| Hmac::<Sha256>::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
    for field in bound.iter().chain([&plain]) {
        mac.update(&(field.len() as u64).to_be_bytes());
        mac.update(field.as_bytes());
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Owner, Subject, TenantId};
    use std::collections::BTreeSet;

    const NOW: Timestamp = Timestamp::from_millis(999);

    fn caller(tenant: &str) -> Caller {
        Caller {
            owner: Owner {
                tenant: TenantId::parse(tenant).unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            tier: "default".to_owned(),
            scopes: BTreeSet::new(),
        }
    }

    fn query() -> ListQuery {
        ListQuery {
            context_id: None,
            status: None,
            status_after: None,
            page_size: 10,
            page_token: None,
            history_length: 0,
            include_artifacts: false,
        }
    }

    #[test]
    fn a_page_token_serves_its_caller_and_filter_only() {
        let after = ListPosition {
            at: Timestamp::from_millis(5),
            task: TaskId::made_of(1),
        };
        let token = Token {
            after: Some(after),
            total: 7,
            delivered: 3,
            expires_at: Timestamp::from_millis(1_000),
        };
        let text = token.seal(b"secret", &caller("acme"), &query());
        assert_eq!(
            Token::open(&text, b"secret", &caller("acme"), &query(), NOW),
            Some(token)
        );
        assert_eq!(
            Token::open(&text, b"secret", &caller("other"), &query(), NOW),
            None
        );
        assert_eq!(
            Token::open(&text, b"guess", &caller("acme"), &query(), NOW),
            None
        );
        let late = Timestamp::from_millis(1_000);
        let open = Token::open(&text, b"secret", &caller("acme"), &query(), late);
        assert_eq!(open, None);
        let other = ListQuery {
            status: Some(crate::task::TaskState::Failed),
            ..query()
        };
        assert_eq!(
            Token::open(&text, b"secret", &caller("acme"), &other, NOW),
            None
        );
        for bad in ["", ".", "a.b", &format!("x{text}"), &text.replace('.', "")] {
            assert_eq!(
                Token::open(bad, b"secret", &caller("acme"), &query(), NOW),
                None,
                "{bad}"
            );
        }
    }
}
