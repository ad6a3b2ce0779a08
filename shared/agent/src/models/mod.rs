//! The agent whose skills ask a language model: one function, three functions with progress in
//! between, functions and workers together, and a conversation with tools.
//!
//! It needs a model: `A2A_MODEL_PROVIDER`, `A2A_MODEL_ID` and, for a server of one's own,
//! `A2A_MODEL_ENDPOINT_URL`.

mod chat;
mod generate_report;
mod process_order;
mod summarize_resume;
#[cfg(test)]
mod tests;

use a2a_lambda::skill::{Agent, AgentDefinition, BuildError};

/// Builds the agent.
///
/// # Errors
/// [`BuildError`] when a skill cannot be published. A test checks that all can.
pub fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("models")
        .name("Agent with a model")
        .description("Shows what skills can do with a language model.")
        .version(env!("CARGO_PKG_VERSION"))
        .instructions("You work for a small company. Use only facts that the input has.")
        .dispatcher_prompt("A letter of a customer is an order.")
        .skill(summarize_resume::SummarizeResume)
        .skill(generate_report::GenerateReport)
        .skill(process_order::process_order)
        .skill(chat::chat)
        .build()
}
