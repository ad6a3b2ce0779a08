//! `SubscribeToTask` and `tasks/resubscribe`: streams a task that another invocation
//! runs, from its stored log. A send that repeats another waits for its task here too.

use crate::auth::Caller;
use crate::engine::budget::CallBudget;
use crate::engine::error::EngineError;
use crate::engine::reader::Reader;
use crate::engine::turn::event_sink::{EventSink, StreamEnd};
use crate::store::Tail;
use crate::task::{
    A2aError, Event, EventId, Frame, Generation, LoggedEvent, Part, Status, SubscribeCommand, Task,
    TaskRecord, TaskState, Timestamp,
};
use futures::future::{Either, select};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// The most messages of history in the first frame of a subscription.
const HISTORY: usize = 100;
/// The wait between two reads of the log while events arrive …
pub(super) const SHORT: Duration = Duration::from_millis(50);
/// … and while none arrive.
pub(super) const LONG: Duration = Duration::from_secs(1);

impl Reader {
    /// Shows a task and its events until the task ends, the stream is too old, or the
    /// invocation ends. With the id of an event it continues after that
    /// event.
    ///
    /// # Errors
    /// Errors before the first frame: an unknown task, in 1.0 a finished one (unless the
    /// client names an event of it), an event that the task does not have. A later
    /// error is the last frame.
    pub async fn subscribe(
        &self,
        caller: &Caller,
        command: &SubscribeCommand,
        budget: CallBudget,
        frames: UnboundedSender<Frame>,
    ) -> Result<(), EngineError> {
        let record = self.load(caller, &command.id).await?;
        let mut sink = EventSink::stream(frames, StreamEnd::End, HISTORY);
        match command.last_event {
            Some(id) => resume(&record, id, &mut sink)?,
            // A2A 1.0 §3.1.6. A2A 0.3 §7.9 leaves it open: the stream is the task and its end.
            None if record.state().is_terminal() && command.generation == Generation::V10 => {
                let why =
                    "the task is in a terminal state: read it, there is nothing to subscribe to";
                return Err(A2aError::UnsupportedOperation { why }.into());
            }
            None => {}
        }
        let result = self.tail(caller, &record, budget, &mut sink).await;
        sink.close(result)
    }

    /// Shows the task as read and then its later events, in order. The stream ends with
    /// the task, at its maximum age, or in time before the invocation ends.
    pub(in crate::engine) async fn tail(
        &self,
        caller: &Caller,
        record: &TaskRecord,
        budget: CallBudget,
        sink: &mut EventSink,
    ) -> Result<(), EngineError> {
        let ends = self.stream_ends(&budget);
        let mut wait = SHORT;
        self.show(record, sink).await?;
        let mut state = record.state();
        loop {
            let now = self.clock.now();
            if sink.is_closed() || sink.is_over() || sink.ends_at(state) {
                return Ok(());
            }
            if now >= ends {
                sink.ask_to_reconnect();
                return Ok(());
            }
            // No further read is made for a client that has disconnected.
            let rest = self.clock.sleep_until(now.plus(wait).min(ends));
            if let Either::Left(_) = select(pin!(sink.wait_for_close()), rest).await {
                return Ok(());
            }
            let last_seq = sink.last_seq();
            let tail = self
                .load_tail(caller, record, last_seq.unwrap_or_default())
                .await?;
            self.show_events(record, tail.reads_text_alone, tail.events, sink)
                .await?;
            state = tail.state;
            if sink.last_seq() == last_seq {
                wait = LONG.min(wait * 2);
            } else {
                wait = SHORT;
            }
        }
    }

    /// The events after number `after` of this incarnation of the task. A new task with
    /// the same id counts as not found.
    pub(super) async fn load_tail(
        &self,
        caller: &Caller,
        record: &TaskRecord,
        after: u64,
    ) -> Result<Tail, EngineError> {
        let now = self.clock.now();
        let tail = self.records.tail(&caller.owner, &record.id, after, now);
        let same = tail
            .await?
            .filter(|tail| tail.incarnation == record.incarnation);
        Ok(same.ok_or(A2aError::TaskNotFound)?)
    }
}

/// Starts a resumed stream with the status as of the event that the client has seen. It
/// is never a later one, so that the client gets an end it has not seen as an event.
fn resume(record: &TaskRecord, id: EventId, sink: &mut EventSink) -> Result<(), EngineError> {
    let event = record.log.iter().find(|event| event.id == id);
    let seq = event
        .ok_or_else(|| A2aError::invalid("Last-Event-ID", "not an event of this task"))?
        .seq;
    // Only the encoders use the artifacts: 0.1 numbers them by their position. This
    // frame shows none of them.
    let mut task: Task = record.view(0, true);
    task.last_event = None;
    task.status = status_as_of(record, seq);
    if record.reads_text_alone {
        task.parts_mut().for_each(Part::show_as_text);
    }
    sink.resume(task, seq);
    Ok(())
}

/// The status as of event number `seq`; `working` if no event up to it has a status.
pub(in crate::engine) fn status_as_of(record: &TaskRecord, seq: u64) -> Status {
    let events = record.log.iter().filter(|event| event.seq <= seq);
    last_status(events, record.created_at)
}

/// The last status of these events; `working` at `began` if none has a status.
pub(in crate::engine) fn last_status<'e>(
    events: impl DoubleEndedIterator<Item = &'e LoggedEvent>,
    began: Timestamp,
) -> Status {
    let mut statuses = events.rev().filter_map(|event| match &event.event {
        Event::Status(update) => Some(update.status.clone()),
        Event::Artifact(_) => None,
    });
    statuses.next().unwrap_or(Status {
        state: TaskState::Working,
        message: None,
        timestamp: began,
    })
}

#[cfg(test)]
mod tests;
