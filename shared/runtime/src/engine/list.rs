//! `ListTasks` (A2A 1.0 §3.1.4): the caller's own tasks, newest status first.

use super::page::{List, TaskPlace};
use super::{EngineError, Reader};
use crate::auth::Caller;
use crate::store::RecordQuery;
use crate::task::{ListQuery, Page};

impl Reader {
    /// A page of the caller's tasks.
    ///
    /// # Errors
    /// `InvalidParams` for a page token that was not made for this
    /// caller and filter, or too long ago.
    pub async fn list(&self, caller: &Caller, query: &ListQuery) -> Result<Page, EngineError> {
        let now = self.clock.now();
        let list = List::tasks(&self.policy.secret, caller, query);
        let token = query.page_token.as_deref();
        let place: Option<TaskPlace> = token.map(|token| list.place(token, now)).transpose()?;
        let count_limit = if place.is_none() {
            self.policy.list_count_max
        } else {
            0
        };
        let found = self
            .tasks
            .list(
                &caller.owner,
                &RecordQuery {
                    context_id: query.context_id.clone(),
                    state: query.status,
                    status_after: query.status_after,
                    after: place.as_ref().map(|place| place.after.clone()),
                    limit: query.page_size,
                    count_limit,
                    now,
                },
            )
            .await?;
        let mut tasks = Vec::with_capacity(found.records.len());
        let mut room = self.room(found.records.len());
        for record in &found.records {
            let mut task = record.view(query.history_length, query.include_artifacts);
            self.fit(&mut task, &mut room).await?;
            tasks.push(task);
        }
        let (carried, before) = place.map_or((found.matching, 0), |it| (it.total, it.delivered));
        let delivered = before + tasks.len();
        let more = usize::from(found.next.is_some());
        let total_size = carried.max(delivered + more);
        let next = found.next.map(|after| {
            let place = TaskPlace {
                after,
                total: carried,
                delivered,
            };
            list.token(&place, now)
        });
        Ok(Page {
            tasks,
            next_page_token: next.unwrap_or_default(),
            page_size: query.page_size,
            total_size,
        })
    }
}
