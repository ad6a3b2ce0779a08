//! Runs turns outside of calls: `work` runs the turn that a message names.
//!
//! A task that needs a worker carries its dispatch intent in the same commit: the version
//! that set it. The relay only moves ids, the queue may repeat them, and the claim of the
//! task decides. The sweep finds what they lost.

use crate::auth::Caller;
use crate::engine::budget::TurnBudget;
use crate::engine::commit::CommitOutcome;
use crate::engine::commit::context_status::LOOK;
use crate::engine::error::EngineError;
use crate::engine::repeat::last_message;
use crate::engine::turn::Turns;
use crate::engine::turn::event_sink::EventSink;
use crate::engine::turn::report::log_given_up;
use crate::engine::turn::spec::{TurnEnd, TurnInput, TurnSpec, facts_of};
use crate::store::queue::{Ack, Receipt, WorkItem};
use crate::task::{Change, Message, Metadata, Role, SkillRoute, TaskRecord, Timestamp};
use crate::telemetry::TraceContext;
use crate::telemetry::scope::CallScope;
use a2a_lambda_skill::route::{self, Route, RouteRequest, Routed};
use a2a_lambda_skill::{AgentError, Consent, Content, InputWriter, StartInput, TurnStart};
use std::sync::Arc;
use std::time::Duration;

/// How long the message of a turn is hidden after the first outage that keeps a worker
/// from the task. Each further receive doubles the time.
const OUTAGE: Duration = Duration::from_secs(60);
/// The longest such time.
const OUTAGE_MAX: Duration = Duration::from_secs(15 * 60);
/// How often a message is hidden at most.
const WAITS_MAX: u32 = 20;
/// The longest time for which the message of a turn with a live lease is hidden.
const LIVE_MAX: Duration = Duration::from_secs(3600);
/// The least time that a turn waits for a slot of its tenant, more or less by half.
const SHARE_WAIT_MIN: Duration = Duration::from_secs(5);
/// The longest such time.
const SHARE_WAIT_MAX: Duration = Duration::from_secs(300);

impl Turns {
    /// Runs the turn a message names; returns whether to delete or keep the message. The
    /// message is deleted only if this worker's own commit is stored, if the task is at
    /// rest, absent or braked, or if a later dispatch of the task has a message of its own.
    pub async fn work(
        &self,
        item: &WorkItem,
        receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Ack {
        let run = CallScope::default().run(self.try_work(item, receipt, deadline));
        // A message that waits for another worker, for a time or for the end of an outage has not
        // failed. The index of open tasks brings its turn back, so it need not wait for ever.
        let waited_often = receipt.receives() > WAITS_MAX;
        match Box::pin(run).await {
            Ok(Ack::Keep) if waited_often => Ack::Delete,
            Ok(ack) => ack,
            Err(error) => {
                error.log();
                if error.is_outage() {
                    if waited_often {
                        return Ack::Delete;
                    }
                    if let Err(error) = receipt.hide(backoff(OUTAGE, receipt, OUTAGE_MAX)).await {
                        EngineError::from(error).log();
                    }
                }
                Ack::Keep
            }
        }
    }

    async fn try_work(
        &self,
        item: &WorkItem,
        receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Result<Ack, EngineError> {
        // The queue hides a message for the longest turn. One lease is enough, so that a
        // crash is noticed sooner.
        receipt.hide(self.reader.policy.lease).await?;
        let (brake, record) = futures::join!(self.reader.brake(), self.inspect(item, receipt));
        let record = match (record?, brake?) {
            (Ok(record), _) => record,
            (Err(ack), _) => return Ok(ack),
        };
        // When the brake is lifted, the sweep sends the turn again.
        if self.reader.refusal(&record).is_some() {
            return Ok(Ack::Delete);
        }
        // Each lease that runs out counts as an attempt, so a task that kills its workers
        // ends too.
        if record.is_spent(self.reader.policy.max_attempts) || self.run_limit(&record).is_some() {
            return Ok(ack_of(self.give_up_on(record).await?));
        }
        let tenant = &item.owner.tenant;
        let dispatched_at = record.dispatched_at.unwrap_or(record.updated_at);
        let turn = Box::pin(self.claim_and_run(item, record, receipt, deadline));
        match self.reader.with_turn_slot(tenant, turn).await {
            Some(ack) => ack,
            None => {
                let age = self.reader.clock.now().since(dispatched_at);
                let wait = share_wait(age, self.reader.ids.next());
                Ok(receipt.postpone(item, wait).await?)
            }
        }
    }

    /// Claims the turn and runs it.
    async fn claim_and_run(
        &self,
        item: &WorkItem,
        record: TaskRecord,
        receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Result<Ack, EngineError> {
        let claim = Change::Claim {
            lease_until: self.commits.lease_until(deadline),
        };
        let updated_at = record.updated_at;
        let Some(record) = self.write_unclaimed(record, claim).await? else {
            return self.ack_if_settled(item).await;
        };
        // A claim is activity: the context stays alive while its task runs.
        if self
            .commits
            .is_part_over(updated_at, LOOK, record.updated_at)
        {
            self.commits.extend_thread(&record).await;
        }
        let end = match self.load_turn(&record).await {
            Ok(message) => {
                let spec = self.claimed_turn(record, message.as_ref(), deadline);
                let mut sink = EventSink::default();
                // The turn continues the trace of the call that made it.
                let request = spec.record.request.as_ref();
                let trace = request
                    .and_then(|request| TraceContext::parse(request.trace_parent.as_deref()?));
                let turn = async { self.run(spec, Some(receipt), &mut sink).await };
                CallScope::current().in_span(trace).run(turn).await?
            }
            Err(error) => self.release(record, error).await?,
        };
        match end {
            TurnEnd::AtRest(_) | TurnEnd::HandedOver(_) | TurnEnd::Message(_) => Ok(Ack::Delete),
            TurnEnd::Superseded(_) | TurnEnd::Duplicate(_) => self.ack_if_settled(item).await,
        }
    }

    /// Reads the message of a claimed turn: the last one, or what it sends to the skill that it
    /// chose.
    async fn load_turn(&self, record: &TaskRecord) -> Result<Option<Message>, EngineError> {
        if let Some(ciphertext) = record.secret.as_ref() {
            return Ok(self.secrets.open_answer(record, ciphertext).await?);
        }
        let Some(last) = last_message(record) else {
            return Ok(None);
        };
        let last = self.reader.load_message_files(last).await?;
        if !first_route(record).is_some_and(SkillRoute::is_answer) {
            return Ok(Some(last));
        }
        let history = &record.history;
        let end = history
            .iter()
            .rposition(|message| message.role == Role::User);
        let before = history.get(..end.unwrap_or_default()).unwrap_or_default();
        let messages = route::said_to_router(&self.agent, before);
        let first = self.reader.load_request(&messages).await?;
        Ok(first.map(|first| route::join_messages(&first, &last)))
    }

    /// The task of a message whose turn can be claimed; else what to do with the message.
    async fn inspect(
        &self,
        item: &WorkItem,
        receipt: &dyn Receipt,
    ) -> Result<Result<TaskRecord, Ack>, EngineError> {
        let (records, now) = (&self.reader.records, self.reader.clock.now());
        let record = records.load(&item.owner, &item.task, now).await?;
        let Some(record) = record.filter(|record| record.incarnation == item.incarnation) else {
            tracing::warn!(a2a.task = %item.task, "dropped a message: no task `{}`", item.task);
            return Ok(Err(Ack::Delete));
        };
        if is_settled(&record, item) {
            return Ok(Err(Ack::Delete));
        }
        let delay = match (record.lease_until, record.not_before) {
            // Another worker has the turn. Its own message brings it back if it dies, so this
            // one returns less often each time.
            (Some(until), _) if until > now => backoff(until.since(now), receipt, LIVE_MAX),
            (_, Some(at)) if at > now => at.since(now),
            _ => return Ok(Ok(record)),
        };
        receipt.hide(delay).await?;
        Ok(Err(Ack::Keep))
    }

    /// Decides about a message when another writer has the task. The message is kept
    /// until the task rests or is dispatched again: it starts the next attempt if the
    /// other writer dies.
    async fn ack_if_settled(&self, item: &WorkItem) -> Result<Ack, EngineError> {
        let (records, now) = (&self.reader.records, self.reader.clock.now());
        let head = records.head(&item.owner, &item.task, now).await?;
        let record = head.filter(|record| record.incarnation == item.incarnation);
        let is_over = record.is_none_or(|record| is_settled(&record, item));
        Ok(ack_of(is_over))
    }

    /// Fails a task whose turn must not run again; `false` if another write came first.
    pub(in crate::engine) async fn give_up_on(
        &self,
        record: TaskRecord,
    ) -> Result<bool, EngineError> {
        let most = self.reader.policy.max_attempts;
        let error = match self.run_limit(&record) {
            Some(error) if !record.is_spent(most) => error,
            _ => {
                let text = format!("the task could not be finished in {most} attempts");
                tracing::error!(a2a.task = %&record.id, "task `{}` has no attempts left", &record.id);
                AgentError::domain("ATTEMPTS_EXHAUSTED", text)
            }
        };
        self.fail_unclaimed(record, &error).await
    }

    /// Writes a change of the runtime to a task that no worker has claimed. A task that has
    /// no room for it fails. `None` if the change is not stored.
    pub(in crate::engine) async fn write_unclaimed(
        &self,
        record: TaskRecord,
        change: Change,
    ) -> Result<Option<TaskRecord>, EngineError> {
        let commit = self.commits.commit_of(record.clone(), change);
        match self.commits.commit(commit).await {
            Ok(CommitOutcome::Stored(record)) => Ok(Some(record)),
            Ok(_) => Ok(None),
            Err(error) => match error.ends_task(0) {
                Some(error) => {
                    self.fail_unclaimed(record, &error).await?;
                    Ok(None)
                }
                None => Err(error),
            },
        }
    }

    /// Fails a task that no worker has claimed; `false` if another write came first.
    async fn fail_unclaimed(
        &self,
        record: TaskRecord,
        error: &AgentError,
    ) -> Result<bool, EngineError> {
        let fail = self.failure(&record, error);
        let commit = self.commits.commit_of(record, fail);
        let CommitOutcome::Stored(record) = self.commits.commit(commit).await? else {
            return Ok(false);
        };
        log_given_up(&record, error.code().as_str());
        Ok(true)
    }

    /// Prepares a claimed turn: its skill, and its input from the stored messages.
    fn claimed_turn(
        &self,
        record: TaskRecord,
        message: Option<&Message>,
        deadline: Option<Timestamp>,
    ) -> TurnSpec {
        let caller = Caller::behind(&record.owner, record.request.as_ref());
        let modes = record.request.as_ref().map(|it| &*it.accepted_output_modes);
        let modes = modes.unwrap_or_default();
        let facts = facts_of(&record, &caller, modes, message);
        let input = self
            .turn_input(&record, message)
            .unwrap_or_else(TurnInput::Fail);
        let budget = TurnBudget::of_invocation(deadline, self.reader.clock.now());
        TurnSpec::new(record, input, facts, budget)
    }

    /// The skill of a stored turn and what it is called with.
    fn turn_input(
        &self,
        record: &TaskRecord,
        message: Option<&Message>,
    ) -> Result<TurnInput, AgentError> {
        let id = record
            .skill
            .as_ref()
            .ok_or_else(|| AgentError::skill_not_found("none"))?;
        let skill = self
            .agent
            .skill(id)
            .ok_or_else(|| AgentError::skill_not_found(id))?;
        let message = message.ok_or_else(|| {
            AgentError::missing_input(match record.secret.as_ref() {
                Some(_) => "the answer was sealed under another key",
                None => "the task holds no message",
            })
        })?;
        let nothing = Metadata::new();
        // The record keeps the metadata of the first request only.
        let metadata = match record.turn {
            1 => &record.metadata,
            _ => &nothing,
        };
        let request = RouteRequest {
            pinned: Some(id),
            message,
            request_metadata: metadata,
        };
        // The task keeps what the router decided and made of the message. Neither a model nor the
        // texts that skills declare today are asked again. Without a route the client named the
        // skill, or an earlier turn asked it.
        let decision = match first_route(record) {
            Some(it) if it.how == "command" => {
                let free = RouteRequest {
                    pinned: None,
                    ..request
                };
                route::route(&self.agent, &free)
            }
            Some(it) => {
                Route::with_input(id, message, "pinned", it.input.clone()).admit(&self.agent)
            }
            None => route::route(&self.agent, &request),
        };
        let content: Content = match decision {
            Ok(Routed::Skill(route)) => route.content,
            Ok(Routed::Ask { .. }) => return Err(AgentError::skill_not_found(id)),
            Err(error) => return Err(AgentError::invalid_input(error.to_string())),
        };
        let input = match &record.saved.slot {
            Some(slot) => StartInput::Answer(slot.clone(), content),
            None => StartInput::Request(skill.decode(&content)?),
        };
        let start = match first_route(record).filter(|it| it.writer == InputWriter::Model) {
            Some(route) => TurnStart::by_model(input, Consent::of_stored(route)),
            None => TurnStart::by_caller(input),
        };
        Ok(TurnInput::Skill(Arc::clone(skill), start))
    }
}

/// How long a turn waits whose tenant has no slot, `age` after its dispatch: a quarter of that, more
/// or less by half, so that the turns of a burst return at different times.
fn share_wait(age: Duration, random: u128) -> Duration {
    let wait = (age / 4).clamp(SHARE_WAIT_MIN, SHARE_WAIT_MAX);
    let percent = u32::try_from(random % 101).unwrap_or_default();
    wait * (50 + percent) / 100
}

/// The route of the task, until its skill has asked something.
fn first_route(record: &TaskRecord) -> Option<&SkillRoute> {
    record
        .route
        .as_ref()
        .filter(|_| record.saved.slot.is_none())
}

/// The message is deleted if its work is done.
const fn ack_of(is_done: bool) -> Ack {
    if is_done { Ack::Delete } else { Ack::Keep }
}

/// Whether a message has no work: the task is at rest, or a later dispatch of it has a
/// message of its own.
fn is_settled(record: &TaskRecord, item: &WorkItem) -> bool {
    let last = (record.turn, record.last_dispatch);
    record.state().is_at_rest() || (item.turn, item.dispatch) < last
}

/// `time`, doubled with each receive of the message after the first, up to `most`.
fn backoff(time: Duration, receipt: &dyn Receipt, most: Duration) -> Duration {
    let doublings = receipt.receives().saturating_sub(1).min(16);
    time.saturating_mul(1 << doublings).min(most)
}

#[cfg(test)]
mod tests;
