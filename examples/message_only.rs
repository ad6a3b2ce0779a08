//! A skill that replies and makes no task.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use std::error::Error;
use std::io::{self, Write as _};

/// Says it louder.
#[skill(id = "shout", tags = ["text"], examples = ["shout hello"])]
async fn shout(input: Content) -> AgentResult<Content> {
    Ok(input.text()?.to_uppercase().into())
}

async fn run() -> Result<String, Box<dyn Error>> {
    let agent = Agent::builder("shouter").skill(shout).build()?;
    let reply = SkillTest::new(&agent, "shout").send("hello").await?;
    Ok(format!(
        "no task: {}, {}",
        reply.task().is_none(),
        reply.text()
    ))
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
        assert_eq!(super::run().await.unwrap(), "no task: true, HELLO");
    }
}
