//! The API of a skill author, and what the engine needs to run skills.
//!
//! - `handler`: the metadata and the handlers of a skill
//! - `input`, `output`, `slot`: the types of a skill
//! - `content`, `artifact`, `file`: what clients and skills send each other
//! - `outcome`: the results of a handler; only these values end a task
//! - `context`: what a handler can do during a turn; `turn_host` is the engine's side of it
//! - `documents`: what skills keep beside their tasks
//! - `error`: the one error type of skills
//! - `field_hash`: hashes of what a step was asked, and of what a send asks for
//! - `session`: what a conversation begins with
//! - `state`: what the skills of an agent share
//! - `registry`: the agent, its skills and its manifest
//! - `build`: whether this build runs skills
//! - `erased`: one trait for skills of every type, for the engine
//! - `hybrid`: skills that decide with the text of a reply whether to ask or to finish
//! - `route`: the choice of the skill for a message
//! - `media`: media types
//! - `tool`: skills as tools
//! - `model`: the interface to a language model

mod artifact;
pub(crate) mod build;
mod content;
mod context;
pub(crate) mod documents;
mod erased;
mod error;
pub(crate) mod field_hash;
mod file;
mod handler;
mod hybrid;
mod input;
pub(crate) mod media;
mod metadata;
pub mod model;
mod outcome;
mod output;
mod registry;
pub(crate) mod route;
pub(crate) mod session;
mod slot;
pub(crate) mod state;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool;
mod turn;
pub(crate) mod turn_host;

pub use crate::thread::Thread;
pub use artifact::{Artifact, ReferencedTask};
pub use content::{Content, FilePart, FileSource};
pub use context::{ArtifactChunks, TaskContext};
pub use documents::{Collection, Document, DocumentVersion};
pub use error::{AgentError, AgentResult, ErrorCode};
pub use file::{FileContent, FileReader, OpenFile};
pub use handler::{Settled, Skill, SkillHandler};
pub use hybrid::{Asked, Hybrid, HybridReply, HybridSkill};
pub use input::{SkillInput, TextOr};
pub use media::is_media_type;
pub use metadata::SkillMetadata;
pub use outcome::{AuthHint, OnInputResult, OnRequestResult};
pub use output::{IntoReply, NoOutput, SkillOutput, SkillReturn};
pub use registry::{
    Agent, AgentBuildError, AgentBuilder, AgentDefinition, AgentManifest, BuildAgent, BuildError,
    SkillManifest, SkillSet,
};
pub use session::{SessionAdapter, SessionContext};
pub use slot::{NoSlot, SkillSlot};
#[doc(hidden)]
pub use state::NeededState;
pub use state::{State, StateError};
pub use tool::Tool;

pub(crate) use context::TurnFacts;
pub(crate) use erased::AnySkill;
pub(crate) use turn::{SkillOutcome, TurnStart};
