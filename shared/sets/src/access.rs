//! Who may act: one table of roles, verbs and layers that refuses what it does not name.
//!
//! A store takes a [`Scope`] instead of a tenant and a scope id, and only this module makes
//! scopes. So a store cannot reach a scope without a check.
//!
//! Everything comes from the [`Caller`], which the authorizer made:
//!
//! | Scope | Means |
//! |---|---|
//! | `role:viewer`, `role:developer`, `role:tech-lead`, `role:architect`, `role:admin` | the role; the highest counts. Without one the caller is a [`CallerRole::Member`] |
//! | `project:<id>`, `team:<id>`, `org:<id>` | a membership; ids are 1 to 128 of `A-Za-z0-9._-`, without a dot at an edge |
//!
//! Any other scope means nothing here, and a malformed one gives nothing.

#[cfg(test)]
mod tests;

use crate::content::is_id;
use crate::layer::Layer;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::{AgentError, AgentResult, Collection, OnRequestResult, TaskContext};
use a2a_lambda::task::ContextId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What a caller may do in its tenant. A larger role has the rights of each smaller one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallerRole {
    /// Has its own memory and reads knowledge. Every caller is at least this.
    Member,
    /// Also reads shared memory and evaluates policies.
    Viewer,
    /// Also writes memory, drafts and proposals of its projects and teams.
    Developer,
    /// Also writes everywhere, decides about proposals, and writes policies of its projects
    /// and teams.
    TechLead,
    /// Also writes policies of its orgs and of the company.
    Architect,
    /// The same as the architect.
    Admin,
}

/// What a caller wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verb {
    /// Adds a memory.
    MemoryAdd,
    /// Searches memories.
    MemorySearch,
    /// Deletes a memory.
    MemoryDelete,
    /// Lists items of knowledge.
    KnowledgeQuery,
    /// Reads an item.
    KnowledgeShow,
    /// Checks a content against the policies, without a write.
    KnowledgeCheck,
    /// Writes a draft or a proposal of an item that is no policy.
    KnowledgeStore,
    /// Changes an item that is no policy to or from a status beyond `proposed`.
    KnowledgeStatus,
    /// Evaluates the policies for a context.
    GovernanceValidate,
    /// Reports the drift of a project.
    #[serde(rename = "governance_drift_check")]
    GovernanceDrift,
    /// Writes a policy or changes its status.
    #[serde(rename = "a change of a policy")]
    GovernancePolicyStore,
    /// Collects memories and constraints for a new context.
    SessionContext,
}

impl Verb {
    /// The operation of a write: whether the item is a policy, and whether it has a status
    /// beyond `proposed`, before or after the write. So who may only write drafts replaces no
    /// accepted item.
    pub(crate) const fn of_write(is_policy: bool, is_decided: bool) -> Self {
        match (is_policy, is_decided) {
            (true, _) => Self::GovernancePolicyStore,
            (false, true) => Self::KnowledgeStatus,
            (false, false) => Self::KnowledgeStore,
        }
    }
}

// Public reasons name operations so, and scopes roles.
display_serialized!(Verb, CallerRole);

/// The least role that may do `verb` in `layer`. `None` means that no role may.
///
/// This is the whole table. A new verb or layer does not compile without its row.
#[deny(clippy::wildcard_enum_match_arm)]
const fn least_role(verb: Verb, layer: Layer) -> Option<CallerRole> {
    use CallerRole::{Architect, Developer, Member, TechLead, Viewer};
    use Layer::{Agent, Company, Org, Project, Session, Team, User};
    match verb {
        Verb::MemoryAdd | Verb::MemoryDelete => match layer {
            Agent | User | Session => Some(Member),
            Project | Team => Some(Developer),
            Org | Company => Some(TechLead),
        },
        Verb::MemorySearch => match layer {
            Agent | User | Session => Some(Member),
            Project | Team | Org | Company => Some(Viewer),
        },
        Verb::KnowledgeQuery | Verb::KnowledgeShow | Verb::KnowledgeCheck => match layer {
            Agent | User | Session => None,
            Project | Team | Org | Company => Some(Member),
        },
        Verb::KnowledgeStore => match layer {
            Agent | User | Session => None,
            Project | Team => Some(Developer),
            Org | Company => Some(TechLead),
        },
        Verb::KnowledgeStatus => match layer {
            Agent | User | Session => None,
            Project | Team | Org | Company => Some(TechLead),
        },
        Verb::GovernanceValidate | Verb::GovernanceDrift => match layer {
            Agent | User | Session => None,
            Project | Team | Org | Company => Some(Viewer),
        },
        Verb::GovernancePolicyStore => match layer {
            Agent | User | Session => None,
            Project | Team => Some(TechLead),
            Org | Company => Some(Architect),
        },
        Verb::SessionContext => match layer {
            Session => Some(Member),
            Agent | User | Project | Team | Org | Company => None,
        },
    }
}

/// A scope in which its caller may do what was checked. Its caller belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    layer: Layer,
    id: String,
}

impl Scope {
    /// The layer.
    pub(crate) const fn layer(&self) -> Layer {
        self.layer
    }

    /// The `scopeId` that the caller sees: its subject in the layers agent and user, the
    /// context id in the layer session, the tenant in the layer company, otherwise the id of
    /// the project, team or org.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The id of the project, team or org. `None` in the other layers.
    pub(crate) fn membership(&self) -> Option<&str> {
        match self.layer {
            Layer::Project | Layer::Team | Layer::Org => Some(&self.id),
            Layer::Agent | Layer::User | Layer::Session | Layer::Company => None,
        }
    }

    /// The documents `kind` of the scope. They are of the tenant of `cx`, or of its subject.
    pub(crate) fn documents<'a>(
        &self,
        cx: &'a TaskContext<'_>,
        kind: &str,
    ) -> AgentResult<Collection<'a>> {
        let (layer, id) = (self.layer, &self.id);
        match layer {
            Layer::Agent | Layer::User => cx.own_documents(&format!("{kind}/{layer}")),
            // Two subjects can use the same client-made context id.
            Layer::Session => cx.own_documents(&format!("{kind}/{layer}/{id}")),
            Layer::Project | Layer::Team | Layer::Org => {
                cx.documents(&format!("{kind}/{layer}/{id}"))
            }
            Layer::Company => cx.documents(&format!("{kind}/{layer}")),
        }
    }
}

/// For whom something in the scope is, in words.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layer {
            Layer::Agent => f.write_str("your agent"),
            Layer::User => f.write_str("you"),
            Layer::Session => f.write_str("this conversation"),
            Layer::Project | Layer::Team | Layer::Org => write!(f, "{} {}", self.layer, self.id),
            Layer::Company => f.write_str("the company"),
        }
    }
}

/// Why a caller may not act. The text is public.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    /// The scope is of another tenant, or the caller does not belong to it. It is the same
    /// for a scope that does not exist. Reads answer it as if nothing were there.
    #[error("the caller does not belong to this scope")]
    Foreign,
    /// The caller's role is too small, or no role may do this in the layer.
    #[error("{0}")]
    Role(String),
    /// The request has no scope id, and the caller belongs to several scopes of the layer.
    #[error("`scopeId` is missing, and the caller has more than one scope of the layer `{0}`")]
    NoScopeId(Layer),
}

impl Denial {
    /// The end of a turn that may not act.
    ///
    /// # Errors
    /// `MISSING_IDENTIFIER` for the one denial that the caller can repair with another input.
    pub(crate) fn rejection<T, S, M>(self) -> AgentResult<OnRequestResult<T, S, M>> {
        match self {
            Self::NoScopeId(_) => Err(AgentError::domain("MISSING_IDENTIFIER", self.to_string())),
            Self::Foreign | Self::Role(_) => OnRequestResult::reject(self.to_string()),
        }
    }
}

/// Why an operation did nothing.
pub(crate) enum OperationError {
    /// The caller may not do it.
    Denied(Denial),
    /// Something is wrong with the request, or the store failed.
    Failed(AgentError),
}

impl OperationError {
    /// The end of the turn.
    ///
    /// # Errors
    /// The failure, and what [`Denial::rejection`] says.
    pub(crate) fn rejection<T, S, M>(self) -> AgentResult<OnRequestResult<T, S, M>> {
        match self {
            Self::Denied(denial) => denial.rejection(),
            Self::Failed(error) => Err(error),
        }
    }
}

/// The value of a result. A [`Denial`] or an [`OperationError`] ends the turn.
macro_rules! or_reject {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(refusal) => return refusal.rejection(),
        }
    };
}
pub(crate) use or_reject;

impl From<AgentError> for OperationError {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

impl From<Denial> for OperationError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// What one caller may do in one context.
#[derive(Debug)]
pub(crate) struct Access<'a> {
    caller: &'a Caller,
    context: &'a ContextId,
}

impl<'a> Access<'a> {
    /// The access of the caller of a turn.
    pub(crate) fn in_turn(cx: &'a TaskContext<'_>) -> Self {
        Self {
            caller: cx.caller(),
            context: cx.context_id(),
        }
    }

    /// The one decision: the scope in the caller's tenant, if the caller may do `verb` there.
    /// Without `scope_id` it is the caller's only scope of the layer.
    pub(crate) fn scope(
        &self,
        verb: Verb,
        layer: Layer,
        scope_id: Option<&str>,
    ) -> Result<Scope, Denial> {
        let Some(least) = least_role(verb, layer) else {
            let text = format!("{verb} does not exist in the layer `{layer}`");
            return Err(Denial::Role(text));
        };
        if role_of(self.caller) < least {
            return Err(Denial::Role(format!(
                "{verb} in the layer `{layer}` needs the role `{least}`, or a higher one"
            )));
        }
        let ids = self.scope_ids(layer);
        let id = match scope_id {
            Some(id) => ids.get(id).ok_or(Denial::Foreign)?,
            None if ids.len() > 1 => return Err(Denial::NoScopeId(layer)),
            None => ids.first().ok_or(Denial::Foreign)?,
        };
        let id = id.clone();
        Ok(Scope { layer, id })
    }

    /// Every scope of the layers where the caller may do `verb`. The layers keep their order;
    /// the scopes of one layer are sorted. The list can be empty.
    pub(crate) fn scopes(&self, verb: Verb, layers: impl IntoIterator<Item = Layer>) -> Vec<Scope> {
        let mut scopes = Vec::new();
        for layer in layers {
            let ids = self.scope_ids(layer).into_iter();
            scopes.extend(ids.filter_map(|id| self.scope(verb, layer, Some(&id)).ok()));
        }
        scopes
    }

    /// The ids of the scopes of a layer that the caller belongs to.
    fn scope_ids(&self, layer: Layer) -> BTreeSet<String> {
        let owner = &self.caller.owner;
        let only = |id: &str| BTreeSet::from([id.to_owned()]);
        match layer {
            Layer::Agent | Layer::User => only(owner.subject.as_str()),
            Layer::Session => only(self.context.as_str()),
            Layer::Project | Layer::Team | Layer::Org => memberships(self.caller, layer),
            Layer::Company => only(owner.tenant.as_str()),
        }
    }
}

/// The projects, teams or orgs in the scopes of the caller.
fn memberships(caller: &Caller, layer: Layer) -> BTreeSet<String> {
    let prefix = format!("{layer}:");
    let scopes = caller.scopes.iter();
    let ids = scopes.filter_map(|scope| scope.strip_prefix(&prefix));
    ids.filter(|id| is_scope_id(id))
        .map(str::to_owned)
        .collect()
}

/// Whether a text can be the id of a project, team or org. Ids become folders and keys.
fn is_scope_id(id: &str) -> bool {
    is_id(id) && !id.starts_with('.') && !id.ends_with('.')
}

/// The highest role in the scopes of the caller.
fn role_of(caller: &Caller) -> CallerRole {
    let names = caller.scopes.iter();
    let names = names.filter_map(|scope| scope.strip_prefix("role:"));
    let roles = names.filter_map(|name| serde_json::from_value(name.into()).ok());
    roles.max().unwrap_or(CallerRole::Member)
}
