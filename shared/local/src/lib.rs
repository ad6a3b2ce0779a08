//! Runs the whole agent on one machine: the program `a2a-local`.
//!
//! DynamoDB and S3 run in this process, on loopback ports. The agent reaches them
//! through the ordinary AWS SDKs, so the same code runs here and on AWS. `server`
//! routes each request to the function that API Gateway would choose.

mod accept;
mod agents;
mod check;
mod cli;
mod config;
mod credentials;
mod dev;
mod dynamodb;
pub mod embedded;
mod eval;
mod files;
mod folder;
mod host;
mod local_settings;
mod objects;
mod otlp;
mod page;
mod process;
mod program;
pub mod pumps;
pub mod queue;
mod server;
mod sigv4;
mod stream;
mod template;
mod traces;

pub use agents::{Agents, LocalAgent};
pub use program::serve;
