//! The version of the stored forms, and what reading another one is.

use crate::redact::without_values;
use crate::store::StoreError;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// The stored form that this program writes. `docs/decisions/0004` defines when it changes.
pub const SCHEMA: u32 = 7;
/// The stored forms that this program reads.
pub const READS: RangeInclusive<u32> = SCHEMA..=SCHEMA;

pub(super) fn corrupt(error: impl std::fmt::Display) -> StoreError {
    // The text may quote the stored value.
    StoreError::Corrupt(without_values(&error.to_string()))
}

/// Checks a stored form, before anything else of the content is read.
///
/// # Errors
/// [`StoreError::Form`] for one that this program does not read.
pub fn check_form(schema: u32) -> Result<(), StoreError> {
    match READS.contains(&schema) {
        true => Ok(()),
        false => Err(StoreError::Form(schema)),
    }
}

/// The form that JSON names. Its other members can be those of any form.
#[derive(Deserialize)]
pub(super) struct NamedForm {
    pub(super) schema: u32,
}
