//! Who may act, as an author can replace it.

use crate::access::{Verb, by_role, memberships};
use crate::layer::Layer;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::{AgentBuilder, State, TaskContext};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The rule of who may act, and to what a caller belongs.
///
/// Without one of its own an agent has [`ScopeRoles`], which are the defaults of both methods.
/// Whatever a rule says, no caller reaches another tenant, what belongs to another caller, or a
/// scope that is not in its [`memberships`](Roles::memberships).
///
/// ```
/// use a2a_lambda::auth::Caller;
/// use a2a_lambda::prelude::*;
/// use a2a_lambda_sets::{AgentRoles as _, Layer, Roles, Verb, memory};
///
/// /// Everybody of the tenant shares the memories of one team, and nobody deletes them.
/// struct OneTeam;
///
/// impl Roles for OneTeam {
///     fn check(&self, _: &Caller, verb: Verb, layer: Layer) -> Result<(), String> {
///         match (verb, layer) {
///             (Verb::MemoryDelete, Layer::Team) => Err("memories of the team stay".to_owned()),
///             (_, Layer::User | Layer::Session | Layer::Team) => Ok(()),
///             _ => Err("this agent has memories of users and of the team".to_owned()),
///         }
///     }
///
///     fn memberships(&self, _: &Caller, layer: Layer) -> Vec<String> {
///         (layer == Layer::Team).then(|| "all".to_owned()).into_iter().collect()
///     }
/// }
///
/// let agent = Agent::builder("team")
///     .description("Remembers for a team.")
///     .skills(memory::set())
///     .roles(OneTeam)
///     .build()?;
/// # Ok::<(), BuildError>(())
/// ```
pub trait Roles: Send + Sync + 'static {
    /// Whether the caller may do this in a layer. By default its role decides: see
    /// [`ScopeRoles`].
    ///
    /// # Errors
    /// The reason, which the caller reads.
    fn check(&self, caller: &Caller, verb: Verb, layer: Layer) -> Result<(), String> {
        by_role(caller, verb, layer)
    }

    /// The ids of the projects, teams or orgs that the caller belongs to; asked for these three
    /// layers alone. An id that is not 1 to 128 of `A-Za-z0-9._-`, or has a dot at an edge,
    /// counts as none. By default they are in the scopes of the caller.
    fn memberships(&self, caller: &Caller, layer: Layer) -> Vec<String> {
        memberships(caller, layer)
    }
}

/// The rule of an agent that names no other: roles and memberships are scopes of the caller's
/// credentials, such as `role:developer` and `project:shop`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScopeRoles;

impl Roles for ScopeRoles {}

/// Gives an agent a rule of its own.
pub trait AgentRoles {
    /// Sets the rule that decides for the sets of this crate.
    #[must_use]
    fn roles(self, roles: impl Roles) -> Self;
}

impl AgentRoles for AgentBuilder {
    fn roles(self, roles: impl Roles) -> Self {
        self.state_value(OwnRoles(Arc::new(roles)))
    }
}

/// The rule of an agent. Only [`AgentRoles`] makes it, so it is a value from the beginning.
struct OwnRoles(Arc<dyn Roles>);

/// The rule of the agent of this turn.
pub(crate) fn in_turn(cx: &TaskContext<'_>) -> Arc<dyn Roles> {
    match State::<OwnRoles>::made(cx) {
        Some(state) => Arc::clone(&state.0),
        None => Arc::new(ScopeRoles),
    }
}

/// The memberships of a caller that can be ids.
pub(crate) fn ids(roles: &dyn Roles, caller: &Caller, layer: Layer) -> BTreeSet<String> {
    let mut ids = BTreeSet::from_iter(roles.memberships(caller, layer));
    ids.retain(|id| is_scope_id(id));
    ids
}

/// Whether a text can be the id of a project, team or org. Ids become folders and keys.
pub(crate) fn is_scope_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&id.len())
        && id.bytes().all(plain)
        && !id.starts_with('.')
        && !id.ends_with('.')
}

impl fmt::Debug for dyn Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Roles")
    }
}

#[cfg(test)]
mod tests;
