//! The size of an item, as DynamoDB counts it.

use crate::table::{Item, Value};
use a2a_lambda_model::store::{SizeError, StoreError};

/// The most bytes of an item.
const LARGEST: usize = 400 * 1024;

/// Refuses an item that has `beside` bytes of its own beside these attributes.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(super) fn check(item: &Item, beside: usize) -> Result<(), StoreError> {
    SizeError::check(size(item) + beside, LARGEST)
}

/// The bytes of names and values.
pub(crate) fn size(item: &Item) -> usize {
    item.iter()
        .map(|(name, value)| name.len() + of(value))
        .sum()
}

fn of(value: &Value) -> usize {
    match value {
        Value::Bool(_) | Value::Foreign => 1,
        Value::Number(number) => of_number(*number),
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Map(members) => 3 + members.len() + size(members),
    }
}

/// One byte, one for two digits, and one for a sign. Zeros at the end do not count.
fn of_number(number: i64) -> usize {
    let digits = number.unsigned_abs().to_string();
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let before = digits.len() - zeros;
    before.div_ceil(2) + 1 + usize::from(number < 0)
}
