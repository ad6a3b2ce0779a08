//! What a turn needs to run, and how it ended.

use crate::auth::Caller;
use crate::engine::budget::TurnBudget;
use crate::engine::commit::context_status::ContextStatus;
use crate::engine::repeat::MessagePrint;
use crate::store::KeyWrite;
use crate::task::{
    Base, Change, Message, Part, Saved, SavedSlot, SendCommand, TaskRecord, Timestamp,
};
use a2a_lambda_skill::{AgentError, AnySkill, Content, SkillOutcome, TurnFacts, TurnStart};
use std::sync::Arc;

/// What the engine does with a message.
pub(in crate::engine) enum Acceptance {
    /// It runs a turn.
    Run(Box<TurnSpec>),
    /// The message was accepted before: its idempotency key has a task, or it is the
    /// client's last message in its task. The task is returned, and no turn runs.
    Repeat(TaskRecord),
    /// The message is a word that cancels this task, under the key of its send.
    Cancel(Box<TaskRecord>, Option<KeyWrite>),
}

impl Acceptance {
    /// The message, if it may be accepted again when its turn cannot begin.
    pub(in crate::engine) fn take_retry(&mut self) -> Option<SendCommand> {
        match self {
            Self::Run(spec) => spec.retry.take(),
            Self::Repeat(_) | Self::Cancel(..) => None,
        }
    }
}

/// A turn that is ready to run.
pub(in crate::engine) struct TurnSpec {
    /// The task as stored; version 0 if it is not stored yet.
    pub(in crate::engine) record: TaskRecord,
    /// The changes that open the turn: message, skill, start.
    pub(in crate::engine) opening: Vec<Change>,
    /// The idempotency key of the send, stored with the opening.
    pub(in crate::engine) key: Option<KeyWrite>,
    /// Recognises the message that opened the turn, if the message names a task.
    pub(in crate::engine) print: Option<MessagePrint>,
    /// Whether the opening must be stored before the skill runs.
    pub(in crate::engine) force: bool,
    pub(in crate::engine) input: TurnInput,
    pub(in crate::engine) facts: TurnFacts,
    /// The context as found when the message was accepted; `None` if no message opened
    /// the turn.
    pub(in crate::engine) context_status: Option<ContextStatus>,
    /// The message, to accept it again if another writer has changed the task that it continues.
    pub(in crate::engine) retry: Option<SendCommand>,
    /// Whether a worker runs the turn instead.
    pub(in crate::engine) is_queued: bool,
    pub(in crate::engine) budget: TurnBudget,
}

impl TurnSpec {
    /// A turn that runs in this invocation, without an opening, a key and a context.
    pub(in crate::engine) const fn new(
        record: TaskRecord,
        input: TurnInput,
        facts: TurnFacts,
        budget: TurnBudget,
    ) -> Self {
        Self {
            record,
            opening: Vec::new(),
            key: None,
            print: None,
            force: false,
            input,
            facts,
            context_status: None,
            retry: None,
            is_queued: false,
            budget,
        }
    }

    /// The messages of the task, oldest first, with the one that opens the turn.
    pub(in crate::engine) fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        let opening = self.opening.iter().filter_map(|change| match change {
            Change::Accept { message }
            | Change::Resume { message, .. }
            | Change::Queue { message, .. } => Some(message),
            _ => None,
        });
        self.record.history.iter().chain(opening)
    }

    /// The stored values that the turn begins with, and the base of what it has said before.
    pub(in crate::engine) fn replay(&self) -> (Saved, Base) {
        let mut saved_turn = self.record.saved.clone();
        let is_resume = |change: &Change| matches!(change, Change::Resume { .. });
        if self.opening.iter().any(is_resume) {
            // Both belong to one turn. The opening removes those of the last turn, but it is
            // not stored yet.
            saved_turn.steps.clear();
            return (saved_turn, Base::default());
        }
        (saved_turn, self.record.base.clone())
    }

    /// When the turn began, also if its opening is not stored yet.
    pub(in crate::engine) fn began_at(&self) -> Timestamp {
        let mut opening = self.opening.iter();
        let began_at = opening.find_map(|change| match change {
            Change::Resume { began_at, .. } => Some(*began_at),
            _ => None,
        });
        began_at
            .or(self.record.base.began_at)
            .unwrap_or(self.record.created_at)
    }

    /// Whether the message that began the turn is not kept.
    pub(in crate::engine) fn hides_message(&self) -> bool {
        let is_sealed = |change: &Change| match change {
            Change::Resume { secret, .. } | Change::Queue { secret, .. } => secret.is_some(),
            change => matches!(change, Change::Seal(_)),
        };
        let skill = self.input.skill().map(|skill| skill.metadata());
        self.record.secret.is_some()
            || self.opening.iter().any(is_sealed)
            || skill.is_some_and(|skill| !skill.keeps_input)
    }

    /// Whether the thread state had expired when the message arrived.
    pub(in crate::engine) fn is_reset(&self) -> bool {
        self.context_status.as_ref().is_some_and(|it| it.reset)
    }
}

/// The facts that the skill of a turn can read. `message` opened the turn.
pub(in crate::engine) fn facts_of(
    record: &TaskRecord,
    caller: &Caller,
    accepted_output_modes: &[String],
    message: Option<&Message>,
) -> TurnFacts {
    let mut facts = TurnFacts::of(record, caller);
    facts.accepted_output_modes = accepted_output_modes.to_vec();
    if let Some(message) = message {
        facts.message_id.clone_from(&message.id);
        facts.references.clone_from(&message.reference_task_ids);
    }
    facts
}

/// What a turn calls its skill with, and the key under which its opening is stored.
pub(in crate::engine) struct TurnCall {
    pub(in crate::engine) input: TurnInput,
    pub(in crate::engine) facts: TurnFacts,
    pub(in crate::engine) key: Option<KeyWrite>,
}

/// What a turn does.
pub(in crate::engine) enum TurnInput {
    /// A skill runs.
    Skill(Arc<dyn AnySkill>, TurnStart),
    /// The router asks the client which skill is meant, or a question of consent is repeated.
    Ask {
        /// The parts of the question.
        question: Vec<Part>,
        /// The candidate skills, or what the skill that asked has kept.
        slot: SavedSlot,
    },
    /// Another open task gets the message that the router asked about, and then this one is
    /// completed. The flag: the other task is the response.
    Forward(Box<Acceptance>, bool),
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
                let message = Content::from_parts(question);
                Err(SkillOutcome::InputRequired { message, slot })
            }
            Self::Forward(..) => Err(SkillOutcome::Failed {
                error: AgentError::internal("a message was not forwarded"),
            }),
            Self::Fail(error) => Err(SkillOutcome::Failed { error }),
        }
    }

    /// The skill to run, if one runs.
    pub(in crate::engine) fn skill(&self) -> Option<&dyn AnySkill> {
        match self {
            Self::Skill(skill, _) => Some(&**skill),
            Self::Ask { .. } | Self::Forward(..) | Self::Fail(_) => None,
        }
    }

    /// Whether the turn makes a task, whatever its outcome.
    pub(in crate::engine) fn makes_task(&self) -> bool {
        match self {
            Self::Skill(skill, _) => skill.makes_task(),
            Self::Ask { .. } | Self::Forward(..) | Self::Fail(_) => true,
        }
    }
}

/// How a turn ended.
#[derive(Debug)]
pub(in crate::engine) enum TurnEnd {
    /// The task is at rest, and stored.
    AtRest(TaskRecord),
    /// The skill answered with a message; no task was made.
    Message(Message),
    /// The turn was handed over to another invocation, or released in an outage.
    HandedOver(TaskRecord),
    /// Another writer has the task; the record as it is stored now.
    Superseded(Option<TaskRecord>),
    /// The message was accepted before: the task of an earlier send with its key, or of
    /// the same message.
    Duplicate(TaskRecord),
}
