//! A skill without an output type cannot complete a task.
//! replace: `Ok(OnRequestResult::Message { message: input })`
//! with: `OnRequestResult::done(input)`
//! error: `E0308`

use a2a_lambda::prelude::*;

/// Says back what you said.
#[skill(id = "echo", tags = ["test"])]
pub struct Echo;

impl SkillHandler for Echo {
    type Input = Content;
    type Output = NoOutput;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<NoOutput>> {
        Ok(OnRequestResult::Message { message: input })
    }
}
