//! Makes a function that returns a skill that skill. `#[skill]` turns an `async fn` into one, since
//! the name of a function is no pattern: a variable may have it.

use super::metadata::SkillMetadata;
use super::state::NeededState;
use super::{
    AgentResult, Asked, Content, FinishedTask, NoSlot, OnInputResult, OnRequestResult, Skill,
    SkillHandler, TaskContext,
};

impl<F: Fn() -> H, H: Skill> Skill for F {
    const METADATA: SkillMetadata = H::METADATA;
    const SOURCES: &'static str = H::SOURCES;

    fn states() -> Vec<NeededState> {
        H::states()
    }
}

/// Of one implementation alone the compiler would say why it does not fit a function without the
/// attribute: that this takes arguments. Of two it says that the function is no skill.
macro_rules! skills_of_functions {
    ($($slot:ty),*) => {$(
        impl<F, H> SkillHandler<$slot> for F
        where
            F: Fn() -> H + Send + Sync + 'static,
            H: SkillHandler<$slot>,
        {
            type Input = H::Input;
            type Output = H::Output;

            async fn on_request(
                &self,
                cx: &mut TaskContext<'_>,
                input: H::Input,
            ) -> AgentResult<OnRequestResult<H::Output, $slot>> {
                self().on_request(cx, input).await
            }

            async fn on_input_received(
                &self,
                cx: &mut TaskContext<'_>,
                slot: $slot,
                content: Content,
            ) -> AgentResult<OnInputResult<H::Output, $slot>> {
                self().on_input_received(cx, slot, content).await
            }

            async fn on_completed(&self, task: &FinishedTask) {
                self().on_completed(task).await;
            }
        }
    )*};
}

skills_of_functions!(NoSlot, Asked);
