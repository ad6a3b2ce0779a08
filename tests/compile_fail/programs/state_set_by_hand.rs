//! Only the return value of a handler changes the state of its task.
//! replace: `send_intermediate_update`
//! with: `set_state`
//! error: `E0599`

use a2a_lambda::prelude::*;

/// Works.
#[skill(id = "work", tags = ["test"])]
pub struct Work;

impl SkillHandler for Work {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        cx.send_intermediate_update("completed").await?;
        OnRequestResult::done(input)
    }
}
