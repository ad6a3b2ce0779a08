//! Chooses the skill of a message: by rules, and by a model when they do not decide.

use crate::auth::Caller;
use crate::engine::accept::Acceptance;
use crate::engine::budget::CallBudget;
use crate::engine::{Engine, EngineError};
use crate::store::queue::OpenTask;
use crate::task::{
    A2aError, Change, ContextId, Message, Owner, PartContent, SendCommand, SkillId, TaskId,
    TaskRecord,
};
use a2a_lambda_skill::route::{self, RouteRequest, Routed};
use a2a_lambda_skill::route::{ModelChoice, RouterModel, Undecided};
use std::collections::BTreeSet;

/// The most tasks whose skill decides for a message that refers to them.
const REFERENCES: usize = 16;
/// Tasks of a context among which the last skill is looked for.
const NEWEST: usize = 3;

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
    /// The skill of a message that opens a task, in this context.
    pub(super) async fn route_request(
        &self,
        caller: &Caller,
        request: RouteRequest<'_>,
        context: Option<&ContextId>,
    ) -> Result<Routed, EngineError> {
        let case = Undecided {
            message: request.message,
            first: None,
            pending: None,
        };
        let decide = |request: &RouteRequest<'_>| route::route(&self.agent, request);
        self.decide(&caller.owner, context, request, &case, decide)
            .await
    }

    /// The skill of a message that answers the question of the router.
    pub(super) async fn route_reply(
        &self,
        record: &TaskRecord,
        original: &Message,
        reply: RouteRequest<'_>,
    ) -> Result<Routed, EngineError> {
        let question = record.status().message.as_ref();
        let offer = record.saved().slot.as_ref().map(route::offer);
        let offer = offer.unwrap_or_default();
        let case = Undecided {
            message: reply.message,
            first: Some(original),
            pending: question.and_then(first_text),
        };
        let context = Some(record.context_id());
        let decide =
            |reply: &RouteRequest<'_>| route::route_answer(&self.agent, original, &offer, reply);
        self.decide(record.owner(), context, reply, &case, decide)
            .await
    }

    /// What `decide` says with the tasks that the message refers to; in place of a question the
    /// skill that the model chooses, if there is one, or the fallback, if the agent has one. A
    /// question offers the last skill of the context first.
    async fn decide(
        &self,
        owner: &Owner,
        context: Option<&ContextId>,
        mut request: RouteRequest<'_>,
        case: &Undecided<'_>,
        decide: impl Fn(&RouteRequest<'_>) -> Result<Routed, A2aError>,
    ) -> Result<Routed, EngineError> {
        let mut decision = decide(&request)?;
        let references = &request.message.reference_task_ids;
        if !references.is_empty() && !decision.is_named() {
            request.earlier.reference = self.referred_skill(owner, references).await?;
            decision = decide(&request)?;
        }
        let Routed::Ask { candidates, .. } = &decision else {
            return Ok(decision);
        };
        let choice = self.model_choice(case).await;
        if let Some(ModelChoice::Skill(route)) = choice {
            return Ok(route.admitted(&self.agent)?);
        }
        let fallback = self.agent.fallback().filter(|id| candidates.contains(id));
        if let (Some(id), Some(_)) = (fallback, &self.router) {
            return Ok(route::route_to(
                &self.agent,
                id,
                case.message,
                "fallback",
                None,
            )?);
        }
        if let Some(context) = context {
            request.earlier.last = self.last_skill(owner, context).await;
            decision = decide(&request)?;
        }
        match (choice, decision) {
            (Some(ModelChoice::Ask(Some(question))), Routed::Ask { candidates, .. }) => Ok(
                route::ask_with(&self.agent, candidates, &question, case.first),
            ),
            (_, decision) => Ok(decision),
        }
    }

    async fn model_choice(&self, case: &Undecided<'_>) -> Option<ModelChoice> {
        let router = self.router.as_deref()?;
        let now = self.reader.clock.now();
        router.choose(&self.agent, case, now).await
    }

    /// The one skill of these tasks of the caller; `None` if one of them is missing or has
    /// another skill.
    async fn referred_skill(
        &self,
        owner: &Owner,
        references: &[String],
    ) -> Result<Option<SkillId>, EngineError> {
        let ids: BTreeSet<&String> = references.iter().collect();
        let tasks = ids.into_iter().map(|id| {
            Some(OpenTask {
                owner: owner.clone(),
                task: TaskId::parse(id.clone()).ok()?,
            })
        });
        let Some(tasks) = tasks.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        if tasks.len() > REFERENCES {
            return Ok(None);
        }
        let heads = self.records.heads(&tasks, self.reader.clock.now()).await?;
        let skills: BTreeSet<_> = heads.iter().map(|head| head.skill()).collect();
        if heads.len() < tasks.len() || skills.len() > 1 {
            return Ok(None);
        }
        Ok(skills.into_iter().flatten().next().cloned())
    }

    /// The skill of the newest task in a context that has one, of the newest few. It orders an
    /// offer, so an outage of the store only leaves the offer as it is.
    async fn last_skill(&self, owner: &Owner, context: &ContextId) -> Option<SkillId> {
        let now = self.reader.clock.now();
        match self.records.tasks_in(owner, context, None, NEWEST).await {
            Ok((heads, _)) => {
                let mut lives = heads.iter().filter(|head| !head.expired(now));
                lives.find_map(|head| head.skill()).cloned()
            }
            Err(error) => {
                let cause = error.to_string();
                tracing::warn!(error.cause = cause, "an offer without the last skill");
                None
            }
        }
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
        let other = match (skill, is_reply && spec.record.skill().is_some()) {
            (None, _) => "ask",
            (Some(_), true) => "pinned",
            (Some(_), false) => "explicit",
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

fn first_text(message: &Message) -> Option<&str> {
    let mut texts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.next()
}

#[cfg(test)]
mod tests;
