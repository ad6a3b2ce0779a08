//! The conversation of a turn: read when it is asked for, changed by
//! operations that can be applied again to a fresh state.

use super::turn::lock;
use super::{Engine, EngineError};
use crate::skill::{AgentError, AgentResult};
use crate::store::{RecordQuery, StoreError, ThreadRecord, ThreadState, ThreadWrite};
use crate::task::{Change, ContextId, Message, Owner, TaskId, TaskRecord, WriteId};
use crate::thread::Thread;
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;

/// At most this many messages of a context are put back into a thread.
const REBUILT: usize = 100;
/// At most this many tasks of a context are read for it.
const TASKS: usize = 20;
/// How long a thread lives after its last write.
const THREAD_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long conversation state lives after its last write.
const STATE_TTL: Duration = Duration::from_secs(3600);

/// One change of a conversation's state.
#[derive(Debug, Clone)]
struct SetKey {
    key: String,
    value: Value,
}

/// The conversation of one turn.
pub(super) struct Conversation<'e> {
    engine: &'e Engine,
    owner: Owner,
    context: ContextId,
    task: TaskId,
    /// The messages of the turn's own task.
    own: Vec<Message>,
    changes: Mutex<Vec<SetKey>>,
    /// Why the conversation could not be read, while the store was away.
    unread: Mutex<Option<StoreError>>,
}

impl<'e> Conversation<'e> {
    pub(super) fn new(engine: &'e Engine, record: &TaskRecord, opening: &[Change]) -> Self {
        let mut own = spoken(record);
        own.extend(opening.iter().filter_map(said).cloned());
        Self {
            engine,
            owner: record.owner.clone(),
            context: record.context_id.clone(),
            task: record.id.clone(),
            own,
            changes: Mutex::default(),
            unread: Mutex::default(),
        }
    }

    /// Why the skill was not given its conversation, if the store was away: a
    /// failure that follows from it says nothing about the task.
    pub(super) fn unread(&self) -> Option<StoreError> {
        lock(&self.unread).take()
    }

    /// The error a skill is told of a read that failed.
    pub(super) fn failed(&self, error: StoreError) -> AgentError {
        if let StoreError::Unavailable(why) = &error {
            *lock(&self.unread) = Some(StoreError::Unavailable(why.clone()));
        }
        AgentError::from(EngineError::from(error))
    }

    /// What was said in the context so far: the stored conversation, else the
    /// messages of the context's tasks, oldest first.
    pub(super) async fn thread(&self) -> AgentResult<Thread> {
        let messages = match self.stored().await? {
            Some(record) if !record.state.events.is_empty() => record.state.events,
            _ => self.rebuilt().await.map_err(|e| self.failed(e))?,
        };
        let own = self.own.iter().cloned();
        Ok(messages
            .into_iter()
            .chain(own)
            .fold(Thread::default(), |t, m| t.add_event(m)))
    }

    /// The messages of the other tasks of the context.
    async fn rebuilt(&self) -> Result<Vec<Message>, StoreError> {
        let query = RecordQuery {
            context_id: Some(self.context.clone()),
            state: None,
            status_after: None,
            after: None,
            limit: TASKS,
            count_limit: 0,
            now: self.engine.reader.clock.now(),
        };
        let mut tasks = self.engine.tasks.list(&self.owner, &query).await?.records;
        tasks.retain(|task| task.id != self.task);
        tasks.sort_by_key(|task| task.created_at);
        let messages: Vec<Message> = tasks.iter().flat_map(spoken).collect();
        let skip = messages.len().saturating_sub(REBUILT);
        Ok(messages.into_iter().skip(skip).collect())
    }

    async fn stored(&self) -> AgentResult<Option<ThreadRecord>> {
        let now = self.engine.reader.clock.now();
        let found = self
            .engine
            .threads
            .load_thread(&self.owner, &self.context)
            .await;
        let found = found.map_err(|error| self.failed(error))?;
        Ok(found.filter(|record| record.state_expires_at > now))
    }

    /// A session value, this turn's own changes first.
    pub(super) async fn load(&self, key: String) -> AgentResult<Option<Value>> {
        let own = lock(&self.changes)
            .iter()
            .rev()
            .find(|c| c.key == key)
            .map(|c| c.value.clone());
        if own.is_some() {
            return Ok(own);
        }
        Ok(self
            .stored()
            .await?
            .and_then(|record| record.state.session.get(&key).cloned()))
    }

    /// Sets a session value in the turn's final commit.
    pub(super) fn save(&self, key: String, value: Value) {
        lock(&self.changes).push(SetKey { key, value });
    }

    /// The write that applies this turn's changes to the thread as it stands;
    /// `None` if the turn changes nothing.
    pub(super) async fn write(&self) -> Result<Option<ThreadWrite>, EngineError> {
        let changes = lock(&self.changes).clone();
        if changes.is_empty() {
            return Ok(None);
        }
        let now = self.engine.reader.clock.now();
        let stored = self
            .engine
            .threads
            .load_thread(&self.owner, &self.context)
            .await?;
        let expect = stored.as_ref().map_or(0, |record| record.version);
        let mut record = stored.unwrap_or_else(|| ThreadRecord {
            owner: self.owner.clone(),
            context_id: self.context.clone(),
            version: 0,
            created_at: now,
            updated_at: now,
            expires_at: now,
            state_expires_at: now,
            state: ThreadState::default(),
        });
        if record.state_expires_at <= now {
            record.state = ThreadState::default();
        }
        for SetKey { key, value } in changes {
            record.state.session.insert(key, value);
        }
        record.version = expect + 1;
        record.updated_at = now;
        record.expires_at = now.plus(THREAD_TTL);
        record.state_expires_at = now.plus(STATE_TTL);
        let write = WriteId::made_of(self.engine.ids.next());
        Ok(Some(ThreadWrite {
            record,
            expect,
            write,
        }))
    }
}

/// What was said in a task, its open question or closing words included.
fn spoken(record: &TaskRecord) -> Vec<Message> {
    record
        .history
        .iter()
        .chain(&record.status().message)
        .cloned()
        .collect()
}

/// What the client says with the turn's opening. Credentials are no part of a
/// conversation.
const fn said(change: &Change) -> Option<&Message> {
    match change {
        Change::Accept { message }
        | Change::Resume {
            message,
            secret: false,
            ..
        } => Some(message),
        _ => None,
    }
}
