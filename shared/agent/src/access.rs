//! Who may do what: one table, and everything that it does not allow is denied.
//!
//! Everything is of the caller's tenant by construction: a [`Permit`] names a layer and a
//! scope in it, and the documents of a skill are those of the caller's tenant. Roles and
//! memberships are scopes of the credentials: `role:<role>`, `project:<id>`, `team:<id>`,
//! `org:<id>`.

#[cfg(test)]
mod tests;

use crate::knowledge::path::ItemPlace;
use crate::layer::Layer;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::{AgentResult, Collection, TaskContext};

/// The most bytes of the id of a project, a team or an organisation.
const SCOPE_MAX: usize = 64;

/// A role. Each may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A caller without a role.
    Member,
    /// Writes in projects and teams.
    Developer,
    /// Decides in projects and teams.
    TechLead,
    /// Decides in organisations.
    Architect,
    /// Decides for the tenant.
    Admin,
}

impl Role {
    /// The highest role of a caller.
    pub(crate) fn of(caller: &Caller) -> Self {
        let named = caller
            .scopes
            .iter()
            .filter_map(|scope| match scope.as_str() {
                "role:developer" => Some(Self::Developer),
                "role:tech-lead" => Some(Self::TechLead),
                "role:architect" => Some(Self::Architect),
                "role:admin" => Some(Self::Admin),
                _ => None,
            });
        named.max().unwrap_or(Self::Member)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Developer => "developer",
            Self::TechLead => "tech-lead",
            Self::Architect => "architect",
            Self::Admin => "admin",
        }
    }
}

/// What a caller wants to do in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Add a memory.
    AddMemory,
    /// Search memories.
    SearchMemories,
    /// Delete a memory.
    DeleteMemory,
    /// Find and show knowledge.
    ReadKnowledge,
    /// Store a version of an item.
    StoreKnowledge,
    /// Store a version of a policy.
    StorePolicy,
    /// Change the status of an item.
    DecideKnowledge,
    /// Check something against the policies.
    Check,
}

/// The least role that may do it; `None` if no role may.
const fn least(verb: Verb, layer: Layer) -> Option<Role> {
    // The columns of the table: own layers, project and team, organisation, company.
    let [own, project, org, company] = match verb {
        Verb::SearchMemories => [Some(Role::Member); 4],
        Verb::AddMemory => [
            Some(Role::Member),
            Some(Role::Developer),
            Some(Role::TechLead),
            Some(Role::Admin),
        ],
        Verb::DeleteMemory => [
            Some(Role::Member),
            Some(Role::TechLead),
            Some(Role::Architect),
            Some(Role::Admin),
        ],
        Verb::ReadKnowledge | Verb::Check => [
            None,
            Some(Role::Member),
            Some(Role::Member),
            Some(Role::Member),
        ],
        Verb::StoreKnowledge => [
            None,
            Some(Role::Developer),
            Some(Role::TechLead),
            Some(Role::Architect),
        ],
        Verb::StorePolicy | Verb::DecideKnowledge => [
            None,
            Some(Role::TechLead),
            Some(Role::Architect),
            Some(Role::Architect),
        ],
    };
    match layer {
        Layer::Agent | Layer::User | Layer::Session => own,
        Layer::Project | Layer::Team => project,
        Layer::Org => org,
        Layer::Company => company,
    }
}

/// The right to do something in one scope. Only this module makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permit {
    layer: Layer,
    scope: String,
}

/// Why something is denied. The texts are for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    /// The scope is not one of the caller's. It may exist.
    #[error("the {} is not one of yours", .0.name())]
    Foreign(Layer),
    /// The caller has none or several of the layer, and named none.
    #[error("name the {} with `scopeId`", .0.name())]
    Unnamed(Layer),
    /// The caller's role may not do it.
    #[error("this needs the role `{}`", .0.name())]
    Role(Role),
    /// No role may do it.
    #[error("nothing can be done there")]
    NoRole,
}

impl Permit {
    /// Its layer.
    pub(crate) const fn layer(&self) -> Layer {
        self.layer
    }

    /// The id of its scope: the subject, the context, the project, the tenant.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// Whether an item of knowledge is in the scope.
    pub(crate) fn covers(&self, place: &ItemPlace) -> bool {
        let same = |scope| scope == self.scope;
        place.layer() == self.layer.name() && place.scope_id().is_none_or(same)
    }

    /// The documents `kind` of the scope.
    ///
    /// # Errors
    /// Never for a permit of this module.
    pub(crate) fn documents<'a>(
        &self,
        cx: &'a TaskContext<'_>,
        kind: &str,
    ) -> AgentResult<Collection<'a>> {
        let layer = self.layer.name();
        match self.layer {
            Layer::Agent | Layer::User => cx.own_documents(&format!("{kind}/{layer}")),
            Layer::Session => cx.own_documents(&format!("{kind}/{layer}/{}", self.scope)),
            Layer::Project | Layer::Team | Layer::Org => {
                cx.documents(&format!("{kind}/{layer}/{}", self.scope))
            }
            Layer::Company => cx.documents(&format!("{kind}/{layer}")),
        }
    }
}

/// Whether the caller of `cx` may do it, in the scope with this id, or in the caller's only
/// one.
///
/// # Errors
/// [`Denial`].
pub(crate) fn permit(
    cx: &TaskContext<'_>,
    verb: Verb,
    layer: Layer,
    scope: Option<&str>,
) -> Result<Permit, Denial> {
    decide(cx.caller(), cx.context_id().as_str(), verb, layer, scope)
}

/// The permits of a caller in all of its scopes of a layer.
pub(crate) fn permits(cx: &TaskContext<'_>, verb: Verb, layer: Layer) -> Vec<Permit> {
    let scopes = scopes(cx.caller(), cx.context_id().as_str(), layer);
    let permits = scopes
        .iter()
        .map(|scope| permit(cx, verb, layer, Some(scope)));
    permits.filter_map(Result::ok).collect()
}

fn decide(
    caller: &Caller,
    context: &str,
    verb: Verb,
    layer: Layer,
    scope: Option<&str>,
) -> Result<Permit, Denial> {
    let own = scopes(caller, context, layer);
    let scope = match (scope, own.as_slice()) {
        (Some(scope), own) if own.iter().any(|it| it == scope) => scope,
        (Some(_), _) => return Err(Denial::Foreign(layer)),
        (None, [only]) => only.as_str(),
        (None, _) => return Err(Denial::Unnamed(layer)),
    };
    match least(verb, layer) {
        Some(least) if Role::of(caller) >= least => Ok(Permit {
            layer,
            scope: scope.to_owned(),
        }),
        Some(least) => Err(Denial::Role(least)),
        None => Err(Denial::NoRole),
    }
}

/// The ids of the caller's scopes of a layer.
fn scopes(caller: &Caller, context: &str, layer: Layer) -> Vec<String> {
    match layer {
        Layer::Agent | Layer::User => vec![caller.owner.subject.as_str().to_owned()],
        Layer::Session => vec![context.to_owned()],
        Layer::Company => vec![caller.owner.tenant.as_str().to_owned()],
        Layer::Project | Layer::Team | Layer::Org => {
            let of_layer = |scope: &String| {
                let (kind, id) = scope.split_once(':')?;
                (kind == layer.name() && is_id(id)).then(|| id.to_owned())
            };
            caller.scopes.iter().filter_map(of_layer).collect()
        }
    }
}

fn is_id(id: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=SCOPE_MAX).contains(&id.len()) && id.bytes().all(letter)
}
