//! Memories: what the agent remembers for a caller, a conversation, a project, a tenant.
//!
//! - [`skills`]: the operations
//! - [`store`]: memories as documents
//! - [`search`]: finding memories by their words

pub(crate) mod search;
pub(crate) mod skills;
mod store;

#[cfg(test)]
mod tests;
