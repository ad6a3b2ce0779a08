//! The metadata of an object: the task or the thread to which it belongs.

use a2a_lambda_model::store::BlobOwner;
use a2a_lambda_model::task::{TaskKey, ThreadKey};
use std::collections::HashMap;

/// The metadata name for the task to which an object belongs.
pub(super) const TASK_NOTE: &str = "task";
/// The metadata name for the thread to which an object belongs.
const THREAD_NOTE: &str = "thread";

/// The name and the value of an object's metadata entry.
pub(super) type ObjectNote = (&'static str, String);

/// Encodes a task as metadata. Neither part can contain a `/`.
pub(super) fn note(task: &TaskKey) -> String {
    format!("{}/{}", task.tenant().as_str(), task.local())
}

/// Encodes an owner as metadata. No part of it can contain a `/`.
pub(super) fn note_of(owner: &BlobOwner) -> ObjectNote {
    match owner {
        BlobOwner::Task(task) => (TASK_NOTE, note(task)),
        BlobOwner::Thread(thread) => {
            let (tenant, subject, context) = (thread.tenant(), thread.subject(), thread.context());
            (THREAD_NOTE, format!("{tenant}/{subject}/{context}"))
        }
    }
}

/// The owner in the metadata of an object.
pub(super) fn owner_of(notes: &HashMap<String, String>) -> Option<BlobOwner> {
    if let Some(note) = notes.get(TASK_NOTE) {
        let (tenant, local) = note.split_once('/')?;
        return TaskKey::stored(tenant, local).map(BlobOwner::Task);
    }
    let (tenant, rest) = notes.get(THREAD_NOTE)?.split_once('/')?;
    let (subject, context) = rest.split_once('/')?;
    ThreadKey::stored(tenant, subject, context).map(BlobOwner::Thread)
}
