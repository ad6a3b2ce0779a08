//! A value that skills share, made from a secret.
//!
//! On AWS the secret is a member of the secret that the parameter `SkillSecretArn` names. On
//! this machine it is a variable: `PRICES_KEY=… cargo run -p examples --example state`.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use a2a_lambda::secrets::{Secret, SecretsError, SkillSecrets};
use std::error::Error;
use std::io::{self, Write as _};

/// A client of a service with prices.
struct Prices {
    key: Secret,
}

impl Prices {
    /// A function that runs skills calls this once, at its start.
    async fn connect() -> Result<Self, SecretsError> {
        let secrets = SkillSecrets::read().await?;
        Ok(Self {
            key: secrets.get("PRICES_KEY")?,
        })
    }

    /// A real client would send a request with the key here.
    fn of(&self, dish: &str) -> Option<u32> {
        let known = !self.key.expose().is_empty() && dish == "soup";
        known.then_some(450)
    }
}

/// Says what a dish costs, in cents.
#[skill(id = "price", tags = ["menu"], examples = ["soup"])]
async fn price(prices: State<Prices>, dish: String) -> AgentResult<u32> {
    let found = prices.of(dish.trim());
    found.ok_or_else(|| AgentError::domain("NOT_ON_THE_MENU", "there is no such dish"))
}

fn agent() -> Result<AgentDefinition, BuildError> {
    let agent = Agent::builder("menu").state(Prices::connect);
    agent.skill(price).build()
}

/// A test gives the skill a value of its own, so it needs no secret.
async fn run(prices: Prices) -> Result<String, Box<dyn Error>> {
    let mut skill_test = SkillTest::new(&agent()?, "price");
    let reply = skill_test.state(prices).send("soup").await?;
    let cents = reply.artifact_data("price").ok_or("no artifact")?;
    Ok(format!("{cents} cents"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{}", run(Prices::connect().await?).await?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_program_runs() {
        let key = Secret::new("a key of a test".to_owned());
        assert_eq!(run(Prices { key }).await.unwrap(), "450 cents");
    }

    #[tokio::test]
    async fn without_the_secret_the_agent_does_not_start() {
        let error = Prices::connect().await.err().unwrap().to_string();
        assert!(error.contains("PRICES_KEY"), "{error}");
    }
}
