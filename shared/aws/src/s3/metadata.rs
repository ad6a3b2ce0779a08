//! The metadata of an object: the task or the thread to which it belongs.

use a2a_lambda_model::task::{TaskKey, ThreadKey};

/// The metadata name for the task to which an object belongs.
pub(super) const TASK_NOTE: &str = "task";
/// The metadata name for the thread to which an object belongs.
pub(super) const THREAD_NOTE: &str = "thread";

/// The name and the value of an object's metadata entry.
pub(super) type ObjectNote = (&'static str, String);

/// Encodes a task as metadata. Neither part can contain a `/`.
pub(super) fn note(task: &TaskKey) -> String {
    format!("{}/{}", task.tenant().as_str(), task.local())
}

pub(super) fn note_of(task: &TaskKey) -> ObjectNote {
    (TASK_NOTE, note(task))
}

/// Encodes a thread as metadata. No part of it can contain a `/`.
pub(super) fn note_of_thread(thread: &ThreadKey) -> ObjectNote {
    let (tenant, subject, context) = (thread.tenant(), thread.subject(), thread.context());
    (THREAD_NOTE, format!("{tenant}/{subject}/{context}"))
}

pub(super) fn thread_of_note(note: &str) -> Option<ThreadKey> {
    let (tenant, rest) = note.split_once('/')?;
    let (subject, context) = rest.split_once('/')?;
    ThreadKey::stored(tenant, subject, context)
}

pub(super) fn task_of_note(note: &str) -> Option<TaskKey> {
    let (tenant, local) = note.split_once('/')?;
    TaskKey::stored(tenant, local)
}
