//! A serverless runtime for A2A (Agent2Agent protocol) agents on AWS Lambda.
//!
//! An author writes skills (`skill`), joins them to an agent, and serves it:
//! each Lambda function's `main` is one call of `serve`. The modules in reading
//! order: `settings`, `protocol`, `task`, `thread`, `skill`, `engine`, `store`,
//! `auth`, `telemetry`, `http`, `runtime`, `serve`.

pub mod auth;
pub mod engine;
//pub mod http;
pub mod protocol;
//pub mod runtime;
#[cfg(feature = "lambda")]
pub mod serve;
pub mod settings;
pub mod skill;
pub mod store;
pub mod task;
pub mod telemetry;
pub mod thread;
