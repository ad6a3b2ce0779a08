//! Skills as tools: what a model, or another skill, calls by name with JSON.

use super::erased::ErasedSkill;
use super::{
    AgentError, AgentResult, AnySkill, Consent, Content, SkillHandler, SkillOutcome, SkillSlot,
    StartInput, TaskContext, TurnStart,
};
use serde_json::Value;
use std::sync::Arc;

/// A skill as a tool: one of an agent, from
/// [`AgentDefinition::tools`](super::AgentDefinition::tools), or any other.
///
/// A model that calls a skill is not its user. So a skill that writes, or does not say that it
/// reads, runs only after the user has confirmed the call, unless it is [`trusted`](Self::trusted).
#[derive(Debug, Clone)]
pub struct Tool {
    skill: Arc<dyn AnySkill>,
    is_trusted: bool,
}

impl Tool {
    /// A skill as a tool. The skill need not belong to an agent; then only its callers know it.
    #[must_use]
    pub fn new<S: SkillSlot, H: SkillHandler<S>>(handler: H) -> Self {
        Self::of(&(Arc::new(ErasedSkill::new(handler)) as Arc<dyn AnySkill>))
    }

    pub(super) fn of(skill: &Arc<dyn AnySkill>) -> Self {
        Self {
            skill: Arc::clone(skill),
            is_trusted: false,
        }
    }

    /// Lets a model call the skill without a confirmation, although it writes. What a model reads,
    /// such as a document, may then make it write.
    #[must_use]
    pub fn trusted(self) -> Self {
        Self {
            is_trusted: true,
            ..self
        }
    }

    /// Whether a user has to confirm each call of a model.
    #[must_use]
    pub fn needs_confirmation(&self) -> bool {
        self.leave().is_none()
    }

    /// Leave to run it without a question to the user.
    fn leave(&self) -> Option<Consent> {
        Consent::for_tool(self.skill.metadata(), self.is_trusted)
    }

    /// Its name: the id of the skill.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.skill.metadata().id
    }

    /// What it does, for a model.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.skill.metadata().description
    }

    /// The JSON schema of its input; `{}` if it accepts every value.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        self.skill.input_schema()
    }

    /// The JSON schema of its output, if it has one.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.skill.output_schema()
    }

    /// Calls the skill inside the turn of another one: same caller, same task, same thread, and
    /// the input has the writer that the input of the other one has. Returns its output; `null` if
    /// it has none.
    ///
    /// # Errors
    /// `INVALID_INPUT` for an input that does not fit the schema, `MISSING_INPUT` with the
    /// question of a skill that asks, `REJECTED` with its reason, or the error of the skill. In a
    /// step also `UNAVAILABLE` while an operator brakes the skill.
    pub async fn execute(&self, cx: &mut TaskContext<'_>, input: &Value) -> AgentResult<Value> {
        let start = TurnStart {
            input: self.request(input)?,
            writer: cx.writer(),
        };
        self.run(cx, start).await
    }

    /// The same with an input that a model wrote. A tool that
    /// [needs a confirmation](Self::needs_confirmation) needs the consent of the user.
    ///
    /// # Errors
    /// As [`execute`](Self::execute). `INTERNAL_ERROR` without the consent.
    pub async fn execute_for_model(
        &self,
        cx: &mut TaskContext<'_>,
        input: &Value,
        consent: Option<Consent>,
    ) -> AgentResult<Value> {
        let consent = consent.or_else(|| self.leave());
        let consent = consent.ok_or_else(|| AgentError::internal("nobody has confirmed it"))?;
        let start = TurnStart::by_model(self.request(input)?, consent);
        self.run(cx, start).await
    }

    fn request(&self, input: &Value) -> AgentResult<StartInput> {
        let input = self.skill.decode(&Content::from_data(input)?)?;
        Ok(StartInput::Request(input))
    }

    async fn run(&self, cx: &mut TaskContext<'_>, start: TurnStart) -> AgentResult<Value> {
        if let Some(error) = cx.host.refusal(self.id()) {
            return Err(error);
        }
        // Boxed: a tool may call tools.
        let outcome = Box::pin(self.skill.turn(cx, start)).await;
        match outcome {
            SkillOutcome::Completed { artifacts, .. } => Ok(artifacts
                .iter()
                .rfind(|artifact| artifact.name == self.id())
                .map_or(Value::Null, value_of)),
            SkillOutcome::Message { message: content } => Ok(content.first_text().into()),
            SkillOutcome::InputRequired { message, .. }
            | SkillOutcome::AuthRequired { message, .. } => Err(AgentError::missing_input(
                message.first_text().unwrap_or("the tool asks").to_owned(),
            )),
            SkillOutcome::Failed { error } => Err(error),
            SkillOutcome::Rejected { reason } => Err(AgentError::domain("REJECTED", reason)),
        }
    }
}

fn value_of(artifact: &super::Artifact) -> Value {
    let data = artifact.data().cloned();
    data.unwrap_or_else(|| artifact.text().into())
}
