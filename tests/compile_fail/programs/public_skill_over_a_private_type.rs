//! A public skill cannot have a private input type.
//! replace: `pub struct Terms`
//! with: `struct Terms`
//! error: `E0446`

use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub struct Terms {
    a: i64,
}

/// Doubles a number.
#[skill(id = "double", tags = ["test"])]
pub async fn double(terms: Terms) -> AgentResult<i64> {
    Ok(terms.a * 2)
}
