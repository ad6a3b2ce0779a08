//! The push delivery workers: each step is one call of the queue, the table or the webhook.

use super::{Action, DEAD, EVENTS, FREE, Mutant, Push, PushWorld, Wait};

/// The cursor if there is no push config.
const NONE: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum At {
    #[default]
    Idle,
    /// It has received a queue message.
    Has,
    /// It has read the push config: cursor and attempts.
    Found(u8, u8),
    /// It has read the log up to the last number and found new events.
    Wants(u8, u8, u8),
    /// It has the lease and calls the webhook: cursor, last event it knows.
    Calls(u8, u8),
    /// The webhook has accepted the events up to the first number.
    Taken(u8, u8),
    /// The webhook call has failed.
    Failed(u8),
    /// It has sent the queue message for the end of the wait.
    Rung(u8),
    /// It has recorded the wait without sending the queue message (a mutant).
    Noted,
    /// It no longer needs its message.
    Done,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PushDispatcher {
    pub(super) at: At,
    /// It still holds a queue message, which it has not deleted.
    message: bool,
    /// Its lease ended while it was at work.
    overtaken: bool,
    /// It has delivered an event, so that it may confirm that all is delivered.
    went: bool,
}

/// The number under which a push delivery worker holds the lease.
fn holder(number: usize) -> u8 {
    u8::try_from(number).unwrap() + 1
}

impl PushWorld {
    fn leased(&self) -> bool {
        self.lease != FREE && !self.past
    }

    fn left_alone(&self) -> bool {
        self.retry && self.wait == Wait::Ahead
    }

    /// Removes the task from the index of the sweep if no delivery is pending.
    pub(super) fn settle(&mut self) {
        if self.terminal() && (!self.config.0 || self.config.1 == EVENTS) {
            self.open = false;
        }
    }
}

pub(super) fn step(model: &Push, w: &mut PushWorld, action: Action) -> Option<()> {
    match action {
        Action::Goes(number) => {
            let mut dispatcher = w.dispatchers[number];
            goes(model, w, number, &mut dispatcher)?;
            w.dispatchers[number] = dispatcher;
        }
        Action::Answers(number, taken) => answers(model, w, number, taken)?,
        Action::Redeliver(number) if w.dispatchers[number].message => {
            w.glitches = w.glitches.checked_sub(1)?;
            w.queue += 1;
        }
        Action::Shown if w.hidden > 0 && (w.lease != DEAD || w.past) => {
            w.hidden -= 1;
            w.queue += 1;
        }
        Action::LeasePasses if w.leased() => {
            if w.lease != DEAD {
                w.glitches = w.glitches.checked_sub(1)?;
                w.dispatchers[usize::from(w.lease) - 1].overtaken = true;
            }
            w.past = true;
        }
        Action::WaitEnds if w.wait == Wait::Ahead => {
            w.wait = Wait::Over;
            w.queue += std::mem::take(&mut w.delayed);
        }
        _ => return None,
    }
    Some(())
}

#[expect(
    clippy::too_many_lines,
    reason = "one arm a step of the protocol, in their order"
)]
fn goes(model: &Push, w: &mut PushWorld, number: usize, it: &mut PushDispatcher) -> Option<()> {
    let me = holder(number);
    it.at = match it.at {
        At::Idle if w.queue > 0 => {
            w.queue -= 1;
            it.message = !model.is(Mutant::DeletedBeforePost);
            At::Has
        }
        At::Has if !w.config.0 => At::Found(NONE, 0),
        At::Has if w.left_alone() => At::Done,
        At::Has if w.leased() && !model.is(Mutant::LiveLeaseTaken) => At::Done,
        At::Has => At::Found(w.config.1, w.attempts),
        At::Found(cursor, _) if cursor >= w.events => {
            if it.went || cursor == NONE {
                w.settle();
            }
            At::Done
        }
        At::Found(cursor, attempts) => {
            if model.is(Mutant::ConfirmedBeforePost) && w.terminal() {
                w.open = false;
                it.message = false;
            }
            At::Wants(cursor, attempts, w.events)
        }
        At::Wants(cursor, attempts, upto) => {
            let free = !w.leased() || model.is(Mutant::LiveLeaseTaken);
            if free && (w.config.1, w.attempts) == (cursor, attempts) {
                (w.lease, w.past) = (me, false);
                (it.overtaken, it.went) = (false, true);
                if model.is(Mutant::CursorBeforePost) {
                    w.config.1 = upto;
                }
                At::Calls(cursor, upto)
            } else {
                At::Done
            }
        }
        At::Taken(..) | At::Rung(_) if w.lease != me && !model.is(Mutant::AdvanceWithoutHolder) => {
            // It has lost the lease, does not know why, and reads the config again.
            At::Has
        }
        At::Taken(cursor, upto) => {
            w.config.1 = cursor;
            (w.attempts, w.retry, w.past) = (0, false, false);
            it.overtaken = false;
            if cursor < upto {
                w.lease = me;
                At::Calls(cursor, upto)
            } else {
                w.lease = FREE;
                if model.is(Mutant::NoSecondLook) {
                    w.settle();
                    At::Done
                } else {
                    At::Found(cursor, 0)
                }
            }
        }
        At::Failed(_) if model.is(Mutant::RetryBeforeMessage) => {
            w.attempts += 1;
            (w.retry, w.wait) = (true, Wait::Ahead);
            (w.lease, w.past) = (FREE, false);
            At::Noted
        }
        At::Failed(cursor) => {
            w.wait = Wait::Ahead;
            w.delayed += 1;
            At::Rung(cursor)
        }
        At::Noted => {
            w.delayed += 1;
            At::Done
        }
        At::Rung(cursor) => {
            w.attempts += 1;
            w.retry = true;
            (w.lease, w.past) = (FREE, false);
            it.overtaken = false;
            // The delayed message may have arrived while it still had the lease.
            if w.left_alone() || model.is(Mutant::GoesAfterItsWait) {
                At::Done
            } else {
                At::Found(cursor, w.attempts)
            }
        }
        At::Done => {
            (it.message, it.went) = (false, false);
            At::Idle
        }
        At::Idle | At::Calls(..) => return None,
    };
    Some(())
}

fn answers(model: &Push, w: &mut PushWorld, number: usize, taken: bool) -> Option<()> {
    let At::Calls(cursor, upto) = w.dispatchers[number].at else {
        return None;
    };
    let calls = |it: &PushDispatcher| matches!(it.at, At::Calls(..)) && !it.overtaken;
    w.crossed |= w.dispatchers.iter().filter(|it| calls(it)).count() > 1;
    let event = if model.is(Mutant::LatestOnly) {
        upto - 1
    } else {
        cursor
    };
    let before = (w.config.2..event).fold(0, |bits, event| bits | 1 << event);
    w.out_of_order |= w.got & before != before;
    w.dispatchers[number].at = if taken {
        w.got |= 1 << event;
        At::Taken(event + 1, upto)
    } else {
        w.failures = w.failures.checked_sub(1)?;
        At::Failed(cursor)
    };
    Some(())
}

/// The push delivery workers are alike: worlds that differ only in their numbering are
/// one world.
pub(super) fn order(w: &mut PushWorld) {
    let [first, second] = w.dispatchers;
    if second < first {
        w.dispatchers = [second, first];
        w.lease = match w.lease {
            lease if lease == holder(0) => holder(1),
            lease if lease == holder(1) => holder(0),
            lease => lease,
        };
    }
}

/// A push delivery worker dies where it is. No other process learns of it: its message is
/// shown again, and its lease ends.
pub(super) fn crash(w: &mut PushWorld, number: usize) -> Option<()> {
    let dead = std::mem::take(&mut w.dispatchers[number]);
    if dead.at == At::Idle {
        return None;
    }
    w.hidden += u8::from(dead.message);
    if w.lease == holder(number) {
        w.lease = DEAD;
    }
    Some(())
}
