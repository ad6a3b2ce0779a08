//! Makes the body of a push delivery.

use crate::engine::handler::subscribe::{last_status, status_as_of};
use crate::store::Tail;
use crate::task::metadata_keys::TRUNCATED;
use crate::task::{
    Frame, Generation, LoggedEvent, Metadata, Part, PartContent, PushRecord, Task, TaskRecord,
};
use serde_json::Value;

/// Messages of history in a task that is pushed.
const HISTORY: usize = 100;

/// The frame a webhook gets for an event: the event in 1.0; in 0.3 and 0.1 the task with
/// its status as of the event. `events` are those since the last delivery, including this
/// one.
pub(super) fn frame(
    push: &PushRecord,
    task: &Tail,
    record: Option<&TaskRecord>,
    events: &[LoggedEvent],
    event: &LoggedEvent,
) -> Frame {
    if push.registration.generation == Generation::V10 {
        let mut event = event.clone();
        for part in event.event.parts_mut() {
            leave_out(part);
            if task.reads_text_alone {
                part.show_as_text();
            }
        }
        return Frame::Event {
            task_id: push.task.clone(),
            context_id: task.context_id.clone(),
            last: task.state.is_terminal() && event.seq == task.last_seq,
            event,
        };
    }
    let mut view = match record {
        Some(record) => Task {
            status: status_as_of(record, event.seq),
            ..record.view(HISTORY, true)
        },
        None => status_only(push, task, events),
    };
    view.last_event = Some(event.id);
    view.parts_mut().for_each(leave_out);
    if task.reads_text_alone {
        view.parts_mut().for_each(Part::show_as_text);
    }
    Frame::Task(Box::new(view))
}

/// The task without content that cannot be read here: its status, and the mark that
/// something was left out.
fn status_only(push: &PushRecord, task: &Tail, events: &[LoggedEvent]) -> Task {
    Task {
        id: push.task.clone(),
        context_id: task.context_id.clone(),
        generation: push.registration.generation,
        status: last_status(events.iter(), push.created_at),
        artifacts: None,
        history: None,
        metadata: Metadata::from_iter([(TRUNCATED.to_owned(), Value::Bool(true))]),
        transitions: Vec::new(),
        last_event: None,
    }
}

/// Replaces stored bytes by their SHA-256: a push delivery does not carry them, and the
/// client reads the task to get them.
pub(super) fn leave_out(part: &mut Part) {
    if let PartContent::Stored(blob) = &part.content {
        part.content = PartContent::Url(format!("urn:sha256:{}", blob.sha256));
        part.metadata
            .insert(TRUNCATED.to_owned(), Value::Bool(true));
    }
}
