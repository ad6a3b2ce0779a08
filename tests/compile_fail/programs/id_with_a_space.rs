//! The id of a skill is checked when it is compiled.
//! replace: `id = "book-table"`
//! with: `id = "Book Table"`
//! error: `the skill id `Book Table` must be`

use a2a_lambda::prelude::*;

/// Books.
#[skill(id = "book-table", tags = ["test"])]
pub async fn book(text: String) -> AgentResult<String> {
    Ok(text)
}
