//! A skill that makes a task and completes it: typed input, typed output.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{self, Write as _};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Box3 {
    width: f64,
    height: f64,
    depth: f64,
}

#[derive(Serialize, JsonSchema)]
struct Volume {
    volume: f64,
}

/// Says how much a box holds.
#[skill(id = "volume", tags = ["geometry"])]
async fn volume(given: Box3) -> AgentResult<Volume> {
    if given.width.min(given.height).min(given.depth) < 0.0 {
        return Err(AgentError::domain("NEGATIVE", "a box has no negative side"));
    }
    Ok(Volume {
        volume: given.width * given.height * given.depth,
    })
}

async fn run() -> Result<String, Box<dyn Error>> {
    let agent = Agent::builder("geometer").skill(volume).build()?;
    let given = serde_json::json!({ "width": 2, "height": 3, "depth": 4 });
    let given = Content::from_parts(vec![a2a_lambda::task::Part::data(given)]);
    let reply = SkillTest::new(&agent, "volume").send(given).await?;
    let artifact = reply.artifact_data("volume").ok_or("no artifact")?;
    Ok(artifact.to_string())
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
        assert_eq!(super::run().await.unwrap(), r#"{"volume":24.0}"#);
    }
}
