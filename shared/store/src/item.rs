//! Names and reads the attributes of items.

use crate::table::{Item, Value};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Timestamp;

/// The content.
pub(crate) const BODY: &str = "body";
/// From when on the item does not count any more, in milliseconds.
pub(crate) const EXPIRES_AT: &str = "expires_at";
/// When the table may remove the item, in seconds.
pub(crate) const TTL: &str = "ttl";
/// The id of the last write.
pub(crate) const WRITE: &str = "w0";
/// The subject of the owner.
pub(crate) const OWNER_SUBJECT: &str = "owner_subject";

/// A text attribute.
pub(crate) fn text<'i>(item: &'i Item, name: &str) -> Result<&'i str, StoreError> {
    match item.get(name) {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(corrupt("a text", name)),
    }
}

/// A number attribute; `None` if it is absent.
pub(crate) fn optional_number(item: &Item, name: &str) -> Result<Option<i64>, StoreError> {
    match item.get(name) {
        Some(Value::Number(number)) => Ok(Some(*number)),
        None => Ok(None),
        Some(_) => Err(corrupt("a number", name)),
    }
}

/// A number attribute.
pub(crate) fn number(item: &Item, name: &str) -> Result<i64, StoreError> {
    optional_number(item, name)?.ok_or_else(|| corrupt("a number", name))
}

/// Adds the time from which on the item does not count, and that of its removal.
pub(crate) fn expire(item: &mut Item, end: Timestamp) {
    item.insert(EXPIRES_AT.to_owned(), end.as_millis().into());
    item.insert(TTL.to_owned(), end.ttl_seconds().into());
}

fn corrupt(what: &str, name: &str) -> StoreError {
    StoreError::Corrupt(format!("expected {what} in attribute `{name}`"))
}
