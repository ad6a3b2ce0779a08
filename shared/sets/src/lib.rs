//! Sets of skills for an agent: [`memory`], [`knowledge`] and [`governance`].
//!
//! The skills use only the public API of `a2a-lambda`, as any skill author would.

mod access;
pub mod governance;
pub mod knowledge;
mod layer;
pub mod memory;
#[cfg(test)]
mod operations;
pub mod session;
mod tags;
mod words;

pub use knowledge::store::export_knowledge;
pub use session::A2aAdapter;

/// An agent with all sets.
#[cfg(test)]
fn agent() -> Result<a2a_lambda::skill::AgentDefinition, a2a_lambda::skill::BuildError> {
    a2a_lambda::skill::Agent::builder("sets")
        .skills(memory::set().session_context(A2aAdapter))
        .skills(knowledge::set().session_context(A2aAdapter))
        .skills(governance::set().session_context(A2aAdapter))
        .skills(session::set())
        .build()
}
