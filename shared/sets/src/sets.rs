//! The sets, with what each keeps, finds for a conversation and exports. The modules of the sets show
//! them as `set`.

use crate::governance::in_force::PolicyCache;
use crate::governance::skills as governance;
use crate::knowledge::skills as knowledge;
use crate::knowledge::store::export_knowledge;
use crate::memory::skills as memory;
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
pub fn memory() -> SkillSet {
    SkillSet::new("memory")
        .skill(memory::MemoryAdd)
        .skill(memory::memory_search)
        .skill(memory::memory_list)
        .skill(memory::memory_delete)
        .keeps("memory")
        .session_context(A2aAdapter)
}

/// The set `knowledge`, whose items are git objects of the tenant. `cargo run -- knowledge export
/// --tenant T DIR` writes them as a bare repository.
#[must_use]
pub fn knowledge() -> SkillSet {
    SkillSet::new("knowledge")
        .skill(knowledge::knowledge_query)
        .skill(knowledge::knowledge_show)
        .skill(governance::knowledge_check)
        .skill(knowledge::knowledge_store)
        .skill(knowledge::knowledge_status)
        .keeps("knowledge")
        .session_context(A2aAdapter)
        .export(
            "Writes the knowledge of a tenant as a bare git repository.",
            |documents, folder| Box::pin(export_knowledge(documents, folder)),
        )
}

/// The set `governance`. Policies are items of the set [`knowledge`](crate::knowledge), which the
/// agent needs too.
#[must_use]
pub fn governance() -> SkillSet {
    SkillSet::new("governance")
        .state_value(PolicyCache::default())
        .skill(governance::governance_validate)
        .skill(governance::governance_drift_check)
        .keeps("policies")
        .session_context(A2aAdapter)
}
