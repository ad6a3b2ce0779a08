//! A serverless runtime for A2A (Agent2Agent protocol) agents on AWS Lambda.

pub mod auth;
pub mod protocol;
pub mod store;
pub mod task;
