//! `GET /a2a-lambda/contexts`: the caller's conversations, newest activity
//! first.

use super::page;
use super::{EngineError, Reader};
use crate::auth::Caller;
use crate::store::{ThreadPosition, ThreadQuery};
use crate::task::{Context, ContextId, ContextPage, ContextQuery, Refusal, Timestamp};

impl Reader {
    /// A page of the caller's conversations, without those that are over.
    ///
    /// # Errors
    /// [`Refusal::InvalidParams`] for a page token that was not made for this
    /// caller.
    pub async fn contexts(
        &self,
        caller: &Caller,
        query: &ContextQuery,
    ) -> Result<ContextPage, EngineError> {
        let secret = &self.policy.secret;
        let after = match &query.page_token {
            None => None,
            Some(text) => Some(
                open(text, secret, caller)
                    .ok_or_else(|| Refusal::invalid("pageToken", "not a token of this list"))?,
            ),
        };
        let found = self
            .threads
            .list_threads(
                &caller.owner,
                &ThreadQuery {
                    after,
                    limit: query.page_size,
                    ttl: self.policy.thread_ttl,
                    now: self.clock.now(),
                },
            )
            .await?;
        let contexts = found.threads.into_iter().map(|thread| Context {
            id: thread.context_id,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            expires_at: thread.expires_at,
            status: thread.status.as_str(),
        });
        Ok(ContextPage {
            contexts: contexts.collect(),
            next_page_token: found
                .next
                .map_or_else(String::new, |place| seal(&place, secret, caller)),
            page_size: query.page_size,
        })
    }
}

/// What a token is bound to, beside its place.
fn bound(caller: &Caller) -> [&str; 3] {
    let owner = &caller.owner;
    ["contexts", owner.tenant.as_str(), owner.subject.as_str()]
}

fn seal(place: &ThreadPosition, secret: &[u8], caller: &Caller) -> String {
    let plain = format!("{} {}", place.at.as_millis(), place.context);
    page::seal(&plain, secret, &bound(caller))
}

fn open(text: &str, secret: &[u8], caller: &Caller) -> Option<ThreadPosition> {
    let plain = page::open(text, secret, &bound(caller))?;
    let (at, context) = plain.split_once(' ')?;
    Some(ThreadPosition {
        at: Timestamp::from_millis(at.parse().ok()?),
        context: ContextId::parse(context).ok()?,
    })
}
