//! Page tokens: a position in a list, authenticated and bound to caller, list and
//! filter, so that a caller cannot use another caller's token.
//!
//! All lists have the same token format, which begins with the id of its key. A token that does not open gets the same error
//! whatever is wrong with it, so that the error reveals nothing.

use crate::auth::Caller;
use crate::engine::SecretKeySet;
use crate::engine::secret_keys::SecretKey;
use crate::store::{ListPosition, ThreadPosition};
use crate::task::{A2aError, ContextId, ListQuery, TaskId, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::time::Duration;

/// How long a page token is valid.
const LIFETIME: Duration = Duration::from_secs(3600);

/// A list of one caller, to which its tokens are bound.
pub(crate) struct PagedList<'a> {
    keys: &'a SecretKeySet,
    fields: Vec<String>,
}

/// A position in a list, as a token holds it.
pub(crate) trait PagePosition: Sized {
    /// The position as text.
    fn write(&self) -> String;
    /// Reads what [`PagePosition::write`] has written; `None` for any other text.
    fn read(text: &str) -> Option<Self>;
}

impl<'a> PagedList<'a> {
    /// The caller's tasks that match the filter of `query`.
    pub(crate) fn tasks(keys: &'a SecretKeySet, caller: &Caller, query: &ListQuery) -> Self {
        let context = query.context_id.as_ref().map(ToString::to_string);
        let status = query.status.map(|state| state.as_str().to_owned());
        let after = query.status_after.map(|at| at.as_millis().to_string());
        let filter = [context, status, after].map(Option::unwrap_or_default);
        Self::of(keys, "tasks", caller, filter)
    }

    /// The caller's contexts.
    pub(crate) fn contexts(keys: &'a SecretKeySet, caller: &Caller) -> Self {
        Self::of(keys, "contexts", caller, [])
    }

    fn of<const N: usize>(
        keys: &'a SecretKeySet,
        name: &str,
        caller: &Caller,
        filter: [String; N],
    ) -> Self {
        let owner = &caller.owner;
        let whose = [name, owner.tenant.as_str(), owner.subject.as_str()];
        let fields = whose.map(str::to_owned).into_iter().chain(filter);
        Self {
            keys,
            fields: fields.collect(),
        }
    }

    /// The token of a position, made at `now`.
    pub(crate) fn token(&self, position: &impl PagePosition, now: Timestamp) -> String {
        let until = now.plus(LIFETIME).as_millis();
        let plain = format!("{until} {}", position.write());
        let key = self.keys.current();
        let tag = self.mac(key, &plain).finalize().into_bytes();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let id = key.id();
        format!("{id}.{}.{}", encode(plain.as_bytes()), encode(&tag))
    }

    /// The position in a token.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] unless this server made the token for this caller,
    /// list and filter within the last hour.
    pub(crate) fn place<P: PagePosition>(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<P, A2aError> {
        self.open(token, now)
            .ok_or_else(|| A2aError::invalid("pageToken", "not a token of this list"))
    }

    fn open<P: PagePosition>(&self, token: &str, now: Timestamp) -> Option<P> {
        let (id, signed) = token.split_once('.')?;
        let key = self.keys.key(id)?;
        let (plain, tag) = signed.split_once('.')?;
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(plain).ok()?).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        self.mac(key, &plain).verify_slice(&tag).ok()?;
        let (until, place) = plain.split_once(' ')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        (now < until).then(|| P::read(place)).flatten()
    }

    /// The authentication of a token. The length of each field comes first, so that two
    /// different lists of fields never give the same bytes.
    fn mac(&self, key: &SecretKey, plain: &str) -> Hmac<Sha256> {
        // HMAC takes keys of any length, so this cannot fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(key.bytes())
            .unwrap_or_else(|_| Hmac::<Sha256>::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
        let fields = self.fields.iter().map(String::as_str);
        for field in std::iter::once("page").chain(fields).chain([plain]) {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field.as_bytes());
        }
        mac
    }
}

/// A position in a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPosition {
    /// The last task shown.
    pub(crate) after: ListPosition,
    /// Matches counted on the first page.
    pub(crate) total: usize,
    /// Tasks delivered so far.
    pub(crate) offset: usize,
}

impl PagePosition for TaskPosition {
    fn write(&self) -> String {
        let Self {
            after,
            total,
            offset: delivered,
        } = self;
        let at = after.at.as_millis();
        format!("{at} {total} {delivered} {}", after.task)
    }

    fn read(text: &str) -> Option<Self> {
        let mut fields = text.splitn(4, ' ');
        let at = Timestamp::from_millis(fields.next()?.parse().ok()?);
        let total = fields.next()?.parse().ok()?;
        let offset = fields.next()?.parse().ok()?;
        let task = TaskId::parse(fields.next()?).ok()?;
        Some(Self {
            after: ListPosition { at, task },
            total,
            offset,
        })
    }
}

impl PagePosition for ThreadPosition {
    fn write(&self) -> String {
        format!("{} {}", self.at.as_millis(), self.context)
    }

    fn read(text: &str) -> Option<Self> {
        let (at, context) = text.split_once(' ')?;
        Some(Self {
            at: Timestamp::from_millis(at.parse().ok()?),
            context: ContextId::parse(context).ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
