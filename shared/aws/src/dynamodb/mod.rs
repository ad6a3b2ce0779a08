//! Keeps a table in DynamoDB.
//!
//! - `store`: the table and its client
//! - `read`, `write`: the calls of a table as requests; `expression`: its conditions and changes
//!   as expressions of DynamoDB
//! - `outcome`: classifies errors
//! - `capacity`: gives the capacity of each request to a meter
//! - `erase`: removes all data of a tenant, or of one of its subjects
//! - `form`: notes the stored form of the table
//! - `stream_record`: reads the records of the table's stream that Lambda delivers
//! - `table`: creates the table for emulators
//!
//! What is stored is in `a2a_lambda_store`: [`records`] makes the store of tasks over a table.

mod capacity;
mod erase;
mod expression;
mod form;
mod outcome;
mod read;
mod store;
#[cfg(feature = "lambda")]
mod stream_record;
mod table;
mod user_agent;
mod write;

pub use a2a_lambda_store::records::task_image;
pub use erase::{EraseError, Erasure};
pub use form::FormError;
pub use store::{DynamoTable, records};
#[cfg(feature = "lambda")]
pub use stream_record::task_image_of_event;
pub use table::create_table;
