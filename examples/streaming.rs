//! A skill that streams: a status update, then a text in chunks.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use a2a_lambda::task::Event;
use std::error::Error;
use std::io::{self, Write as _};

/// Counts down.
#[skill(id = "count-down", tags = ["numbers"], examples = ["count down"])]
async fn count_down(cx: &mut TaskContext<'_>, _: String) -> AgentResult<()> {
    cx.send_intermediate_update("counting").await?;
    let mut numbers = cx.artifact_chunks("numbers.txt");
    for number in [3, 2, 1] {
        numbers.push(format!("{number} ")).await?;
    }
    numbers.finish_with("lift-off").await
}

async fn run() -> Result<String, Box<dyn Error>> {
    let agent = Agent::builder("counter").skill(count_down).build()?;
    let mut skill_test = SkillTest::new(&agent, "count-down");
    let reply = skill_test.send("count down").await?;
    let chunks = skill_test.events().iter();
    let chunks = chunks
        .filter(|event| matches!(event, Event::Artifact(_)))
        .count();
    let text = reply.artifact_text("numbers.txt").ok_or("no artifact")?;
    Ok(format!("{chunks} chunks: {text}"))
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
        assert_eq!(super::run().await.unwrap(), "4 chunks: 3 2 1 lift-off");
    }
}
