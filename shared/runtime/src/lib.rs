//! A serverless runtime for A2A (Agent2Agent protocol) agents on AWS Lambda.
//!
//! Where to begin:
//!
//! - [`prelude`]: the names that a file with skills imports
//! - [`skill`](mod@skill): agents, skills and the context that a skill's handler gets
//! - [`SkillTest`]: runs a skill in a test, without AWS and without a server
//! - [`runtime`]: joins an agent, its settings and its stores
//! - [`http`]: answers HTTP requests, in any server

// `#[skill]` writes paths from `::a2a_lambda`; the tests of this crate use it.
#[cfg(test)]
extern crate self as a2a_lambda;

pub mod auth;
pub mod engine;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
pub mod http;
pub mod outbound;
pub mod protocol;
pub mod runtime;
#[cfg(feature = "lambda")]
pub mod serve;
pub mod settings;
pub mod skill;
pub mod store;
pub mod task;
pub mod telemetry;
pub mod testing;
pub mod thread;

pub use a2a_lambda_macros::skill;
pub use testing::SkillTest;

/// The names that most files with skills need: `use a2a_lambda::prelude::*;`.
pub mod prelude {
    pub use crate::skill;
    pub use crate::skill::{
        Agent, AgentDefinition, AgentError, AgentResult, Artifact, AuthHint, BuildError, Content,
        FilePart, Hybrid, HybridSkill, NoOutput, NoSlot, OnInputResult, OnRequestResult, Settled,
        Skill, SkillHandler, SkillMetadata, SkillSet, SkillSlot, TaskContext, TextOr, Thread,
    };
}

/// The example in the README. The documentation tests compile it.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct Readme;
