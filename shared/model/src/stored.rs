//! The stored form of tasks and threads: plain JSON with the protocol's names, compressed.
//!
//! - `task`: facts, which are attributes of an item, and the body beside them
//! - `place`: the ids of the task, which its messages do not repeat
//! - `children`: what moves to items beside the task's own
//! - `join`: restores a task from its items
//! - `encoded`: the bytes of all of these
//!
//! A store keeps the result of [`encode`] and reads it with [`decode`]; a store of the skill
//! author does the same. The form has its version in `schema`. Members that a later version
//! added are kept, so that an upgrade can be rolled back. Malformed input is an error, never a
//! panic.

mod children;
mod encoded;
mod join;
mod place;
mod schema;
mod task;

#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "contract-tests"))]
pub use self::children::fill;
pub use self::children::{Child, ChildName, Pieces, arrange, pieces};
pub use self::encoded::Encoded;
pub use self::join::{
    FoundChild, NeededChildren, events_of, has_older_children, join, names, needs,
};
pub use self::schema::{READS, SCHEMA, check_form};
pub use self::task::TaskFacts;

use self::encoded::{json, length};
use self::schema::{NamedForm, corrupt};
use self::task::{FoundBody, TaskBody, WholeTask};
use crate::store::{SizeError, StoreError, ThreadRecord, ThreadState};
use crate::task::{Layout, Message, Metadata, PushRecord, Saved, TaskRecord, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// The largest record in its stored form, in bytes of JSON, without the objects it points at.
/// A function can hold a few of these in memory.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The largest content of a DynamoDB item in bytes: 400 KB less the longest keys and
/// attributes.
pub const ITEM_MAX: usize = 399 * 1024 - 512;

/// Bytes of a task and of its item that only the write that ends the task may fill. So a
/// task can always end, however much its turns have stored.
const END_MARGIN: usize = 16 * 1024;

/// The largest record of a task that has not ended.
pub const OPEN_MAX_BYTES: usize = MAX_BYTES - END_MARGIN;

/// The stored form of `record` as one JSON object.
#[must_use]
pub fn encode(record: &TaskRecord) -> Value {
    let task = WholeTask {
        facts: TaskFacts::of(record),
        body: TaskBody::of(record, &Layout::default()),
    };
    // Infallible: plain values with text keys are always valid JSON.
    serde_json::to_value(task).unwrap_or_default()
}

/// The record of a stored form.
///
/// # Errors
/// [`StoreError::Form`] for a form that this program does not read, and
/// [`StoreError::Corrupt`] when it is not a stored task.
pub fn decode(value: Value) -> Result<TaskRecord, StoreError> {
    check_form(NamedForm::deserialize(&value).map_err(corrupt)?.schema)?;
    let task: WholeTask<FoundBody> = serde_json::from_value(value).map_err(corrupt)?;
    task.body.into_record(task.facts)
}

/// The record of a task's own item, from its body and its attributes. It is partial if its
/// layout names children.
///
/// # Errors
/// [`StoreError::Corrupt`] when the body is damaged.
pub fn head_of(body: &Encoded<'_>, facts: TaskFacts) -> Result<TaskRecord, StoreError> {
    let mut record = body.read::<FoundBody>()?.into_record(facts)?;
    record.fields_mut().is_partial = !record.layout.is_empty();
    Ok(record)
}

/// The stored form of `record`.
#[must_use]
pub fn encode_thread(record: &ThreadRecord) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

/// The thread of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not a stored thread.
pub fn decode_thread(value: Value) -> Result<ThreadRecord, StoreError> {
    serde_json::from_value(value).map_err(corrupt)
}

/// What an item of a thread has beside its attributes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadBody<'a> {
    state_expires_at: Timestamp,
    /// Members that a later version of this program added.
    #[serde(flatten)]
    unknown: Cow<'a, Metadata>,
}

/// The body of a thread's own item.
///
/// # Errors
/// As [`encode_state`].
pub fn thread_body(record: &ThreadRecord) -> Result<Encoded<'static>, StoreError> {
    encoded::encode(&ThreadBody {
        state_expires_at: record.state_expires_at,
        unknown: Cow::Borrowed(&record.unknown),
    })
}

/// Restores what the body says into a thread of the other attributes.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not the body of a thread.
pub fn restore_thread(record: &mut ThreadRecord, body: &Encoded<'_>) -> Result<(), StoreError> {
    let body: ThreadBody<'_> = body.read()?;
    record.state_expires_at = body.state_expires_at;
    record.unknown = body.unknown.into_owned();
    Ok(())
}

/// The stored form of a thread's state.
///
/// # Errors
/// [`StoreError::TooLarge`] for JSON that is too long, or nested more deeply than a
/// reader follows.
pub fn encode_state(state: &ThreadState) -> Result<Encoded<'static>, StoreError> {
    encoded::encode(state)
}

/// The state of a stored form.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not a state.
pub fn decode_state(state: &Encoded<'_>) -> Result<ThreadState, StoreError> {
    state.read()
}

/// The stored form of a push config.
#[derive(Serialize, Deserialize)]
struct StoredPush<'a> {
    schema: u32,
    #[serde(flatten)]
    push: Cow<'a, PushRecord>,
}

/// The stored form of a push config as text, without what deliveries write.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`encode_state`].
pub fn push_text(push: &PushRecord) -> Result<String, StoreError> {
    let json = json(&StoredPush {
        schema: SCHEMA,
        push: Cow::Borrowed(push),
    })?;
    SizeError::check(json.len(), ITEM_MAX)?;
    Ok(json)
}

/// The push config of a stored text, with no delivery recorded.
///
/// # Errors
/// As [`decode`].
pub fn push_of_text(text: &str) -> Result<PushRecord, StoreError> {
    check_form(
        serde_json::from_str::<NamedForm>(text)
            .map_err(corrupt)?
            .schema,
    )?;
    let form: StoredPush<'_> = serde_json::from_str(text).map_err(corrupt)?;
    Ok(form.push.into_owned())
}

/// The stored form of a message as text, with the ids of its task.
///
/// # Errors
/// [`StoreError::TooLarge`], as [`encode_state`].
pub fn message_text(message: &Message) -> Result<String, StoreError> {
    json(message)
}

/// The message of a stored text.
///
/// # Errors
/// [`StoreError::Corrupt`] when the text is not a message.
pub fn message_of_text(text: &str) -> Result<Message, StoreError> {
    serde_json::from_str(text).map_err(corrupt)
}

/// The bytes of a message as JSON.
#[must_use]
pub fn message_size(message: &Message) -> usize {
    length(message)
}

/// The bytes of a task's saved data (slot, data and steps) as JSON.
#[must_use]
pub fn saved_size(saved: &Saved) -> usize {
    length(saved)
}

/// The bytes of a thread's state as JSON.
#[must_use]
pub fn state_size(state: &ThreadState) -> usize {
    length(state)
}
