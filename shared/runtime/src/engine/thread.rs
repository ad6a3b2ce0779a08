//! The conversation of a turn: read when it is asked for, changed by
//! operations that can be applied again to a fresh state.

use super::blob::Unread;
use super::run::Work;
use super::size::check_state_size;
use super::turn::lock;
use super::{Engine, EngineError};
use crate::skill::{AgentError, AgentResult, Content};
use crate::store::{
    Excerpt, RecordQuery, StoreError, ThreadRecord, ThreadState, ThreadStatus, ThreadWrite, Wanted,
    stored,
};
use crate::task::{
    Change, ContextId, Message, Owner, TaskId, TaskRecord, Timestamp, WriteId, moved,
};
use crate::thread::Thread;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::OnceCell;

/// At most this many messages of a context are put back into a thread.
const REBUILT: usize = 100;
/// At most this many tasks of a context are read for it.
const TASKS: usize = 20;
/// About as many bytes of them are read beside their own items.
const SPOKEN: usize = 8 * 1024 * 1024;
/// At most this many pages of the caller's tasks are read for them; a page of a
/// table ends after 2,000 places of its index, whosever conversation they are.
const PAGES: usize = 50;
/// How far the clocks of two machines may be apart, and how long a first write
/// may take.
const SKEW: Duration = Duration::from_secs(60);

/// What was said in a task.
struct Told {
    task: TaskId,
    messages: Vec<Message>,
}

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
    /// When the task was made.
    created: Timestamp,
    /// When the conversation began, if the turn was opened by a message here.
    began: Option<Timestamp>,
    /// When the turn should stop its work.
    stop_at: Option<Timestamp>,
    /// When its thread was looked after last.
    looked: Timestamp,
    /// The messages of the turn's own task.
    own: Vec<Message>,
    operations: Mutex<Vec<Operation>>,
    /// The session values as they stood at the first look.
    session: OnceCell<BTreeMap<String, Value>>,
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
            created: record.created_at,
            began: standing.map(|standing| standing.began),
            stop_at: work.stop_at,
            looked: standing.map_or(record.updated_at, |_| engine.reader.clock.now()),
            own,
            operations: Mutex::default(),
            session: OnceCell::new(),
            unread: Unread::default(),
        }
    }

    /// When the turn should stop its work, if its time is limited.
    pub(super) const fn stop_at(&self) -> Option<Timestamp> {
        self.stop_at
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
        if let StoreError::Unavailable(why) | StoreError::Contended(why) = &error {
            *lock(&self.unread) = Some(StoreError::Unavailable(why.clone()));
        }
        AgentError::from(EngineError::from(error))
    }

    /// What was said in the context so far: the messages of its tasks, each
    /// task's followed by the events which skills added to it, oldest first.
    pub(super) async fn thread(&self) -> AgentResult<Thread> {
        let left = self.left().await.map_err(|error| self.failed(error))?;
        let over = left.as_ref().is_some_and(|thread| self.is_over(thread));
        let fence = left.as_ref().and_then(|thread| thread.cleared_at);
        let found = left.filter(|thread| self.is_own(thread));
        let began = found.as_ref().map(|thread| thread.created_at);
        let began = self.began.or(began).unwrap_or(self.created);
        let mut events = self.alive(found).unwrap_or_default().events;
        for operation in lock(&self.operations).iter() {
            if let Operation::Append(event) = operation {
                events.push(event.clone());
            }
        }
        let others = if over {
            Vec::new()
        } else {
            let others = self.others(began, fence).await;
            others.map_err(|error| self.failed(error))?
        };
        let own = Told {
            task: self.task.clone(),
            messages: self.own.clone(),
        };
        let told = others.into_iter().chain([own]);
        Ok(joined(told, events).into_iter().collect())
    }

    /// What was said in the other tasks of the conversation that began at `began`,
    /// oldest first. What was said in one is read, and the rest of it dropped,
    /// before the next.
    async fn others(
        &self,
        began: Timestamp,
        fence: Option<Timestamp>,
    ) -> Result<Vec<Told>, StoreError> {
        let now = self.engine.reader.clock.now();
        let mut heads = self.other_tasks(began, fence, now).await?;
        // Newest first; those of one moment keep their order.
        heads.sort_by_key(|task| Reverse(task.created_at));
        let (mut messages, mut bytes) = (REBUILT, SPOKEN);
        let mut told = Vec::new();
        for head in heads {
            let wanted = Wanted {
                history_length: messages,
                artifacts: false,
                bytes,
            };
            let found = self.engine.tasks.excerpt(head, wanted, now).await?;
            if let Some(Excerpt { record, read, .. }) = found {
                bytes = bytes.saturating_sub(read);
                let said = Told {
                    messages: spoken(&record),
                    task: record.id,
                };
                messages = messages.saturating_sub(said.messages.len());
                told.push(said);
            }
        }
        told.reverse();
        Ok(told)
    }

    /// The heads of the other tasks of the conversation that began at `began`, the
    /// newest of them, newest status first. They can lie far behind what the caller
    /// did in other conversations meanwhile: the list is followed until enough was
    /// said, or to the beginning.
    async fn other_tasks(
        &self,
        began: Timestamp,
        fence: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let mut query = RecordQuery {
            context_id: Some(self.context.clone()),
            state: None,
            status_after: Some(began.minus(SKEW)),
            after: None,
            limit: TASKS + 1,
            count_limit: 0,
            now,
        };
        let mut tasks: Vec<TaskRecord> = Vec::new();
        for _ in 0..PAGES {
            let page = self.engine.tasks.list(&self.owner, &query).await?;
            for task in page.records {
                // A lagging index can show a task twice.
                let known = tasks.iter().any(|known| known.id == task.id);
                let deleted = fence.is_some_and(|fence| task.created_at <= fence);
                if !known && !deleted && self.is_of(&task, began) {
                    tasks.push(task);
                }
            }
            let said: usize = tasks.iter().map(messages_of).sum();
            query.after = page.next;
            if query.after.is_none() || tasks.len() >= TASKS || said >= REBUILT {
                break;
            }
        }
        if query.after.is_some() && tasks.len() < TASKS {
            let id = &self.task;
            tracing::warn!(task.id = %id, "the conversation of task `{id}` was not read to its beginning");
        }
        tasks.truncate(TASKS);
        Ok(tasks)
    }

    /// Whether another task is of the conversation that began at `began`.
    fn is_of(&self, task: &TaskRecord, began: Timestamp) -> bool {
        let engine = self.engine;
        task.id != self.task && !engine.is_earlier(&self.context, task.created_at, began)
    }

    /// What stands under the id of the conversation, whosever it is.
    async fn left(&self) -> Result<Option<ThreadRecord>, StoreError> {
        let threads = &self.engine.threads;
        threads.load_thread(&self.owner, &self.context).await
    }

    /// The thread as stored, if it is that of this conversation.
    async fn stored(&self) -> Result<Option<ThreadRecord>, StoreError> {
        Ok(self.left().await?.filter(|thread| self.is_own(thread)))
    }

    /// Whether `thread` is that of this conversation, and not what an earlier one
    /// under the same id has left, or a later one has begun.
    fn is_own(&self, thread: &ThreadRecord) -> bool {
        let earlier = |began| {
            let engine = self.engine;
            engine.is_earlier(&self.context, thread.created_at, began)
        };
        let left = self.began.is_some_and(earlier);
        !left && !self.is_over(thread) && thread.status != ThreadStatus::Cleared
    }

    /// Whether the conversation was deleted while the turn was on its way.
    fn is_over(&self, thread: &ThreadRecord) -> bool {
        let at = self.began.unwrap_or(self.created);
        let cleared = thread.status == ThreadStatus::Cleared;
        thread.has_cleared(at) || cleared && self.context.is_server_made()
    }

    /// The state of a thread, unless its time is up.
    fn alive(&self, found: Option<ThreadRecord>) -> Option<ThreadState> {
        let now = self.engine.reader.clock.now();
        let alive = found.filter(|thread| thread.state_expires_at > now);
        alive.map(|thread| thread.state)
    }

    /// A session value, this turn's own changes first. The state, which may be
    /// large, is read once a turn.
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
        let look = || async {
            let found = self.stored().await?;
            Ok(self.alive(found).unwrap_or_default().session)
        };
        let session = self.session.get_or_try_init(look).await;
        let session = session.map_err(|error: StoreError| self.failed(error))?;
        Ok(session.get(&key).cloned())
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
    /// goes on, without its old state. What an earlier conversation left under
    /// the same id is replaced. Nothing is written if this one was deleted, whether
    /// its id has begun another one or not.
    pub(super) async fn write(&self) -> Result<Option<ThreadWrite>, EngineError> {
        let now = self.engine.reader.clock.now();
        let left = self.left().await?;
        if left.as_ref().is_some_and(|thread| self.is_over(thread)) {
            return Ok(None);
        }
        let version = left.as_ref().map_or(0, |left| left.version);
        let cleared_at = left.as_ref().and_then(|left| left.cleared_at);
        let mut record = match left.filter(|thread| self.is_own(thread)) {
            Some(record) => record,
            None => {
                let began = self.began.unwrap_or(self.created);
                let (owner, context) = (self.owner.clone(), self.context.clone());
                let record = ThreadRecord::begun(owner, context, began, now);
                ThreadRecord {
                    version,
                    cleared_at,
                    ..record
                }
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

/// The messages of tasks, at most [`REBUILT`] of them, with each event behind
/// the messages of its task. Events of tasks that are not here come first.
fn joined(tasks: impl Iterator<Item = Told>, mut events: Vec<Message>) -> Vec<Message> {
    let mut all = Vec::new();
    for Told { task, messages } in tasks {
        let of_task = |event: &Message| event.task_id.as_ref() == Some(&task);
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

/// How many messages a task has, as its head tells.
fn messages_of(head: &TaskRecord) -> usize {
    let apart = if head.is_partial() {
        moved(&head.layout().history)
    } else {
        0
    };
    apart + head.history.len() + usize::from(head.status().message.is_some())
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
            secret: None,
            ..
        } => Some(message),
        _ => None,
    }
}
