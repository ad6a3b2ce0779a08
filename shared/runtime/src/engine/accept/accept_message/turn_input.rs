//! Decides the input of a turn: the skill that the router chose with its decoded input, or
//! the question that the router asks.

use crate::engine::turn::spec::TurnInput;
use crate::engine::{Engine, EngineError};
use crate::task::{
    A2aError, Change, Message, PartContent, SavedSlot, SendCommand, SkillId, SkillRoute, TaskRecord,
};
use a2a_lambda_skill::route::{self, RouteRequest, Routed, Wrapped};
use a2a_lambda_skill::{AgentError, Content, TurnStart, media};
use std::sync::Arc;

impl Engine {
    /// The call of the skill that asked for input, with the input.
    pub(super) fn pinned_skill(
        &self,
        id: &SkillId,
        record: &TaskRecord,
        message: &Message,
        command: &SendCommand,
    ) -> Result<TurnInput, EngineError> {
        let request = RouteRequest {
            pinned: Some(id),
            ..routing_message(message, command)
        };
        let decision = route::route(&self.agent, &request)?;
        let (Routed::Skill(route), Some(skill)) = (decision, self.agent.skill(id)) else {
            return Err(EngineError::broken(format!(
                "task pinned to unknown skill `{id}`"
            )));
        };
        let slot = record.saved().slot.clone().unwrap_or(SavedSlot {
            version: 0,
            value: serde_json::Value::Null,
        });
        Ok(TurnInput::Skill(
            Arc::clone(skill),
            TurnStart::Input(slot, route.content),
        ))
    }

    /// The skill that the router chose with its decoded input, or the question that the
    /// router asks the client.
    pub(super) fn route_message(
        &self,
        decision: Routed,
        accepted_output_modes: &[String],
        opening: &mut Vec<Change>,
    ) -> Result<TurnInput, EngineError> {
        match decision {
            Routed::Skill(route) => {
                let id = route.id;
                let skill = self.agent.skill(&id).ok_or_else(|| {
                    EngineError::broken(format!("routed to unknown skill `{id}`"))
                })?;
                media::check_accepted(skill.metadata(), accepted_output_modes)?;
                let input = skill
                    .decode(&route.content)
                    .map_err(|error| unreadable(&error, &route.content, route.wrapper))?;
                // The message itself shows the other decisions, so they need no bytes.
                let is_kept = route.input.is_some() || !matches!(route.how, "explicit" | "single");
                let reason = is_kept.then(|| SkillRoute {
                    how: route.how.to_owned(),
                    input: route.input,
                });
                opening.push(Change::Pin(id, reason));
                Ok(TurnInput::Skill(
                    Arc::clone(skill),
                    TurnStart::Request(input),
                ))
            }
            Routed::Ask { offer, question } => Ok(TurnInput::Ask {
                question,
                slot: offer.slot(),
            }),
        }
    }
}

/// The error for an input that the skill cannot decode. Its field names the part: the
/// first with data, else the first with text. For data it also names the place inside the
/// value, as the client sent it.
fn unreadable(error: &AgentError, content: &Content, wrapper: Option<Wrapped>) -> A2aError {
    let mut field = "message.parts".to_owned();
    let contents = || content.parts().iter().map(|part| &part.content);
    if let Some(at) = contents().position(|it| matches!(it, PartContent::Data(_))) {
        field.push_str(&format!("[{at}].data"));
        if let Some(call) = wrapper.filter(|call| call.part == at) {
            field.push_str(&format!(".{}", call.member));
        }
        let pointer = error.details().get("pointer");
        let pointer = pointer.and_then(serde_json::Value::as_str);
        for step in pointer.unwrap_or_default().split('/').skip(1) {
            let index = !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit());
            field.push_str(&if index {
                format!("[{step}]")
            } else {
                // JSON Pointer (RFC 6901) writes `/` as `~1` and `~` as `~0`.
                format!(".{}", step.replace("~1", "/").replace("~0", "~"))
            });
        }
    } else if let Some(at) = contents().position(|it| matches!(it, PartContent::Text(_))) {
        field.push_str(&match wrapper.filter(|call| call.part == at) {
            Some(call) => format!("[{at}].data.{}", call.member),
            None => format!("[{at}].text"),
        });
    }
    A2aError::invalid(field, error.text())
}

/// The request that the router reads. `message` is the message with the bytes of its files.
pub(super) fn routing_message<'a>(
    message: &'a Message,
    command: &'a SendCommand,
) -> RouteRequest<'a> {
    RouteRequest {
        pinned: None,
        message,
        request_metadata: &command.metadata,
    }
}
