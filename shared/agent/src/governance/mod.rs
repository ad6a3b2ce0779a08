//! Governance: whether content follows the policies of its layers.
//!
//! - [`policy`]: what a policy says, and its checked form
//! - [`evaluate`]: the findings of a policy in a context
//! - [`merge`]: the policies of several layers as one list
//! - [`drift`]: how far a project is from its policies
//! - [`session`]: what a conversation begins with
//! - [`skills`]: the operations

mod drift;
mod evaluate;
mod merge;
pub(crate) mod policy;
pub(crate) mod session;
pub(crate) mod skills;

#[cfg(test)]
mod tests;
