//! `ListTasks` (A2A 1.0 §3.1.4): the caller's own tasks, newest status first.

use super::page_token::{PagedList, TaskPosition};
use crate::auth::Caller;
use crate::engine::error::EngineError;
use crate::engine::files::{ResponseBudget, mark};
use crate::engine::reader::Reader;
use crate::store::{ProjectedTask, Projection, RecordQuery};
use crate::task::{ListQuery, Page, Task, TaskRecord, Timestamp};
use futures::future::join_all;
use std::collections::VecDeque;

/// At most this many tasks are read at the same time.
const AT_ONCE: usize = 16;

impl Reader {
    /// A page of the caller's tasks.
    ///
    /// # Errors
    /// `InvalidParams` for a page token of another caller or filter, or an expired one.
    pub async fn list(&self, caller: &Caller, query: &ListQuery) -> Result<Page, EngineError> {
        let now = self.clock.now();
        let token = query.page_token.as_deref();
        let keys = self.policy.secrets.keys_of(token).await?;
        let list = PagedList::tasks(&keys, caller, query);
        let position: Option<TaskPosition> =
            token.map(|token| list.position(token, now)).transpose()?;
        // The first page counts; its token carries the total to the next pages.
        let count_limit = position.as_ref().map_or(self.policy.list_count_max, |_| 0);
        let of_owner = RecordQuery {
            context_id: query.context_id.clone(),
            state: query.status,
            status_after: query.status_after,
            after: position.as_ref().map(|position| position.after.clone()),
            limit: query.page_size,
            count_limit,
            now,
        };
        let page = self.records.list(&caller.owner, &of_owner).await?;
        let matches_query = |record: &TaskRecord| of_owner.matches(&caller.owner, record);
        let tasks = self
            .load_entries(page.records, query, matches_query, now)
            .await?;
        let (total, before) = position.map_or((page.matching, 0), |it| (it.total, it.offset));
        let offset = before + tasks.len();
        let more = usize::from(page.next.is_some());
        // A2A 1.0 §3.1.4: `totalSize` is exact up to `list_count_max`, and a lower
        // bound above it.
        let total_size = total.max(offset + more);
        let next = page.next.map(|after| {
            let position = TaskPosition {
                after,
                total,
                offset,
            };
            list.token(&position, now)
        });
        Ok(Page {
            tasks,
            next_page_token: next.unwrap_or_default(),
            page_size: query.page_size,
            total_size,
        })
    }

    /// What a page shows of its tasks. It reads no more stored bytes than the response
    /// can hold, even if some of what it reads is not shown.
    async fn load_entries(
        &self,
        heads: Vec<TaskRecord>,
        query: &ListQuery,
        matches_query: impl Fn(&TaskRecord) -> bool + Send,
        now: Timestamp,
    ) -> Result<Vec<Task>, EngineError> {
        let mut budget = self.response_budget(heads.len());
        let mut reads = budget.remaining;
        let mut entries = Vec::with_capacity(heads.len());
        let mut heads = VecDeque::from(heads);
        while !heads.is_empty() {
            let wave = next_wave(&mut heads, budget.remaining.min(reads));
            let excerpts = wave.iter().map(|(head, bytes)| {
                let projection = Projection {
                    history_length: query.history_length,
                    artifacts: query.include_artifacts,
                    bytes: *bytes,
                };
                self.records.project(head.clone(), projection, now)
            });
            for (excerpt, (head, _)) in join_all(excerpts).await.into_iter().zip(&wave) {
                let result = match excerpt {
                    Ok(None) => continue,
                    // The task has changed since the list was read, and no longer
                    // matches the filter.
                    Ok(Some(excerpt)) if !matches_query(&excerpt.record) => continue,
                    Ok(Some(excerpt)) => {
                        reads = reads.saturating_sub(excerpt.read);
                        self.fit_excerpt(excerpt, query, &mut budget).await
                    }
                    Err(error) => Err(error.into()),
                };
                let bare = bare(head);
                entries.push((or_bare(result, &bare)?, bare));
            }
        }
        let unread = entries.iter_mut().map(|(task, _)| task);
        let results = self.fetch_planned(unread).await;
        let mut tasks = Vec::with_capacity(entries.len());
        for (result, (task, bare)) in results.into_iter().zip(entries) {
            tasks.push(or_bare(result.map(|()| task), &bare)?);
        }
        Ok(tasks)
    }

    /// What the response can hold of the task, without the bytes of files.
    async fn fit_excerpt(
        &self,
        excerpt: ProjectedTask,
        query: &ListQuery,
        budget: &mut ResponseBudget,
    ) -> Result<Task, EngineError> {
        let record = excerpt.record;
        let mut task = record.view(query.history_length, query.include_artifacts);
        self.plan(&mut task, budget).await?;
        if !excerpt.complete {
            mark(&mut task.metadata);
        }
        Ok(task)
    }
}

/// The next tasks to read, each with the bytes that those before it leave. By the sizes
/// in their heads, their content is at most `bytes` together. The last one may be
/// larger: then it is cut.
fn next_wave(heads: &mut VecDeque<TaskRecord>, mut bytes: usize) -> Vec<(TaskRecord, usize)> {
    let mut wave = Vec::new();
    while wave.len() < AT_ONCE
        && let Some(head) = heads.pop_front()
    {
        let most = head.layout.shown_bytes();
        wave.push((head, bytes));
        match bytes.checked_sub(most) {
            Some(rest) => bytes = rest,
            None => break,
        }
    }
    wave
}

/// What a list shows of a task that cannot be read: its state.
fn bare(head: &TaskRecord) -> Task {
    let mut task = head.view(0, false);
    task.status.message = None;
    mark(&mut task.metadata);
    task
}

/// Shows a damaged task as `bare`, so that it does not hide the caller's other tasks.
fn or_bare(result: Result<Task, EngineError>, bare: &Task) -> Result<Task, EngineError> {
    result.or_else(|error| {
        if !error.is_unreadable() {
            return Err(error);
        }
        error.log();
        Ok(bare.clone())
    })
}

#[cfg(test)]
mod tests;
