//! Memories: what the agent remembers for a caller, a conversation, a project, a tenant.
//!
//! - `skills`: the operations
//! - `store`: memories as documents
//! - `ranking`: how well texts match a query
//! - `search`: finding memories by their words

mod ranking;
pub(crate) mod search;
pub(crate) mod skills;
mod store;

pub(crate) use store::SEARCH_MAX;

pub use crate::sets::memory as set;

#[cfg(test)]
mod tests;
