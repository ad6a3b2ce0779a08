//! The stored form of tasks and threads: JSON with compact member names. What can
//! be told from the rest is left out of a task (see `short`).
//!
//! A store keeps what [`encode`] gives and reads it back with [`decode`]; an
//! author's own store does the same. The form carries its version in `schema`.
//! Members which a later version has added stay, so that an upgrade can be taken
//! back; what does not read is an error, never a panic.

mod content;
#[cfg(feature = "aws")]
mod join;
mod layout;
mod pieces;
mod push;
mod short;
#[cfg(feature = "aws")]
mod some;
mod task;
mod thread;

#[cfg(test)]
mod tests;

#[cfg(feature = "aws")]
pub(crate) use self::join::{Found, events_of, has_older_children, join, names};
pub use self::pieces::arrange;
pub(crate) use self::pieces::pieces;
#[cfg(feature = "aws")]
pub(crate) use self::pieces::{CHILD_MIN, Child, Place, child_expiry};
pub(crate) use self::short::Beside;
#[cfg(feature = "aws")]
pub(crate) use self::some::{Needs, join_some, needs};

use super::{StoreError, ThreadRecord, ThreadState};
use crate::task::{Message, PushRecord, Saved, TaskRecord};
use serde_json::Value;

/// The version of the stored forms. Decision 0009 says when it changes.
pub const SCHEMA: u32 = 1;

/// The largest record in its stored form, in bytes, without objects it points
/// at: what a function can hold in memory a few times.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What fits into a DynamoDB item (400 KB) beside the longest keys and
/// attributes, in bytes.
pub(crate) const ITEM_MAX: usize = 399 * 1024 - 512;

/// The deepest nesting of a record in its stored form. A JSON reader gives up
/// at 128, and what cannot be read back must not be written.
const MAX_DEPTH: usize = 120;

/// The stored form of `record`.
#[must_use]
pub fn encode(record: &TaskRecord) -> Value {
    // A form of plain values with text keys always is JSON.
    serde_json::to_value(written(record)).unwrap_or_default()
}

fn written(record: &TaskRecord) -> task::Stored {
    let mut stored = task::Stored::from(record);
    stored.shorten();
    stored
}

/// The record of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not a stored task of a known version.
pub fn decode(value: Value) -> Result<TaskRecord, StoreError> {
    whole(serde_json::from_value(value).map_err(corrupt)?)
}

fn whole(mut form: task::Stored) -> Result<TaskRecord, StoreError> {
    known(form.schema)?;
    form.expand(&Beside::default())?;
    form.into_record()
}

/// The stored form of `record`.
#[must_use]
pub fn encode_thread(record: &ThreadRecord) -> Value {
    serde_json::to_value(thread::Stored::from(record)).unwrap_or_default()
}

/// The thread of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not a stored thread of a known version.
pub fn decode_thread(value: Value) -> Result<ThreadRecord, StoreError> {
    serde_json::from_value::<thread::Stored>(value)
        .map_err(corrupt)?
        .into_record()
}

/// The stored form of `record` as text.
///
/// # Errors
/// [`StoreError::TooLarge`] when no store may take it: longer than
/// [`MAX_BYTES`], or nested more deeply than a reader follows.
pub fn task_text(record: &TaskRecord) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&written(record))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        MAX_BYTES,
    )
}

/// The record of a stored text.
///
/// # Errors
/// [`StoreError::Corrupt`], as [`decode`].
pub fn task_of_text(text: &str) -> Result<TaskRecord, StoreError> {
    whole(serde_json::from_str(text).map_err(corrupt)?)
}

/// What a task's own item holds of it, in its text and beside it: all, unless
/// its layout names children.
///
/// # Errors
/// [`StoreError::Corrupt`], as [`decode`].
#[cfg(feature = "aws")]
pub(crate) fn head_of_text(text: &str, beside: &Beside) -> Result<TaskRecord, StoreError> {
    let mut form: task::Stored = serde_json::from_str(text).map_err(corrupt)?;
    known(form.schema.or(beside.schema))?;
    form.expand(beside)?;
    let mut record = form.into_record()?;
    record.partial = !record.layout.is_empty();
    Ok(record)
}

/// The stored form of a conversation's state as text, apart from its thread.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`task_text`].
pub fn state_text(state: &ThreadState) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&thread::State::from(state))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        MAX_BYTES,
    )
}

/// The state of a stored text.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not one.
pub fn state_of_text(text: &str) -> Result<ThreadState, StoreError> {
    serde_json::from_str::<thread::State>(text)
        .map_err(corrupt)?
        .into_state()
}

/// The stored form of a webhook as text, without what deliveries write.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`task_text`].
pub fn push_text(push: &PushRecord) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&push::Stored::from(push))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        ITEM_MAX,
    )
}

/// What a delivery knows a registration by. A member that is added to the
/// stored form later must not come into it: programs of both sides deliver.
///
/// # Errors
/// As [`push_text`].
#[cfg(feature = "aws")]
pub(crate) fn push_identity(push: &PushRecord) -> Result<String, StoreError> {
    push_text(push)
}

/// The webhook of a stored text, nothing delivered yet.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not one.
pub fn push_of_text(text: &str) -> Result<PushRecord, StoreError> {
    serde_json::from_str::<push::Stored>(text)
        .map_err(corrupt)?
        .into_record()
}

/// The stored form of a message as text, apart from its task.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`task_text`].
pub(crate) fn message_text(message: &Message) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&content::Message::from(message))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        MAX_BYTES,
    )
}

/// The message of a stored text.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not one.
pub(crate) fn message_of_text(text: &str) -> Result<Message, StoreError> {
    serde_json::from_str::<content::Message>(text)
        .map_err(corrupt)?
        .into_message()
}

/// Bytes of what a task keeps (slot, data and steps) in stored form.
#[must_use]
pub fn saved_size(saved: &Saved) -> usize {
    length(&task::Kept::from(saved))
}

/// Bytes of a conversation's state in stored form.
#[must_use]
pub fn state_size(state: &ThreadState) -> usize {
    length(&thread::State::from(state))
}

/// The length of a JSON text, without the text.
fn length(form: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A form of plain values with text keys always is JSON.
    if serde_json::to_writer(&mut count, form).is_err() {
        return usize::MAX;
    }
    count.0
}

fn checked(text: String, allowed: usize) -> Result<String, StoreError> {
    if text.len() > allowed {
        let length = text.len();
        return Err(StoreError::TooLarge(format!(
            "{length} bytes; {allowed} are allowed"
        )));
    }
    if depth(&text) > MAX_DEPTH {
        return Err(StoreError::TooLarge(format!(
            "nested more than {MAX_DEPTH} levels deep"
        )));
    }
    Ok(text)
}

/// The deepest nesting of a JSON text.
fn depth(text: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

fn known(schema: impl Into<Option<u32>>) -> Result<(), StoreError> {
    match schema.into() {
        Some(SCHEMA) => Ok(()),
        Some(other) => Err(corrupt(format_args!("unknown schema {other}"))),
        None => Err(corrupt("no `schema`")),
    }
}
