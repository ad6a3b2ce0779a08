//! A step gives an `AgentResult`, and the compiler says how to make one.
//! replace: `Ok(std::fs::read_to_string("rates.csv")?)`
//! with: `std::fs::read_to_string("rates.csv")`
//! error: `E0277`
//! text: `a step gives an `AgentResult`, and this one gives a`

use a2a_lambda::prelude::*;

/// Reads the rates.
#[skill(id = "rates", tags = ["test"])]
pub async fn rates(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    cx.step("read", async { Ok(std::fs::read_to_string("rates.csv")?) })
        .await
}
