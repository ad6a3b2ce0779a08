//! A skill can have only one slot type.
//! replace: `SkillHandler<Other> for Second`
//! with: `SkillHandler<Other> for First`
//! error: `E0283`

use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Ask;
impl SkillSlot for Ask {}

#[derive(Serialize, Deserialize)]
pub struct Other;
impl SkillSlot for Other {}

/// Books.
#[skill(id = "first", tags = ["test"])]
pub struct First;

/// Books.
#[skill(id = "second", tags = ["test"])]
pub struct Second;

impl SkillHandler<Ask> for First {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, Ask>> {
        OnRequestResult::ask("When?", Ask)
    }
    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Ask,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Ask>> {
        OnInputResult::done(String::new())
    }
}

impl SkillHandler<Other> for Second {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, Other>> {
        OnRequestResult::ask("When?", Other)
    }
    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Other,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Other>> {
        OnInputResult::done(String::new())
    }
}

pub fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("agent").skill(First).build()
}
