//! Reads a page of an owner's contexts, newest activity first.
//!
//! The page joins two indexes. Threads have an index of their own. A context that the
//! server named after its first task has no thread until it keeps something. Until then
//! the list of tasks shows it, by that first task. An open task shows its context too, after the
//! thread of that has expired. Both indexes are read in order, without a scan, and then the
//! records themselves from the table.

use super::list::CHUNK;
use super::{RecordReader, threads};
use crate::item::{self, CONTEXT, STATE, corrupt};
use crate::keys::{self, Key, LISTS_SK, Partition};
use crate::table::{Item, Position, Query};
use a2a_lambda_model::store::{
    IN_CONTEXT, ListPosition, StoreError, ThreadPage, ThreadPosition, ThreadQuery, ThreadRecord,
};
use a2a_lambda_model::task::{
    ContextId, Owner, TaskId, TaskKey, TaskRecord, TaskState, ThreadKey, Timestamp,
};
use futures::future::try_join;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Contexts that are checked for tasks at the same time.
const AT_ONCE: usize = 16;
/// Pointers of a context that are read at a time to find a task.
const POINTERS: usize = 10;

/// A position, and the task that has it; `None` if the thread has it.
type ContextPosition = (ThreadPosition, Option<TaskId>);

/// Returns the position that an index item shows, if there can be a context.
type ReadPosition = fn(&Item, &ThreadQuery) -> Option<ContextPosition>;

impl RecordReader {
    /// A page of `owner`'s live contexts, without their state, from an index, never
    /// by a scan. A context without a stored thread has version 0. One with a bare thread
    /// ([`ThreadRecord::is_bare`]) and no task is not listed. The index may lag
    /// and a page may be short; only `next` says where the list continues.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError> {
        let (threads, firsts) = try_join(
            self.places_in(keys::contexts(owner), query, thread_place),
            self.places_in(keys::list(owner), query, task_place),
        )
        .await?;
        // The list is complete only down to the newest position at which a walk stopped.
        let (mut places, mut end) = (Vec::new(), None);
        for (of_index, stop) in [threads, firsts] {
            places.extend(of_index);
            end = end.max(stop);
        }
        places.sort_by(|a, b| b.cmp(a));
        places.dedup();
        places.retain(|(position, _)| end.as_ref().is_none_or(|end| position >= end));
        let more = places.len() > query.limit;
        places.truncate(query.limit);
        let last = places.last().map(|(position, _)| position.clone());
        let next = if more { last } else { end };
        Ok(ThreadPage {
            threads: self.contexts_at(owner, &places, query).await?,
            next,
        })
    }

    /// The positions in one index after that of the query, newest first. If the index has more,
    /// also the last position read.
    async fn places_in(
        &self,
        partition: Partition,
        query: &ThreadQuery,
        read_place: ReadPosition,
    ) -> Result<(Vec<ContextPosition>, Option<ThreadPosition>), StoreError> {
        let after = query.after.as_ref();
        let request = Query {
            range: keys::places_until(after.map(|after| after.at)),
            newest_first: true,
            limit: Some(CHUNK),
            filter: Some(item::is_live(query.now)),
            ..partition.into()
        };
        let is_after = |(position, _): &ContextPosition| after.is_none_or(|it| position < it);
        let read = |item: &Item| Ok(read_place(item, query).filter(is_after));
        let (places, last) = self.walk(request, query.limit, read).await?;
        Ok((places, last.as_ref().map(stop_at).transpose()?))
    }

    /// The contexts at `places` as they are stored now, in this order, without those that
    /// have expired or are deleted.
    async fn contexts_at(
        &self,
        owner: &Owner,
        places: &[ContextPosition],
        query: &ThreadQuery,
    ) -> Result<Vec<ThreadRecord>, StoreError> {
        let mut threads = BTreeMap::new();
        let contexts: BTreeSet<_> = places
            .iter()
            .map(|(position, _)| &position.context)
            .collect();
        let contexts = contexts.into_iter().map(|id| ThreadKey::new(owner, id));
        let keys: Vec<Key> = contexts.map(|thread| keys::thread(&thread)).collect();
        for thread in item::readable(&self.table.get(&keys).await?, threads::head)? {
            threads.insert(thread.context_id.clone(), thread);
        }
        // A context with a live thread is listed by the position of the thread, not of a task.
        let is_own = |(position, task): &&ContextPosition| {
            let thread = threads.get(&position.context);
            task.is_none() || thread.is_none_or(|it| !it.lives(query.now) && !it.is_cleared())
        };
        let places: Vec<&ContextPosition> = places.iter().filter(is_own).collect();
        let tasks = places.iter().filter_map(|(_, task)| task.as_ref());
        let tasks = tasks.map(|id| TaskKey::new(owner, id));
        for task in self.heads_of(tasks).await? {
            let is_shown = task.is_open(query.now) || task.names_its_context();
            if &task.owner != owner || task.is_expired(query.now) || !is_shown {
                continue;
            }
            let derived = ThreadRecord::from_first_task(&task, query.ttl, query.now);
            let thread = threads.entry(task.context_id.clone());
            // An open task keeps an expired thread alive.
            let thread = thread.or_insert_with(|| derived.clone());
            thread.expires_at = thread.expires_at.max(derived.expires_at);
        }
        for context in self.empty_contexts(owner, &threads, query).await? {
            threads.remove(&context);
        }
        let mut page = Vec::new();
        for (position, _) in places {
            // Each context once: the index can still show the position before an update.
            let thread = threads.remove(&position.context);
            page.extend(thread.filter(|it| it.owner == *owner && it.lives(query.now)));
        }
        Ok(page)
    }

    /// Those of `threads` that were stored for a task that is not there: it was never stored,
    /// or it has been deleted.
    async fn empty_contexts(
        &self,
        owner: &Owner,
        threads: &BTreeMap<ContextId, ThreadRecord>,
        query: &ThreadQuery,
    ) -> Result<Vec<ContextId>, StoreError> {
        let bare = threads.values().filter(|thread| thread.is_bare());
        let bare: Vec<ContextId> = bare.map(|thread| thread.context_id.clone()).collect();
        let checks = bare.into_iter().map(|context| async move {
            let lives = |task: &TaskRecord| !task.is_expired(query.now);
            let has_task = self.has_task(owner, &context, POINTERS, lives).await?;
            Ok::<_, StoreError>((!has_task).then_some(context))
        });
        let checks: Vec<_> = stream::iter(checks).buffered(AT_ONCE).try_collect().await?;
        Ok(checks.into_iter().flatten().collect())
    }

    /// Whether a task of the context is open at `now`: submitted, working, or waiting for its
    /// client. Then neither the context nor its state expires.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn has_open_task(
        &self,
        owner: &Owner,
        context: &ContextId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let is_open = |task: &TaskRecord| task.is_open(now);
        self.has_task(owner, context, IN_CONTEXT, is_open).await
    }

    /// Whether a task that `accepts` is stored in the context. It reads `limit` at a time.
    async fn has_task(
        &self,
        owner: &Owner,
        context: &ContextId,
        limit: usize,
        accepts: impl Fn(&TaskRecord) -> bool + Send + Sync,
    ) -> Result<bool, StoreError> {
        let mut after = None;
        loop {
            let (heads, next) = self.tasks_in(owner, context, None, after, limit).await?;
            if heads.iter().any(&accepts) {
                return Ok(true);
            }
            after = next;
            if after.is_none() {
                return Ok(false);
            }
        }
    }
}

/// The position of a thread in the index.
fn thread_place(item: &Item, _: &ThreadQuery) -> Option<ContextPosition> {
    let position = keys::context_position(item::text(item, LISTS_SK).ok()?)?;
    Some((position, None))
}

/// The position of a task that its context is named after, or of an open one whose context has
/// been without activity for longer than contexts live. `None` if a task has ended so long ago:
/// it is kept much longer than its context is listed.
fn task_place(item: &Item, query: &ThreadQuery) -> Option<ContextPosition> {
    let position = ListPosition::parse(item::text(item, LISTS_SK).ok()?).ok()?;
    let state = item::text(item, STATE).ok().and_then(TaskState::parse);
    let is_old = position.at.plus(query.ttl) <= query.now;
    if is_old && state.is_some_and(TaskState::is_terminal) {
        return None;
    }
    let context = ContextId::parse(item::text(item, CONTEXT).ok()?).ok()?;
    let shows = is_old || context.first_task().as_ref() == Some(&position.task);
    let at = position.at;
    shows.then_some((ThreadPosition { at, context }, Some(position.task)))
}

/// The position from which the next walk continues: that of the last item read. A task that
/// no context is named after sorts before all contexts of the same time.
fn stop_at(last: &Position) -> Result<ThreadPosition, StoreError> {
    let text = item::text(&last.0, LISTS_SK)?;
    let of_thread = keys::context_position(text);
    let of_thread =
        of_thread.ok_or_else(|| corrupt(format_args!("invalid position in a list: `{text}`")))?;
    let task = TaskId::parse(of_thread.context.as_str());
    let context = task.ok().and_then(|task| ContextId::named_after(&task));
    Ok(ThreadPosition {
        context: context.unwrap_or(of_thread.context),
        at: of_thread.at,
    })
}
