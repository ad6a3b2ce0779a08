//! The ids of task and context, which content of a task does not repeat.

use crate::task::{ContextId, Event, LoggedEvent, Message, TaskFields, TaskId};
use std::borrow::Cow;

/// The task and the context of a message that names none.
pub(super) struct OwnIds<'a>(&'a TaskId, &'a ContextId);

impl<'a> OwnIds<'a> {
    pub(super) const fn of(record: &'a TaskFields) -> Self {
        Self(&record.id, &record.context_id)
    }

    /// The message without the ids of this place.
    pub(super) fn leave<'m>(&self, message: &'m Message) -> Cow<'m, Message> {
        let mut copy = Cow::Borrowed(message);
        if message.task_id.as_ref() == Some(self.0) {
            copy.to_mut().task_id = None;
        }
        if message.context_id.as_ref() == Some(self.1) {
            copy.to_mut().context_id = None;
        }
        copy
    }

    /// The event, whose message may have the ids of this place, without them.
    pub(super) fn leave_in<'e>(&self, entry: &'e LoggedEvent) -> Cow<'e, LoggedEvent> {
        let mut copy = Cow::Borrowed(entry);
        if let Event::Status(update) = &entry.event
            && update.status.message.is_some()
            && let Event::Status(update) = &mut copy.to_mut().event
            && let Some(message) = &mut update.status.message
        {
            *message = self.leave(message).into_owned();
        }
        copy
    }

    /// Adds the ids of this place to a message that names none.
    pub(super) fn fill(&self, message: &mut Message) {
        let Self(task, context) = *self;
        message.task_id.get_or_insert_with(|| task.clone());
        message.context_id.get_or_insert_with(|| context.clone());
    }

    /// Adds them to the message of an event.
    pub(super) fn fill_in(&self, entry: &mut LoggedEvent) {
        if let Event::Status(update) = &mut entry.event
            && let Some(message) = &mut update.status.message
        {
            self.fill(message);
        }
    }
}

/// Adds the ids of a task to its messages that name none.
pub(super) fn fill_record(record: &mut TaskFields) {
    let ids = OwnIds(&record.id, &record.context_id);
    let content = &mut record.content;
    content.history.iter_mut().for_each(|it| ids.fill(it));
    content.log.iter_mut().for_each(|it| ids.fill_in(it));
    if let Some(message) = &mut content.status.message {
        ids.fill(message);
    }
}

/// What was read, owned.
pub(super) fn into_owned<T: Clone>(items: Vec<Cow<'_, T>>) -> Vec<T> {
    items.into_iter().map(Cow::into_owned).collect()
}
