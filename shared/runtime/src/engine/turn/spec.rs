//! What a turn needs to run, and how it ended.

use crate::engine::accept::context_status::ContextStatus;
use crate::engine::commit::send_key::SendKey;
use crate::skill::{AgentError, AnySkill, Content, SkillOutcome, TurnFacts, TurnStart};
use crate::task::{Change, Message, SavedSlot, TaskRecord, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// The least time reserved for a hand-over.
const MARGIN: Duration = Duration::from_secs(2);

/// The time limits of a turn. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engine) struct TurnBudget {
    /// When the invocation ends.
    pub(in crate::engine) deadline: Option<Timestamp>,
    /// The time from which no new step may start here.
    pub(in crate::engine) stop_at: Option<Timestamp>,
    /// When the caller gets its response, even if the turn has not ended.
    waits_until: Option<Timestamp>,
}

impl TurnBudget {
    /// The limits of a turn that starts `now` in an invocation that ends at `deadline`.
    /// It stops early enough to be handed over: a tenth of the time left (at least 2 s)
    /// plus 2 s before the end. A running step may use the 2 s.
    pub(in crate::engine) fn of_invocation(deadline: Option<Timestamp>, now: Timestamp) -> Self {
        let stop_at = deadline.map(|deadline| {
            let left = deadline.since(now);
            let margin = (left / 10).max(MARGIN);
            now.plus(left.saturating_sub(margin + MARGIN))
        });
        Self {
            deadline,
            stop_at,
            waits_until: None,
        }
    }

    /// The limits of a turn whose caller waits until `at`.
    pub(in crate::engine) fn waiting_until(self, at: Timestamp) -> Self {
        Self {
            stop_at: Some(self.stop_at.map_or(at, |stop_at| stop_at.min(at))),
            waits_until: Some(at),
            ..self
        }
    }

    /// When the skill has no more time.
    pub(in crate::engine) fn ends_at(&self) -> Option<Timestamp> {
        let limits = [self.deadline, self.waits_until];
        limits.into_iter().flatten().min()
    }
}

/// A turn that is ready to run.
pub(in crate::engine) struct TurnSpec {
    /// The task as stored; version 0 if it is not stored yet.
    pub(in crate::engine) record: TaskRecord,
    /// The changes that open the turn: message, skill, start.
    pub(in crate::engine) opening: Vec<Change>,
    /// The idempotency key of the send, stored with the opening.
    pub(in crate::engine) key: Option<SendKey>,
    /// Whether the opening must be stored before the skill runs.
    pub(in crate::engine) force: bool,
    pub(in crate::engine) job: TurnInput,
    pub(in crate::engine) facts: TurnFacts,
    /// The context as found when the message was accepted; `None` if no message opened
    /// the turn.
    pub(in crate::engine) context_status: Option<ContextStatus>,
    /// Whether a worker runs the turn instead.
    pub(in crate::engine) queued: bool,
    pub(in crate::engine) budget: TurnBudget,
}

impl TurnSpec {
    /// A turn that runs in this invocation, without an opening, a key and a context.
    pub(in crate::engine) const fn new(
        record: TaskRecord,
        job: TurnInput,
        facts: TurnFacts,
        budget: TurnBudget,
    ) -> Self {
        Self {
            record,
            opening: Vec::new(),
            key: None,
            force: false,
            job,
            facts,
            context_status: None,
            queued: false,
            budget,
        }
    }

    /// Whether the thread state had expired when the message arrived.
    pub(in crate::engine) fn is_reset(&self) -> bool {
        self.context_status.as_ref().is_some_and(|it| it.reset)
    }
}

/// What a turn does.
pub(in crate::engine) enum TurnInput {
    /// A skill runs.
    Skill(Arc<dyn AnySkill>, TurnStart),
    /// The router asks the client which skill is meant.
    Ask {
        /// The question.
        question: String,
        /// The candidate skills.
        slot: SavedSlot,
    },
    /// The stored turn cannot be resumed: its task fails.
    Fail(AgentError),
}

impl TurnInput {
    /// The skill to run and what it is called with.
    ///
    /// # Errors
    /// The outcome of a turn that runs no skill.
    pub(in crate::engine) fn into_run(
        self,
    ) -> Result<(Arc<dyn AnySkill>, TurnStart), SkillOutcome> {
        match self {
            Self::Skill(skill, call) => Ok((skill, call)),
            Self::Ask { question, slot } => {
                let message = Content::from_text(question);
                Err(SkillOutcome::InputRequired { message, slot })
            }
            Self::Fail(error) => Err(SkillOutcome::Failed(error)),
        }
    }

    /// Whether the turn makes a task, whatever its outcome.
    pub(in crate::engine) fn makes_task(&self) -> bool {
        match self {
            Self::Skill(skill, _) => skill.makes_task(),
            Self::Ask { .. } | Self::Fail(_) => true,
        }
    }
}

/// How a turn ended.
#[derive(Debug)]
pub(in crate::engine) enum TurnEnd {
    /// The task is at rest, and stored.
    Stopped(TaskRecord),
    /// The skill answered with a message; no task was made.
    Message(Message),
    /// The turn was handed over to another invocation.
    HandedOver(TaskRecord),
    /// Another writer has the task; the record as it is stored now.
    Superseded(Option<TaskRecord>),
    /// An earlier send has the idempotency key; its task.
    Duplicate(TaskRecord),
}
