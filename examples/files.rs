//! A skill that takes a file and makes another one.
//!
//! It reads the file in pieces, so a file of any length needs little memory. A small file is
//! a part of the message; a larger one was uploaded before, and the skill sees no difference.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use a2a_lambda::skill::FilePart;
use std::error::Error;
use std::io::{self, Write as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Numbers the lines of a text file.
#[skill(id = "number", tags = ["files"], input_modes = ["text/plain"], output_modes = ["text/plain"])]
async fn number(cx: &mut TaskContext<'_>, file: FilePart) -> AgentResult<()> {
    let mut lines = BufReader::new(cx.open_file(&file).await?).lines();
    let mut numbered = String::new();
    let mut count = 0_u32;
    while let Some(line) = lines.next_line().await? {
        count += 1;
        numbered.push_str(&format!("{count} {line}\n"));
    }
    let file = Artifact::from_file("numbered.txt", "text/plain", numbered.into_bytes());
    cx.send_partial_artifact(file).await
}

async fn run() -> Result<String, Box<dyn Error>> {
    let agent = Agent::builder("numbers").skill(number).build()?;
    let poem = Content::from_file("poem.txt", "text/plain", "roses\nviolets\n");
    let reply = SkillTest::new(&agent, "number").send(poem).await?;
    let artifact = reply.artifact("numbered.txt").ok_or("no artifact")?;
    Ok(format!("{:?}", artifact.parts))
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
        assert!(shown.contains("numbered.txt"), "{shown}");
    }
}
