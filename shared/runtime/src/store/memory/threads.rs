//! Threads in memory: their lists, and what a sweep finds.

use super::MemoryStore;
use super::tables::{Tables, ThreadCheck, thread_key};
use crate::store::{
    Expiring, ExpiringThread, ReadThreads, StateRemoved, StoreError, SweepThreads, ThreadPage,
    ThreadPosition, ThreadQuery, ThreadRecord, ThreadState, ThreadWrite, WriteThreads, stored,
};
use crate::task::{ContextId, Owner, Timestamp};
use async_trait::async_trait;

#[async_trait]
impl ReadThreads for MemoryStore {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let tables = self.tables();
        let stored = tables.threads.get(&(owner.clone(), id.clone()));
        Ok(stored.map(|stored| stored.record.clone()))
    }

    async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError> {
        Ok(self.tables().contexts(owner, query))
    }
}

#[async_trait]
impl WriteThreads for MemoryStore {
    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        stored::encode_state(&write.record.state)?;
        let mut tables = self.tables();
        Ok(match tables.thread_accepts(write) {
            ThreadCheck::Now => {
                tables.keep_thread(write);
                true
            }
            ThreadCheck::Already => true,
            ThreadCheck::No => false,
        })
    }

    async fn forget_state(&self, _: &ThreadRecord) -> Result<(), StoreError> {
        // The write that cleared the thread removed its state.
        Ok(())
    }

    async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let key = thread_key(record);
        let stored = tables.threads.get(&key);
        let other = stored.is_some_and(|stored| stored.record.version != record.version);
        if !other {
            tables.threads.remove(&key);
        }
        Ok(!other)
    }
}

impl Tables {
    /// The page of contexts of `owner` that `query` asks for.
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
            let own = (task.owner().clone(), task.context_id().clone());
            let seen = !task.expired(query.now);
            if task.names_its_context() && seen && !self.threads.contains_key(&own) {
                let thread = ThreadRecord::from_first_task(task, query.ttl, query.now);
                found.push((position(task.status().timestamp, &thread), thread));
            }
        }
        let has_task = |thread: &ThreadRecord| {
            let mut tasks = self.tasks.values().filter(|task| !task.expired(query.now));
            tasks.any(|it| it.owner() == owner && it.context_id() == &thread.context_id)
        };
        let listed = |(place, thread): &(ThreadPosition, ThreadRecord)| {
            let after = query.after.as_ref().is_none_or(|after| place < after);
            let lives = thread.owner == *owner && thread.lives(query.now);
            after && lives && (!thread.is_bare() || has_task(thread))
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

/// Which part of a thread is due for a sweep.
fn over(thread: &ThreadRecord, now: Timestamp) -> Option<Expiring> {
    let kinds = [Expiring::Deleted, Expiring::State];
    let due = |what: &Expiring| thread.swept_at(*what).is_some_and(|at| at <= now);
    kinds.into_iter().find(due)
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
        let tables = self.tables();
        let mut found: Vec<(String, ExpiringThread)> = Vec::new();
        for ((owner, id), stored) in &tables.threads {
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

    async fn note_expiry(&self, _: &ThreadRecord) -> Result<(), StoreError> {
        // This store has no index that could lag.
        Ok(())
    }

    async fn remove_state(
        &self,
        owner: &Owner,
        id: &ContextId,
        _: Timestamp,
    ) -> Result<StateRemoved, StoreError> {
        // The write that gave up the state removed it.
        let tables = self.tables();
        Ok(StateRemoved {
            state: tables.threads.contains_key(&(owner.clone(), id.clone())),
            objects: 0,
        })
    }
}
