//! An output needs a schema, and the compiler says which traits to derive.
//! replace: `#[derive(Serialize, JsonSchema)]`
//! with: `#[derive(Serialize)]`
//! error: `E0277`
//! text: `derive `serde::Serialize` and `schemars::JsonSchema` for it`

use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub struct Sum {
    pub sum: i64,
}

/// Makes a sum.
#[skill(id = "sum", tags = ["test"])]
pub async fn sum(_: String) -> AgentResult<Sum> {
    Ok(Sum { sum: 1 })
}
