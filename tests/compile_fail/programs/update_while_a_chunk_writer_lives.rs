//! A chunk writer borrows the context until it is finished.
//! replace: `chunks.finish()`
//! with: `cx.send_partial_artifact(Artifact::from_text("log", "")).await?; chunks.finish()`
//! error: `E0499`

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
        let mut chunks = cx.artifact_chunks("report.md");
        chunks.push("one").await?;
        chunks.finish().await?;
        OnRequestResult::done(input)
    }
}
