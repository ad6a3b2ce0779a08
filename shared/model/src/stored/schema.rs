//! The version of the stored forms, and what reading another one is.

use crate::redact::without_values;
use crate::store::StoreError;

/// The version of the stored forms. `docs/decisions/0004` says when it changes.
pub const SCHEMA: u32 = 1;

pub(super) fn corrupt(error: impl std::fmt::Display) -> StoreError {
    // The text may quote the stored value.
    StoreError::Corrupt(without_values(&error.to_string()))
}

pub(super) fn known(schema: impl Into<Option<u32>>) -> Result<(), StoreError> {
    match schema.into() {
        Some(SCHEMA) => Ok(()),
        Some(other) => Err(corrupt(format_args!("unknown schema {other}"))),
        None => Err(corrupt("no `schema`")),
    }
}
