//! The event sink of a turn: drops committed events, or sends them as frames of a
//! stream.

use crate::engine::EngineError;
use crate::task::metadata_keys::CONTEXT_RESET;
use crate::task::{
    ContextId, Event, EventId, Frame, LoggedEvent, Message, Metadata, Task, TaskId, TaskRecord,
    TaskState,
};
use tokio::sync::mpsc;

/// The frames of one stream, in order. The channel closes when the stream ends.
pub type Frames = mpsc::UnboundedReceiver<Frame>;

/// When a stream closes. A2A 1.0 §3.1.2, §7.6.1 and §11.7 disagree about it; the
/// conformance kit needs `End` for subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum StreamEnd {
    /// At a terminal or interrupted state: the streams of a send.
    Rest,
    /// At a terminal state only: subscriptions.
    End,
}

/// The sending end of a stream. A turn does not stop when its client disconnects:
/// frames are then dropped, and the log keeps the events.
///
/// The channel is unbounded on purpose. The turn's commits bound what it holds, and a
/// slow reader must not delay the turn.
#[derive(Debug)]
pub(in crate::engine) struct EventSink {
    frames: Option<mpsc::UnboundedSender<Frame>>,
    until: StreamEnd,
    history_length: usize,
    last_seq: Option<u64>,
    over: bool,
    /// Whether the first frame says that the thread state had expired.
    reset: bool,
}

impl EventSink {
    /// A sink that shows nothing.
    pub(in crate::engine) const fn none() -> Self {
        Self {
            frames: None,
            until: StreamEnd::Rest,
            history_length: 0,
            last_seq: None,
            over: false,
            reset: false,
        }
    }

    /// A sink that shows frames until the task is at rest or at its end. The first
    /// frame has at most `history_length` messages of history.
    pub(in crate::engine) const fn stream(
        frames: mpsc::UnboundedSender<Frame>,
        until: StreamEnd,
        history_length: usize,
    ) -> Self {
        Self {
            frames: Some(frames),
            until,
            history_length,
            last_seq: None,
            over: false,
            reset: false,
        }
    }

    /// Makes the first frame say that the thread state had expired.
    pub(in crate::engine) const fn mark_context_reset(&mut self) {
        self.reset = true;
    }

    /// Messages of history in the first frame.
    pub(in crate::engine) const fn history_length(&self) -> usize {
        self.history_length
    }

    /// Whether the sink is a stream.
    pub(in crate::engine) const fn is_stream(&self) -> bool {
        self.frames.is_some()
    }

    /// Whether the client has disconnected.
    pub(in crate::engine) fn is_closed(&self) -> bool {
        self.frames
            .as_ref()
            .is_some_and(mpsc::UnboundedSender::is_closed)
    }

    /// Waits until the client has disconnected; forever if the sink is not a stream.
    pub(in crate::engine) async fn closed(&self) {
        match &self.frames {
            Some(frames) => frames.closed().await,
            None => std::future::pending().await,
        }
    }

    /// The number of the last event shown; `None` before the first frame.
    pub(in crate::engine) const fn last_seq(&self) -> Option<u64> {
        self.last_seq
    }

    /// Whether the event that ends the stream was shown. Later changes of the task
    /// belong to another stream.
    pub(in crate::engine) const fn is_over(&self) -> bool {
        self.over
    }

    /// Whether the stream ends at this state.
    pub(in crate::engine) const fn ends_at(&self, state: TaskState) -> bool {
        match self.until {
            StreamEnd::Rest => state.is_at_rest(),
            StreamEnd::End => state.is_terminal(),
        }
    }

    /// The first frame: the task, with every event up to `seq`.
    pub(in crate::engine) fn task(&mut self, mut task: Task, seq: u64) {
        // A2A 1.0 §3.1.2: the first frame is the task or the one message.
        self.last_seq = Some(seq);
        self.mark(&mut task.metadata);
        self.send(Frame::Task(Box::new(task)));
    }

    /// The first frame of a resumed stream.
    pub(in crate::engine) fn resumed(&mut self, task: Task, seq: u64) {
        self.last_seq = Some(seq);
        self.send(Frame::Resumed(Box::new(task)));
    }

    /// The only frame of a stream without a task.
    pub(in crate::engine) fn message(&self, mut message: Message) {
        self.mark(&mut message.metadata);
        self.send(Frame::Message(message));
    }

    fn mark(&self, metadata: &mut Metadata) {
        if self.reset {
            metadata.insert(CONTEXT_RESET.to_owned(), true.into());
        }
    }

    fn send(&self, frame: Frame) {
        if let Some(frames) = &self.frames {
            // A closed channel means that the client has disconnected.
            let _gone = frames.send(frame);
        }
    }

    /// Shows one stored event; it must be the next in order.
    pub(in crate::engine) fn event(
        &mut self,
        task: &TaskId,
        context: &ContextId,
        event: LoggedEvent,
    ) {
        // A2A 1.0 §3.5.2: all streams of a task show the same events in the same order.
        self.last_seq = Some(event.seq);
        let last = self.closes(&event);
        self.over |= last;
        self.send(Frame::Event {
            task_id: task.clone(),
            context_id: context.clone(),
            event,
            last,
        });
    }

    /// The last frame of a stream that ends before its task: the client has to
    /// reconnect.
    pub(in crate::engine) fn ask_to_reconnect(&self) {
        self.send(Frame::ComeBack);
    }

    fn closes(&self, event: &LoggedEvent) -> bool {
        let Event::Status(update) = &event.event else {
            return false;
        };
        match self.until {
            StreamEnd::Rest => update.status.state.is_at_rest(),
            StreamEnd::End => update.status.state.is_terminal(),
        }
    }

    /// Ends the stream. An error after the first frame is the last frame, so that the
    /// stream never ends silently. An error before it is returned to the caller.
    pub(in crate::engine) fn close(
        self,
        result: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let Err(error) = result else { return Ok(()) };
        if self.last_seq.is_none() {
            return Err(error);
        }
        error.log();
        self.send(Frame::Refused(error.a2a_error));
        Ok(())
    }
}

/// The sequence number of the event with this id.
pub(in crate::engine) fn seq_of(record: &TaskRecord, id: EventId) -> Option<u64> {
    record
        .log()
        .iter()
        .find(|event| event.id == id)
        .map(|event| event.seq)
}
