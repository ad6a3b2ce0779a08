//! A skill that decides with the text of each reply whether to ask or to finish.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use std::error::Error;
use std::io::{self, Write as _};

/// Translates.
#[skill(id = "translate", tags = ["language"], examples = ["translate good morning"])]
struct Translate;

/// A real skill would send the thread to a model here.
async fn reply(cx: &mut TaskContext<'_>, _: &Thread) -> AgentResult<String> {
    Ok(match cx.turn() {
        1 => r#"{"state": "input-required", "prompt": "Into which language?"}"#.to_owned(),
        _ => "hyvää huomenta".to_owned(),
    })
}

async fn run() -> Result<String, Box<dyn Error>> {
    let skill = HybridSkill::new(Translate, reply);
    let agent = Agent::builder("translator").skill(skill).build()?;
    let mut skill_test = SkillTest::new(&agent, "translate");
    let asked = skill_test.send("translate good morning").await?;
    let done = skill_test.send("Finnish").await?;
    let text = done.artifact_text("translate").ok_or("no artifact")?;
    Ok(format!("{} {text}", asked.text()))
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
        assert_eq!(shown, "Into which language? hyvää huomenta");
    }
}
