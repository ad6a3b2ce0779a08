//! Keeps a table in DynamoDB.
//!
//! - `store`: the table and its client
//! - `calls`: the calls of a table as requests; `expression`: its conditions and changes as
//!   expressions of DynamoDB; `conditional_write`: a statement in the form of the SDK
//! - `outcome`: sends writes and classifies errors
//! - `capacity`: gives the capacity of each request to a meter
//! - `erase_tenant`: removes all data of a tenant; `erase_subject`: all data of one of its
//!   subjects
//! - `health`: whether the table answers, and could be deleted
//! - `form`: notes the stored form of the table
//! - `stream_record`: reads the records of the table's stream that Lambda delivers
//! - `table`: creates the table for emulators
//!
//! What is stored is in `a2a_lambda_store`: [`records`] makes the store of tasks over a table.

mod calls;
mod capacity;
mod conditional_write;
mod erase_subject;
mod erase_tenant;
mod expression;
mod form;
mod health;
mod outcome;
mod store;
#[cfg(feature = "lambda")]
mod stream_record;
mod table;
mod user_agent;

pub use a2a_lambda_store::records::task_image;
pub use erase_tenant::{EraseError, Erasure};
pub use form::FormError;
pub use store::{DynamoTable, records};
#[cfg(feature = "lambda")]
pub use stream_record::task_image_of_event;
pub use table::create_table;
