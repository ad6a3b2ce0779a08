//! `GET /a2a-lambda/contexts`: lists the caller's contexts, newest activity first.

use super::page_token::PagedList;
use crate::auth::Caller;
use crate::engine::error::EngineError;
use crate::engine::reader::Reader;
use crate::store::ThreadQuery;
use crate::task::{Context, ContextPage, ContextQuery};

impl Reader {
    /// A page of the caller's live contexts.
    ///
    /// # Errors
    /// `InvalidParams` for a page token that was made for another caller or is too old.
    pub async fn contexts(
        &self,
        caller: &Caller,
        query: &ContextQuery,
    ) -> Result<ContextPage, EngineError> {
        let now = self.clock.now();
        let token = query.page_token.as_deref();
        let keys = self.policy.secrets.keys_of(token).await?;
        let list = PagedList::contexts(&keys, caller);
        let after = token.map(|token| list.position(token, now)).transpose()?;
        let page = self
            .records
            .list_threads(
                &caller.owner,
                &ThreadQuery {
                    after,
                    limit: query.page_size,
                    ttl: self.policy.thread_ttl,
                    now,
                },
            )
            .await?;
        let contexts = page.threads.into_iter().map(|thread| Context {
            id: thread.context_id,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            expires_at: thread.expires_at,
            status: thread.status.as_str(),
        });
        Ok(ContextPage {
            contexts: contexts.collect(),
            next_page_token: page
                .next
                .map_or_else(String::new, |position| list.token(&position, now)),
            page_size: query.page_size,
        })
    }
}
