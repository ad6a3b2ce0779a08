//! A skill that can ask must handle the answer. `cargo check` does not report this error.
//! replace: `type Slot = NoSlot`
//! with: `type Slot = Ask`
//! error: `E0080`

use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub enum Ask {
    When,
}

impl SkillSlot for Ask {}

pub type Slot = NoSlot;

/// Books.
#[skill(id = "book", tags = ["test"])]
pub struct Book;

impl SkillHandler<Slot> for Book {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String, Slot>> {
        OnRequestResult::done(input)
    }
}

pub fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("agent").skill(Book).build()
}
