//! A skill with one function of a model, which asks its user for what the model did not find.

use a2a_lambda::llm::LlmFunction;
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Extracts user data from resumes.
#[skill(
    id = "summarize_resume",
    name = "Resume Summarizer",
    tags = ["hr", "resume"],
    examples = ["Summarize this resume: John Doe, john@example.com, github.com/johndoe"],
    input_modes = ["text/plain", "application/pdf", "application/json"],
    output_modes = ["application/json"],
)]
pub(super) struct SummarizeResume;

/// A person, as the resume says it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct UserData {
    name: String,
    email: String,
    /// Empty if the resume has none.
    github_username: String,
}

/// What the user is asked for.
#[derive(Serialize, Deserialize)]
pub(super) enum ResumeInputSlot {
    CorrectedUsername,
}

impl SkillSlot for ResumeInputSlot {}

/// The data that waits for the user's answer.
const PARTIAL: &str = "partial_user";

fn extract_user_data() -> LlmFunction<UserData> {
    LlmFunction::new("Extract name, email address and GitHub username from the resume.")
}

impl SkillHandler<ResumeInputSlot> for SummarizeResume {
    type Input = Content;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        resume: Content,
    ) -> AgentResult<OnRequestResult<(), ResumeInputSlot>> {
        let user = extract_user_data().run(cx, &resume).await?;
        if user.github_username.is_empty() {
            cx.save_data(PARTIAL, &user).await?;
            let question = "Please provide your GitHub username.";
            return OnRequestResult::ask(question, ResumeInputSlot::CorrectedUsername);
        }
        Ok(profile("Successfully extracted user profile", &user)?.into())
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        ResumeInputSlot::CorrectedUsername: ResumeInputSlot,
        answer: Content,
    ) -> AgentResult<OnInputResult<(), ResumeInputSlot>> {
        let user = cx.load_data::<UserData>(PARTIAL)?;
        let mut user = user.ok_or_else(|| AgentError::context("no partial user data found"))?;
        answer.text()?.trim().clone_into(&mut user.github_username);
        profile("Profile completed!", &user)
    }
}

/// The end of the task, with the profile as its artifact.
fn profile(
    message: &'static str,
    user: &UserData,
) -> AgentResult<OnInputResult<(), ResumeInputSlot>> {
    Ok(OnInputResult::Completed {
        message: Some(message.into()),
        output: (),
        artifacts: vec![Artifact::from_json("user_profile.json", user)?],
    })
}
