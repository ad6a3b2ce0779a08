//! The thread of a turn: read when the skill asks for it, changed by operations that
//! can be applied again to a newer state.
//!
//! - here: the session values and events that the turn sets, and the write that stores them
//! - `messages`: reads the messages of the context

mod messages;

use super::spec::TurnSpec;
use super::state_size::check_state_size;
use crate::engine::clock::lock;
use crate::engine::files::ReadFailure;
use crate::engine::{Engine, EngineError};
use crate::skill::{AgentError, AgentResult, Content};
use crate::store::{StoreError, ThreadRecord, ThreadState, ThreadWrite, stored};
use crate::task::{Change, ContextId, Message, Owner, TaskId, TaskRecord, Timestamp, WriteId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tokio::sync::OnceCell;

/// One change of the thread state. It can be applied again to a newer state, and
/// changes nothing where it is applied already.
#[derive(Debug, Clone)]
enum ThreadOperation {
    /// Adds the event once. Its id names the task's incarnation, the turn and the
    /// position in the turn.
    Append(Message),
    /// Sets the value.
    Set { key: String, value: Value },
}

impl ThreadOperation {
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

/// A turn's view of its thread.
pub(in crate::engine) struct TurnThread<'e> {
    engine: &'e Engine,
    owner: Owner,
    context: ContextId,
    task: TaskId,
    /// Distinguishes this task from a deleted or expired one with the same id.
    incarnation: WriteId,
    turn: u32,
    /// When the task was created.
    created: Timestamp,
    /// When the context began, if a message opened the turn in this invocation.
    began: Option<Timestamp>,
    /// When the turn should stop its work.
    stop_at: Option<Timestamp>,
    /// When the turn last checked whether its thread needs a refresh.
    looked: Timestamp,
    /// The messages of the turn's own task.
    own: Vec<Message>,
    operations: Mutex<Vec<ThreadOperation>>,
    /// The session values as first read.
    session: OnceCell<BTreeMap<String, Value>>,
    /// Why the thread could not be read, if the store was unavailable.
    unread: ReadFailure,
}

impl<'e> TurnThread<'e> {
    pub(in crate::engine) fn new(engine: &'e Engine, work: &TurnSpec) -> Self {
        let record = &work.record;
        let mut own = messages_of(record);
        own.extend(work.opening.iter().filter_map(said).cloned());
        let context_status = work.context_status.as_ref();
        Self {
            engine,
            owner: record.owner().clone(),
            context: record.context_id().clone(),
            task: record.id().clone(),
            incarnation: record.incarnation().clone(),
            turn: work.facts.turn,
            created: record.created_at(),
            began: context_status.map(|context_status| context_status.began),
            stop_at: work.budget.stop_at,
            looked: context_status.map_or(record.updated_at(), |_| engine.reader.clock.now()),
            own,
            operations: Mutex::default(),
            session: OnceCell::new(),
            unread: ReadFailure::default(),
        }
    }

    /// When the turn should stop its work, if its time is limited.
    pub(in crate::engine) const fn stop_at(&self) -> Option<Timestamp> {
        self.stop_at
    }

    /// Why the skill could not read its thread, if the store was unavailable. A failure
    /// that follows from it says nothing about the task.
    pub(in crate::engine) fn unread(&self) -> Option<StoreError> {
        lock(&self.unread).take()
    }

    /// Where reads of this turn note that the store was unavailable.
    pub(in crate::engine) fn unread_by(&self) -> ReadFailure {
        self.unread.clone()
    }

    /// The error that a skill gets for a failed read.
    pub(in crate::engine) fn failed(&self, error: StoreError) -> AgentError {
        if error.is_outage() {
            *lock(&self.unread) = Some(StoreError::Unavailable(error.to_string()));
        }
        AgentError::from(EngineError::from(error))
    }

    /// The thread stored under the context id, even if an earlier context with this id
    /// left it.
    async fn left(&self) -> Result<Option<ThreadRecord>, StoreError> {
        let threads = &self.engine.threads;
        threads.load_thread(&self.owner, &self.context).await
    }

    /// The stored thread, if it belongs to this context.
    async fn stored(&self) -> Result<Option<ThreadRecord>, StoreError> {
        Ok(self.left().await?.filter(|thread| self.is_own(thread)))
    }

    /// Whether `thread` belongs to this context, and not to an earlier or later one
    /// with the same id.
    fn is_own(&self, thread: &ThreadRecord) -> bool {
        let earlier = |began| {
            let engine = self.engine;
            engine.is_earlier(&self.context, thread.created_at, began)
        };
        let left = self.began.is_some_and(earlier);
        !left && !thread.is_cleared()
    }

    /// The state of a thread, unless it has expired.
    fn unexpired_state(&self, found: Option<ThreadRecord>) -> Option<ThreadState> {
        let now = self.engine.reader.clock.now();
        let alive = found.filter(|thread| thread.state_expires_at > now);
        alive.map(|thread| thread.state)
    }

    /// A session value; this turn's own changes come first. The state may be large, so
    /// a turn reads it once.
    pub(in crate::engine) async fn load(&self, key: String) -> AgentResult<Option<Value>> {
        let own = lock(&self.operations)
            .iter()
            .rev()
            .find_map(|operation| match operation {
                ThreadOperation::Set { key: set, value } if *set == key => Some(value.clone()),
                ThreadOperation::Set { .. } | ThreadOperation::Append(_) => None,
            });
        if own.is_some() {
            return Ok(own);
        }
        let look = || async {
            let found = self.stored().await?;
            Ok(self.unexpired_state(found).unwrap_or_default().session)
        };
        let session = self.session.get_or_try_init(look).await;
        let session = session.map_err(|error: StoreError| self.failed(error))?;
        Ok(session.get(&key).cloned())
    }

    /// Sets a session value in the turn's final commit.
    pub(in crate::engine) fn save(&self, key: String, value: Value) {
        lock(&self.operations).push(ThreadOperation::Set { key, value });
    }

    /// Adds an event in the turn's final commit.
    pub(in crate::engine) fn add_event(&self, content: Content) {
        let mut operations = lock(&self.operations);
        let (place, turn) = (operations.len() + 1, self.turn);
        let id = format!("evt-{}-{turn}-{place}", self.incarnation);
        let mut event = Message::from_agent(id, content.into_parts());
        event.task_id = Some(self.task.clone());
        event.context_id = Some(self.context.clone());
        operations.push(ThreadOperation::Append(event));
    }

    /// Whether the turn changes nothing in its thread.
    pub(in crate::engine) fn is_unchanged(&self) -> bool {
        lock(&self.operations).is_empty()
    }

    /// Refreshes the thread of a long turn.
    pub(in crate::engine) async fn extend(&self, record: &TaskRecord) {
        let now = self.engine.reader.clock.now();
        if self.engine.needs_thread_extension(self.looked, now) {
            self.engine.extend_thread(record).await;
        }
    }

    /// The write that applies this turn's changes to the thread as it is stored now;
    /// `None` if the context was deleted. A task keeps its thread alive, so an expired
    /// thread continues without its old state. A thread that an earlier context with
    /// the same id left is replaced.
    ///
    /// # Errors
    /// When the thread cannot be read, or its state would be too large.
    pub(in crate::engine) async fn write(&self) -> Result<Option<ThreadWrite>, EngineError> {
        let now = self.engine.reader.clock.now();
        let left = self.left().await?;
        if left.as_ref().is_some_and(ThreadRecord::is_cleared) {
            return Ok(None);
        }
        // The write replaces what is stored, whichever context left it.
        let version = left.as_ref().map_or(0, |left| left.version);
        let mut record = match left.filter(|thread| self.is_own(thread)) {
            Some(record) => record,
            None => {
                let began = self.began.unwrap_or(self.created);
                let (owner, context) = (self.owner.clone(), self.context.clone());
                let record = ThreadRecord::begun(owner, context, began, now);
                ThreadRecord { version, ..record }
            }
        };
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
        Ok(Some(write))
    }
}

/// The messages of a task, with the one in its status.
fn messages_of(record: &TaskRecord) -> Vec<Message> {
    record
        .history()
        .iter()
        .chain(&record.status().message)
        .cloned()
        .collect()
}

/// The client's message in the turn's opening. Credentials are not part of a thread.
const fn said(change: &Change) -> Option<&Message> {
    match change {
        Change::Accept { message }
        | Change::Resume {
            message,
            secret: None,
            ..
        } => Some(message),
        _ => None,
    }
}
