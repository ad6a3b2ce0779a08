//! The context borrows the turn, so it cannot outlive the turn.
//! replace: `here(async move`
//! with: `tokio::spawn(async move`
//! error: `E0521`

use a2a_lambda::prelude::*;

/// Works.
#[skill(id = "work", tags = ["test"])]
pub struct Work;

pub async fn here<T>(work: impl Future<Output = T>) -> T {
    work.await
}

impl SkillHandler for Work {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let _ = here(async move { cx.send_intermediate_update("late").await }).await;
        OnRequestResult::done(input)
    }
}
