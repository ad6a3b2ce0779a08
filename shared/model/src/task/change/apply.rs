//! Applies a change to a record.

use super::Change;
use crate::task::{
    ArtifactUpdate, Base, Consents, Event, EventId, EventMark, LoggedEvent, Message, Metadata,
    PushId, Saved, SavedSlot, SealedAnswer, SkillId, SkillRoute, Status, StatusUpdate, StepResult,
    TaskEvent, TaskFields, TaskState, Timestamp, Transition, TransitionError, TurnRequest, Used,
    metadata_keys,
};
use serde_json::Value;

/// How many state changes a task keeps.
const TRANSITIONS: usize = 32;

impl TaskFields {
    /// Applies one change; returns the event that streams show for it.
    pub(in crate::task) fn apply(
        &mut self,
        change: Change,
        at: Timestamp,
    ) -> Result<Option<Event>, TransitionError> {
        let status = match change {
            Change::Accept { message } => return Ok(self.accept(message)),
            Change::Seal(answer) => return Ok(self.seal(answer)),
            Change::Pin(skill, route) => return Ok(self.pin(skill, route)),
            Change::Request(request) => return Ok(self.keep_request(request)),
            Change::Dispatch => return Ok(self.dispatch_again(at)),
            Change::Release { not_before } => return self.release(not_before, at),
            Change::HandOver { progress } => return self.hand_over(progress, at),
            change @ (Change::Save { .. }
            | Change::Step { .. }
            | Change::Build(_)
            | Change::Tries(..)) => return self.keep_result(change, at),
            Change::Use(models, is_partial) => {
                self.used.models.add(models);
                self.used.is_partial |= is_partial;
                return Ok(None);
            }
            Change::RegisterPush(registration) => return Ok(self.add_push(&registration.id)),
            Change::Artifact(update) => {
                self.status.state.apply(TaskEvent::Progress)?;
                self.grow(&update);
                return Ok(Some(Event::Artifact(update)));
            }
            Change::Claim { lease_until } => return self.claim(lease_until, at),
            Change::Start { lease_until } => self.start(lease_until, at)?,
            Change::Resume {
                began_at,
                message,
                secret,
                lease_until,
            } => {
                let update = self.resume(message, secret, lease_until, at)?;
                self.base.began_at = Some(began_at);
                update
            }
            Change::Queue { message, secret } => self.queue(message, secret, at)?,
            Change::Update { message, metadata } => StatusUpdate {
                metadata,
                ..self.step(TaskEvent::Progress, message, at)?
            },
            Change::AskInput { message, slot } => {
                self.ask(TaskEvent::AskInput, message, slot, at)?
            }
            Change::AskAuth { message, slot } => self.ask(TaskEvent::AskAuth, message, slot, at)?,
            Change::Complete { message } => self.step(TaskEvent::Complete, message, at)?,
            Change::Fail { message } => self.step(TaskEvent::Fail, Some(message), at)?,
            Change::Reject { message } => self.step(TaskEvent::Reject, Some(message), at)?,
            Change::Cancel => {
                self.epoch += 1;
                self.step(TaskEvent::Cancel, None, at)?
            }
        };
        Ok(Some(Event::Status(status)))
    }

    /// Keeps what the turn has met, for its next run.
    fn keep_result(
        &mut self,
        change: Change,
        at: Timestamp,
    ) -> Result<Option<Event>, TransitionError> {
        match change {
            Change::Save {
                key,
                value,
                save_place,
                order,
                outputs,
                reads,
            } => {
                self.checkpoint(outputs, reads)?;
                self.make_progress(at);
                if let Some((path, number)) = order {
                    let result = StepResult::from_save(number, save_place.at);
                    self.saved.steps.insert(path, result);
                }
                self.base.saves.insert(key.clone(), *save_place);
                self.saved.data.insert(key, value);
            }
            Change::Step {
                key,
                result,
                outputs,
                reads,
            } => {
                self.checkpoint(outputs, reads)?;
                if result.outcome.is_progress() {
                    self.make_progress(at);
                }
                self.base.tries.remove(&key);
                self.saved.complete_step(key, *result);
            }
            Change::Build(build) => {
                self.base.build = build;
            }
            Change::Tries(key, tries) => {
                self.status.state.apply(TaskEvent::Progress)?;
                self.base.tries.insert(key, tries);
            }
            _ => {}
        }
        Ok(None)
    }

    fn keep_request(&mut self, request: TurnRequest) -> Option<Event> {
        self.reads_text_alone = request.reads_text_alone();
        self.request = Some(request);
        None
    }

    fn accept(&mut self, message: Message) -> Option<Event> {
        let message = self.adopt(message);
        self.history.push(message);
        self.set_base();
        None
    }

    /// A lease that ran out was an attempt.
    fn dispatch_again(&mut self, at: Timestamp) -> Option<Event> {
        self.count_death();
        self.request_dispatch(at);
        None
    }

    /// A run whose lease ran out has died.
    fn count_death(&mut self) {
        if self.lease_until.is_some() {
            self.attempt += 1;
            self.used.deaths = self.used.deaths.saturating_add(1);
        }
    }

    fn release(
        &mut self,
        not_before: Timestamp,
        at: Timestamp,
    ) -> Result<Option<Event>, TransitionError> {
        self.status.state.apply(TaskEvent::Progress)?;
        self.request_dispatch(at);
        self.not_before = Some(not_before);
        Ok(None)
    }

    fn add_push(&mut self, id: &PushId) -> Option<Event> {
        if !self.push_ids.contains(id) {
            self.push_ids.push(id.clone());
        }
        None
    }

    /// Logs an event as number `n` of this commit.
    pub(in crate::task) fn log_event(&mut self, event: Event, n: u32) {
        self.last_seq += 1;
        // A server-made id is never used for a second task, so its events need no
        // mark.
        let again = !self.id.is_server_made();
        let id = EventId {
            version: self.version,
            n,
            mark: again.then(|| EventMark::of(&self.incarnation)),
        };
        self.last_event = Some(id);
        let seq = self.last_seq;
        self.log.push(LoggedEvent { id, seq, event });
    }

    /// Pins the skill. If the turn answered the router's question, the skill starts
    /// with the original request and the question is closed.
    fn pin(&mut self, skill: SkillId, route: Option<SkillRoute>) -> Option<Event> {
        if let Some(input) = route.as_ref().and_then(SkillRoute::model_input) {
            self.metadata.insert(metadata_keys::INPUT.to_owned(), input);
        }
        self.skill = Some(skill);
        self.route = route;
        self.saved.slot = None;
        None
    }

    fn start(
        &mut self,
        lease_until: Timestamp,
        at: Timestamp,
    ) -> Result<StatusUpdate, TransitionError> {
        let update = self.step(TaskEvent::Start, None, at)?;
        self.epoch += 1;
        self.attempt = 1;
        self.lease_until = Some(lease_until);
        Ok(update)
    }

    fn resume(
        &mut self,
        message: Message,
        secret: Option<SealedAnswer>,
        lease_until: Timestamp,
        at: Timestamp,
    ) -> Result<StatusUpdate, TransitionError> {
        let update = self.step(TaskEvent::Resume, None, at)?;
        self.epoch += 1;
        self.open_turn(message, secret, at);
        self.attempt = 1;
        self.lease_until = Some(lease_until);
        Ok(update)
    }

    fn queue(
        &mut self,
        message: Message,
        secret: Option<SealedAnswer>,
        at: Timestamp,
    ) -> Result<StatusUpdate, TransitionError> {
        let update = self.step(TaskEvent::Queue, None, at)?;
        self.epoch += 1;
        self.open_turn(message, secret, at);
        self.request_dispatch(at);
        Ok(update)
    }

    /// The message as one of this task. So the stored form names task and context once.
    fn adopt(&self, message: Message) -> Message {
        Message {
            task_id: Some(self.id.clone()),
            context_id: Some(self.context_id.clone()),
            ..message
        }
    }

    /// The intent is the version of this commit. A later image of the task repeats
    /// the same version, so it is not a second intent.
    fn request_dispatch(&mut self, at: Timestamp) {
        self.lease_until = None;
        self.last_dispatch = self.version;
        self.dispatched_at = Some(at);
        self.not_before = None;
    }

    fn hand_over(
        &mut self,
        progress: bool,
        at: Timestamp,
    ) -> Result<Option<Event>, TransitionError> {
        self.status.state.apply(TaskEvent::Progress)?;
        self.attempt = if progress { 0 } else { self.attempt + 1 };
        self.used.hand_overs = self.used.hand_overs.saturating_add(1);
        self.request_dispatch(at);
        Ok(None)
    }

    /// A worker claims the turn. The new epoch fences out the previous worker.
    fn claim(
        &mut self,
        lease_until: Timestamp,
        at: Timestamp,
    ) -> Result<Option<Event>, TransitionError> {
        let update = match self.status.state {
            TaskState::Submitted => Some(self.step(TaskEvent::Start, None, at)?),
            _ if self.is_past_base() => {
                self.back_to_base();
                let mut update = self.step(TaskEvent::Progress, None, at)?;
                update
                    .metadata
                    .insert(metadata_keys::RESTARTED.to_owned(), Value::Bool(true));
                Some(update)
            }
            state => {
                state.apply(TaskEvent::Progress)?;
                None
            }
        };
        self.epoch += 1;
        // Without a lease, what ended the run before has counted it or was an outage.
        self.count_death();
        self.attempt = self.attempt.max(1);
        self.lease_until = Some(lease_until);
        self.not_before = None;
        Ok(update.map(Event::Status))
    }

    fn ask(
        &mut self,
        event: TaskEvent,
        message: Message,
        slot: SavedSlot,
        at: Timestamp,
    ) -> Result<StatusUpdate, TransitionError> {
        if let Some(digest) = message
            .consent_digest()
            .filter(|it| *it != self.consents.digest)
        {
            self.consents = Consents {
                count: self.consents.count + 1,
                digest: digest.to_owned(),
            };
        }
        let update = self.step(event, Some(message), at)?;
        self.saved.slot = Some(slot);
        Ok(update)
    }

    /// Changes the state and replaces the status. The message of the old status moves
    /// to the history, so that it is stored once.
    fn step(
        &mut self,
        event: TaskEvent,
        message: Option<Message>,
        at: Timestamp,
    ) -> Result<StatusUpdate, TransitionError> {
        let message = message.map(|message| self.adopt(message));
        let state = self.status.state.apply(event)?;
        if state != self.status.state {
            self.transitions.push(Transition { state, at });
            let surplus = self.transitions.len().saturating_sub(TRANSITIONS);
            self.transitions.drain(..surplus);
        }
        let mut metadata = Metadata::new();
        if state.is_terminal() {
            metadata = self.used.metadata();
            self.metadata.extend(metadata.clone());
        }
        if state.is_at_rest() {
            self.come_to_rest(state);
        }
        let status = Status {
            state,
            message,
            timestamp: at,
        };
        let before = std::mem::replace(&mut self.status, status.clone());
        self.history.extend(before.message);
        Ok(StatusUpdate { status, metadata })
    }

    fn come_to_rest(&mut self, state: TaskState) {
        self.lease_until = None;
        self.last_dispatch = 0;
        self.dispatched_at = None;
        self.not_before = None;
        self.secret = None;
        self.request = None;
        // Only another run of the turn needs it, and the history has the message.
        if let Some(route) = &mut self.route {
            route.input = None;
        }
        if state.is_terminal() {
            self.used = Used::default();
            self.saved = Saved::default();
            self.base = Base::default();
            self.replaced.clear();
            self.layout.forget_replaced();
        }
    }

    /// Opens a turn with the client's message. The steps of the last turn are
    /// dropped.
    fn open_turn(&mut self, message: Message, secret: Option<SealedAnswer>, at: Timestamp) {
        self.turn += 1;
        self.attempt = 0;
        self.used.progress_at = Some(at);
        self.used.deaths = 0;
        self.saved.steps.clear();
        self.turn_write = self.write_ids.last().cloned();
        self.fingerprint = None;
        self.reads_text_alone = false;
        match secret {
            Some(answer) => drop(self.seal(answer)),
            None => {
                let message = self.adopt(message);
                self.history.push(message);
            }
        }
        self.set_base();
        self.base.began_at = Some(at);
    }

    fn seal(&mut self, answer: SealedAnswer) -> Option<Event> {
        self.secret = Some(answer.content);
        self.fingerprint = Some(answer.fingerprint);
        None
    }

    fn grow(&mut self, update: &ArtifactUpdate) {
        let id = &update.artifact.id;
        match self
            .artifacts
            .iter_mut()
            .find(|artifact| artifact.id == *id)
        {
            Some(current) if update.append => {
                current.parts.extend(update.artifact.parts.iter().cloned());
            }
            Some(current) => {
                let before = std::mem::replace(current, update.artifact.clone());
                let has_original = self.replaced.iter().any(|artifact| artifact.id == *id);
                let keep = self.base.artifacts.contains_key(id) && !has_original;
                self.layout.replace(id, keep);
                if keep {
                    self.replaced.push(before);
                }
            }
            None => self.artifacts.push(update.artifact.clone()),
        }
    }
}
