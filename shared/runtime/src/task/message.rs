//! One turn of talk between a client and the agent.

use super::{ContextId, Metadata, Part, TaskId};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The client.
    User,
    /// The agent.
    Agent,
}

/// A message: at least one part, said by one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The speaker's id for it; the server makes one where a generation has
    /// none (0.1).
    pub id: String,
    /// Who speaks.
    pub role: Role,
    /// What is said; never empty.
    pub parts: Vec<Part>,
    /// The context it belongs to.
    pub context_id: Option<ContextId>,
    /// The task it belongs to.
    pub task_id: Option<TaskId>,
    /// Earlier tasks the speaker refers to: hints, authorised when resolved.
    pub reference_task_ids: Vec<String>,
    /// URIs of extensions used.
    pub extensions: Vec<String>,
    /// Free members.
    pub metadata: Metadata,
}

impl Message {
    /// A message of the agent.
    #[must_use]
    pub fn from_agent(id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self::new(id, Role::Agent, parts)
    }

    /// A message of the client.
    #[must_use]
    pub fn from_user(id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self::new(id, Role::User, parts)
    }

    fn new(id: impl Into<String>, role: Role, parts: Vec<Part>) -> Self {
        Self {
            id: id.into(),
            role,
            parts,
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }
}
