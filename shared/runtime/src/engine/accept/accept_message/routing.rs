//! Chooses the skill of a message: by rules, and by a model when they do not decide.

use crate::engine::{Engine, EngineError};
use crate::task::{Message, Metadata, Part, PartContent, SkillId, TaskRecord};
use a2a_lambda_skill::route::{self, RouteRequest, Routed};
use a2a_lambda_skill::route::{ModelChoice, RouterModel, Undecided};

/// The skill of a message that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePreview {
    /// The skill; `None` if the client would be asked.
    pub skill: Option<SkillId>,
    /// The step that decided: see [`SkillRoute::how`](crate::task::SkillRoute::how), or `ask`.
    pub how: &'static str,
}

impl Engine {
    /// The skill of a message that opens a task.
    pub(super) async fn route_request(
        &self,
        request: &RouteRequest<'_>,
    ) -> Result<Routed, EngineError> {
        let case = Undecided {
            message: request.message,
            pending: None,
        };
        let decision = route::route(&self.agent, request)?;
        self.routed(&case, decision).await
    }

    /// The skill of a message that answers the question of the router.
    pub(super) async fn route_reply(
        &self,
        record: &TaskRecord,
        original: &Message,
        reply: &RouteRequest<'_>,
    ) -> Result<Routed, EngineError> {
        let question = record.status().message.as_ref();
        let case = Undecided {
            message: reply.message,
            pending: question.and_then(first_text),
        };
        let decision = route::route_answer(&self.agent, original, reply)?;
        self.routed(&case, decision).await
    }

    /// The decision of the rules; in place of a question that of the model, if there is one.
    async fn routed(&self, case: &Undecided<'_>, decision: Routed) -> Result<Routed, EngineError> {
        let now = self.reader.clock.now();
        let (Some(router), Routed::Ask { candidates, .. }) = (self.router.as_deref(), &decision)
        else {
            return Ok(decision);
        };
        match router.choose(&self.agent, case, now).await {
            Some(ModelChoice::Skill(id, input)) => Ok(route::route_by_model(
                &self.agent,
                &id,
                case.message,
                input,
            )?),
            Some(ModelChoice::Ask(Some(question))) => {
                Ok(route::ask_with(&self.agent, candidates.clone(), &question))
            }
            Some(ModelChoice::Ask(None)) | None => Ok(decision),
        }
    }

    /// The skill that a message with this text would get, and the step that decides. Nothing is
    /// sent or stored; a model may be asked.
    ///
    /// # Errors
    /// When no skill takes text.
    pub async fn preview_route(&self, text: &str) -> Result<RoutePreview, EngineError> {
        let message = Message::from_user("preview", vec![Part::text(text)]);
        let request = RouteRequest {
            pinned: None,
            message: &message,
            request_metadata: &Metadata::new(),
        };
        Ok(match self.route_request(&request).await? {
            Routed::Skill(route) => RoutePreview {
                skill: Some(route.id),
                how: route.how,
            },
            Routed::Ask { .. } => RoutePreview {
                skill: None,
                how: "ask",
            },
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
