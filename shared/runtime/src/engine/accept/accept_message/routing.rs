//! Chooses the skill of a message, or the open task that it answers: by rules, by a model when
//! they do not decide, and by what was said before.

use crate::auth::Caller;
use crate::engine::accept::Accept;
use crate::engine::budget::CallBudget;
use crate::engine::day_limits::CallMeter;
use crate::engine::error::EngineError;
use crate::engine::turn::references::newest;
use crate::engine::turn::spec::Acceptance;
use crate::store::queue::OpenTask;
use crate::task::{
    A2aError, Change, ContextId, Message, Owner, PartContent, SendCommand, SkillId, TaskId,
    TaskRecord, TaskState, Timestamp,
};
use a2a_lambda_skill::route::{self, Decision, Offer, PriorTasks, RouteRequest, RoutingQuestion};

/// The newest tasks of a context that are its conversation.
pub(super) const NEWEST: usize = 16;

/// The skill that a message would get, which is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePreview {
    /// The skill; `None` if the client would be asked.
    pub skill: Option<SkillId>,
    /// The step that decides: see [`SkillRoute::how`](crate::task::SkillRoute::how), or
    /// `pinned`, `explicit` or `ask`.
    pub how: String,
}

impl Accept {
    /// What a message without a task does, in its context. One that `opens` a task under the id
    /// of its client answers no other task.
    pub(super) async fn route_request(
        &self,
        owner: &Owner,
        context: Option<(&ContextId, Timestamp)>,
        request: RouteRequest<'_>,
        opens: bool,
    ) -> Result<Decision, EngineError> {
        let (agent, message) = (&*self.agent, request.message);
        let decision = route::route(agent, &request)?;
        if !route::may_yield_to_context(agent, &decision, message) {
            return Ok(Decision::Route(decision));
        }
        let mut prior = self.prior_tasks(owner, context, message).await?;
        if opens {
            prior.tasks.retain(|task| task.state().is_terminal());
        }
        let case = RoutingQuestion {
            message,
            first: None,
            offer: None,
            pending: None,
            prior: &prior,
        };
        match route::by_context(agent, &case, decision)? {
            Some(decision) => Ok(decision),
            None => self.conclude(owner, &case).await,
        }
    }

    /// What a message does that replies to the question of the router in `record`. The question is
    /// about `original`.
    pub(super) async fn route_reply(
        &self,
        record: &TaskRecord,
        original: &Message,
        reply: RouteRequest<'_>,
    ) -> Result<Decision, EngineError> {
        let (agent, message, owner) = (&*self.agent, reply.message, &record.owner);
        let offer = record.saved.slot.as_ref().map(Offer::of);
        let offer = offer.unwrap_or_default();
        if let Some(call) = offer.call {
            return Ok(Decision::Route(call.route(original).admit(agent)?));
        }
        if let Some((id, turn)) = offer.task(agent, message) {
            let now = self.reader.clock.now();
            let task = self.commits.records.load(owner, &id, now).await?;
            // The client has read this question of the task, and no later one.
            let asks =
                |task: &TaskRecord| task.state() == TaskState::InputRequired && task.turn == turn;
            if let Some(task) = task.filter(asks) {
                return Ok(Decision::Continue(task.into(), None));
            }
        }
        if let Some(decision) = route::route_answer(agent, original, &offer, &reply)? {
            return Ok(Decision::Route(decision));
        }
        let context = Some((&record.context_id, Timestamp::default()));
        let question = record.status.message.as_ref();
        let case = RoutingQuestion {
            message,
            first: Some(original),
            offer: Some(&offer),
            pending: question.and_then(first_text),
            prior: &self.prior_tasks(owner, context, message).await?,
        };
        self.conclude(owner, &case).await
    }

    async fn conclude(
        &self,
        owner: &Owner,
        case: &RoutingQuestion<'_>,
    ) -> Result<Decision, EngineError> {
        // A model may be asked.
        self.reader.check_brake(&owner.tenant, None)?;
        let (agent, now) = (&*self.agent, self.reader.clock.now());
        let meter = CallMeter::of_tenant(&self.reader, &owner.tenant);
        let choice = match &self.router {
            Some(router) => router.choose(agent, case, (&meter, now)).await,
            None => None,
        };
        let has_model = self.router.is_some() && !meter.is_full();
        Ok(route::conclude(agent, case, choice, has_model)?)
    }

    /// The tasks before a message: the last ones it refers to, and the newest ones of its context,
    /// which began at this time.
    async fn prior_tasks(
        &self,
        owner: &Owner,
        context: Option<(&ContextId, Timestamp)>,
        message: &Message,
    ) -> Result<PriorTasks, EngineError> {
        let (records, now) = (&self.reader.records, self.reader.clock.now());
        let ids = newest(&message.reference_task_ids).into_iter();
        let ids = ids.filter_map(|id| TaskId::parse(id).ok());
        let ids = ids.map(|task| OpenTask {
            owner: owner.clone(),
            task,
        });
        let ids: Vec<OpenTask> = ids.collect();
        let mut prior = PriorTasks::default();
        if !ids.is_empty() {
            prior.references = records.heads(&ids, now).await?;
        }
        let index = |head: &TaskRecord| ids.iter().position(|it| it.task == head.id);
        prior.references.sort_by_key(index);
        if let Some((id, began)) = context {
            let tasks = records.tasks_in(owner, id, None, None, NEWEST);
            let (mut tasks, _) = tasks.await?;
            tasks.truncate(NEWEST);
            tasks.retain(|it| {
                !it.is_expired(now) && !self.commits.is_earlier(id, it.created_at, began)
            });
            tasks.reverse();
            prior.tasks = tasks;
        }
        Ok(prior)
    }

    /// The skill that a message would get, and the step that decides. The message is not sent
    /// and its task is not stored; a model may be asked.
    ///
    /// # Errors
    /// The error that the client would get.
    pub(crate) async fn preview_route(
        &self,
        caller: &Caller,
        command: SendCommand,
    ) -> Result<RoutePreview, EngineError> {
        let is_reply = command.message.task_id.is_some();
        let acceptance = self.accept_unkeyed(caller, command, CallBudget::until(None));
        let spec = match acceptance.await? {
            Acceptance::Run(spec) => spec,
            Acceptance::Repeat(_) => {
                return Err(A2aError::invalid("message", "repeats an earlier message").into());
            }
            Acceptance::Cancel(record, _) => {
                return Ok(RoutePreview {
                    skill: record.skill.clone(),
                    how: "pinned".to_owned(),
                });
            }
        };
        let how = spec.opening.iter().find_map(|change| match change {
            Change::Pin(_, Some(route)) => Some(route.how.clone()),
            _ => None,
        });
        let skill = spec.input.skill().map(|skill| skill.metadata().id);
        let other = match (skill, spec.record.skill.as_ref()) {
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
