//! What was said before a message, and the earlier task that the message is about.
//!
//! Only a message that names no skill and that no rule routes is looked at so. The questions of
//! the router itself are no part of it.

use super::decision::Route;
use super::message_text::only_text;
use super::text::refines;
use crate::AgentDefinition;
use crate::gate::verdict;
use crate::media::admits;
use a2a_lambda_model::task::{A2aError, Message, TaskId, TaskRecord, TaskState, Timestamp};
use std::collections::BTreeSet;

/// The tasks before a message.
#[derive(Debug, Clone, Default)]
pub struct PriorTasks {
    /// Those that the message refers to and that its caller may read, in its order.
    pub references: Vec<TaskRecord>,
    /// The newest ones of its context, oldest first.
    pub tasks: Vec<TaskRecord>,
}

/// How a message answers by its context.
#[derive(Debug)]
pub(super) enum Answer<'c> {
    /// It answers the question of this task.
    To(&'c TaskRecord),
    /// It may answer one of these, or none: the client is asked.
    Unclear(Vec<&'c TaskRecord>),
}

impl PriorTasks {
    /// The task that spoke last: the last reference, else the task of the context.
    pub(super) fn last(&self) -> Option<&TaskRecord> {
        let mut references = self.with_skill(&self.references);
        let at_rest = self.with_skill(&self.tasks);
        let at_rest = at_rest.filter(|task| task.state().is_at_rest());
        references
            .next_back()
            .or_else(|| at_rest.max_by_key(|task| task.active_at()))
    }

    /// The tasks of the context that wait for an input of these parts, oldest first.
    pub(super) fn waiting(&self, agent: &AgentDefinition, message: &Message) -> Vec<&TaskRecord> {
        let takes = |task: &&TaskRecord| {
            let skill = task.skill.as_ref().and_then(|id| agent.skill(id));
            let is_open = task.state() == TaskState::InputRequired;
            is_open && skill.is_some_and(|skill| admits(skill.metadata(), &message.parts))
        };
        self.with_skill(&self.tasks).filter(takes).collect()
    }

    fn with_skill<'c>(
        &self,
        tasks: &'c [TaskRecord],
    ) -> impl DoubleEndedIterator<Item = &'c TaskRecord> {
        tasks.iter().filter(|task| task.skill.is_some())
    }

    /// Whether the caller has opened or answered another task of the context since `task` asked, or
    /// in the same millisecond.
    pub(super) fn said_since(&self, task: &TaskRecord) -> bool {
        let asked_at = task.status.timestamp;
        let mut others = self.with_skill(&self.tasks);
        others.any(|other| other.id != task.id && said_at(other) >= asked_at)
    }

    /// The open question of the router in the context: the newest one.
    pub(super) fn question(&self) -> Option<&TaskRecord> {
        let questions = self.tasks.iter().filter(|task| task.skill.is_none());
        let open = questions.filter(|task| task.state() == TaskState::InputRequired);
        open.max_by_key(|task| task.status.timestamp)
    }

    /// Refuses a message that may be the credentials which the newest question asks for: nothing
    /// of it is stored.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] with the task and the way out.
    pub(super) fn check_credentials(&self) -> Result<(), A2aError> {
        let questions = self.with_skill(&self.tasks);
        let questions = questions.filter(|task| task.state().is_interrupted());
        match questions.max_by_key(|task| task.status.timestamp) {
            Some(task) if task.state() == TaskState::AuthRequired => {
                let why = format!(
                    "the newest question of this context asks for credentials: send them with the \
                     task id `{}`, or name the skill of another request",
                    &task.id
                );
                Err(A2aError::invalid("message.taskId", why))
            }
            _ => Ok(()),
        }
    }

    /// A new task of the skill that spoke last, if the text is one that refines its results.
    pub(super) fn refinement(&self, agent: &AgentDefinition, message: &Message) -> Option<Route> {
        let last = self.last().filter(|task| task.state().is_terminal())?;
        let (id, skill) = (last.skill.as_ref()?, agent.skill(last.skill.as_ref()?)?);
        let route = Route {
            about: Some(last.id.clone()),
            ..Route::read(agent, id, message, "refines")
        };
        (refines(skill.metadata(), message) && skill.decode(&route.content).is_ok())
            .then_some(route)
    }

    /// How the message answers by its context; `None` if nothing waits for it. It is for the one
    /// task that it refers to, else for the one that spoke last, else for the newest that waits.
    /// Without a reference it is unclear once another task has spoken since.
    pub(super) fn answer(&self, agent: &AgentDefinition, message: &Message) -> Option<Answer<'_>> {
        if !only_text(message) && !agent.answers_by_context {
            return None;
        }
        let waiting = self.waiting(agent, message);
        let newest = *waiting.iter().max_by_key(|task| task.status.timestamp)?;
        let find_waiting = |id: &TaskId| waiting.iter().find(|task| &task.id == id).copied();
        let ids: BTreeSet<&String> = message.reference_task_ids.iter().collect();
        let reference = self.references.first().filter(|_| ids.len() == 1);
        let reference = reference.and_then(|task| find_waiting(&task.id));
        let spoke_last = || self.last().and_then(|task| find_waiting(&task.id));
        let task = reference.or_else(spoke_last).unwrap_or(newest);
        let is_clear = reference.is_some() || !self.said_since(task);
        Some(match is_clear && self.confirms(&waiting, task, message) {
            true => Answer::To(task),
            false => Answer::Unclear(waiting),
        })
    }

    /// The answer to the task `id`, as a model says; `None` if that does not wait.
    pub(super) fn answer_to(
        &self,
        agent: &AgentDefinition,
        message: &Message,
        id: &TaskId,
    ) -> Option<Answer<'_>> {
        let waiting = self.waiting(agent, message);
        let task = *waiting.iter().find(|task| &task.id == id)?;
        Some(match self.confirms(&waiting, task, message) {
            true => Answer::To(task),
            false => Answer::Unclear(waiting),
        })
    }

    /// The task that asks for consent and whose question the message names, by its digest or its
    /// code.
    pub(super) fn named_consent(&self, message: &Message) -> Option<&TaskRecord> {
        let mut tasks = self.tasks.iter().filter(|task| asks_consent(task));
        tasks.find(|task| {
            let verdict = verdict(&task.consents.digest, message);
            verdict.is_named && verdict.agrees.is_some()
        })
    }

    /// Whether the message may answer `task` as far as consents go. A consent takes only its
    /// words, and only if no other task waits and nothing was said since. While one waits, such a
    /// word, or a digest, is for no other task.
    fn confirms(&self, waiting: &[&TaskRecord], task: &TaskRecord, message: &Message) -> bool {
        let mut asks = waiting.iter().filter(|task| asks_consent(task));
        match asks_consent(task) {
            true => {
                let is_only = waiting.len() == 1 && !self.said_since(task);
                is_only && answers_consent(task, message)
            }
            false => !asks
                .any(|task| message.consent_digest().is_some() || answers_consent(task, message)),
        }
    }
}

/// When the caller opened the task or last answered it. An ended task has only its transitions.
fn said_at(task: &TaskRecord) -> Timestamp {
    let mut turns = task.transitions.windows(2).rev();
    let answer = turns.find_map(|turn| match turn {
        [before, after] if before.state.is_interrupted() && !after.state.is_terminal() => {
            Some(after.at)
        }
        _ => None,
    });
    answer.unwrap_or_else(|| task.created_at)
}

/// Whether a task asks for consent. After a question of consent, one that is too large for the
/// task's own item counts as one.
fn asks_consent(task: &TaskRecord) -> bool {
    let has_asked = task.state() == TaskState::InputRequired && task.consents.count > 0;
    let question = task.status.message.as_ref();
    has_asked && question.is_none_or(|it| it.consent_digest().is_some())
}

/// Whether the message is a word that answers the question of consent of `task`.
pub(super) fn answers_consent(task: &TaskRecord, message: &Message) -> bool {
    asks_consent(task) && verdict(&task.consents.digest, message).agrees.is_some()
}
