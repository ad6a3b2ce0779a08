//! `ListTasks` (A2A 1.0 §3.1.4): the caller's own tasks, newest status first.

use super::blob::Room;
use super::page::{LIFETIME, Token};
use super::{EngineError, Reader};
use crate::auth::Caller;
use crate::store::{Excerpt, RecordQuery};
use crate::task::{ListQuery, Page, Refusal};

impl Reader {
    /// A page of the caller's tasks.
    ///
    /// # Errors
    /// [`Refusal::InvalidParams`] for a page token that was not made for this
    /// caller and filter, or too long ago.
    pub async fn list(&self, caller: &Caller, query: &ListQuery) -> Result<Page, EngineError> {
        let now = self.clock.now();
        let token = match &query.page_token {
            None => Token::default(),
            Some(text) => Token::open(text, &self.policy.secret, caller, query, now)
                .ok_or_else(|| Refusal::invalid("pageToken", "not a token of this list"))?,
        };
        let first = token.after.is_none();
        let found = self
            .tasks
            .list(
                &caller.owner,
                &RecordQuery {
                    context_id: query.context_id.clone(),
                    state: query.status,
                    status_after: query.status_after,
                    after: token.after.clone(),
                    limit: query.page_size,
                    count_limit: if first { self.policy.list_count_max } else { 0 },
                    excerpt: Excerpt {
                        history_length: query.history_length,
                        artifacts: query.include_artifacts,
                    },
                    now,
                },
            )
            .await?;
        let mut tasks = Vec::with_capacity(found.records.len());
        let mut room = Room::of(&self.policy, found.records.len());
        for record in &found.records {
            let mut task = record.view(query.history_length, query.include_artifacts);
            self.fit(&mut task, &mut room).await?;
            tasks.push(task);
        }
        let carried = if first { found.matching } else { token.total };
        let delivered = token.delivered + tasks.len();
        let more = usize::from(found.next.is_some());
        let total_size = carried.max(delivered + more);
        let next = found.next.map(|after| {
            let next = Token {
                after: Some(after),
                total: carried,
                delivered,
                expires_at: now.plus(LIFETIME),
            };
            next.seal(&self.policy.secret, caller, query)
        });
        Ok(Page {
            tasks,
            next_page_token: next.unwrap_or_default(),
            page_size: query.page_size,
            total_size,
        })
    }
}
