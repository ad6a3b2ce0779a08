//! The agents of this repository: [`agent`], whose skills are small examples of every
//! feature of a skill, and the agent with a language model in [`models`].
//!
//! The skills use only the public API of `a2a-lambda` and its sets, as any skill author would.

mod assist;
mod examples;
pub mod models;

use a2a_lambda::skill::{Agent, AgentDefinition, BuildError};
use a2a_lambda_sets::{governance, knowledge, memory, session};

/// Builds the reference agent.
///
/// # Errors
/// [`BuildError`] when a skill cannot be published. A test checks that all can.
pub fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("reference")
        .name("Reference agent")
        .description("Shows what an agent on a2a-lambda can do, one skill for each thing.")
        .version(env!("CARGO_PKG_VERSION"))
        .skill(examples::echo::echo)
        .skill(examples::add::add)
        .skill(examples::book_flight::BookFlight)
        .skill(examples::generate_report::GenerateReport)
        .skill(examples::logo::logo)
        .skill(examples::format_report::format_report())
        .skill(examples::create_report::CreateReport)
        .skill(examples::fingerprint::fingerprint)
        .skills(memory::set())
        .skills(knowledge::set())
        .skills(governance::set())
        .skills(session::set())
        .fallback(assist::Assist)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_of_this_crate_can_be_published() {
        for agent in [agent(), models::agent()] {
            assert!(agent.is_ok_and(|agent| agent.build_id().is_some()));
        }
    }
}
