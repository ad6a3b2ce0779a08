//! The agents which this repository serves: [`agent`], whose skills are small
//! examples of everything a skill can do, and the [`conformance`] agent.
//!
//! Skills are written on the public API of `a2a-lambda` alone, as an author
//! would write them.

pub mod conformance;
mod examples;

use a2a_lambda::skill::{Agent, AgentBuilder, AgentDefinition};

/// The reference agent.
#[must_use]
pub fn agent() -> AgentDefinition {
    let agent = Agent::builder("reference")
        .name("Reference agent")
        .description("Shows what an agent on a2a-lambda can do, one skill for each thing.")
        .version(env!("CARGO_PKG_VERSION"))
        .skill(examples::echo::echo)
        .skill(examples::add::add);
    built(agent)
}

/// An agent whose parts are all in the source of this crate.
#[expect(
    clippy::expect_used,
    reason = "nothing in it comes from outside, and the tests of this crate build each one"
)]
fn built(agent: AgentBuilder) -> AgentDefinition {
    agent
        .build()
        .expect("the skills of this crate can be published")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_agent_of_this_crate_can_be_published() {
        let skills = |agent: AgentDefinition| agent.manifest().skills.len();
        assert!(skills(agent()) > 1);
        assert_eq!(skills(conformance::agent(Duration::from_secs(2))), 1);
    }
}
