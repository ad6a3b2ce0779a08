//! A skill can complete only with its output type.
//! replace: `done(3)`
//! with: `done("three")`
//! error: `E0308`

use a2a_lambda::prelude::*;

/// Counts.
#[skill(id = "count", tags = ["test"])]
pub struct Count;

impl SkillHandler for Count {
    type Input = String;
    type Output = u32;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<u32>> {
        OnRequestResult::done(3)
    }
}
