//! A key of a tenant's data is made from a checked tenant.
//! replace: `tiers(tenant)`
//! with: `tiers(tenant.as_str())`
//! error: `E0308`

use a2a_lambda::store::keys::{Key, tiers};
use a2a_lambda::task::TenantId;

/// The place of the rates of a tenant.
pub fn place(tenant: &TenantId) -> Key {
    tiers(tenant)
}
