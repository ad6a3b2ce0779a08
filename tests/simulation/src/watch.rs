//! The readers of streams.

use crate::hub::Hub;
use crate::oracle::{Oracle, Position};
use a2a_lambda::task::{Frame, LoggedEvent, Task, TaskState};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::mpsc::UnboundedReceiver;

/// A reader of one stream.
pub(crate) struct Watch {
    hub: Arc<Hub>,
    place: Option<usize>,
    resumed: bool,
    begun: bool,
    closed: bool,
    /// It disconnects after this many frames.
    left: u64,
}

impl Watch {
    pub(crate) fn new(hub: &Arc<Hub>, place: Option<usize>, left: u64) -> Self {
        Self {
            hub: Arc::clone(hub),
            place,
            resumed: place.is_some(),
            begun: false,
            closed: false,
            left,
        }
    }

    /// Reads the frames of `work` until it ends.
    pub(crate) async fn over<T>(
        mut self,
        work: impl Future<Output = T>,
        shown: UnboundedReceiver<Frame>,
    ) -> T {
        let mut work = pin!(work);
        let mut shown = Some(shown);
        poll_fn(move |cx| {
            let polled = work.as_mut().poll(cx);
            while let Some(frame) = shown.as_mut().and_then(|it| it.try_recv().ok()) {
                self.frame(&frame);
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    shown = None;
                }
            }
            match polled {
                Poll::Ready(done) => Poll::Ready(done),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn frame(&mut self, frame: &Frame) {
        let hub = Arc::clone(&self.hub);
        let mut world = hub.world();
        let oracle = &mut world.oracle;
        if self.closed {
            oracle.broken("G7: a frame follows the last one".to_owned());
        }
        let first = !std::mem::replace(&mut self.begun, true);
        match frame {
            Frame::Task(task) => self.begins(task, first, oracle),
            Frame::Resumed(task) => self.resumes(task, first, oracle),
            Frame::Event {
                task_id,
                event,
                last,
                ..
            } => {
                if first || !self.continues(event, *last, oracle) {
                    let text = format!(
                        "G7: event {} of task {task_id} is not the next stored event",
                        event.seq
                    );
                    oracle.broken(text);
                }
                self.closed = *last;
            }
            Frame::Refused(refusal) => {
                oracle.refused(refusal);
                self.closed = true;
            }
            Frame::Message(_) | Frame::KeepAlive | Frame::Reconnect => {}
        }
    }

    fn begins(&mut self, task: &Task, first: bool, oracle: &mut Oracle) {
        if !first || self.resumed {
            oracle.broken(format!(
                "G7: the frame with task {} is not the first of a new stream",
                task.id
            ));
        }
        let Some(life) = oracle.reported(task) else {
            return;
        };
        let last = task.last_event;
        let seq = last.and_then(|id| oracle.seq_of(&life, id)).unwrap_or(0);
        self.place = Some(oracle.positions.len());
        oracle.positions.push(Position {
            life,
            last,
            seq,
            ended: task.status.state.is_terminal(),
        });
    }

    fn resumes(&self, task: &Task, first: bool, oracle: &mut Oracle) {
        let place = self.place.and_then(|n| oracle.positions.get(n)).cloned();
        let Some(place) = place else {
            return;
        };
        let state = oracle.state_at(&place.life, place.seq);
        let shown = task.status.state;
        if !oracle.may_resume(&place.life) {
            oracle.broken(format!(
                "G7: a reader of {} resumes in another task",
                place.life
            ));
        }
        if !first || !self.resumed || shown != state.unwrap_or(TaskState::Working) {
            oracle.broken(format!(
                "G7: task {} resumes with a wrong first frame: {shown}",
                place.life
            ));
        }
    }

    /// Whether this is the next event of the reader's task.
    fn continues(&self, event: &LoggedEvent, last: bool, oracle: &mut Oracle) -> bool {
        let place = self.place.and_then(|n| oracle.positions.get(n)).cloned();
        let Some(Position { life, seq, .. }) = place else {
            return false;
        };
        let next = event.seq == seq + 1 && oracle.is_stored(&life, event);
        let state = oracle.state_at(&life, event.seq);
        let place = self.place.and_then(|n| oracle.positions.get_mut(n));
        if let Some(place) = place {
            place.seq = event.seq;
            place.last = Some(event.id);
            place.ended |= last && state.is_some_and(TaskState::is_terminal);
        }
        next
    }
}
