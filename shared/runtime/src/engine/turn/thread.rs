//! The thread of a turn: read when the skill asks for it, changed by operations that
//! can be applied again to a newer state.

use super::spec::TurnSpec;
use super::state_size::check_state_size;
use crate::engine::clock::lock;
use crate::engine::files::ReadFailure;
use crate::engine::{Engine, EngineError};
use crate::skill::{AgentError, AgentResult, Content};
use crate::store::{
    ProjectedTask, Projection, StoreError, ThreadRecord, ThreadState, ThreadWrite, stored,
};
use crate::task::{
    Change, ContextId, Message, Owner, TaskId, TaskRecord, Timestamp, WriteId, moved,
};
use crate::thread::Thread;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tokio::sync::OnceCell;

/// A thread shows at most this many messages of its context.
const REBUILT: usize = 100;
/// At most this many other tasks of the context are read for it.
const TASKS: usize = 20;
/// About this many bytes are read for it outside the tasks' own DynamoDB items.
const SPOKEN: usize = 8 * 1024 * 1024;
/// At most this many pages of tasks are read for it: hidden and expired tasks make a
/// page short.
const PAGES: usize = 10;

/// The messages of one task.
struct TaskMessages {
    task: TaskId,
    messages: Vec<Message>,
}

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
        if let StoreError::Unavailable(why) | StoreError::Contended(why) = &error {
            *lock(&self.unread) = Some(StoreError::Unavailable(why.clone()));
        }
        AgentError::from(EngineError::from(error))
    }

    /// What was said in the context so far, oldest first: the messages of each task,
    /// followed by the events that skills added in that task.
    pub(in crate::engine) async fn thread(&self) -> AgentResult<Thread> {
        let left = self.left().await.map_err(|error| self.failed(error))?;
        let over = left.as_ref().is_some_and(ThreadRecord::is_cleared);
        let found = left.filter(|thread| self.is_own(thread));
        let began = found.as_ref().map(|thread| thread.created_at);
        let began = self.began.or(began).unwrap_or(self.created);
        let mut events = self.unexpired_state(found).unwrap_or_default().events;
        for operation in lock(&self.operations).iter() {
            if let ThreadOperation::Append(event) = operation {
                events.push(event.clone());
            }
        }
        let (others, cut) = if over {
            (Vec::new(), false)
        } else {
            let others = self.others(began).await;
            others.map_err(|error| self.failed(error))?
        };
        let own = TaskMessages {
            task: self.task.clone(),
            messages: self.own.clone(),
        };
        let reported = others.into_iter().chain([own]);
        let (said, surplus) = joined(reported, events);
        let thread: Thread = said.into_iter().collect();
        Ok(if cut || surplus { thread.cut() } else { thread })
    }

    /// The messages of the other tasks of the context that began at `context_began_at`, oldest
    /// first, and whether some may be missing. The rest of a task is dropped before the
    /// next one is read.
    async fn others(&self, began: Timestamp) -> Result<(Vec<TaskMessages>, bool), StoreError> {
        let now = self.engine.reader.clock.now();
        let (heads, mut cut) = self.other_tasks(began, now).await?;
        let (mut messages, mut bytes) = (REBUILT, SPOKEN);
        let mut reported = Vec::new();
        for head in heads {
            let wanted = Projection {
                history_length: messages,
                artifacts: false,
                bytes,
            };
            cut |= count_messages(&head) > messages;
            let found = self.engine.tasks.project(head, wanted, now).await?;
            if let Some(ProjectedTask {
                record,
                read,
                complete,
            }) = found
            {
                cut |= !complete;
                bytes = bytes.saturating_sub(read);
                let said = TaskMessages {
                    messages: messages_of(&record),
                    task: record.id().clone(),
                };
                messages = messages.saturating_sub(said.messages.len());
                reported.push(said);
            }
        }
        reported.reverse();
        Ok((reported, cut))
    }

    /// The heads of the newest other tasks of the context that began at `context_began_at`, newest
    /// first, and whether there may be more.
    async fn other_tasks(
        &self,
        began: Timestamp,
        now: Timestamp,
    ) -> Result<(Vec<TaskRecord>, bool), StoreError> {
        let (owner, context) = (&self.owner, &self.context);
        let (mut tasks, mut after, mut said) = (Vec::new(), None, 0);
        for _ in 0..PAGES {
            // One task more than needed shows whether there are more.
            let page = self.engine.tasks.tasks_in(owner, context, after, TASKS + 1);
            let (heads, next) = page.await?;
            for task in heads {
                if self.engine.is_earlier(context, task.created_at(), began) {
                    // All tasks after this one are older still.
                    return Ok(cut(tasks, false));
                }
                if *task.id() != self.task && !task.is_hidden() && !task.expired(now) {
                    said += count_messages(&task);
                    tasks.push(task);
                }
            }
            after = next;
            if after.is_none() || tasks.len() > TASKS || said >= REBUILT {
                break;
            }
        }
        Ok(cut(tasks, after.is_some()))
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

/// At most [`TASKS`] of these tasks, and whether there may be more.
fn cut(mut tasks: Vec<TaskRecord>, more: bool) -> (Vec<TaskRecord>, bool) {
    let more = more || tasks.len() > TASKS;
    tasks.truncate(TASKS);
    (tasks, more)
}

/// The messages of tasks, at most [`REBUILT`], and whether there were more. The events
/// of a task follow its messages. Events of tasks that are not in the list come first.
fn joined(
    tasks: impl Iterator<Item = TaskMessages>,
    mut events: Vec<Message>,
) -> (Vec<Message>, bool) {
    let mut all = Vec::new();
    for TaskMessages { task, messages } in tasks {
        let of_task = |event: &Message| event.task_id.as_ref() == Some(&task);
        let (mine, rest) = events.into_iter().partition(of_task);
        events = rest;
        all.push((messages, mine));
    }
    let said: usize = all.iter().map(|(messages, _)| messages.len()).sum();
    let mut surplus = said.saturating_sub(REBUILT);
    let more = surplus > 0;
    let mut joined: Vec<Message> = events;
    for (messages, mine) in all {
        let skip = surplus.min(messages.len());
        surplus -= skip;
        joined.extend(messages.into_iter().skip(skip));
        joined.extend::<Vec<Message>>(mine);
    }
    (joined, more)
}

/// How many messages a task has, by its head.
fn count_messages(head: &TaskRecord) -> usize {
    let apart = if head.is_partial() {
        moved(&head.layout().history)
    } else {
        0
    };
    apart + head.history().len() + usize::from(head.status().message.is_some())
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
