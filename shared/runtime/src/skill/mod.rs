//! What an author of skills writes, and what the engine runs of it.
//!
//! - `handler`: the metadata and the handlers of a skill
//! - `input`, `output`, `slot`: the types of a skill
//! - `content`, `artifact`, `file`: what is said and delivered
//! - `outcome`: what a turn ends with; only these values end a task
//! - `context`: what a handler may do meanwhile, on top of `host`
//! - `error`: the one error of a skill
//! - `registry`: the agent and what it publishes
//! - `erased`: skills of any type behind one trait, for the engine
//! - `hybrid`: replies that steer the task
//! - `route`: which skill answers a message
//! - `media`: media types
//! - `model`: a language model, as skills see it

mod artifact;
mod content;
mod context;
mod erased;
mod error;
mod file;
mod handler;
pub(crate) mod host;
mod hybrid;
mod input;
pub(crate) mod media;
pub mod model;
mod outcome;
mod output;
mod registry;
pub(crate) mod route;
mod slot;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use crate::thread::Thread;
pub use artifact::{Artifact, ReferencedTask};
pub use content::{Content, FilePart, FileSource};
pub use context::{ArtifactChunks, TaskContext};
pub use error::{AgentError, AgentResult, ErrorCode};
pub use file::{FileContent, FileReader, OpenFile};
pub use handler::{Settled, Skill, SkillHandler, SkillMetadata};
pub use hybrid::{Asked, Hybrid, HybridReply, HybridSkill};
pub use input::{SkillInput, TextOr};
pub use media::is_media_type;
pub use outcome::{AuthHint, OnInputResult, OnRequestResult};
pub use output::{IntoReply, NoOutput, SkillOutput, SkillReturn};
pub use registry::{
    Agent, AgentBuilder, AgentDefinition, AgentManifest, BuildError, SkillManifest, SkillSet,
};
pub use slot::{NoSlot, SkillSlot};

pub(crate) use context::TurnFacts;
pub(crate) use erased::{AnySkill, Call, Outcome};
