//! Page tokens: a position in a list, authenticated and bound to caller, list and
//! filter, so that a caller cannot use another caller's token.
//!
//! All lists have the same token format, which begins with the id of its key. A token that
//! does not open gets the same error whatever is wrong with it, so that the error reveals
//! nothing.

use crate::auth::Caller;
use crate::engine::secret_keys::SecretKeySet;
use crate::engine::secret_keys::bytes_of;
use crate::store::{ListPosition, ThreadPosition};
use crate::task::{A2aError, ContextId, ListQuery, TaskId, TaskState, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use std::time::Duration;

/// How long a page token is valid.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The purpose of the key of page tokens.
const PURPOSE: &[u8] = b"a2a-lambda page tokens 1";

/// A list of one caller, to which its tokens are bound.
pub(crate) struct PagedList<'a> {
    keys: &'a SecretKeySet,
    fields: Vec<u8>,
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
        let context = query.context_id.as_ref().map(ContextId::as_str);
        let status = query.status.map(TaskState::as_str);
        let after = query.status_after.map(|at| at.as_millis().to_string());
        let filter = [context, status, after.as_deref()].map(Option::unwrap_or_default);
        Self::of(keys, "tasks", caller, &filter)
    }

    /// The caller's contexts.
    pub(crate) fn contexts(keys: &'a SecretKeySet, caller: &Caller) -> Self {
        Self::of(keys, "contexts", caller, &[])
    }

    fn of(keys: &'a SecretKeySet, name: &str, caller: &Caller, filter: &[&str]) -> Self {
        let owner = &caller.owner;
        let whose = [name, owner.tenant.as_str(), owner.subject.as_str()];
        let fields = bytes_of(whose.iter().chain(filter).copied());
        Self { keys, fields }
    }

    /// The token of a position, made at `now`.
    pub(crate) fn token(&self, position: &impl PagePosition, now: Timestamp) -> String {
        let until = now.plus(LIFETIME).as_millis();
        let plain = format!("{until} {}", position.write());
        let key = &self.keys.current;
        let tag = hmac::sign(&key.hmac_key(PURPOSE), &self.tag_input(&plain));
        let [plain, tag] = [plain.as_bytes(), tag.as_ref()].map(|it| URL_SAFE_NO_PAD.encode(it));
        format!("{}.{plain}.{tag}", key.id)
    }

    /// The position in a token.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] unless this server made the token for this caller,
    /// list and filter within the last hour.
    pub(crate) fn position<P: PagePosition>(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<P, A2aError> {
        self.open(token, now)
            .ok_or_else(|| A2aError::invalid("pageToken", "not a token of this list"))
    }

    fn open<P: PagePosition>(&self, token: &str, now: Timestamp) -> Option<P> {
        let (key, text) = self.keys.split(token)?;
        let (plain, tag) = text.split_once('.')?;
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(plain).ok()?).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&key.hmac_key(PURPOSE), &self.tag_input(&plain), &tag).ok()?;
        let (until, position) = plain.split_once(' ')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        (now < until).then(|| P::read(position)).flatten()
    }

    /// What the tag of a token authenticates.
    fn tag_input(&self, plain: &str) -> Vec<u8> {
        [&self.fields, bytes_of([plain]).as_slice()].concat()
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
        let (at, task) = (self.after.at.as_millis(), &self.after.task);
        format!("{at} {} {} {task}", self.total, self.offset)
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
