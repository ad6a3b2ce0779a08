//! Builds the agent's cards: three documents from one description.
//!
//! Clients of 0.3 and 1.0 fetch the same path, and their requests look alike.
//! So both can read the default document ([`CardShape::Union`]). A pure 1.0
//! card ([`CardShape::V1`]) serves strict readers. The paths of 0.1 and 0.2
//! have a separate document.

mod build;
mod extension;
mod jcs;
mod signature;

pub(crate) use self::extension::WEBHOOK_SIGNATURES;
pub use self::extension::{Extension, OFFERED as EXTENSIONS};
pub use self::signature::{CardSignature, SignatureError, Unsigned};

use build::Readers;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The bytes from which on a public card names its schemas and does not contain them: clients
/// log a card, and put it into prompts.
const MAX_CARD: usize = 10 * 1024;

/// The content of a card, independent of a generation's format.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CardInfo {
    /// The agent's name.
    pub name: String,
    /// What the agent does, for people.
    pub description: String,
    /// The version of the agent, not of the protocol.
    pub version: String,
    /// The public base URL of every binding. It is configured and never taken
    /// from a request.
    pub base_url: String,
    /// Media types that a skill reads unless it names its own.
    pub default_input_modes: Vec<String>,
    /// Media types that a skill writes unless it names its own.
    pub default_output_modes: Vec<String>,
    /// The optional features of the agent.
    pub capabilities: Capabilities,
    /// The skills, in the order in which the card lists them.
    pub skills: Vec<SkillInfo>,
    /// Ways to authenticate, of which a caller needs one.
    pub security: Vec<SecurityScheme>,
}

/// The optional features of an agent (A2A 1.0 §4.4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// It streams events.
    pub streaming: bool,
    /// It sends push notifications.
    pub push_notifications: bool,
    /// It has an extended card for authenticated callers.
    pub extended_agent_card: bool,
}

/// A skill as a card shows it (A2A 1.0 §4.4.5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SkillInfo {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Requests it understands.
    pub examples: Vec<String>,
    /// Media types it reads; empty = the defaults.
    pub input_modes: Vec<String>,
    /// Media types it writes; empty = the defaults.
    pub output_modes: Vec<String>,
    /// The JSON schema of the data parts it reads.
    pub input_schema: Option<Value>,
    /// The JSON schema of the data parts it writes.
    pub output_schema: Option<Value>,
}

/// A way to authenticate (A2A 1.0 §4.5.1; A2A 0.3 §5.5.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A bearer token.
    Bearer,
    /// `OpenID` Connect.
    OpenIdConnect {
        /// The URL of the discovery document.
        url: String,
    },
}

/// The readers of the document at `/.well-known/agent-card.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CardShape {
    /// Readers of 0.3 and of 1.0.
    #[default]
    Union,
    /// Readers of 1.0 only.
    V1,
}

/// A card as bytes; equal input gives equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardDocument {
    /// The card.
    pub value: Value,
    /// JSON with sorted members.
    pub body: Vec<u8>,
    /// A strong `ETag`, quotes included.
    pub etag: String,
}

impl CardDocument {
    fn of(value: Value) -> Self {
        let body = value.to_string().into_bytes();
        // A2A 1.0 §8.6.1: the `ETag` is a hash of the card's content.
        let etag = format!("\"{}\"", hex::encode(Sha256::digest(&body)));
        Self { value, body, etag }
    }

    /// The card as everybody reads it, and the document at `/a2a-lambda/schemas`. A large card
    /// has the URL and the hash of that document instead of its content. A signature covers both.
    #[must_use]
    pub fn with_schemas_apart(self, base_url: &str) -> (Self, Self) {
        let mut value = self.value.clone();
        // The first extension is that of the schemas, if there are any; no other has parameters.
        let Some(params) = value.pointer_mut("/capabilities/extensions/0/params") else {
            return (self, Self::of(json!({"skills": {}})));
        };
        let schemas = Self::of(params.clone());
        if self.body.len() < MAX_CARD {
            return (self, schemas);
        }
        let url = format!("{base_url}/a2a-lambda/schemas");
        let sha256 = schemas.etag.replace('"', "");
        *params = json!({"url": url, "sha256": sha256});
        (Self::of(value), schemas)
    }

    /// The card with those of `signatures` that are over one of its forms
    /// (A2A 1.0 §8.4).
    #[must_use]
    pub fn with_signatures(&self, signatures: &[CardSignature]) -> Self {
        let values: Vec<Value> = signatures
            .iter()
            .filter(|signature| signature.is_of(&self.value))
            .map(CardSignature::to_json)
            .collect();
        let mut value = self.value.clone();
        if let (Value::Object(members), false) = (&mut value, values.is_empty()) {
            members.insert("signatures".to_owned(), values.into());
        }
        Self::of(value)
    }
}

/// The reason why a card must not be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// A member that A2A requires is empty.
    #[error("the card's `{member}` must not be empty")]
    Empty {
        /// Path of the member.
        member: String,
    },
}

impl CardInfo {
    /// The document at `/.well-known/agent-card.json` (A2A 1.0 §8.2;
    /// A2A 0.3 §5.3).
    ///
    /// # Errors
    /// [`CardError`] when something required is missing.
    pub fn agent_card(&self, shape: CardShape) -> Result<CardDocument, CardError> {
        self.check()?;
        Ok(CardDocument::of(match shape {
            CardShape::Union => build::card(self, Readers::Union),
            CardShape::V1 => build::card(self, Readers::V1),
        }))
    }

    /// The document at `/.well-known/agent.json`, as 0.1 and 0.2 read it.
    ///
    /// # Errors
    /// [`CardError`] when something required is missing.
    pub fn legacy_agent_json(&self) -> Result<CardDocument, CardError> {
        self.check()?;
        Ok(CardDocument::of(build::card(self, Readers::Legacy)))
    }

    /// Checks that no member that A2A 1.0 marks REQUIRED is empty.
    ///
    /// # Errors
    /// [`CardError`] with the first fault.
    pub fn check(&self) -> Result<(), CardError> {
        // A2A 1.0 §5.7: a required member is set, and a required array has an element.
        require_text("name", &self.name)?;
        require_text("description", &self.description)?;
        require_text("version", &self.version)?;
        require_text("url", &self.base_url)?;
        require_list("defaultInputModes", &self.default_input_modes)?;
        require_list("defaultOutputModes", &self.default_output_modes)?;
        require_list("skills", &self.skills)?;
        for (index, skill) in self.skills.iter().enumerate() {
            let member = |name: &str| format!("skills[{index}].{name}");
            require_text(&member("id"), &skill.id)?;
            require_text(&member("name"), &skill.name)?;
            require_text(&member("description"), &skill.description)?;
            require_list(&member("tags"), &skill.tags)?;
        }
        Ok(())
    }
}

fn require_text(member: &str, text: &str) -> Result<(), CardError> {
    require_list(member, text.trim().as_bytes())
}

fn require_list<T>(member: &str, items: &[T]) -> Result<(), CardError> {
    if items.is_empty() {
        return Err(CardError::Empty {
            member: member.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
