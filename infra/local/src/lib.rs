//! The whole agent on one machine.
//!
//! DynamoDB and S3 are served in process on loopback and reached through the
//! ordinary AWS SDKs, so the code that runs here is the code that runs on AWS.
//! [`server`] routes each request to the same edge as API Gateway would.

mod accept;
pub mod cli;
pub mod config;
mod dynamodb;
pub mod embedded;
pub mod erase;
mod files;
pub mod folder;
mod host;
mod keys;
mod objects;
pub mod pumps;
pub mod queue;
pub mod server;
pub mod sign;
mod sigv4;
mod stream;
