//! The stores of a2a-lambda on AWS.
//!
//! - [`clients`]: clients of the AWS services, with their timeouts and retries
//! - [`dynamodb`]: tasks, threads, webhooks and idempotency keys in one table
//! - `outcome`: what the errors of the services have in common
//! - `secretsmanager`: reads secrets
//! - [`s3`]: the bytes of files
//! - [`sqs`]: the queues of turns and of webhook deliveries
//!
//! No other library crate names the AWS SDKs.

pub mod clients;
pub mod dynamodb;
mod outcome;
pub mod s3;
#[cfg(feature = "secrets")]
pub mod secretsmanager;
pub mod sqs;
