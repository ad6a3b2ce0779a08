//! Messages between a client and the agent.

use super::metadata_keys::CONFIRM;
use super::{ContextId, Metadata, Part, TaskId};
use serde::{Deserialize, Serialize};

/// The side that sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The client.
    User,
    /// The agent.
    Agent,
}

/// A message: at least one part, from one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The sender's id for it. A2A 0.1 has no message ids, so the server makes one.
    #[serde(rename = "messageId")]
    pub id: String,
    /// The sender.
    pub role: Role,
    /// The content; never empty.
    pub parts: Vec<Part>,
    /// The context it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Earlier tasks the sender refers to: hints, authorised when resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<String>,
    /// URIs of extensions used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Free-form members.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// What a message says whose skill keeps no input. The page of the local agent knows it too.
const NOT_KEPT: &str = "The agent does not keep this message.";

impl Message {
    /// The message without what its client said. One part says so.
    #[must_use]
    pub fn not_kept(&self) -> Self {
        Self {
            id: self.id.clone(),
            role: self.role,
            parts: vec![Part::text(NOT_KEPT)],
            context_id: self.context_id.clone(),
            task_id: self.task_id.clone(),
            reference_task_ids: self.reference_task_ids.clone(),
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    /// The digest of the question of consent that it asks or answers.
    #[must_use]
    pub fn consent_digest(&self) -> Option<&str> {
        let parts = self.parts.iter().map(|part| &part.metadata);
        let mut all = std::iter::once(&self.metadata).chain(parts);
        all.find_map(|metadata| metadata.get(CONFIRM)?.as_str())
    }

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
