//! Runs the whole agent on one machine: the program `a2a-local`.
//!
//! DynamoDB and S3 run in this process, on loopback ports. The agent reaches them
//! through the ordinary AWS SDKs, so the same code runs here and on AWS. [`server`]
//! routes each request to the function that API Gateway would choose.

mod accept;
mod agents;
pub mod api_keys;
pub mod block;
pub mod check;
pub mod cli;
pub mod config;
pub mod deployment;
mod dynamodb;
pub mod embedded;
pub mod erase;
mod eval_router;
mod export;
mod files;
pub mod folder;
mod host;
mod keys;
pub mod local_settings;
mod objects;
pub mod page;
pub mod pumps;
pub mod queue;
pub mod server;
pub mod sign;
mod sigv4;
mod stream;
pub mod task;
pub mod template;

pub use agents::{Agents, LocalAgent, serve};
pub use export::{Export, ExportError};
