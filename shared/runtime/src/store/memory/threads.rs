//! Conversations in memory: lists, and what a sweep finds.

use super::{MemoryStore, Shelf};
use crate::store::{
    Expiring, ExpiringThread, StateRemoved, StoreError, SweepThreads, ThreadPage, ThreadPosition,
    ThreadQuery, ThreadRecord, ThreadState, ThreadStatus,
};
use crate::task::{ContextId, Owner, Timestamp};
use async_trait::async_trait;

impl Shelf {
    /// The conversations of `owner` after the query's place, in its order.
    pub(super) fn contexts(&self, owner: &Owner, query: &ThreadQuery) -> ThreadPage {
        let mut found: Vec<(ThreadPosition, ThreadRecord)> = Vec::new();
        for stored in self.threads.values().map(|stored| &stored.record) {
            let head = ThreadRecord {
                state: ThreadState::default(),
                ..stored.clone()
            };
            found.push((position(stored.updated_at, stored), head));
        }
        for task in self.tasks.values() {
            let id = task.context_id();
            let named = id.first_task().as_ref() == Some(task.id());
            let own = (task.owner().clone(), id.clone());
            let seen = !task.is_hidden() && !task.expired(query.now);
            if named && seen && !self.threads.contains_key(&own) {
                let thread = ThreadRecord::stood_for(task, query.ttl, query.now);
                found.push((position(task.status().timestamp, &thread), thread));
            }
        }
        let listed = |(place, thread): &(ThreadPosition, ThreadRecord)| {
            let after = query.after.as_ref().is_none_or(|after| place < after);
            after && thread.owner == *owner && thread.lives(query.now)
        };
        found.retain(listed);
        found.sort_by(|(a, _), (b, _)| b.cmp(a));
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let last = found.last().filter(|_| more);
        ThreadPage {
            next: last.map(|(place, _)| place.clone()),
            threads: found.into_iter().map(|(_, thread)| thread).collect(),
        }
    }
}

fn position(at: Timestamp, thread: &ThreadRecord) -> ThreadPosition {
    ThreadPosition {
        at,
        context: thread.context_id.clone(),
    }
}

/// What of a thread a sweep has to look at.
fn over(thread: &ThreadRecord, now: Timestamp) -> Option<Expiring> {
    let ends = !thread.context_id.is_server_made() && thread.status == ThreadStatus::Active;
    let settled = thread.settles_at().is_some_and(|at| at <= now);
    if settled && thread.status != ThreadStatus::Expired || ends && thread.expires_at <= now {
        return Some(Expiring::Thread);
    }
    let state = thread.state_version > 0 && thread.state_expires_at <= now;
    state.then_some(Expiring::State)
}

#[async_trait]
impl SweepThreads for MemoryStore {
    async fn expiring_threads(
        &self,
        _: u32,
        now: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<ExpiringThread>, Option<String>), StoreError> {
        let place = |owner: &Owner, id: &ContextId| {
            format!("{}#{}#{id}", owner.tenant, owner.subject.hash())
        };
        let shelf = self.shelf();
        let mut found: Vec<(String, ExpiringThread)> = Vec::new();
        for ((owner, id), stored) in &shelf.threads {
            if let Some(what) = over(&stored.record, now) {
                let hint = ExpiringThread {
                    owner: owner.clone(),
                    context_id: id.clone(),
                    what,
                };
                found.push((place(owner, id), hint));
            }
        }
        found.retain(|(place, _)| after.as_ref().is_none_or(|after| place > after));
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found
            .last()
            .filter(|_| more)
            .map(|(place, _)| place.clone());
        Ok((found.into_iter().map(|(_, hint)| hint).collect(), next))
    }

    async fn note_expiry(&self, _: &ExpiringThread, _: &ThreadRecord) -> Result<(), StoreError> {
        // There is no index that could be behind.
        Ok(())
    }

    async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        _: Timestamp,
    ) -> Result<StateRemoved, StoreError> {
        // The write that gave the state up has removed it.
        let shelf = self.shelf();
        Ok(StateRemoved {
            state: shelf.threads.contains_key(&(owner.clone(), id.clone())),
            objects: 0,
        })
    }
}
