//! Memories: what the agent remembers for a caller, a conversation, a project, a tenant.
//!
//! - `skills`: the operations
//! - `store`: memories as documents
//! - `ranking`: how well texts match a query
//! - `search`: finding memories by their words

mod ranking;
pub(crate) mod search;
pub(crate) mod skills;
mod store;

use crate::session::A2aAdapter;
use a2a_lambda::skill::SkillSet;

/// The set `memory`, with the skills `memory_add`, `memory_search`, `memory_list` and
/// `memory_delete`.
///
/// ```
/// use a2a_lambda::prelude::*;
/// use a2a_lambda_sets::memory;
///
/// /// Says back what you said.
/// #[skill(id = "echo", tags = ["test"])]
/// async fn echo(text: String) -> AgentResult<String> {
///     Ok(text)
/// }
///
/// let agent = Agent::builder("parrot")
///     .description("Repeats and remembers.")
///     .skill(echo)
///     .skills(memory::set())
///     .build()?;
/// assert!(agent.manifest().skills.iter().any(|skill| skill.metadata.id == "memory_add"));
/// # Ok::<(), BuildError>(())
/// ```
#[must_use]
pub fn set() -> SkillSet {
    skills::set().keeps("memory").session_context(A2aAdapter)
}

#[cfg(test)]
mod tests;
