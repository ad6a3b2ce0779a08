//! An `async fn` skill cannot ask, and the compiler says what can.
//! replace: `OnRequestResult<String>`
//! with: `OnRequestResult<String, Ask>`
//! error: `an `async fn` skill cannot ask`

use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Ask;

impl SkillSlot for Ask {}

/// Asks.
#[skill(id = "ask", tags = ["test"])]
pub async fn ask(text: String) -> AgentResult<OnRequestResult<String>> {
    OnRequestResult::done(text)
}
