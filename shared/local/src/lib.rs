//! Runs the whole agent on one machine: the program `a2a-local`.
//!
//! DynamoDB and S3 run in this process, on loopback ports. The agent reaches them
//! through the ordinary AWS SDKs, so the same code runs here and on AWS. `server`
//! routes each request to the function that API Gateway would choose.

mod accept;
mod agents;
mod background;
mod command_line;
mod commands;
mod config;
mod dev;
pub mod embedded;
mod folder;
mod local_settings;
mod otlp;
mod page;
mod process;
mod server;
mod template;
mod traces;

pub use agents::{Agents, LocalAgent};
pub use background::{pumps, queue};
pub use command_line::serve;
