//! Names and reads the attributes of items.
//!
//! The content of a record is `body`: JSON, compressed unless it is short. The other attributes
//! are those that conditions, indexes, stream filters and the table's TTL read; the body does not
//! repeat them.

use crate::table::{Comparison, Condition, Item, Value};
use a2a_lambda_model::store::{SizeError, StoreError};
use a2a_lambda_model::stored::{Encoded, check_form};
use a2a_lambda_model::task::{Owner, Subject, TenantId, Timestamp};
use std::borrow::Cow;

/// The content.
pub(crate) const BODY: &str = "body";
/// From when on the item does not count any more, in milliseconds.
pub(crate) const EXPIRES_AT: &str = "expires_at";
/// When the table may remove the item, in seconds.
pub const TTL: &str = "ttl";
/// The id of the last write.
pub(crate) const WRITE: &str = "w0";
/// The subject of the owner, for the relay and the sweep, which have an item and no caller.
pub const OWNER_SUBJECT: &str = "owner_subject";
/// The stored form.
pub const SCHEMA: &str = "schema";
/// The version of a task or a thread.
pub(crate) const VERSION: &str = "version";
/// The id of the write that created the task.
pub(crate) const INCARNATION: &str = "incarnation";
/// The state of a task.
pub(crate) const STATE: &str = "state";
/// The context of a task.
pub(crate) const CONTEXT: &str = "context";
/// Until when no other worker may take a turn, or a push config.
pub(crate) const LEASE_UNTIL: &str = "lease_until";

/// The most bytes of an item.
const LARGEST: usize = 400 * 1024;

/// The attributes of an item, or of its changes: what is absent has no value.
pub(crate) type Attributes = Vec<(&'static str, Option<Value>)>;

/// The item with these attributes.
pub(crate) fn of(attributes: Attributes) -> Item {
    let present = attributes.into_iter();
    let present = present.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.collect()
}

/// A number that a table can keep.
pub(crate) fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same as an attribute.
pub(crate) fn count(number: u64) -> Value {
    as_i64(number).into()
}

/// A time in milliseconds.
pub(crate) fn millis(at: Timestamp) -> Value {
    at.as_millis().into()
}

/// A time in seconds, for the TTL of the table.
pub(crate) fn seconds(at: Timestamp) -> Value {
    at.ttl_seconds().into()
}

/// Content as an attribute. Its type says how the content is encoded.
pub(crate) fn content(body: Encoded<'static>) -> Value {
    match body {
        Encoded::Text(text) => Value::Text(text.into_owned()),
        Encoded::Deflated(bytes) => Value::Bytes(bytes.into_owned()),
    }
}

/// The content in the attribute [`BODY`].
pub(crate) fn body(item: &Item) -> Result<Encoded<'_>, StoreError> {
    match item.get(BODY) {
        Some(Value::Text(text)) => Ok(Encoded::Text(Cow::Borrowed(text))),
        Some(Value::Bytes(bytes)) => Ok(Encoded::Deflated(Cow::Borrowed(bytes))),
        _ => Err(type_error("a text or bytes", BODY)),
    }
}

/// The same, moved out of the item, since a copy of a large one costs memory.
pub(crate) fn take_body(item: &mut Item) -> Result<Encoded<'static>, StoreError> {
    match item.remove(BODY) {
        Some(Value::Text(text)) => Ok(Encoded::Text(text.into())),
        Some(Value::Bytes(bytes)) => Ok(Encoded::Deflated(bytes.into())),
        _ => Err(type_error("a text or bytes", BODY)),
    }
}

/// A text attribute.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn text<'i>(item: &'i Item, name: &str) -> Result<&'i str, StoreError> {
    match item.get(name) {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(type_error("a text", name)),
    }
}

/// A number attribute; `None` if it is absent.
pub(crate) fn optional_number(item: &Item, name: &str) -> Result<Option<i64>, StoreError> {
    match item.get(name) {
        Some(Value::Number(number)) => Ok(Some(*number)),
        None => Ok(None),
        Some(_) => Err(type_error("a number", name)),
    }
}

/// A number attribute of this type.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn number<N: TryFrom<i64>>(item: &Item, name: &str) -> Result<N, StoreError> {
    let number = optional_number(item, name)?.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| type_error("a number", name))
}

/// A time in milliseconds; `None` if it is absent.
pub(crate) fn optional_time(item: &Item, name: &str) -> Result<Option<Timestamp>, StoreError> {
    Ok(optional_number(item, name)?.map(Timestamp::from_millis))
}

/// A time in milliseconds.
pub(crate) fn time(item: &Item, name: &str) -> Result<Timestamp, StoreError> {
    number(item, name).map(Timestamp::from_millis)
}

/// The stored form of an item, which this program reads.
///
/// # Errors
/// [`StoreError::Form`] for another form.
pub(crate) fn form(item: &Item) -> Result<u32, StoreError> {
    let form = number(item, SCHEMA)?;
    check_form(form).map(|()| form)
}

/// The subject of the owner.
pub(crate) fn subject(item: &Item) -> Result<Subject, StoreError> {
    Subject::parse(text(item, OWNER_SUBJECT)?).map_err(corrupt)
}

/// The item has not expired. One without a time never does.
pub(crate) fn is_live(now: Timestamp) -> Condition {
    let later = Condition::is(EXPIRES_AT, Comparison::Above, now.as_millis());
    Condition::Any(vec![Condition::absent(EXPIRES_AT), later])
}

/// The owner: a subject of this tenant.
pub(crate) fn owner(item: &Item, tenant: TenantId) -> Result<Owner, StoreError> {
    let subject = subject(item)?;
    Ok(Owner { tenant, subject })
}

fn type_error(what: &str, name: &str) -> StoreError {
    corrupt(format_args!("expected {what} in attribute `{name}`"))
}

pub(crate) fn corrupt(why: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(why.to_string())
}

/// Decodes `items` with `read`. A damaged item is logged and left out, so that it does not hide
/// the others.
///
/// # Errors
/// [`StoreError::Form`]: a list without the items of another release would look complete.
pub(crate) fn readable<T>(
    items: &[Item],
    read: fn(&Item) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut values = Vec::new();
    for item in items {
        match read(item) {
            Ok(value) => values.push(value),
            Err(error @ StoreError::Form(_)) => return Err(error),
            Err(error) => tracing::error!("failed to read an item of a list: {error}"),
        }
    }
    Ok(values)
}

/// Refuses an item that has `beside` bytes of its own beside these attributes.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(crate) fn check_size(item: &Item, beside: usize) -> Result<(), StoreError> {
    SizeError::check(size(item) + beside, LARGEST)
}

/// The bytes of names and values, as DynamoDB counts them.
pub(crate) fn size(item: &Item) -> usize {
    item.iter()
        .map(|(name, value)| name.len() + size_of(value))
        .sum()
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Bool(_) | Value::Foreign => 1,
        Value::Number(number) => size_of_number(*number),
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Map(members) => 3 + members.len() + size(members),
    }
}

/// One byte, one for two digits, and one for a sign. Zeros at the end do not count.
fn size_of_number(number: i64) -> usize {
    let digits = number.unsigned_abs().to_string();
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let before = digits.len() - zeros;
    before.div_ceil(2) + 1 + usize::from(number < 0)
}
