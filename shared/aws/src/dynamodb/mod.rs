//! Keeps tasks and threads in one DynamoDB table.
//!
//! - `key`: every partition key and sort key of the table
//! - `item`: converts records to items and back
//! - `store`: the table and its client
//! - `capacity`: gives the capacity of each request to a meter
//! - `calls`: the calls of the narrow table; `expression`: its conditions and changes as
//!   expressions of DynamoDB
//! - `tasks`, `threads`: the store traits; `commit`: the writes of one commit
//! - `children`: the child items of a task that has grown
//! - `projection`: reads the child items that a projection of a task needs
//! - `large_value`: content that is too large for an item
//! - `conditional_write`: a conditional write as data; `write` runs it
//! - `outcome`: sends requests and classifies their errors
//! - `idempotency`: the idempotency keys of sends
//! - `list`: a page of tasks from the list index
//! - `contexts`: a page of contexts; `task_pointers`: the tasks of one context
//! - `open_task_index`, `expiry_index`: reads of the sweep index; `sweep`: which objects
//!   are in use
//! - `push`: push configs; `push_item` converts them to items and back
//! - `delete`: deletions; `erase_tenant`: removes all data of a tenant; `erase_subject`: all
//!   data of one of its subjects
//! - `stream_record`: reads the records of the table's stream
//! - `table`: creates the table for emulators
//!
//! Expiry is part of every condition, and the store checks it after every read. DynamoDB's
//! own TTL only cleans up. If the response to a write is lost, the store recognises the
//! write by its write id.

mod calls;
mod capacity;
mod children;
mod commit;
mod conditional_write;
mod contexts;
mod delete;
mod erase_subject;
mod erase_tenant;
mod expiry_index;
mod expression;
mod idempotency;
mod item;
mod key;
mod large_value;
mod list;
mod open_task_index;
mod outcome;
mod projection;
mod push;
mod push_item;
mod store;
mod stream_record;
mod sweep;
mod table;
mod task_pointers;
mod tasks;
mod threads;
mod user_agent;
mod write;

pub use erase_tenant::{EraseError, Erasure};
pub use store::DynamoStore;
pub use stream_record::task_image;
#[cfg(feature = "lambda")]
pub use stream_record::task_image_of_event;
pub use table::create_table;
