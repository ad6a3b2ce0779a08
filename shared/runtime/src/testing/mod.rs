//! Runs the skills of an agent in tests: on the real engine, with a store in
//! memory, without AWS and without a server.
//!
//! A [`SkillTest`] is a client of one skill, or of the whole agent. Each
//! [`SkillTest::send`] runs one turn to its end and returns a [`Reply`]. [`check_agent`]
//! checks an agent without running it.
//!
//! **Models.** [`ScriptedModel`] gives the answers that the test writes, [`Cassette`] those that
//! a real model gave once.
//!
//! **State.** The store encodes and decodes each task and each thread as it would
//! for DynamoDB. So a slot, a step or saved data that loses something in
//! serialization loses it here too, as when the next message reaches another
//! instance of the function.
//!
//! **Time.** The bench has its own clock, which begins at 2026-01-01T00:00:00Z. It
//! moves when the test calls [`SkillTest::advance`], and when the engine waits (for
//! example to group events). Such a wait, and a skill that sleeps with
//! `tokio::time`, take real time; under `#[tokio::test(start_paused = true)]` they
//! take none. The executor has to be Tokio, with its timer enabled.
//!
//! - here: the client, and what it notes of each message
//! - `invocations`: the call of a message, and the workers that continue its turn
//! - `options`: the methods that set the caller, the model, the time, the agent and the
//!   next message
//! - `reply`: the result of a message
//! - `check`: checks an agent without running it
//! - `scripted_model`, `cassette`: models for tests, with a script or with recorded answers
//! - `model_meter`: counts the tokens and notes the tool calls of another model
//! - `clock`, `store`: the time, the ids and the store of the bench
//! - `table_layer`, `blob_layer`: a table or bytes in front of others, with faults

mod blob_layer;
mod cassette;
mod check;
mod clock;
mod invocations;
mod model_meter;
mod options;
mod reply;
mod scripted_model;
mod store;
mod table_layer;

pub use crate::engine::OutputFault;
pub use blob_layer::{BlobHooks, BlobLayer};
pub use cassette::{Cassette, CassetteError};
pub use check::{AgentCheckError, check_agent};
pub use model_meter::{ModelMeter, ModelUse};
pub use reply::{Reply, SkillTestError};
pub use scripted_model::{ScriptError, ScriptedModel};
pub use table_layer::{ItemKind, TableHooks, TableLayer, committed_task, reads, writes};

use crate::auth::Caller;
use crate::clock::lock;
use crate::engine::{Engine, Policy, RoutePreview, Services};
use crate::outbound::response::Responses;
use crate::store::documents::Documents;
use crate::task::metadata_keys;
use crate::task::{
    CancelCommand, ContextId, Event, Frame, Generation, GetQuery, IdError, Message, Metadata,
    Owner, SendCommand, SendMode, SkillId, Subject, TaskId, TenantId,
};
use crate::telemetry::scope::CallScope;
use a2a_lambda_skill::model::Model;
use a2a_lambda_skill::route::RouterModel;
use a2a_lambda_skill::{AgentDefinition, AgentError, Content};
use clock::CountedIds;
pub use clock::TestClock;
use invocations::Interruption;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::TestStore;

/// The most messages of history in a [`Reply`].
const HISTORY: usize = 100;

/// A client that sends messages to one skill, in tests.
///
/// [`SkillTest::send`] returns when the turn has ended. If the task waits for input,
/// the next message continues it. Otherwise the next message makes a new task in the
/// same context.
///
/// ```
/// use a2a_lambda::SkillTest;
/// use a2a_lambda::prelude::*;
///
/// /// Greets.
/// #[skill(id = "greet", tags = ["example"])]
/// async fn greet(name: String) -> AgentResult<String> {
///     Ok(format!("Hello, {name}!"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder("greeter").skill(greet).build()?;
/// let mut client = SkillTest::new(&agent, "greet");
/// let reply = client.send("Ann").await?;
/// assert_eq!(reply.artifact_text("greet").as_deref(), Some("Hello, Ann!"));
/// # Ok(())
/// # }
/// ```
pub struct SkillTest {
    agent: AgentDefinition,
    /// The skill that new tasks name; without one the agent chooses.
    skill: Option<String>,
    store: Arc<TestStore>,
    clock: Arc<TestClock>,
    ids: Arc<CountedIds>,
    caller: Option<Caller>,
    model: Option<Arc<dyn Model>>,
    router: Option<Arc<dyn Model>>,
    route: Option<RoutePreview>,
    time_left: Option<Duration>,
    context: Option<ContextId>,
    task: Option<TaskId>,
    open: bool,
    events: Vec<Event>,
    cause: Arc<Mutex<Option<String>>>,
    fault: Arc<Mutex<Option<OutputFault>>>,
    responses: Responses,
    next: Next,
}

/// Options of the next message alone.
#[derive(Debug, Default)]
struct Next {
    references: Vec<String>,
    accepted_output_modes: Vec<String>,
    message_id: Option<String>,
    interruption: Option<Interruption>,
}

impl SkillTest {
    /// A client of the skill with the id `skill`. If the agent does not have this
    /// skill, the first [`SkillTest::send`] returns an error.
    #[must_use]
    pub fn new(agent: &AgentDefinition, skill: impl Into<String>) -> Self {
        Self {
            skill: Some(skill.into()),
            ..Self::of_agent(agent)
        }
    }

    /// A client that names no skill: the agent chooses, by its rules and by
    /// [`SkillTest::router`].
    #[must_use]
    pub fn of_agent(agent: &AgentDefinition) -> Self {
        Self {
            agent: agent.clone().with_doubles(),
            skill: None,
            store: Arc::default(),
            clock: Arc::new(TestClock::standing(TestClock::START)),
            ids: Arc::default(),
            caller: None,
            model: None,
            router: None,
            route: None,
            time_left: None,
            context: None,
            task: None,
            open: false,
            events: Vec::new(),
            cause: Arc::default(),
            fault: Arc::default(),
            responses: Responses::default(),
            next: Next::default(),
        }
    }

    /// Sends a message from the user and waits until the turn has ended.
    ///
    /// A turn that does not end in its call goes on in workers, as a deployed one does: that
    /// of a background skill, one whose time is over, and one whose process died. The bench's
    /// clock moves over the waits between them.
    ///
    /// The message continues the current task while that task is not terminal.
    /// Otherwise it makes a new task in the same context.
    ///
    /// # Errors
    /// - [`SkillTestError::Refused`] when the agent refuses the message, for example
    ///   because it has no such skill, the input does not fit the skill, or the task
    ///   belongs to another caller.
    /// - [`SkillTestError::Output`] when the skill gave a media type that is not among its
    ///   output modes, wrote one artifact with two writers or
    ///   across steps, or left a writer unfinished.
    /// - [`SkillTestError::NoCrash`] when the turn ended before
    ///   [`SkillTest::crash_after`] could end its process.
    /// - [`SkillTestError::NeverRests`] when many workers did not bring the turn to its end.
    pub async fn send(&mut self, content: impl Into<Content>) -> Result<Reply, SkillTestError> {
        let scope = CallScope::default();
        let responses = self.responses.clone();
        let future = responses.run(Box::pin(self.send_in_scope(content.into())));
        let reply = scope.clone().run(future).await;
        let names = scope.names();
        let how = match names.route.get().map(String::as_str) {
            None => "pinned",
            Some("named") => "explicit",
            Some(how) => how,
        };
        self.route = Some(RoutePreview {
            skill: names.skill.get().and_then(|id| SkillId::parse(id).ok()),
            how: how.to_owned(),
        });
        reply
    }

    async fn send_in_scope(&mut self, content: Content) -> Result<Reply, SkillTestError> {
        let next = std::mem::take(&mut self.next);
        let interruption = next.interruption;
        let command = self.command(content, next);
        self.events.clear();
        *lock(&self.cause) = None;
        *lock(&self.fault) = None;
        let mut last_seq = self.last_event().await?;
        let (frames, task_id) = self.invoke(command, interruption).await?;
        let mut message = None;
        for frame in frames {
            if let Frame::Event { event, .. } = &frame {
                last_seq = event.seq;
            }
            message = self.note(frame)?.or(message);
        }
        if let Some(id) = task_id {
            self.follow(id, last_seq).await?;
        }
        let reply = match message {
            Some(message) => Reply::Message(message),
            None => self.look(&self.engine(), &self.calling()?).await?,
        };
        match lock(&self.fault).take() {
            Some(fault) => Err(fault.into()),
            None => Ok(reply),
        }
    }

    /// The number of the last event of the task that the next message continues; 0 for a new one.
    async fn last_event(&self) -> Result<u64, SkillTestError> {
        let Some(id) = self.task.as_ref().filter(|_| self.open) else {
            return Ok(0);
        };
        let record = self.stored(&self.calling()?, id).await?;
        Ok(record.map_or(0, |record| record.last_seq))
    }

    /// Notes what workers have stored after the event `last_seq`.
    async fn follow(&mut self, id: TaskId, last_seq: u64) -> Result<(), SkillTestError> {
        if let Some(record) = self.stored(&self.calling()?, &id).await? {
            let events = record
                .events_after(last_seq)
                .map(|event| event.event.clone());
            self.events.extend(events);
            self.context = Some(record.context_id.clone());
        }
        self.task = Some(id);
        Ok(())
    }

    /// Cancels the current task, between two turns. To cancel during a turn, use
    /// [`SkillTest::cancel_after`].
    ///
    /// # Errors
    /// - [`SkillTestError::NoTask`] when no message has made a task yet.
    /// - [`SkillTestError::Refused`] when the task has ended or belongs to another caller.
    pub async fn cancel(&mut self) -> Result<Reply, SkillTestError> {
        let id = self.task.clone().ok_or(SkillTestError::NoTask)?;
        let caller = self.calling()?;
        let engine = self.engine();
        engine.tasks.cancel(&caller, &cancel(id)).await?;
        self.look(&engine, &caller).await
    }

    /// The skill that a message would get, which is not sent; a model may be asked.
    ///
    /// # Errors
    /// [`SkillTestError::Refused`] when the agent would refuse the message.
    pub async fn preview(
        &mut self,
        content: impl Into<Content>,
    ) -> Result<RoutePreview, SkillTestError> {
        let next = std::mem::take(&mut self.next);
        let command = self.command(content.into(), next);
        let (engine, caller) = (self.engine(), self.calling()?);
        let preview = Box::pin(engine.accept.preview_route(&caller, command)).await?;
        self.route = Some(preview.clone());
        Ok(preview)
    }

    /// The skill of the last message that was sent or previewed, and the step that chose it.
    #[must_use]
    pub const fn route(&self) -> Option<&RoutePreview> {
        self.route.as_ref()
    }

    /// Reads the task `id` as it is stored now.
    ///
    /// # Errors
    /// [`SkillTestError::Refused`] when this caller has no such task.
    pub async fn get(&self, id: &TaskId) -> Result<Reply, SkillTestError> {
        let caller = self.calling()?;
        let query = GetQuery {
            id: id.clone(),
            history_length: HISTORY,
        };
        let task = self.engine().reader().get(&caller, &query).await?;
        Ok(Reply::Task(Box::new(task)))
    }

    /// The private cause of the last failure: what a function logs and no client gets. `None`
    /// if the last message failed no task, or the skill gave no cause.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        lock(&self.cause).clone()
    }

    /// The events that a client which streams would have received during the last
    /// [`SkillTest::send`], in order: status updates and artifact updates. The first
    /// frame of a stream, the task itself, is not among them.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    fn engine(&self) -> Engine {
        let (cause, fault) = (Arc::clone(&self.cause), Arc::clone(&self.fault));
        let failures = move |error: &AgentError| *lock(&cause) = error.cause().map(str::to_owned);
        let faults = move |output_fault: &OutputFault| {
            lock(&fault).get_or_insert_with(|| output_fault.clone());
        };
        let router = self.router.as_ref();
        let services = Services {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            model: self.model.clone(),
            router: router.map(|model| RouterModel::new(Arc::clone(model)).into()),
            documents: Some(Documents::new(self.store.records.table())),
            failures: Some(Arc::new(failures)),
            output_faults: Some(Arc::new(faults)),
            ..Services::new(self.store.records.clone(), self.store.blobs.clone())
        };
        // The engine stores each event without waiting for more, so that
        // `cancel_after` can stop a turn after any of them.
        let policy = Policy {
            flush_interval: Duration::ZERO,
            ..Policy::default()
        };
        Engine::new(Arc::new(self.agent.clone()), services, policy)
    }

    fn calling(&self) -> Result<Caller, SkillTestError> {
        match &self.caller {
            Some(caller) => Ok(caller.clone()),
            None => Ok(caller("bench", "bench")?),
        }
    }

    fn command(&self, content: Content, next: Next) -> SendCommand {
        let id = next.message_id.unwrap_or_else(|| self.ids.name("message"));
        let mut message = Message::from_user(id, content.into_parts());
        message.context_id.clone_from(&self.context);
        message.reference_task_ids = next.references;
        if self.open {
            message.task_id.clone_from(&self.task);
        } else if let Some(skill) = &self.skill {
            let key = metadata_keys::SKILL_ID.to_owned();
            message.metadata.insert(key, skill.as_str().into());
        }
        SendCommand {
            message,
            client_task_id: None,
            mode: SendMode::Blocking,
            history_length: HISTORY,
            accepted_output_modes: next.accepted_output_modes,
            push: None,
            metadata: Metadata::new(),
            generation: Generation::V10,
            idempotency_key: None,
        }
    }

    /// Records a frame of the stream. Returns the message of a skill that replies
    /// without a task.
    fn note(&mut self, frame: Frame) -> Result<Option<Message>, SkillTestError> {
        match frame {
            Frame::Task(task) | Frame::Resumed(task) => {
                self.task = Some(task.id.clone());
                self.context = Some(task.context_id.clone());
            }
            Frame::Event { event, .. } => self.events.push(event.event),
            Frame::Message(message) => {
                let context = message.context_id.clone();
                self.context = context.or_else(|| self.context.take());
                return Ok(Some(message));
            }
            Frame::Refused(refusal) => return Err(SkillTestError::Refused(refusal)),
            Frame::KeepAlive | Frame::Reconnect => {}
        }
        Ok(None)
    }

    /// Reads the stored task after a turn, and notes whether it is terminal.
    async fn look(&mut self, engine: &Engine, caller: &Caller) -> Result<Reply, SkillTestError> {
        let query = GetQuery {
            id: self.task.clone().ok_or(SkillTestError::NoTask)?,
            history_length: HISTORY,
        };
        let task = engine.reader().get(caller, &query).await?;
        self.open = !task.status.state.is_terminal();
        Ok(Reply::Task(Box::new(task)))
    }
}

fn cancel(id: TaskId) -> CancelCommand {
    CancelCommand {
        id,
        metadata: Metadata::new(),
    }
}

fn caller(tenant: &str, subject: &str) -> Result<Caller, IdError> {
    Ok(Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant)?,
            subject: Subject::parse(subject)?,
        },
        tier: "default".to_owned(),
        scopes: BTreeSet::new(),
    })
}

impl std::fmt::Debug for SkillTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillTest")
            .field("skill", &self.skill)
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
