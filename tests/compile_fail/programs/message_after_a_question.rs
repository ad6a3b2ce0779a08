//! After a question the task exists, so a turn cannot end with a message alone.
//! replace: `OnInputResult::InputRequired { message, slot }`
//! with: `OnInputResult::Message { message }`
//! error: `E0308`

use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub enum Ask {
    When,
}

impl SkillSlot for Ask {}

/// Books.
#[skill(id = "book", tags = ["test"])]
pub struct Book;

impl SkillHandler<Ask> for Book {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, Ask>> {
        OnRequestResult::ask("When?", Ask::When)
    }
    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        slot: Ask,
        message: Content,
    ) -> AgentResult<OnInputResult<String, Ask>> {
        Ok(OnInputResult::InputRequired { message, slot })
    }
}
