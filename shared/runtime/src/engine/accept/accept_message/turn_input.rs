//! Decides the input of a turn: the skill that the router chose with its decoded input, or
//! the question that the router asks.

use super::routing::NEWEST;
use crate::engine::accept::Accept;
use crate::engine::error::EngineError;
use crate::engine::turn::spec::TurnInput;
use crate::task::{
    A2aError, Change, Message, PartContent, SavedSlot, SendCommand, SkillId, SkillRoute, TaskRecord,
};
use a2a_lambda_skill::gate::{self, ConsentCall};
use a2a_lambda_skill::route::{self, ArgumentsAt, Offer, Route, RouteRequest, Routed};
use a2a_lambda_skill::{
    AgentError, Consent, Content, InputWriter, StartInput, TurnFacts, TurnStart, media,
};
use std::sync::Arc;

impl Accept {
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
            return Err(EngineError::internal(format!(
                "task pinned to unknown skill `{id}`"
            )));
        };
        let slot = record.saved.slot.clone().unwrap_or(EMPTY_SLOT);
        Ok(TurnInput::Skill(
            Arc::clone(skill),
            TurnStart::by_caller(StartInput::Answer(slot, route.content)),
        ))
    }

    /// The skill that the router chose with its decoded input, or the question that the
    /// router asks the client. A skill that writes gets an input of the router's model only with
    /// the consent of the client.
    pub(super) fn route_message(
        &self,
        decision: Routed,
        facts: &TurnFacts,
        opening: &mut Vec<Change>,
    ) -> Result<TurnInput, EngineError> {
        match decision {
            Routed::Skill(route) => {
                let id = &route.id;
                let skill = self.agent.skill(id).ok_or_else(|| {
                    EngineError::internal(format!("routed to unknown skill `{id}`"))
                })?;
                media::check_accepted(skill.metadata(), &facts.accepted_output_modes)?;
                let input = skill
                    .decode(&route.content)
                    .map_err(|error| unreadable(&error, &route.content, route.wrapper))?;
                let input = StartInput::Request(input);
                let start = match route.writer {
                    InputWriter::Caller => TurnStart::by_caller(input),
                    InputWriter::Model => {
                        let call = ConsentCall {
                            skill: route.id.as_str(),
                            input: route.input.as_ref().unwrap_or_default(),
                            schema: skill.input_schema(),
                        };
                        let consent = Consent::for_route(skill.metadata(), facts, call);
                        match consent.map_err(|error| EngineError::internal(error.to_string()))? {
                            Some(consent) => TurnStart::by_model(input, consent),
                            None => return consent_to(&route, call, facts),
                        }
                    }
                };
                // The message itself shows the other decisions, so they need no bytes.
                let is_kept = route.input.is_some() || !matches!(route.how, "explicit" | "single");
                let reason = is_kept.then(|| SkillRoute {
                    how: route.how.to_owned(),
                    input: route.input,
                    writer: route.writer,
                });
                opening.push(Change::Pin(route.id, reason));
                Ok(TurnInput::Skill(Arc::clone(skill), start))
            }
            Routed::Ask { slot, question } => Ok(TurnInput::Ask { question, slot }),
        }
    }

    /// What a message means for the question of consent that its task has open.
    pub(super) async fn read_consent(
        &self,
        record: &TaskRecord,
        command: &SendCommand,
    ) -> Result<ConsentAnswer, EngineError> {
        let Some(question) = record.consent_question() else {
            return Ok(ConsentAnswer::NotAsked);
        };
        let verdict = super::verdict(record, &command.message);
        let is_given = match (verdict.agrees, verdict.is_named) {
            (Some(false), _) => return Ok(ConsentAnswer::Refused),
            (agrees, true) => agrees.is_some(),
            (Some(true), false) => self.is_only_consent(record, command).await?,
            (None, false) => false,
        };
        Ok(match (is_given, &record.saved.slot) {
            (true, _) => ConsentAnswer::Given,
            (false, slot) => ConsentAnswer::Unclear(Routed::Ask {
                slot: slot.clone().unwrap_or(EMPTY_SLOT),
                question: gate::ask_consent_again(question),
            }),
        })
    }

    /// Whether a `yes` can only mean the open question of `record`: the only one that its task has
    /// asked, and, if the message names no task, that any task of the context has.
    async fn is_only_consent(
        &self,
        record: &TaskRecord,
        command: &SendCommand,
    ) -> Result<bool, EngineError> {
        let is_named = command.message.task_id.is_some()
            || command.client_task_id.as_ref() == Some(&record.id);
        if is_named || record.consents.count > 1 {
            return Ok(record.consents.count == 1);
        }
        let (owner, context) = (&record.owner, &record.context_id);
        let records = &self.reader.records;
        let page = records.tasks_in(owner, context, None, None, NEWEST);
        let (tasks, next) = page.await?;
        let count: u32 = tasks.iter().map(|task| task.consents.count).sum();
        Ok(next.is_none() && count == 1)
    }
}

/// What a message means for an open question of consent.
pub(super) enum ConsentAnswer {
    /// There is none.
    NotAsked,
    /// It agrees, and means this question.
    Given,
    Refused,
    /// It is no answer: the same question comes again.
    Unclear(Routed),
}

/// The slot of a skill that has kept none.
const EMPTY_SLOT: SavedSlot = SavedSlot {
    version: 0,
    value: serde_json::Value::Null,
};

/// The question whether a skill may run with the input that the router's model wrote.
fn consent_to(
    route: &Route,
    call: ConsentCall<'_>,
    facts: &TurnFacts,
) -> Result<TurnInput, EngineError> {
    let question = gate::ask_consent(facts, &[call]);
    let question = question.map_err(|error| EngineError::internal(error.to_string()))?;
    Ok(TurnInput::Ask {
        question: question.into_parts(),
        slot: Offer::of_call(route).slot(),
    })
}

/// The error for an input that the skill cannot decode. Its field names the part: the
/// first with data, else the first with text. For data it also names the place inside the
/// value, as the client sent it.
fn unreadable(error: &AgentError, content: &Content, wrapper: Option<ArgumentsAt>) -> A2aError {
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
