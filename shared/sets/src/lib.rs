//! Sets of skills for an agent: [`memory`], [`knowledge`] and [`governance`].
//!
//! The skills use only the public API of `a2a-lambda`, as any skill author would.

/// Writes values as requests and responses have them.
macro_rules! display_serialized {
    ($($name:ty),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    )*};
}

mod access;
mod content;
pub mod governance;
pub mod knowledge;
mod layer;
mod lines;
pub mod memory;
#[cfg(test)]
mod operations;
mod origin;
mod pages;
pub mod session;
mod sets;
mod words;

pub use layer::Layer;
pub use memory::skills::MemorySettings;

/// An agent with all sets.
#[cfg(test)]
fn agent() -> Result<a2a_lambda::skill::AgentDefinition, a2a_lambda::skill::BuildError> {
    a2a_lambda::skill::Agent::builder("sets")
        .skills(memory::set())
        .skills(knowledge::set())
        .skills(governance::set())
        .skills(session::set())
        .build()
}
