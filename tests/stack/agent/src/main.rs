//! The conformance agent as the functions of a deployment, in one program.

use a2a_lambda::secrets::{SecretsError, SkillSecrets};
use std::time::Duration;

/// The conformance kits alone use this time; no case of `tests/stack` does.
const KIT: Duration = Duration::from_secs(2);

/// A secret that the operator gives to the skills. A function that runs skills does not
/// start without it.
struct Key;

impl Key {
    async fn load() -> Result<Self, SecretsError> {
        SkillSecrets::read().await?.get("PRICES_KEY")?;
        Ok(Self)
    }
}

#[global_allocator]
static ALLOCATOR: a2a_lambda::serve::Allocator = a2a_lambda::serve::Allocator;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let agent = || conformance_agent::builder(KIT).state(Key::load).build();
    Ok(a2a_lambda::serve::function(agent).await?)
}
