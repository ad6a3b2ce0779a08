//! The stored form of tasks and threads: JSON with short member names.
//!
//! A store keeps the result of [`encode`] and reads it with [`decode`]; a store of
//! the skill author does the same. A task's form leaves out what the rest implies
//! (see `short_form`). The form has its version in `schema`. Members that a later version
//! added are kept, so that an upgrade can be rolled back. Malformed input is an
//! error, never a panic.

mod join;
mod layout;
mod message;
mod part_list;
mod projection;
mod push;
mod runs;
mod schema;
mod short_form;
mod split;
mod step;
mod task;
mod thread;
mod turn;

#[cfg(test)]
mod tests;

pub use self::join::{FoundChild, events_of, has_older_children, join, names};
pub use self::projection::{NeededChildren, join_some, needs};
pub use self::schema::SCHEMA;
pub use self::short_form::ItemAttributes;
pub use self::split::arrange;
pub use self::split::pieces;
pub use self::split::{CHILD_MIN, Child, ChildName, child_expiry};

use self::schema::{corrupt, known};
use crate::store::{SizeError, StoreError, ThreadRecord, ThreadState};
use crate::task::{Message, PushRecord, Saved, TaskRecord};
use serde_json::Value;

/// The largest record in its stored form, in bytes, without the objects it points at.
/// A function can hold a few of these in memory.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The largest content of a DynamoDB item in bytes: 400 KB less the longest keys and
/// attributes.
pub const ITEM_MAX: usize = 399 * 1024 - 512;

/// Bytes of a task and of its item that only the write that ends the task may fill. So a
/// task can always end, however much its turns have stored.
const END_ROOM: usize = 16 * 1024;

/// The largest record of a task that has not ended.
pub const OPEN_MAX_BYTES: usize = MAX_BYTES - END_ROOM;

/// The deepest nesting of a record in its stored form. The JSON reader refuses 128
/// levels, and a store must not write what it cannot read back.
const MAX_DEPTH: usize = 120;

/// The stored form of `record`.
#[must_use]
pub fn encode(record: &TaskRecord) -> Value {
    // Infallible: plain values with text keys are always valid JSON.
    serde_json::to_value(written(record)).unwrap_or_default()
}

fn written(record: &TaskRecord) -> task::StoredTask<'_> {
    let mut stored = task::StoredTask::from(record);
    stored.compact();
    stored
}

/// The record of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not a stored task of a known version.
pub fn decode(value: Value) -> Result<TaskRecord, StoreError> {
    whole(serde_json::from_value(value).map_err(corrupt)?)
}

fn whole(mut form: task::StoredTask<'_>) -> Result<TaskRecord, StoreError> {
    known(form.schema)?;
    form.expand(&ItemAttributes::default())?;
    form.into_record()
}

/// The stored form of `record`.
#[must_use]
pub fn encode_thread(record: &ThreadRecord) -> Value {
    serde_json::to_value(thread::StoredThread::from(record)).unwrap_or_default()
}

/// The thread of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not a stored thread of a known version.
pub fn decode_thread(value: Value) -> Result<ThreadRecord, StoreError> {
    serde_json::from_value::<thread::StoredThread<'_>>(value)
        .map_err(corrupt)?
        .into_record()
}

/// The stored form of `record` as text.
///
/// # Errors
/// [`StoreError::TooLarge`] for a text longer than [`MAX_BYTES`], or nested more
/// deeply than a reader follows.
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

/// The record of a task's own item, from its text and its attributes. It is partial
/// if its layout names children.
///
/// # Errors
/// [`StoreError::Corrupt`], as [`decode`].
pub fn head_of_text(text: &str, beside: &ItemAttributes) -> Result<TaskRecord, StoreError> {
    let mut form: task::StoredTask<'_> = serde_json::from_str(text).map_err(corrupt)?;
    known(form.schema.or(beside.schema))?;
    form.expand(beside)?;
    let mut record = form.into_record()?;
    record.partial = !record.layout.is_empty();
    Ok(record)
}

/// The state of a thread in its stored form as text, without the thread.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`task_text`].
pub fn state_text(state: &ThreadState) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&thread::StoredState::from(state))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        MAX_BYTES,
    )
}

/// The state of a stored text.
///
/// # Errors
/// [`StoreError::Corrupt`] when the text is not a state.
pub fn state_of_text(text: &str) -> Result<ThreadState, StoreError> {
    serde_json::from_str::<thread::StoredState<'_>>(text)
        .map_err(corrupt)?
        .into_state()
}

/// The stored form of a push config as text, without what deliveries write.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`task_text`].
pub fn push_text(push: &PushRecord) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&push::StoredPush::from(push))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        ITEM_MAX,
    )
}

/// The text by which a delivery recognises a registration. A member added to the
/// stored form later must not enter it, because programs of both versions deliver.
///
/// # Errors
/// As [`push_text`].
pub fn push_identity(push: &PushRecord) -> Result<String, StoreError> {
    push_text(push)
}

/// The push config of a stored text, with no delivery recorded.
///
/// # Errors
/// [`StoreError::Corrupt`] when the text is not a push config.
pub fn push_of_text(text: &str) -> Result<PushRecord, StoreError> {
    serde_json::from_str::<push::StoredPush>(text)
        .map_err(corrupt)?
        .into_record()
}

/// The stored form of a message as text, without its task.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`task_text`].
pub fn message_text(message: &Message) -> Result<String, StoreError> {
    checked(
        serde_json::to_string(&message::StoredMessage::from(message))
            .map_err(|error| StoreError::Refused(error.to_string()))?,
        MAX_BYTES,
    )
}

/// The message of a stored text.
///
/// # Errors
/// [`StoreError::Corrupt`] when the text is not a message.
pub fn message_of_text(text: &str) -> Result<Message, StoreError> {
    serde_json::from_str::<message::StoredMessage<'_>>(text)
        .map_err(corrupt)?
        .into_message()
}

/// The encoded size in bytes of a message.
#[must_use]
pub fn message_size(message: &Message) -> usize {
    length(&message::StoredMessage::from(message))
}

/// The encoded size in bytes of a task's saved data (slot, data and steps).
#[must_use]
pub fn saved_size(saved: &Saved) -> usize {
    length(&task::Kept::from(saved))
}

/// The encoded size in bytes of a thread's state.
#[must_use]
pub fn state_size(state: &ThreadState) -> usize {
    length(&thread::StoredState::from(state))
}

/// The length of the JSON text of `form`, without building the text.
fn length(form: &impl serde::Serialize) -> usize {
    struct ByteCount(usize);
    impl std::io::Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCount(0);
    // Infallible: plain values with text keys are always valid JSON.
    if serde_json::to_writer(&mut count, form).is_err() {
        return usize::MAX;
    }
    count.0
}

fn checked(text: String, allowed: usize) -> Result<String, StoreError> {
    SizeError::check(text.len(), allowed)?;
    if depth(&text) > MAX_DEPTH {
        let what = format!("nested more than {MAX_DEPTH} levels deep");
        return Err(StoreError::TooLarge(SizeError::Other(what)));
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
