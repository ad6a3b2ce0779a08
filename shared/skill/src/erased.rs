//! One object-safe trait for skills of every type, for the engine.

use super::RUNS_TURNS;
use super::gate::{Decoded, StartInput, TurnStart};
use super::{
    AgentError, AgentResult, Content, FinishedTask, SkillHandler, SkillInput, SkillMetadata,
    SkillOutcome, SkillOutput, SkillSlot, TaskContext, media, output, slot,
};
use futures::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// A registered skill.
pub trait AnySkill: Send + Sync {
    /// The metadata, with name and modes filled in.
    fn metadata(&self) -> &SkillMetadata;
    /// Whether the skill can make a task. A skill that cannot only replies, so the engine
    /// prepares no task for it.
    fn makes_task(&self) -> bool;
    /// The JSON schema of the data part; `{}` if the skill accepts every value.
    fn input_schema(&self) -> &Value;
    /// The JSON schema of the output artifact, if there is one.
    fn output_schema(&self) -> Option<&Value>;
    /// Decodes the input before the task exists.
    ///
    /// # Errors
    /// `INVALID_INPUT` with a JSON pointer, or `MISSING_INPUT`.
    fn decode(&self, input: &Content) -> AgentResult<Decoded>;
    /// Runs one turn. It does not catch a panic of the handler.
    fn turn<'a>(
        &'a self,
        cx: &'a mut TaskContext<'_>,
        start: TurnStart,
    ) -> BoxFuture<'a, SkillOutcome>;
    /// Runs the skill's `on_completed` handler.
    fn on_completed<'a>(&'a self, task: &'a FinishedTask) -> BoxFuture<'a, ()>;
}

impl fmt::Debug for dyn AnySkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metadata().id)
    }
}

/// What a skill answers in a build that runs none.
fn runs_nowhere() -> AgentError {
    AgentError::internal("this program is built without the feature `turns` of a2a-lambda")
}

/// A skill with its slot type. An `impl AnySkill for H` would leave `S` unconstrained.
pub(super) struct ErasedSkill<H, S> {
    handler: H,
    metadata: SkillMetadata,
    /// Made when something reads them: most processes run a few skills and show none.
    input_schema: OnceLock<Value>,
    output_schema: OnceLock<Option<Value>>,
    slot: PhantomData<fn() -> S>,
}

impl<S: SkillSlot, H: SkillHandler<S>> ErasedSkill<H, S> {
    pub(super) fn new(handler: H) -> Self {
        Self {
            handler,
            metadata: filled_in::<S, H>(),
            input_schema: OnceLock::new(),
            output_schema: OnceLock::new(),
            slot: PhantomData,
        }
    }

    async fn run(&self, cx: &mut TaskContext<'_>, input: StartInput) -> AgentResult<SkillOutcome> {
        let id = self.metadata.id;
        let result = match input {
            StartInput::Request(input) => {
                let input = input.0.downcast::<H::Input>().map_err(|_| {
                    AgentError::internal(format!("skill `{id}` got the input of another skill"))
                })?;
                self.handler.on_request(cx, *input).await?
            }
            StartInput::Answer(saved_slot, content) => {
                let slot = slot::restore(saved_slot)?;
                self.handler
                    .on_input_received(cx, slot, content)
                    .await?
                    .into()
            }
        };
        let mut last = None;
        let write = |output| {
            last = output::artifact(id, output)?;
            Ok(())
        };
        let mut outcome = result.try_map(|message| message, |slot| slot::save(&slot), write)?;
        if let SkillOutcome::Completed { artifacts, .. } = &mut outcome {
            artifacts.extend(last);
        }
        Ok(outcome)
    }
}

/// The metadata of a skill; empty fields get the values that its types imply.
fn filled_in<S: SkillSlot, H: SkillHandler<S>>() -> SkillMetadata {
    let mut metadata = H::METADATA;
    if metadata.name.is_empty() {
        metadata.name = metadata.id;
    }
    if metadata.input_modes.is_empty() {
        let modes = H::Input::modes();
        // The answer to a question is usually text.
        let asks_for_text = S::CAN_ASK && modes == media::JSON;
        metadata.input_modes = if asks_for_text {
            media::TEXT_AND_JSON
        } else {
            modes
        };
    }
    if metadata.output_modes.is_empty() {
        metadata.output_modes = H::Output::modes();
    }
    metadata
}

impl<S: SkillSlot, H: SkillHandler<S>> AnySkill for ErasedSkill<H, S> {
    fn metadata(&self) -> &SkillMetadata {
        &self.metadata
    }

    fn makes_task(&self) -> bool {
        H::Output::MAKES_TASK || S::CAN_ASK
    }

    fn input_schema(&self) -> &Value {
        self.input_schema.get_or_init(H::Input::schema)
    }

    fn output_schema(&self) -> Option<&Value> {
        self.output_schema.get_or_init(H::Output::schema).as_ref()
    }

    fn decode(&self, input: &Content) -> AgentResult<Decoded> {
        if !RUNS_TURNS {
            return Err(runs_nowhere());
        }
        H::Input::decode(input).map(|input| Decoded(Box::new(input)))
    }

    fn turn<'a>(
        &'a self,
        cx: &'a mut TaskContext<'_>,
        start: TurnStart,
    ) -> BoxFuture<'a, SkillOutcome> {
        if !RUNS_TURNS {
            return Box::pin(std::future::ready(SkillOutcome::Failed {
                error: runs_nowhere(),
            }));
        }
        Box::pin(async move {
            let result = self
                .run(&mut cx.written_by(start.writer), start.input)
                .await;
            result.unwrap_or_else(|error| SkillOutcome::Failed { error })
        })
    }

    fn on_completed<'a>(&'a self, task: &'a FinishedTask) -> BoxFuture<'a, ()> {
        if !RUNS_TURNS {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(self.handler.on_completed(task))
    }
}

#[cfg(test)]
mod tests;
