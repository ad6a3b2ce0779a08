//! Who calls: one [`Caller`] from whatever the edge knows about a request.
//!
//! Nothing here reads a tenant from a body or a path.

use crate::task::Owner;
use std::collections::BTreeSet;

/// The authenticated caller of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Tenant and subject.
    pub owner: Owner,
    /// The rate tier.
    pub tier: String,
    /// Granted scopes.
    pub scopes: BTreeSet<String>,
}
