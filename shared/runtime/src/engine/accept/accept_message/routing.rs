//! Chooses the skill of a message, or the open task that it answers: by rules, by a model when
//! they do not decide, and by what was said before.

use crate::auth::Caller;
use crate::engine::accept::Acceptance;
use crate::engine::accept::context_status::ContextStatus;
use crate::engine::budget::CallBudget;
use crate::engine::turn::references::newest;
use crate::engine::{Engine, EngineError};
use crate::store::queue::OpenTask;
use crate::task::{
    A2aError, Change, Message, Owner, PartContent, SendCommand, SkillId, TaskId, TaskRecord,
};
use a2a_lambda_skill::route::{
    self, Answer, Choice, Conversation, ModelChoice, Offer, RouteRequest, Routed, RouterModel,
    Undecided,
};

/// The newest tasks of a context that are its conversation.
const NEWEST: usize = 16;

/// What a message does.
#[derive(Debug)]
pub(super) enum Decision {
    /// It has a skill, or gets a question.
    Route(Routed),
    /// It is a message to this open task: its answer, or one more that the router asks about.
    Continue(TaskRecord, Option<Routed>),
}

/// The skill that a message would get, which is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePreview {
    /// The skill; `None` if the client would be asked.
    pub skill: Option<SkillId>,
    /// The step that decides: see [`SkillRoute::how`](crate::task::SkillRoute::how), or
    /// `pinned`, `explicit` or `ask`.
    pub how: String,
}

impl Engine {
    /// What a message without a task does, in its context.
    pub(super) async fn route_request(
        &self,
        owner: &Owner,
        context: Option<&ContextStatus>,
        request: RouteRequest<'_>,
    ) -> Result<Decision, EngineError> {
        let (agent, message) = (&*self.agent, request.message);
        let routed = route::route(agent, &request)?;
        let decided = match agent.answers_by_context() {
            true => route::before_parts(agent, routed.clone(), message)?,
            false => Some(routed.clone()),
        };
        if let Some(decided @ Routed::Skill(_)) = decided {
            return Ok(Decision::Route(decided));
        }
        let conversation = self.conversation(owner, context, message).await?;
        conversation.check_credentials()?;
        let question = conversation.question();
        if let Some(question) = question.filter(|it| !conversation.said_since(it))
            && offer_of(question).choice(agent, message).is_some()
        {
            return Ok(Decision::Continue(question.clone(), None));
        }
        let case = Undecided {
            message,
            first: None,
            pending: None,
            conversation: &conversation,
        };
        if decided.is_some() {
            return self.undecided(&case).await;
        }
        match conversation.answer(agent, message) {
            Some(answer) => self.answered(&case, answer),
            None => Ok(Decision::Route(routed)),
        }
    }

    /// What a message does that replies to the question of the router in `record`. The question is
    /// about `original`.
    pub(super) async fn route_reply(
        &self,
        record: &TaskRecord,
        context: &ContextStatus,
        original: &Message,
        reply: RouteRequest<'_>,
    ) -> Result<Decision, EngineError> {
        let (agent, message, offer) = (&*self.agent, reply.message, offer_of(record));
        if let Some(Choice::Task(id)) = offer.choice(agent, message) {
            let now = self.reader.clock.now();
            let task = self.records.load(record.owner(), &id, now).await?;
            if let Some(task) = task.filter(|task| task.state().is_interrupted()) {
                return Ok(Decision::Continue(task, None));
            }
        }
        let routed = route::route_answer(agent, original, &offer, &reply)?;
        if matches!(routed, Routed::Skill(_)) {
            return Ok(Decision::Route(routed));
        }
        let conversation = self.conversation(record.owner(), Some(context), message);
        let question = record.status().message.as_ref();
        let case = Undecided {
            message,
            first: Some(original),
            pending: question.and_then(first_text),
            conversation: &conversation.await?,
        };
        self.undecided(&case).await
    }

    /// What a message does that no rule decides: what the model says, else its conversation, the
    /// fallback, or a question. A reply to the router answers no other task.
    async fn undecided(&self, case: &Undecided<'_>) -> Result<Decision, EngineError> {
        let (agent, message) = (&*self.agent, case.message);
        let choice = self.model_choice(case).await;
        let answer = match &choice {
            Some(ModelChoice::Skill(route)) => {
                return Ok(Decision::Route(route.clone().admitted(agent)?));
            }
            Some(ModelChoice::Answer(id)) => case.conversation.answer_to(agent, message, id),
            Some(ModelChoice::Ask(_)) => None,
            None => match case.conversation.refinement(agent, message) {
                Some(route) => return Ok(Decision::Route(route.admitted(agent)?)),
                None if case.first.is_none() => case.conversation.answer(agent, message),
                None => None,
            },
        };
        if let Some(answer) = answer {
            return self.answered(case, answer);
        }
        if let (Some(id), Some(_)) = (agent.fallback(), &self.router)
            && let Ok(routed) = route::route_to(agent, id, message, "fallback", None)
        {
            return Ok(Decision::Route(routed));
        }
        let text = match &choice {
            Some(ModelChoice::Ask(text)) => text.as_deref(),
            _ => None,
        };
        self.ask(case, &[], text)
    }

    fn answered(&self, case: &Undecided<'_>, answer: Answer<'_>) -> Result<Decision, EngineError> {
        match answer {
            Answer::To(task) => Ok(Decision::Continue(task.clone(), None)),
            Answer::Unclear(tasks) => self.ask(case, &tasks, None),
        }
    }

    /// The question about a message, in the open question of its context if there is one.
    fn ask(
        &self,
        case: &Undecided<'_>,
        tasks: &[&TaskRecord],
        text: Option<&str>,
    ) -> Result<Decision, EngineError> {
        let routed = route::ask(&self.agent, case, tasks, text)?;
        let question = case.conversation.question();
        Ok(match question.filter(|_| case.first.is_none()) {
            Some(question) => Decision::Continue(question.clone(), Some(routed)),
            None => Decision::Route(routed),
        })
    }

    /// The tasks before a message: the last ones it refers to, and the newest ones of its context.
    async fn conversation(
        &self,
        owner: &Owner,
        context: Option<&ContextStatus>,
        message: &Message,
    ) -> Result<Conversation, EngineError> {
        let now = self.reader.clock.now();
        let ids = newest(&message.reference_task_ids);
        let named: Vec<OpenTask> = (ids.iter())
            .filter_map(|id| TaskId::parse(*id).ok())
            .map(|task| OpenTask {
                owner: owner.clone(),
                task,
            })
            .collect();
        let mut conversation = Conversation::default();
        if !named.is_empty() {
            conversation.references = self.records.heads(&named, now).await?;
        }
        let place = |head: &TaskRecord| named.iter().position(|it| it.task == *head.id());
        conversation.references.sort_by_key(place);
        if let Some(ContextStatus { id, began, .. }) = context {
            let (mut tasks, _) = self.records.tasks_in(owner, id, None, NEWEST).await?;
            tasks.truncate(NEWEST);
            tasks.retain(|task| {
                !task.expired(now) && !self.is_earlier(id, task.created_at(), *began)
            });
            tasks.reverse();
            conversation.tasks = tasks;
        }
        Ok(conversation)
    }

    async fn model_choice(&self, case: &Undecided<'_>) -> Option<ModelChoice> {
        let router = self.router.as_deref()?;
        let now = self.reader.clock.now();
        router.choose(&self.agent, case, now).await
    }

    /// The skill that a message would get, and the step that decides. The message is not sent
    /// and its task is not stored; a model may be asked.
    ///
    /// # Errors
    /// The error that the client would get.
    pub async fn preview_route(
        &self,
        caller: &Caller,
        command: SendCommand,
    ) -> Result<RoutePreview, EngineError> {
        let is_reply = command.message.task_id.is_some();
        let acceptance = self.accept_unkeyed(caller, command, CallBudget::until(None));
        let Acceptance::Run(spec) = acceptance.await? else {
            return Err(A2aError::invalid("message", "repeats an earlier message").into());
        };
        let how = spec.opening.iter().find_map(|change| match change {
            Change::Pin(_, Some(route)) => Some(route.how.clone()),
            _ => None,
        });
        let skill = spec.input.skill().map(|skill| skill.metadata().id);
        let other = match (skill, spec.record.skill()) {
            (None, _) => "ask",
            (Some(_), Some(_)) if is_reply => "pinned",
            (Some(_), Some(_)) => "context",
            (Some(_), None) => "explicit",
        };
        Ok(RoutePreview {
            skill: skill.and_then(|id| SkillId::parse(id).ok()),
            how: how.unwrap_or_else(|| other.to_owned()),
        })
    }

    /// The same engine, whose messages without a clear skill go to a model.
    #[must_use]
    pub(crate) fn with_router(mut self, router: RouterModel) -> Self {
        self.router = Some(router.into());
        self
    }
}

/// What the question of the router in `record` offers.
fn offer_of(record: &TaskRecord) -> Offer {
    let slot = record.saved().slot.as_ref();
    slot.map(Offer::of).unwrap_or_default()
}

fn first_text(message: &Message) -> Option<&str> {
    let mut texts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.next()
}

#[cfg(test)]
mod tests;
