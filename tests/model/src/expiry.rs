//! A model of expiry: a task at rest expires even before the table removes it; running
//! work does not expire.
//!
//! Time is a clock of a few ticks. A task lives `TTL` ticks from its last rest. The table
//! may remove an item at any time after `expires_at`. The model assumes that running work
//! is renewed within `LAG` ticks: sweep and heartbeat run far more often than the table
//! removes items.

mod props;
mod tests;

use stateright::{Model, Property};

const TTL: u8 = 2;
const LAG: u8 = 1;
const END_OF_TIME: u8 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Absent,
    Submitted,
    Working,
    Input,
    Completed,
    Canceled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Meta {
    state: State,
    version: u8,
    epoch: u8,
    incarnation: u8,
    expires_at: u8,
    turn: u8,
    /// When it last came to rest (for the proof).
    rested: u8,
    /// The client has deleted it.
    deleted: bool,
}

impl Meta {
    fn open(&self) -> bool {
        matches!(self.state, State::Submitted | State::Working)
    }

    fn at_rest(&self) -> bool {
        !self.open() && self.state != State::Absent
    }

    /// At rest and past its time, or deleted. Every caller sees it as absent.
    fn expired(&self, now: u8) -> bool {
        self.at_rest() && self.expires_at <= now
    }
}

/// A call: not begun, has read (incarnation, version), over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Call {
    #[default]
    Start,
    Checked(u8, u8),
    Accepted,
    Refused,
    Dead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ExpiryWorld {
    now: u8,
    meta: Meta,
    /// Stored children by incarnation, one bit each. Children outlive their task.
    children: u8,
    /// Epoch and incarnation of the process at work, and of a superseded one.
    workers: [Option<(u8, u8)>; 2],
    continuation: Call,
    cancel: Call,
    creates: u8,
    deletions: u8,
    crashes: u8,
    glitches: u8,
    /// What must never happen.
    expired_shown: bool,
    revived: bool,
    work_lost: bool,
    old_child_shown: bool,
    foreign_write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    ReadUnchecked,
    ContinueUnchecked,
    CancelUnchecked,
    CreateOverLiving,
    AppliedToRunningWork,
    NoRenewal,
    FinalKeepsExpiry,
    OtherIncarnationRead,
    SameIncarnation,
    IncarnationIgnored,
}

#[derive(Clone, Copy, Debug)]
struct Expiry {
    /// Deletions by the client.
    deletions: u8,
    crashes: u8,
    glitches: u8,
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    /// The table removes an item past its time.
    Remove,
    RemoveChildren,
    /// A send with a client-made id.
    Create,
    /// A deletion ends the life of a task at rest.
    Delete,
    Claim,
    Beat(usize),
    /// The final commit; with `true` the skill asks a question.
    End(usize, bool),
    Redispatch,
    Read,
    ContinueReads,
    ContinueWrites,
    CancelReads,
    CancelWrites,
    CrashWorker,
    CrashContinuation,
}

impl Expiry {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn renew(&self, w: &mut ExpiryWorld) {
        if !self.is(Mutant::NoRenewal) {
            w.meta.expires_at = w.now + TTL;
        }
    }

    fn time(&self, w: &mut ExpiryWorld, action: Action) -> Option<()> {
        let renewals = !self.is(Mutant::NoRenewal);
        match action {
            // Running work is renewed before the table can remove it.
            Action::Tick if w.now < END_OF_TIME => {
                let late = w.meta.open() && w.now >= w.meta.expires_at + LAG;
                (!late || !renewals).then_some(())?;
                w.now += 1;
            }
            Action::Remove if w.meta.state != State::Absent => {
                let lag = if w.meta.open() { LAG + 1 } else { 0 };
                (w.now >= w.meta.expires_at + lag).then_some(())?;
                w.work_lost |= w.meta.open();
                w.meta = Meta {
                    incarnation: w.meta.incarnation,
                    ..Meta::default()
                };
            }
            Action::RemoveChildren if w.meta.state == State::Absent && w.children > 0 => {
                w.children = 0
            }
            _ => return None,
        }
        Some(())
    }

    fn create(&self, w: &mut ExpiryWorld) -> Option<()> {
        let free = w.meta.state == State::Absent || w.meta.expired(w.now);
        let over = self.is(Mutant::CreateOverLiving) && w.meta.at_rest();
        if !free && !over {
            return None;
        }
        w.creates = w.creates.checked_sub(1)?;
        w.revived |= !free;
        let same = self.is(Mutant::SameIncarnation) && w.meta.incarnation > 0;
        w.meta = Meta {
            state: State::Submitted,
            version: 1,
            epoch: 0,
            incarnation: w.meta.incarnation + u8::from(!same),
            expires_at: w.now + TTL,
            turn: 1,
            rested: 0,
            deleted: false,
        };
        if same && w.children > 0 {
            w.old_child_shown = true; // The old task's events appear as its own.
        }
        Some(())
    }

    fn work(&self, w: &mut ExpiryWorld, action: Action) -> Option<()> {
        let refused =
            |w: &ExpiryWorld| self.is(Mutant::AppliedToRunningWork) && w.meta.expires_at <= w.now;
        match action {
            Action::Claim if w.meta.open() => {
                if w.workers[0].is_some_and(|worker| self.holds(w, worker)) {
                    w.glitches = w.glitches.checked_sub(1)?;
                }
                if refused(w) {
                    w.work_lost = true;
                    return Some(());
                }
                w.workers[1] = w.workers[0].or(w.workers[1]);
                w.meta.state = State::Working;
                w.meta.version += 1;
                w.meta.epoch += 1;
                w.workers[0] = Some((w.meta.epoch, w.meta.incarnation));
                self.renew(w);
            }
            // Renews when half of the time or less is left.
            Action::Beat(i) if w.workers[i].is_some() => {
                let worker = w.workers[i]?;
                if !self.holds(w, worker) {
                    w.workers[i] = None;
                } else if refused(w) {
                    w.work_lost = true;
                } else if w.meta.expires_at <= w.now + TTL / 2 {
                    self.renew(w);
                } else {
                    return None;
                }
            }
            Action::End(i, asks) if w.workers[i].is_some() => {
                let worker = w.workers[i].take()?;
                let asks = asks && w.meta.turn == 1;
                if !self.holds(w, worker) {
                    return Some(());
                }
                w.foreign_write |= worker.1 != w.meta.incarnation;
                if refused(w) {
                    w.work_lost = true;
                    return Some(());
                }
                w.meta.state = if asks { State::Input } else { State::Completed };
                w.meta.version += 1;
                w.meta.rested = w.now;
                w.children |= 1 << w.meta.incarnation;
                if !self.is(Mutant::FinalKeepsExpiry) {
                    w.meta.expires_at = w.now + TTL;
                }
            }
            Action::Redispatch if w.meta.open() && w.meta.expires_at <= w.now + LAG => {
                w.workers[0].is_none().then_some(())?;
                w.meta.version += 1;
                self.renew(w);
            }
            _ => return None,
        }
        Some(())
    }

    fn read(&self, w: &mut ExpiryWorld) -> Option<()> {
        if w.meta.expired(w.now) && !self.is(Mutant::ReadUnchecked) {
            return None; // Not found.
        }
        w.expired_shown |= w.meta.expired(w.now);
        let own = 1 << w.meta.incarnation;
        let shown = if self.is(Mutant::OtherIncarnationRead) {
            w.children
        } else {
            w.children & own
        };
        w.old_child_shown |= w.meta.state != State::Absent && shown & !own != 0;
        Some(())
    }

    fn call(&self, w: &mut ExpiryWorld, action: Action) -> Option<()> {
        let meta = w.meta;
        let expired = meta.expired(w.now);
        let seen = Call::Checked(meta.incarnation, meta.version);
        match (action, w.continuation, w.cancel) {
            (Action::ContinueReads, Call::Start, _) if meta.at_rest() => {
                let asked = meta.state == State::Input && !expired;
                w.continuation = if asked { seen } else { Call::Refused };
            }
            (Action::ContinueWrites, Call::Checked(..), _) => {
                let unchecked = self.is(Mutant::ContinueUnchecked);
                if w.continuation != seen || (expired && !unchecked) {
                    w.continuation = Call::Start;
                    return Some(());
                }
                w.revived |= expired;
                w.meta.state = State::Submitted;
                w.meta.version += 1;
                w.meta.epoch += 1;
                w.meta.turn += 1;
                self.renew(w);
                w.continuation = Call::Accepted;
            }
            (Action::CancelReads, _, Call::Start) if meta.state != State::Absent => {
                let over = expired || matches!(meta.state, State::Completed | State::Canceled);
                w.cancel = if over { Call::Refused } else { seen };
            }
            (Action::CancelWrites, _, Call::Checked(..)) => {
                if w.cancel != seen || (expired && !self.is(Mutant::CancelUnchecked)) {
                    w.cancel = Call::Start;
                    return Some(());
                }
                w.revived |= expired;
                w.meta.state = State::Canceled;
                w.meta.version += 1;
                w.meta.epoch += 1;
                w.meta.rested = w.now;
                w.meta.expires_at = w.now + TTL;
                w.cancel = Call::Accepted;
            }
            _ => return None,
        }
        Some(())
    }
}

impl Expiry {
    /// Whether the worker holds the task: same epoch and same incarnation.
    fn holds(&self, w: &ExpiryWorld, worker: (u8, u8)) -> bool {
        let any = self.is(Mutant::IncarnationIgnored);
        w.meta.state == State::Working
            && worker.0 == w.meta.epoch
            && (any || worker.1 == w.meta.incarnation)
    }
}

impl Model for Expiry {
    type State = ExpiryWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<ExpiryWorld> {
        let (crashes, glitches) = (self.crashes, self.glitches);
        vec![ExpiryWorld {
            creates: 2,
            deletions: self.deletions,
            crashes,
            glitches,
            ..ExpiryWorld::default()
        }]
    }

    fn actions(&self, _: &ExpiryWorld, actions: &mut Vec<Action>) {
        use Action as A;
        actions.extend([
            A::Tick,
            A::Remove,
            A::RemoveChildren,
            A::Create,
            A::Delete,
            A::Claim,
            A::Redispatch,
        ]);
        for i in 0..2 {
            actions.extend([A::Beat(i), A::End(i, false), A::End(i, true)]);
        }
        actions.extend([A::Read, A::ContinueReads, A::ContinueWrites, A::CancelReads]);
        actions.extend([A::CancelWrites, A::CrashWorker, A::CrashContinuation]);
    }

    fn next_state(&self, last: &ExpiryWorld, action: Action) -> Option<ExpiryWorld> {
        use Action as A;
        let mut w = *last;
        match action {
            A::Tick | A::Remove | A::RemoveChildren => self.time(&mut w, action)?,
            A::Create => self.create(&mut w)?,
            A::Delete => {
                (w.meta.at_rest() && !w.meta.expired(w.now)).then_some(())?;
                w.deletions = w.deletions.checked_sub(1)?;
                w.meta.version += 1;
                w.meta.expires_at = w.now;
                w.meta.deleted = true;
            }
            A::Claim | A::Beat(_) | A::End(..) | A::Redispatch => self.work(&mut w, action)?,
            A::Read => self.read(&mut w)?,
            A::ContinueReads | A::ContinueWrites | A::CancelReads | A::CancelWrites => {
                self.call(&mut w, action)?;
            }
            A::CrashWorker => {
                w.crashes = w.crashes.checked_sub(1)?;
                w.workers[0].take()?;
            }
            A::CrashContinuation => {
                w.crashes = w.crashes.checked_sub(1)?;
                matches!(w.continuation, Call::Checked(..)).then_some(())?;
                w.continuation = Call::Dead;
            }
        }
        Some(w)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        props::properties(self)
    }
}
