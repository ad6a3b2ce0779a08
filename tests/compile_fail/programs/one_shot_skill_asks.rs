//! A skill without a slot type cannot ask.
//! replace: `OnRequestResult::done("booked".to_owned())`
//! with: `OnRequestResult::ask("When?", Ask::When)`
//! error: `E0308`

use a2a_lambda::prelude::*;

pub enum Ask {
    When,
}

/// Books.
#[skill(id = "book", tags = ["test"])]
pub struct Book;

impl SkillHandler for Book {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        OnRequestResult::done("booked".to_owned())
    }
}
