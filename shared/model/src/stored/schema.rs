//! The version of the stored forms, and what reading another one is.

use crate::redact::without_values;
use crate::store::StoreError;

/// The version of the stored forms. `docs/decisions/0004` says when it changes.
pub const SCHEMA: u32 = 2;

pub(super) fn corrupt(error: impl std::fmt::Display) -> StoreError {
    // The text may quote the stored value.
    StoreError::Corrupt(without_values(&error.to_string()))
}

/// Checks the version of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] for another version.
pub fn known(schema: u32) -> Result<(), StoreError> {
    match schema {
        SCHEMA => Ok(()),
        other => Err(corrupt(format_args!("unknown schema {other}"))),
    }
}
