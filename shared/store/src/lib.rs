//! What the runtime stores, written once over a narrow table.
//!
//! - [`table`]: the interface of a table: get, query and write
//! - `check`: what no table may be asked for
//! - [`keys`]: makes every key
//! - [`memory`]: a table and bytes in memory, and records over them
//! - [`item`]: reads the attributes of items
//! - [`records`]: tasks, threads and push configs
//! - [`api_keys`], [`brake`], [`counters`], [`documents`], [`limits`]: what else is stored
//! - `contract`: the cases that pass on every table
//!
//! A table knows nothing of what it stores. What is stored knows nothing of DynamoDB, except
//! its prices: one statement is one request, several are a transaction at twice the units.

pub mod api_keys;
pub mod brake;
mod check;
#[cfg(any(test, feature = "contract-tests"))]
pub mod contract;
pub mod counters;
pub mod documents;
pub mod item;
pub mod keys;
pub mod limits;
pub mod memory;
pub mod records;
pub mod table;
