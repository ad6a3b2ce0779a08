//! Sets the options of a [`SkillTest`]: its caller, model, time and agent, and the next
//! message.

use super::invocations::Interruption;
use super::{Cassette, CassetteError, SkillTest, caller};
use crate::auth::Caller;
use crate::outbound::{FetchError, Fetched};
use crate::task::IdError;
use a2a_lambda_skill::AgentDefinition;
use a2a_lambda_skill::model::Model;
use bytes::Bytes;
use http::Method;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

impl SkillTest {
    /// Sets the caller of all later messages. Until then it is the subject `bench`
    /// of the tenant `bench`.
    ///
    /// # Errors
    /// [`IdError`] when `tenant` or `subject` is not valid.
    pub fn caller(&mut self, tenant: &str, subject: &str) -> Result<&mut Self, IdError> {
        self.caller = Some(caller(tenant, subject)?);
        Ok(self)
    }

    /// Sets the caller of all later messages, with its tier and its scopes.
    pub fn as_caller(&mut self, caller: Caller) -> &mut Self {
        self.caller = Some(caller);
        self
    }

    /// Sets the language model that skills get: a [`ScriptedModel`](super::ScriptedModel), a
    /// [`Cassette`], or one of your own.
    pub fn model(&mut self, model: impl Model + 'static) -> &mut Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the language model that chooses the skill of a message where no rule decides:
    /// see [`SkillTest::of_agent`].
    pub fn router(&mut self, model: impl Model + 'static) -> &mut Self {
        self.router = Some(Arc::new(model));
        self
    }

    /// Sets the model that skills get to the [`Cassette`] in the file `path`, for replay. To
    /// record it, or to redact a secret, give [`SkillTest::model`] a cassette.
    ///
    /// # Errors
    /// [`CassetteError`] when there is no such file, or it is not a cassette.
    pub fn cassette(&mut self, path: impl Into<PathBuf>) -> Result<&mut Self, CassetteError> {
        Ok(self.model(Cassette::replay(path)?))
    }

    /// Sets the [`State`](a2a_lambda_skill::State) of this type for this test, in place of the
    /// agent's [double](a2a_lambda_skill::AgentBuilder::double) or factory.
    pub fn state<T: Send + Sync + 'static>(&mut self, value: T) -> &mut Self {
        self.agent = self.agent.clone().with_state(value);
        self
    }

    /// Answers each `GET` of `url` that a skill sends with a [`Fetcher`](crate::outbound::Fetcher): with
    /// the status 200 and `value` as JSON. A request without a response fails then.
    pub fn on_get(&mut self, url: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        let (url, value) = (url.into(), value.into());
        self.on_request(move |request| {
            let is_asked = request.method() == Method::GET && request.uri() == url.as_str();
            is_asked.then(|| {
                Ok(Fetched {
                    status: 200,
                    content_type: Some("application/json".to_owned()),
                    body: value.to_string().into(),
                    ..Fetched::default()
                })
            })
        })
    }

    /// Answers the requests of skills for which `respond` has a response or an error. What was
    /// set last is asked first.
    pub fn on_request(
        &mut self,
        respond: impl Fn(&http::Request<Bytes>) -> Option<Result<Fetched, FetchError>>
        + Send
        + Sync
        + 'static,
    ) -> &mut Self {
        self.responses.add(respond);
        self
    }

    /// Sets how much time each invocation has left when its turn begins. A skill reads
    /// the rest with `TaskContext::time_left`. Without this a turn has no limit.
    pub const fn time_left(&mut self, duration: Duration) -> &mut Self {
        self.time_left = Some(duration);
        self
    }

    /// Moves the bench's clock forward, for example past a task's expiry.
    pub fn advance(&mut self, time: Duration) -> &mut Self {
        self.clock.advance(time);
        self
    }

    /// Replaces the agent, as a deployment of a new version does. Stored tasks and
    /// threads stay, so that a test can continue a task of the old version.
    pub fn redeploy(&mut self, agent: &AgentDefinition) -> &mut Self {
        self.agent = agent.clone().with_doubles();
        self
    }

    /// Makes the next message open a new task in the same context. The current task
    /// does not change.
    pub fn new_task(&mut self) -> &mut Self {
        self.open = false;
        self
    }

    /// Makes the next message open a new task in a new context.
    pub fn new_context(&mut self) -> &mut Self {
        self.context = None;
        self.new_task()
    }

    /// Sets the `referenceTaskIds` of the next message: ids of earlier tasks.
    pub fn references(&mut self, tasks: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.next.references = tasks.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the `acceptedOutputModes` of the next message: the media types that the
    /// client can read. Without this it accepts all.
    pub fn accepts(&mut self, modes: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.next.accepted_output_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the id of the next message. Without this the bench makes one.
    pub fn message_id(&mut self, id: impl Into<String>) -> &mut Self {
        self.next.message_id = Some(id.into());
        self
    }

    /// Cancels the task during the next turn, after the turn has stored `events`
    /// events. If the turn has ended by then, [`SkillTest::send`] returns the error of the
    /// cancellation.
    pub const fn cancel_after(&mut self, events: u64) -> &mut Self {
        self.next.interruption = Some(Interruption::CancelAfter(events));
        self
    }

    /// Kills the process of the next turn after the skill has stored `things`: updates,
    /// artifacts, results of steps, saved values. A worker then runs the turn again, and
    /// [`SkillTest::send`] returns its reply. So a test sees whether the skill repeats what
    /// it must do once.
    ///
    /// ```
    /// use a2a_lambda::prelude::*;
    /// use a2a_lambda::SkillTest;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static PAID: AtomicU32 = AtomicU32::new(0);
    ///
    /// /// Pays, and says so.
    /// #[skill(id = "pay", tags = ["example"])]
    /// async fn pay(cx: &mut TaskContext<'_>, amount: String) -> AgentResult<String> {
    ///     let number = cx
    ///         .step("pay", async { Ok(PAID.fetch_add(1, Ordering::SeqCst)) })
    ///         .await?;
    ///     Ok(format!("{amount}, number {number}"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder("bank").skill(pay).build()?;
    /// let mut client = SkillTest::new(&agent, "pay");
    /// client.crash_after(1).send("5 EUR").await?;
    /// assert_eq!(PAID.load(Ordering::SeqCst), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn crash_after(&mut self, things: u64) -> &mut Self {
        self.next.interruption = Some(Interruption::CrashAfter(things));
        self
    }

    /// As [`SkillTest::crash_after`], and kills the process when the skill is about to store its
    /// thing with the number `things`, from 1: what it did since the one before is lost.
    pub const fn crash_before(&mut self, things: u64) -> &mut Self {
        self.next.interruption = Some(Interruption::CrashBefore(things));
        self
    }

    /// Lets steps that are open at the same time end in a random order. The same seed gives the
    /// same order, so a test can show that a skill does the right thing in several orders.
    pub fn step_order(&mut self, seed: u64) -> &mut Self {
        self.clock.shuffle_ends(seed);
        self
    }

    /// Sends the next messages to another skill of the agent. The conversation stays: the
    /// skills share what they save for it.
    pub fn skill(&mut self, id: impl Into<String>) -> &mut Self {
        self.skill = Some(id.into());
        self.new_task()
    }
}
