//! The API of a skill author, the agent that skills make, and what the engine needs to run them.
//!
//! - `handler`, `metadata`: the metadata and the handlers of a skill
//! - `input`, `output`, `slot`: the types of a skill
//! - `content`, `artifact`, `file`: what clients and skills send each other
//! - `function`: a function that returns a skill is that skill
//! - `outcome`: the results of a handler; only these values end a task
//! - `context`: what a handler can do during a turn; [`turn_host`] is the engine's side of it
//! - `documents`: what skills keep beside their tasks
//! - `export`: what a set keeps for a tenant, written into a folder
//! - `error`: the one error type of skills
//! - `field_hash`: hashes of what a step was asked, and of what a send asks for
//! - `session`: what a conversation begins with
//! - `state`: what the skills of an agent share
//! - `registry`: the agent, its skills and its manifest
//! - `erased`: one trait for skills of every type, for the engine
//! - [`gate`]: who wrote the input of a turn, and whether the user agreed to it
//! - `hybrid`: skills that decide with the text of a reply whether to ask or to finish
//! - [`route`]: the choice of the skill for a message
//! - [`media`]: media types
//! - `tool`: skills as tools
//! - [`model`]: the interface to a language model; `model_line` is the log line of its calls, and
//!   `metered_model` counts what they use
//! - `call_names`: the names in the log lines of the running call
//! - `trace`: the rows of what turns did, for the author of an agent; `run_trace` records them
//!
//! Authors depend on the crate `a2a-lambda`, which shows what they use.

// `#[skill]` writes paths from `::a2a_lambda::skill`; the tests of this crate use it.
#[cfg(test)]
extern crate self as a2a_lambda;
#[cfg(test)]
mod skill {
    pub(crate) use crate::*;
}

mod artifact;
mod call_names;
mod collect;
mod content;
mod context;
mod documents;
mod erased;
mod error;
mod export;
mod field_hash;
mod file;
mod function;
pub mod gate;
mod handler;
mod hybrid;
mod input;
pub mod media;
mod metadata;
mod metered_model;
pub mod model;
mod model_line;
mod outcome;
mod output;
mod registry;
pub mod route;
mod run_trace;
mod session;
mod slot;
mod state;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool;
mod trace;
pub mod turn_host;

pub use a2a_lambda_model::task::InputWriter;
pub use a2a_lambda_model::thread::Thread;
pub use artifact::{Artifact, ReferencedTask};
pub use content::{Content, FilePart, FileSource};
pub use context::{ArtifactChunks, Retry, StepRequests, TaskContext};
pub use documents::{Collection, Document, DocumentVersion};
pub use error::{AgentError, AgentResult, ErrorCode};
pub use export::{SetExport, TenantDocuments};
pub use file::{FileContent, FileReader, OpenFile};
pub use handler::{FinishedTask, Skill, SkillHandler};
pub use hybrid::{Asked, Hybrid, HybridReply, HybridSkill, without_fence};
pub use input::{SkillInput, TextOr};
pub use media::is_media_type;
pub use metadata::{SkillEffect, SkillMetadata};
pub use outcome::{AuthHint, OnInputResult, OnRequestResult, Saying, SkillOutcome};
pub use output::{IntoReply, NoOutput, SkillOutput, SkillReturn};
pub use registry::{
    Agent, AgentBuildError, AgentBuilder, AgentDefinition, AgentManifest, BuildAgent, BuildError,
    SkillManifest, SkillSet,
};
pub use session::{SessionAdapter, SessionContext, begin_session};
pub use slot::{NoSlot, SkillSlot};
#[doc(hidden)]
pub use state::NeededState;
pub use state::{State, StateError};
pub use tool::Tool;

pub use call_names::CallNames;
pub use collect::Collected;
pub use context::TurnFacts;
pub use erased::AnySkill;
pub use field_hash::{FieldHasher, digest, step_hash};
pub use gate::{Consent, ConsentCall, Decoded, StartInput, TurnStart, is_invisible};
pub use metered_model::{CallTokens, MeterCalls, MeteredModel, TokenHold};
pub use model_line::{LoggedModel, MODEL};
pub use run_trace::RunTrace;
pub use trace::{RecordTrace, TraceRow};

/// Whether this build runs skills. Without the feature `turns` nothing reaches the code of a
/// skill, so the linker leaves it out.
const RUNS_TURNS: bool = cfg!(feature = "turns");

/// Stops the compiler at a function that runs skills, in a program built without them.
#[expect(
    clippy::assertions_on_constants,
    reason = "the constant is the point: it differs from build to build"
)]
pub const fn check_turns() {
    assert!(
        RUNS_TURNS,
        "this function runs skills: add the feature `turns` of a2a-lambda"
    );
}

/// The names that most files with skills need: `use a2a_lambda::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Agent, AgentDefinition, AgentError, AgentResult, Artifact, AuthHint, BuildError, Content,
        FilePart, FinishedTask, Hybrid, HybridSkill, NoOutput, NoSlot, OnInputResult,
        OnRequestResult, Saying, Skill, SkillHandler, SkillMetadata, SkillSet, SkillSlot, State,
        TaskContext, TextOr, Thread,
    };
    pub use a2a_lambda_macros::skill;
}
