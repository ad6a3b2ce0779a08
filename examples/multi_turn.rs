//! A skill that asks questions. It keeps all of its state in the slot, since the answer may
//! arrive days later at another instance.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{self, Write as _};

/// Orders a pizza.
#[skill(id = "order", tags = ["food"], examples = ["I want a pizza"])]
struct Order;

#[derive(Serialize, Deserialize)]
enum Ask {
    Topping,
    Size { topping: String },
}

impl SkillSlot for Ask {}

impl SkillHandler<Ask> for Order {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, Ask>> {
        OnRequestResult::ask("Which topping?", Ask::Topping)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        slot: Ask,
        said: Content,
    ) -> AgentResult<OnInputResult<String, Ask>> {
        let said = said.text()?.to_owned();
        match slot {
            Ask::Topping => OnInputResult::ask("Which size?", Ask::Size { topping: said }),
            Ask::Size { topping } => OnInputResult::done(format!("{said} pizza with {topping}")),
        }
    }
}

async fn run() -> Result<String, Box<dyn Error>> {
    let agent = Agent::builder("pizzeria").skill(Order).build()?;
    let mut skill_test = SkillTest::new(&agent, "order");
    for said in ["I want a pizza", "mushrooms"] {
        skill_test.send(said).await?;
    }
    let reply = skill_test.send("large").await?;
    let order = reply.artifact_text("order").ok_or("no artifact")?;
    Ok(format!("{}\n=> {order}", reply.conversation().join("\n")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{}", run().await?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_program_runs() {
        let shown = super::run().await.unwrap();
        assert!(
            shown.ends_with("large\n=> large pizza with mushrooms"),
            "{shown}"
        );
    }
}
