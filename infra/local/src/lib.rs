//! The whole agent on one machine.
//!
//! DynamoDB and S3 are served in process on loopback and reached through the
//! ordinary AWS SDKs, so the code that runs here is the code that runs on AWS.
//! [`server`] routes each request to the same edge as API Gateway would.

pub mod cli;
pub mod config;
pub mod deployment;
pub mod embedded;
pub mod erase;
mod folder;
pub mod host;
pub mod pumps;
pub mod queue;
pub mod restore;
pub mod server;
pub mod sign;
mod stream;
