//! The test bench: an agent's skills, run by the real engine and without AWS,
//! a server or a clock on the wall.
//!
//! What a skill keeps between two messages passes through the stored form each
//! time, as it does when each message meets another instance.
//!
//! Time stands still unless [`Bench::advance`] moves it; where the engine waits
//! (to group events, say) it moves by itself. A skill that sleeps with
//! `tokio::time` does sleep: under `#[tokio::test(start_paused = true)]` that
//! takes no time either. The executor must be Tokio's, with its timer enabled.

mod check;
mod clock;
mod reply;
mod store;

pub use check::{AgentFault, check_agent};
pub use reply::{BenchError, Reply};

use crate::auth::Caller;
use crate::engine::{Engine, Policy, Services};
use crate::skill::model::Model;
use crate::skill::{AgentDefinition, Content, media};
use crate::task::names;
use crate::task::{
    CancelCommand, ContextId, Event, Frame, Generation, GetQuery, InvalidId, Message, Metadata,
    Owner, Part, SendCommand, SendMode, SkillId, Subject, TaskId, TenantId,
};
use clock::{BenchClock, CountedIds};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::BenchStore;
use tokio::sync::mpsc;

/// Messages of history in a [`Reply`].
const HISTORY: usize = 100;

/// One client of one skill.
///
/// ```
/// use a2a_lambda::Bench;
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
/// let mut bench = Bench::new(&agent, "greet");
/// let reply = bench.send("Ann").await?;
/// assert_eq!(reply.artifact_text("greet").as_deref(), Some("Hello, Ann!"));
/// # Ok(())
/// # }
/// ```
pub struct Bench {
    agent: AgentDefinition,
    skill: String,
    store: Arc<BenchStore>,
    clock: Arc<BenchClock>,
    ids: Arc<CountedIds>,
    caller: Option<Caller>,
    model: Option<Arc<dyn Model>>,
    time_left: Option<Duration>,
    context: Option<ContextId>,
    task: Option<TaskId>,
    open: bool,
    events: Vec<Event>,
    next: Next,
}

/// What holds for the next message alone.
#[derive(Debug, Default)]
struct Next {
    references: Vec<String>,
    accepted_output_modes: Vec<String>,
    message_id: Option<String>,
    cancel_after: Option<u64>,
}

impl Bench {
    /// A client that talks to `skill`. Whether the agent has it shows at the
    /// first [`Bench::send`].
    #[must_use]
    pub fn new(agent: &AgentDefinition, skill: impl Into<String>) -> Self {
        Self {
            agent: agent.clone(),
            skill: skill.into(),
            store: Arc::default(),
            clock: Arc::default(),
            ids: Arc::default(),
            caller: None,
            model: None,
            time_left: None,
            context: None,
            task: None,
            open: false,
            events: Vec::new(),
            next: Next::default(),
        }
    }

    /// Sends a message and waits until the skill has answered. It continues the
    /// task while that is open; afterwards it opens another one in the same
    /// conversation.
    ///
    /// # Errors
    /// [`BenchError::Refused`] when the message is refused: no such skill,
    /// input that does not fit, a task of another caller.
    /// [`BenchError::OutputMode`] when the skill gave something which its
    /// metadata does not promise.
    pub async fn send(&mut self, content: impl Into<Content>) -> Result<Reply, BenchError> {
        let next = std::mem::take(&mut self.next);
        let cancel_after = next.cancel_after;
        let command = self.command(content.into(), next);
        let caller = self.calling()?;
        let engine = self.engine();
        self.events.clear();
        let (frames, mut shown) = mpsc::unbounded_channel();
        let deadline = self.time_left.map(|left| self.clock.later(left));
        let turn = Box::pin(engine.stream(&caller, command, deadline, frames));
        self.run(&engine, &caller, cancel_after, turn).await?;
        let mut said = None;
        while let Ok(frame) = shown.try_recv() {
            said = self.note(frame)?.or(said);
        }
        let reply = match said {
            Some(message) => Reply::Message(message),
            None => self.look(&engine, &caller).await?,
        };
        self.check_output(&reply)?;
        Ok(reply)
    }

    /// Cancels the task.
    ///
    /// # Errors
    /// [`BenchError::NoTask`] before there is one; [`BenchError::Refused`] when
    /// it has ended or is another caller's.
    pub async fn cancel(&mut self) -> Result<Reply, BenchError> {
        let id = self.task.clone().ok_or(BenchError::NoTask)?;
        let caller = self.calling()?;
        let engine = self.engine();
        engine.cancel(&caller, &cancel(id)).await?;
        self.look(&engine, &caller).await
    }

    /// The task of `id` as its caller sees it now.
    ///
    /// # Errors
    /// [`BenchError::Refused`] when there is none for this caller.
    pub async fn get(&self, id: &TaskId) -> Result<Reply, BenchError> {
        let caller = self.calling()?;
        let query = GetQuery {
            id: id.clone(),
            history_length: HISTORY,
        };
        let task = self.engine().reader().get(&caller, &query).await?;
        Ok(Reply::Task(Box::new(task)))
    }

    /// What the last [`Bench::send`] showed after the task itself, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Speaks as someone else from now on; at first it is `bench` of the
    /// tenant `bench`.
    ///
    /// # Errors
    /// [`InvalidId`] when one of the two has another form.
    pub fn caller(&mut self, tenant: &str, subject: &str) -> Result<&mut Self, InvalidId> {
        self.caller = Some(caller(tenant, subject)?);
        Ok(self)
    }

    /// Gives skills a model.
    pub fn model(&mut self, model: Arc<dyn Model>) -> &mut Self {
        self.model = Some(model);
        self
    }

    /// Ends each turn's invocation this much later than it begins.
    pub const fn time_left(&mut self, left: Duration) -> &mut Self {
        self.time_left = Some(left);
        self
    }

    /// Lets time pass.
    pub fn advance(&mut self, time: Duration) -> &mut Self {
        self.clock.advance(time);
        self
    }

    /// Puts another version of the agent in place of this one. What is stored
    /// stays.
    pub fn redeploy(&mut self, agent: &AgentDefinition) -> &mut Self {
        self.agent = agent.clone();
        self
    }

    /// Leaves the task as it is: the next message opens another one in the
    /// same conversation.
    pub fn new_task(&mut self) -> &mut Self {
        self.open = false;
        self
    }

    /// Starts another conversation.
    pub fn new_context(&mut self) -> &mut Self {
        self.context = None;
        self.new_task()
    }

    /// Lets the next message refer to earlier tasks.
    pub fn references(&mut self, tasks: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.next.references = tasks.into_iter().map(Into::into).collect();
        self
    }

    /// Says which media types the client can read of the next answer.
    pub fn accepts(&mut self, modes: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.next.accepted_output_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the id of the next message.
    pub fn message_id(&mut self, id: impl Into<String>) -> &mut Self {
        self.next.message_id = Some(id.into());
        self
    }

    /// Cancels the task when the next turn has stored this many events. A turn
    /// that has ended by then cannot be canceled, which [`Bench::send`] reports.
    pub const fn cancel_after(&mut self, events: u64) -> &mut Self {
        self.next.cancel_after = Some(events);
        self
    }

    fn engine(&self) -> Engine {
        let services = Services {
            tasks: self.store.clone(),
            threads: self.store.clone(),
            blobs: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            model: self.model.clone(),
        };
        // Events are not held back for others, so that a turn can be stopped
        // after each.
        let policy = Policy {
            flush_interval: Duration::ZERO,
            ..Policy::default()
        };
        Engine::new(Arc::new(self.agent.clone()), services, policy)
    }

    fn calling(&self) -> Result<Caller, BenchError> {
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
        } else {
            let key = names::SKILL_ID.to_owned();
            message.metadata.insert(key, self.skill.clone().into());
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

    /// Runs a turn to its end and cancels its task on the way, if asked to.
    async fn run<T, E: Into<BenchError>>(
        &self,
        engine: &Engine,
        caller: &Caller,
        cancel_after: Option<u64>,
        turn: impl Future<Output = Result<T, E>>,
    ) -> Result<T, BenchError> {
        let Some(events) = cancel_after else {
            return turn.await.map_err(Into::into);
        };
        let stop = self.store.stop_after(events);
        let watch = async {
            let Ok(id) = stop.reached.await else {
                return std::future::pending::<Result<Infallible, BenchError>>().await;
            };
            engine.cancel(caller, &cancel(id)).await?;
            // A turn that is not there any more needs no sign.
            let _gone = stop.go_on.send(());
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = turn => done.map_err(Into::into),
            Err(error) = watch => Err(error),
        }
    }

    /// Takes note of a frame; the message of a skill that makes no task.
    fn note(&mut self, frame: Frame) -> Result<Option<Message>, BenchError> {
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
            Frame::Refused(refusal) => return Err(BenchError::Refused(refusal)),
            Frame::KeepAlive | Frame::ComeBack => {}
        }
        Ok(None)
    }

    /// The task as stored after a turn.
    async fn look(&mut self, engine: &Engine, caller: &Caller) -> Result<Reply, BenchError> {
        let query = GetQuery {
            id: self.task.clone().ok_or(BenchError::NoTask)?,
            history_length: HISTORY,
        };
        let task = engine.reader().get(caller, &query).await?;
        self.open = !task.status.state.is_terminal();
        Ok(Reply::Task(Box::new(task)))
    }

    /// Whether everything delivered is of a type which the skill promises.
    fn check_output(&self, reply: &Reply) -> Result<(), BenchError> {
        let skill = SkillId::parse(self.skill.clone()).ok();
        let Some(skill) = skill.and_then(|id| self.agent.skill(&id)) else {
            return Ok(());
        };
        let check = |place: &str, parts: &[Part]| match media::unpromised(skill.metadata(), parts) {
            None => Ok(()),
            Some(given) => Err(BenchError::OutputMode {
                skill: self.skill.clone(),
                place: place.to_owned(),
                given: given.to_owned(),
            }),
        };
        if let Reply::Message(message) = reply {
            check("the reply", &message.parts)?;
        }
        for event in &self.events {
            if let Event::Artifact(update) = event {
                let name = update.artifact.name.as_deref();
                check(name.unwrap_or("an artifact"), &update.artifact.parts)?;
            }
        }
        Ok(())
    }
}

fn cancel(id: TaskId) -> CancelCommand {
    CancelCommand {
        id,
        metadata: Metadata::new(),
    }
}

fn caller(tenant: &str, subject: &str) -> Result<Caller, InvalidId> {
    Ok(Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant)?,
            subject: Subject::parse(subject)?,
        },
        tier: "default".to_owned(),
        scopes: BTreeSet::new(),
    })
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("skill", &self.skill)
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
