//! The event sink of a turn: drops committed events, or sends them as frames of a
//! stream.

use crate::engine::error::EngineError;
use crate::task::metadata_keys::CONTEXT_RESET;
use crate::task::{
    ContextId, Event, Frame, LoggedEvent, Message, Metadata, Task, TaskId, TaskState,
};
use tokio::sync::mpsc;

/// The frames of one stream, in order. The channel closes when the stream ends.
pub type Frames = mpsc::UnboundedReceiver<Frame>;

/// When a stream closes. A2A 1.0 §3.1.2, §7.6.1 and §11.7 disagree about it; the
/// conformance kit needs `End` for subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::engine) enum StreamEnd {
    /// At a terminal or interrupted state: the streams of a send.
    #[default]
    Rest,
    /// At a terminal state only: subscriptions.
    End,
}

/// The sending end of a stream. A turn does not stop when its client disconnects:
/// frames are then dropped, and the log keeps the events.
///
/// The channel is unbounded on purpose. The turn's commits bound what it holds, and a
/// slow reader must not delay the turn. The default sink shows nothing.
#[derive(Debug, Default)]
pub(in crate::engine) struct EventSink {
    frames: Option<mpsc::UnboundedSender<Frame>>,
    until: StreamEnd,
    /// Messages of history in the first frame.
    pub(in crate::engine) history_length: usize,
    last_seq: Option<u64>,
    over: bool,
    /// Whether the first frame says that the thread state had expired.
    pub(in crate::engine) is_context_reset: bool,
}

impl EventSink {
    /// A sink that shows frames until the task is at rest or at its end. The first
    /// frame has at most `history_length` messages of history.
    pub(in crate::engine) fn stream(
        frames: mpsc::UnboundedSender<Frame>,
        until: StreamEnd,
        history_length: usize,
    ) -> Self {
        Self {
            frames: Some(frames),
            until,
            history_length,
            ..Self::default()
        }
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
    pub(in crate::engine) async fn wait_for_close(&self) {
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
    pub(in crate::engine) fn resume(&mut self, task: Task, seq: u64) {
        self.last_seq = Some(seq);
        self.send(Frame::Resumed(Box::new(task)));
    }

    /// The only frame of a stream without a task.
    pub(in crate::engine) fn message(&self, mut message: Message) {
        self.mark(&mut message.metadata);
        self.send(Frame::Message(message));
    }

    fn mark(&self, metadata: &mut Metadata) {
        if self.is_context_reset {
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
        let last = match &event.event {
            Event::Status(update) => self.ends_at(update.status.state),
            Event::Artifact(_) => false,
        };
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
        self.send(Frame::Reconnect);
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
