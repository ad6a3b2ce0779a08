//! What one commit can change, and what each change does to a record.
//!
//! A change that streams see gives an event. All of it is pure: the same
//! changes can be applied again to a fresh record after a lost race.

use super::layout::truncate;
use super::names;
use super::{
    Artifact, ArtifactUpdate, Base, Event, EventId, EventMark, InvalidTransition, Listener,
    LoggedEvent, Message, Metadata, PushId, Saved, SavedSlot, SkillId, Status, StatusUpdate,
    TaskEvent, TaskRecord, TaskState, Timestamp, Transition, TurnRequest,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// State changes kept readable on the task.
const TRANSITIONS: usize = 32;

/// One step of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The client's first message. It does not change the state.
    Accept {
        /// What it said.
        message: Message,
    },
    /// The task belongs to this skill from now on.
    Pin(SkillId),
    /// The turn keeps what it needs of its request, as long as it runs.
    Request(TurnRequest),
    /// A worker is asked for: the version of this commit is the intent.
    Dispatch,
    /// A worker takes the turn, or takes it over: what an earlier attempt put
    /// out after its last checkpoint is taken back.
    Claim {
        /// Until when nobody else may take the turn.
        lease_until: Timestamp,
    },
    /// The client answers an open question and a worker is asked for.
    Queue {
        /// What it said.
        message: Message,
        /// Whether the answer stays out of the history (credentials).
        secret: bool,
    },
    /// The turn goes on elsewhere: the lease ends and a worker is asked for.
    HandOver {
        /// Whether a step or checkpoint has completed since the claim. Then
        /// attempts count from the start again: long work is no poison.
        progress: bool,
    },
    /// A turn starts here, with a lease.
    Start {
        /// Until when nobody else may take the turn.
        lease_until: Timestamp,
    },
    /// The client answers an open question and the turn runs at once.
    Resume {
        /// What it said.
        message: Message,
        /// Whether the answer stays out of the history (credentials).
        secret: bool,
        /// Until when nobody else may take the turn.
        lease_until: Timestamp,
    },
    /// The agent speaks while it works.
    Update {
        /// What it says.
        message: Option<Message>,
        /// Free members of the event.
        metadata: Metadata,
    },
    /// An artifact is made or grows.
    Artifact(ArtifactUpdate),
    /// The skill keeps a value.
    Save {
        /// Under this key.
        key: String,
        /// The value.
        value: Value,
    },
    /// A step has completed.
    Step {
        /// Name and occurrence.
        key: String,
        /// Its result.
        value: Value,
    },
    /// The agent asks.
    AskInput {
        /// The question.
        message: Message,
        /// The bookmark.
        slot: SavedSlot,
    },
    /// The agent needs credentials.
    AskAuth {
        /// What is needed.
        message: Message,
        /// The bookmark.
        slot: SavedSlot,
    },
    /// The turn succeeded.
    Complete {
        /// Closing words.
        message: Option<Message>,
    },
    /// The turn failed.
    Fail {
        /// The public text, with code and details in its metadata.
        message: Message,
    },
    /// The agent declined.
    Reject {
        /// Why.
        message: Message,
    },
    /// The client gave up.
    Cancel,
    /// A webhook is registered, in the same commit.
    Listen(Box<Listener>),
}

impl Change {
    /// Whether it gives the client more than one reply to see: then there is a
    /// task, though its skill makes none.
    pub(crate) const fn makes_a_task(&self) -> bool {
        match self {
            Self::Update { .. }
            | Self::Artifact(_)
            | Self::Save { .. }
            | Self::Step { .. }
            | Self::AskInput { .. }
            | Self::AskAuth { .. }
            | Self::Fail { .. }
            | Self::Reject { .. }
            // A webhook is told of a task.
            | Self::Listen(_) => true,
            Self::Accept { .. }
            | Self::Pin(_)
            | Self::Request(_)
            | Self::Dispatch
            | Self::Claim { .. }
            | Self::Queue { .. }
            | Self::HandOver { .. }
            | Self::Start { .. }
            | Self::Resume { .. }
            | Self::Complete { .. }
            | Self::Cancel => false,
        }
    }
}

impl TaskRecord {
    /// Applies one change; gives the event that streams see of it.
    pub(super) fn apply(
        &mut self,
        change: Change,
        at: Timestamp,
    ) -> Result<Option<Event>, InvalidTransition> {
        self.hidden &= !change.makes_a_task();
        let status = match change {
            Change::Accept { message } => {
                self.history.push(message);
                self.set_base();
                return Ok(None);
            }
            Change::Pin(skill) => {
                self.pin(skill);
                return Ok(None);
            }
            Change::Request(request) => {
                self.request = Some(request);
                return Ok(None);
            }
            Change::Dispatch => {
                self.dispatch(at);
                return Ok(None);
            }
            Change::HandOver { progress } => {
                self.hand_over(progress, at)?;
                return Ok(None);
            }
            Change::Save { key, value } => return self.checkpoint(key, value, |s| &mut s.data),
            Change::Step { key, value } => return self.checkpoint(key, value, |s| &mut s.steps),
            Change::Listen(listener) => {
                self.listen(&listener.id);
                return Ok(None);
            }
            Change::Artifact(update) => {
                self.status.state.apply(TaskEvent::Progress)?;
                self.grow(&update);
                return Ok(Some(Event::Artifact(update)));
            }
            Change::Claim { lease_until } => return self.claim(lease_until, at),
            Change::Start { lease_until } => self.start(lease_until, at)?,
            Change::Resume {
                message,
                secret,
                lease_until,
            } => self.resume(message, secret, lease_until, at)?,
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

    fn listen(&mut self, id: &PushId) {
        if !self.listeners.contains(id) {
            self.listeners.push(id.clone());
        }
    }

    /// Puts an event into the log, as number `n` of this commit.
    pub(super) fn log_event(&mut self, event: Event, n: u32) {
        self.last_seq += 1;
        // No id that the server has made is ever given to another task.
        let again = !self.id.is_server_made();
        let id = EventId {
            version: self.version,
            n,
            mark: again.then(|| EventMark::of(&self.incarnation)),
        };
        self.last_event = Some(id);
        self.log.push(LoggedEvent {
            id,
            seq: self.last_seq,
            event,
        });
    }

    /// A task whose turn answers the router's question starts its skill with
    /// the request, so the question is closed.
    fn pin(&mut self, skill: SkillId) {
        self.skill = Some(skill);
        self.saved.slot = None;
    }

    fn start(
        &mut self,
        lease_until: Timestamp,
        at: Timestamp,
    ) -> Result<StatusUpdate, InvalidTransition> {
        let update = self.step(TaskEvent::Start, None, at)?;
        self.epoch += 1;
        self.attempt = 1;
        self.lease_until = Some(lease_until);
        self.dispatch = None;
        Ok(update)
    }

    fn resume(
        &mut self,
        message: Message,
        secret: bool,
        lease_until: Timestamp,
        at: Timestamp,
    ) -> Result<StatusUpdate, InvalidTransition> {
        let update = self.step(TaskEvent::Resume, None, at)?;
        self.epoch += 1;
        self.open_turn(message, secret);
        self.attempt = 1;
        self.lease_until = Some(lease_until);
        Ok(update)
    }

    fn queue(
        &mut self,
        message: Message,
        secret: bool,
        at: Timestamp,
    ) -> Result<StatusUpdate, InvalidTransition> {
        let update = self.step(TaskEvent::Queue, None, at)?;
        self.epoch += 1;
        self.open_turn(message, secret);
        self.redispatches = 0;
        self.dispatch(at);
        Ok(update)
    }

    /// The intent is the version of this commit, so that no later image of the
    /// task is taken for a second one.
    fn dispatch(&mut self, at: Timestamp) {
        if self.dispatch.is_some() {
            self.redispatches += 1;
        }
        self.lease_until = None;
        self.dispatch = Some(self.version);
        self.dispatched_at = Some(at);
    }

    fn hand_over(&mut self, progress: bool, at: Timestamp) -> Result<(), InvalidTransition> {
        self.status.state.apply(TaskEvent::Progress)?;
        if progress {
            self.attempt = 0;
        }
        self.redispatches = 0;
        self.dispatch = None;
        self.dispatch(at);
        Ok(())
    }

    /// A worker takes the turn. The epoch fences out whoever had it before.
    fn claim(
        &mut self,
        lease_until: Timestamp,
        at: Timestamp,
    ) -> Result<Option<Event>, InvalidTransition> {
        let update = match self.status.state {
            TaskState::Submitted => Some(self.step(TaskEvent::Start, None, at)?),
            _ if self.is_past_base() => {
                self.back_to_base();
                let mut update = self.step(TaskEvent::Progress, None, at)?;
                update
                    .metadata
                    .insert(names::RESTARTED.to_owned(), Value::Bool(true));
                Some(update)
            }
            state => {
                state.apply(TaskEvent::Progress)?;
                None
            }
        };
        self.epoch += 1;
        self.attempt += 1;
        self.lease_until = Some(lease_until);
        self.dispatch = None;
        Ok(update.map(Event::Status))
    }

    /// Keeps a value, and with it what is shown so far, if the turn runs again.
    fn checkpoint(
        &mut self,
        key: String,
        value: Value,
        place: impl FnOnce(&mut Saved) -> &mut BTreeMap<String, Value>,
    ) -> Result<Option<Event>, InvalidTransition> {
        self.status.state.apply(TaskEvent::Progress)?;
        self.set_base();
        place(&mut self.saved).insert(key, value);
        Ok(None)
    }

    /// All of the present output stays, if the turn runs again.
    pub(crate) fn set_base(&mut self) {
        let parts = |artifact: &Artifact| (artifact.id.clone(), artifact.parts.len());
        let history = self.history.len() + usize::from(self.status.message.is_some());
        self.base = Base {
            artifacts: self.artifacts.iter().map(parts).collect(),
            history,
        };
        self.replaced.clear();
        self.layout.replaced.clear();
    }

    fn is_past_base(&self) -> bool {
        let said = self.history.len() + usize::from(self.status.message.is_some());
        let grown = |artifact: &Artifact| {
            self.base
                .artifacts
                .get(&artifact.id)
                .is_none_or(|parts| *parts != artifact.parts.len())
        };
        said > self.base.history || !self.replaced.is_empty() || self.artifacts.iter().any(grown)
    }

    fn back_to_base(&mut self) {
        self.history.extend(self.status.message.take());
        self.history.truncate(self.base.history);
        truncate(&mut self.layout.history, self.base.history);
        let base = &self.base.artifacts;
        self.artifacts
            .retain(|artifact| base.contains_key(&artifact.id));
        let placed = &mut self.layout;
        placed.artifacts.retain(|id, _| base.contains_key(id));
        for before in self.replaced.drain(..) {
            placed.put_back(&before.id);
            if let Some(now) = self.artifacts.iter_mut().find(|now| now.id == before.id) {
                *now = before;
            }
        }
        for artifact in &mut self.artifacts {
            let parts = base.get(&artifact.id).copied().unwrap_or(0);
            artifact.parts.truncate(parts);
            if let Some(segments) = placed.artifacts.get_mut(&artifact.id) {
                truncate(segments, parts);
            }
        }
        placed.replaced.clear();
    }

    fn ask(
        &mut self,
        event: TaskEvent,
        message: Message,
        slot: SavedSlot,
        at: Timestamp,
    ) -> Result<StatusUpdate, InvalidTransition> {
        let update = self.step(event, Some(message), at)?;
        self.saved.slot = Some(slot);
        Ok(update)
    }

    /// Moves the state and the status with it. The words of the status that
    /// ends go to the history, so that they are said once.
    fn step(
        &mut self,
        event: TaskEvent,
        message: Option<Message>,
        at: Timestamp,
    ) -> Result<StatusUpdate, InvalidTransition> {
        let state = self.status.state.apply(event)?;
        if state != self.status.state {
            self.transitions.push(Transition { state, at });
            let surplus = self.transitions.len().saturating_sub(TRANSITIONS);
            self.transitions.drain(..surplus);
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
        Ok(StatusUpdate {
            status,
            metadata: Metadata::new(),
        })
    }

    fn come_to_rest(&mut self, state: TaskState) {
        self.lease_until = None;
        self.dispatch = None;
        self.dispatched_at = None;
        self.secret = None;
        self.request = None;
        if state.is_terminal() {
            self.saved = Saved::default();
            self.base = Base::default();
            self.replaced.clear();
            self.layout.replaced.clear();
        }
    }

    /// The message of the client opens a turn, whose steps are its own.
    fn open_turn(&mut self, message: Message, secret: bool) {
        self.turn += 1;
        self.attempt = 0;
        self.saved.steps.clear();
        if let Some(write) = self.write_ids.last() {
            self.turn_write = write.clone();
        }
        if secret {
            self.secret = Some(message);
        } else {
            self.history.push(message);
        }
        self.set_base();
    }

    fn grow(&mut self, update: &ArtifactUpdate) {
        let id = &update.artifact.id;
        match self
            .artifacts
            .iter_mut()
            .find(|artifact| artifact.id == *id)
        {
            Some(known) if update.append => {
                known.parts.extend(update.artifact.parts.iter().cloned());
            }
            Some(known) => {
                let before = std::mem::replace(known, update.artifact.clone());
                let kept = self.replaced.iter().any(|artifact| artifact.id == *id);
                let keep = self.base.artifacts.contains_key(id) && !kept;
                self.layout.replace(id, keep);
                if keep {
                    self.replaced.push(before);
                }
            }
            None => self.artifacts.push(update.artifact.clone()),
        }
    }
}
