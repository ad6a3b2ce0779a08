//! `ListTasks` (A2A 1.0 §3.1.4): the caller's own tasks, newest status first.

use super::blob::{Room, mark};
use super::page::{List, TaskPlace};
use super::{EngineError, Reader};
use crate::auth::Caller;
use crate::store::{Excerpt, RecordQuery, Wanted};
use crate::task::{ListQuery, Page, Task, TaskRecord, Timestamp};

/// As many answers' worth of content is read for a page at most, so that what
/// turns out not to fit is not read task after task.
const READS: usize = 2;

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
        let of_owner = RecordQuery {
            context_id: query.context_id.clone(),
            state: query.status,
            status_after: query.status_after,
            after: place.as_ref().map(|place| place.after.clone()),
            limit: query.page_size,
            count_limit,
            now,
        };
        let found = self.tasks.list(&caller.owner, &of_owner).await?;
        let stands = |record: &TaskRecord| of_owner.matches(&caller.owner, record);
        let tasks = self.shown(found.records, query, stands, now).await?;
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

    /// What a page shows of its tasks. The content of one is read, fitted and
    /// dropped before the next: a page takes no more memory than one task.
    async fn shown(
        &self,
        heads: Vec<TaskRecord>,
        query: &ListQuery,
        stands: impl Fn(&TaskRecord) -> bool + Send,
        now: Timestamp,
    ) -> Result<Vec<Task>, EngineError> {
        let mut room = self.room(heads.len());
        let mut reads = self.policy.response_max.saturating_mul(READS);
        let mut tasks = Vec::with_capacity(heads.len());
        for head in heads {
            let bytes = room.left().min(reads);
            let bare = head.clone();
            let shown = match self.excerpt(head, query, bytes, now).await {
                Ok(None) => continue,
                Ok(Some(excerpt)) if !stands(&excerpt.record) => continue,
                Ok(Some(excerpt)) => {
                    reads = reads.saturating_sub(excerpt.read);
                    self.fitted(excerpt, query, &mut room).await
                }
                Err(error) => Err(error),
            };
            tasks.push(match shown {
                Ok(task) => task,
                // It holds up nobody who looks for another: its state is shown.
                Err(error) if error.is_corrupt() => {
                    error.log();
                    let mut task = bare.view(0, false);
                    task.status.message = None;
                    mark(&mut task.metadata);
                    task
                }
                Err(error) => return Err(error),
            });
        }
        Ok(tasks)
    }

    /// What is asked for of a task, within `bytes`.
    async fn excerpt(
        &self,
        head: TaskRecord,
        query: &ListQuery,
        bytes: usize,
        now: Timestamp,
    ) -> Result<Option<Excerpt>, EngineError> {
        let wanted = Wanted {
            history_length: query.history_length,
            artifacts: query.include_artifacts,
            bytes,
        };
        Ok(self.tasks.excerpt(head, wanted, now).await?)
    }

    /// What the answer can hold of it.
    async fn fitted(
        &self,
        excerpt: Excerpt,
        query: &ListQuery,
        room: &mut Room,
    ) -> Result<Task, EngineError> {
        let record = excerpt.record;
        let mut task = record.view(query.history_length, query.include_artifacts);
        self.fit(&mut task, room).await?;
        if !excerpt.complete {
            mark(&mut task.metadata);
        }
        Ok(task)
    }
}

#[cfg(test)]
mod tests;
