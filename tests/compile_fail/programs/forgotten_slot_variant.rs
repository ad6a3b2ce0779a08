//! A handler must handle the answer to every question.
//! replace: `Ask::When => OnInputResult::done("when".to_owned()),`
//! with: ``
//! error: `E0004`

use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub enum Ask {
    Where,
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
        OnRequestResult::ask("Where to?", Ask::Where)
    }
    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        slot: Ask,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Ask>> {
        match slot {
            Ask::Where => OnInputResult::ask("When?", Ask::When),
            Ask::When => OnInputResult::done("when".to_owned()),
        }
    }
}
