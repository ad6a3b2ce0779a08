//! The conversation of a turn: read when it is asked for, changed by
//! operations that can be applied again to a fresh state.

use super::blob::Unread;
use super::run::Work;
use super::size::check_state_size;
use super::turn::lock;
use super::{Engine, EngineError};
use crate::skill::{AgentError, AgentResult, Content};
use crate::store::{RecordQuery, StoreError, ThreadRecord, ThreadState, ThreadWrite, stored};
use crate::task::{Change, ContextId, Message, Owner, TaskId, TaskRecord, Timestamp, WriteId};
use crate::thread::Thread;
use serde_json::Value;
use std::sync::Mutex;

/// At most this many messages of a context are put back into a thread.
const REBUILT: usize = 100;
/// At most this many tasks of a context are read for it.
const TASKS: usize = 20;
/// One change of a conversation's state. It can be applied again to a fresh
/// state, and does nothing where it stands already.
#[derive(Debug, Clone)]
enum Operation {
    /// The event is added, once: its id names the task by its incarnation, the
    /// turn and the place in the turn.
    Append(Message),
    /// The value is set.
    Set { key: String, value: Value },
}

impl Operation {
    fn apply(self, state: &mut ThreadState) {
        match self {
            Self::Append(event) => {
                if !state.events.iter().any(|there| there.id == event.id) {
                    state.events.push(event);
                }
            }
            Self::Set { key, value } => {
                state.session.insert(key, value);
            }
        }
    }
}

/// The conversation of one turn.
pub(super) struct Conversation<'e> {
    engine: &'e Engine,
    owner: Owner,
    context: ContextId,
    task: TaskId,
    /// A deleted or expired task may have had the same id.
    incarnation: WriteId,
    turn: u32,
    /// When the conversation began.
    began: Timestamp,
    /// When its thread was looked after last.
    looked: Timestamp,
    /// The messages of the turn's own task.
    own: Vec<Message>,
    operations: Mutex<Vec<Operation>>,
    /// Why the conversation could not be read, while the store was away.
    unread: Unread,
}

impl<'e> Conversation<'e> {
    pub(super) fn new(engine: &'e Engine, work: &Work) -> Self {
        let record = &work.record;
        let mut own = spoken(record);
        own.extend(work.opening.iter().filter_map(said).cloned());
        let standing = work.standing.as_ref();
        Self {
            engine,
            owner: record.owner.clone(),
            context: record.context_id.clone(),
            task: record.id.clone(),
            incarnation: record.incarnation.clone(),
            turn: work.facts.turn,
            began: standing.map_or(record.created_at, |standing| standing.began),
            looked: standing.map_or(record.updated_at, |_| engine.reader.clock.now()),
            own,
            operations: Mutex::default(),
            unread: Unread::default(),
        }
    }

    /// Why the skill was not given its conversation, if the store was away: a
    /// failure that follows from it says nothing about the task.
    pub(super) fn unread(&self) -> Option<StoreError> {
        lock(&self.unread).take()
    }

    /// Where it is said, for as long as something of the turn is read.
    pub(super) fn unread_by(&self) -> Unread {
        self.unread.clone()
    }

    /// The error a skill is told of a read that failed.
    pub(super) fn failed(&self, error: StoreError) -> AgentError {
        if let StoreError::Unavailable(why) = &error {
            *lock(&self.unread) = Some(StoreError::Unavailable(why.clone()));
        }
        AgentError::from(EngineError::from(error))
    }

    /// What was said in the context so far: the messages of its tasks, each
    /// task's followed by the events which skills added to it, oldest first.
    pub(super) async fn thread(&self) -> AgentResult<Thread> {
        let state = self.stored().await?.map(|record| record.state);
        let mut events = state.unwrap_or_default().events;
        for operation in lock(&self.operations).iter() {
            if let Operation::Append(event) = operation {
                events.push(event.clone());
            }
        }
        let others = self.others().await.map_err(|e| self.failed(e))?;
        let messages = others.iter().map(|task| (&task.id, spoken(task)));
        let own = (&self.task, self.own.clone());
        Ok(joined(messages.chain([own]), events).into_iter().collect())
    }

    /// The other tasks of the context, the newest of them, oldest first.
    async fn others(&self) -> Result<Vec<TaskRecord>, StoreError> {
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
        // Newest first; those of one moment keep their order.
        tasks.reverse();
        tasks.sort_by_key(|task| task.created_at);
        Ok(tasks)
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
        let own = lock(&self.operations)
            .iter()
            .rev()
            .find_map(|operation| match operation {
                Operation::Set { key: set, value } if *set == key => Some(value.clone()),
                Operation::Set { .. } | Operation::Append(_) => None,
            });
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
        lock(&self.operations).push(Operation::Set { key, value });
    }

    /// Adds an event in the turn's final commit.
    pub(super) fn add_event(&self, content: Content) {
        let mut operations = lock(&self.operations);
        let (place, turn) = (operations.len() + 1, self.turn);
        let id = format!("evt-{}-{turn}-{place}", self.incarnation);
        let mut event = Message::from_agent(id, content.into_parts());
        event.task_id = Some(self.task.clone());
        event.context_id = Some(self.context.clone());
        operations.push(Operation::Append(event));
    }

    /// Whether the turn changes nothing of the conversation.
    pub(super) fn is_unchanged(&self) -> bool {
        lock(&self.operations).is_empty()
    }

    /// Keeps the thread of a long turn alive.
    pub(super) async fn look_after(&self, record: &TaskRecord) {
        let now = self.engine.reader.clock.now();
        if self.engine.looks_again(self.looked, now) {
            self.engine.look_after_thread(record).await;
        }
    }

    /// The write that applies this turn's changes to the thread as it stands.
    /// The task keeps its conversation alive, so what has expired meanwhile
    /// goes on, without its old state.
    pub(super) async fn write(&self) -> Result<ThreadWrite, EngineError> {
        let now = self.engine.reader.clock.now();
        let found = self
            .engine
            .threads
            .load_thread(&self.owner, &self.context)
            .await?;
        let mut record = found.unwrap_or_else(|| {
            ThreadRecord::begun(self.owner.clone(), self.context.clone(), self.began, now)
        });
        if record.state_expires_at <= now {
            record.state = ThreadState::default();
        }
        for operation in lock(&self.operations).clone() {
            operation.apply(&mut record.state);
        }
        let allowed = self.engine.reader.policy.state_max_bytes;
        check_state_size(stored::state_size(&record.state), allowed)?;
        let mut write = self.engine.renewed(record, now);
        write.record.state_version = write.record.version;
        Ok(write)
    }
}

/// The messages of tasks, at most [`REBUILT`] of them, with each event behind
/// the messages of its task. Events of tasks that are not here come first.
fn joined<'t>(
    tasks: impl Iterator<Item = (&'t TaskId, Vec<Message>)>,
    mut events: Vec<Message>,
) -> Vec<Message> {
    let mut all = Vec::new();
    for (task, messages) in tasks {
        let of_task = |event: &Message| event.task_id.as_ref() == Some(task);
        let (mine, rest) = events.into_iter().partition(of_task);
        events = rest;
        all.push((messages, mine));
    }
    let said: usize = all.iter().map(|(messages, _)| messages.len()).sum();
    let mut surplus = said.saturating_sub(REBUILT);
    let mut joined: Vec<Message> = events;
    for (messages, mine) in all {
        let skip = surplus.min(messages.len());
        surplus -= skip;
        joined.extend(messages.into_iter().skip(skip));
        joined.extend::<Vec<Message>>(mine);
    }
    joined
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
