//! The stores: the traits, a store in memory, and the stores on AWS.
//!
//! A function takes the narrowest trait it needs: [`ReadTasks`] for `tasks-get`,
//! [`WriteTasks`] for the functions that run turns. `contract` is the test suite that
//! every implementation passes.

pub mod memory;

#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "contract-tests"))]
pub use a2a_lambda_model::store::contract;
pub use a2a_lambda_model::store::*;
pub use a2a_lambda_model::stored;

#[cfg(feature = "aws")]
pub use a2a_lambda_aws::{clients as aws, dynamodb, s3, sqs};
