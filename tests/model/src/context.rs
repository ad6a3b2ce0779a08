//! A model of one context id: activity extends it, it expires, a tombstone remembers it,
//! and an id that a client made finally counts as new again.
//!
//! The thread is one item and its state another. One transaction writes both; a refresh
//! extends the items that exist. The table may remove an item at any time after the time
//! that the item names. The state of a replaced thread may outlive that thread.

mod props;
mod tests;

use stateright::{Model, Property};

const TTL: u8 = 2;
const TOMBSTONE: u8 = 2;
/// The longest duration of a call. A call lasts seconds; the times above are hours and days.
const CALL: u8 = 1;
const END_OF_TIME: u8 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    version: u8,
    /// The number of the context under this id, from 1 (for the proof).
    generation: u8,
    /// The sweep has recorded the expiry.
    noted: bool,
    expires_at: u8,
    /// The version that wrote the state; 0 = there is none.
    state: u8,
}

impl Thread {
    const fn lives(&self, now: u8) -> bool {
        !self.noted && now < self.expires_at
    }
}

/// The item of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    version: u8,
    generation: u8,
    /// When the table may remove it.
    until: u8,
}

/// A send with the context's id: not begun, has read at a time, over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Send {
    #[default]
    Start,
    Saw(Option<Thread>, u8),
    Accepted(u8),
    Refused,
    Dead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ContextWorld {
    now: u8,
    thread: Option<Thread>,
    state: Option<State>,
    sends: [Send; 3],
    /// What the sweep has read.
    sweep: Option<Thread>,
    crashes: u8,
    generations: u8,
    /// When the last context ended, as clients could know it (for the proof).
    ended: u8,
    /// What must never happen.
    revived: bool,
    forgotten: bool,
    refused_alive: bool,
    foreign_state: bool,
    state_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// A thread that has expired continues.
    ExpiryUnchecked,
    /// A refresh has no condition on the version.
    RefreshUnconditional,
    /// A refresh sets the expiry from the time of its call, even if it is late and the stored
    /// expiry is later.
    RefreshShortens,
    /// An id that a client made counts as new as soon as it expires.
    NoTombstone,
    /// The table removes a client's thread at its expiry.
    RemovedAtExpiry,
    /// A send with an id that the server made, and that is absent, creates the context.
    ServerIdMade,
    /// An expired id is refused for ever.
    NeverNew,
    /// A new context takes over the state that it finds.
    StateKept,
    /// A reader accepts any stored state, whatever its version.
    StateVersionUnchecked,
    /// The sweep removes the state of an expired thread without a condition.
    SweepUnconditional,
    /// A refresh does not extend the expiry of the state.
    StateNotRefreshed,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    /// Whether the server made the id. Then its thread exists from the start.
    server_made: bool,
    crashes: u8,
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    RemoveThread,
    RemoveState,
    Reads(usize),
    Writes(usize),
    Crash(usize),
    /// A turn of the context ends and keeps a value.
    Keeps,
    /// A skill reads the value.
    Loads,
    SweepReads,
    SweepWrites,
}

impl Context {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    const fn tombstone(&self) -> u8 {
        if self.server_made { 0 } else { TOMBSTONE }
    }

    fn time(&self, w: &mut ContextWorld, action: Action) -> Option<()> {
        match action {
            Action::Tick if w.now < END_OF_TIME => {
                let calls = w.sends.iter();
                let old =
                    |send: &Send| matches!(send, Send::Saw(_, began) if began + CALL <= w.now);
                (!calls.clone().any(old)).then_some(())?;
                w.now += 1;
            }
            Action::RemoveThread => {
                let thread = w.thread?;
                let early = self.is(Mutant::RemovedAtExpiry);
                let keep = if early { 0 } else { self.tombstone() };
                (w.now >= thread.expires_at + keep).then_some(())?;
                w.thread = None;
            }
            Action::RemoveState => {
                (w.now >= w.state?.until).then_some(())?;
                self.state_goes(w);
            }
            _ => return None,
        }
        Some(())
    }

    /// Removes the state's item, and notices if a living thread still needs it.
    fn state_goes(&self, w: &mut ContextWorld) {
        let gone = w.state.take().map(|state| state.version);
        let now = w.now;
        let misses = |thread: Thread| thread.lives(now) && Some(thread.state) == gone;
        w.state_lost |= w.thread.is_some_and(misses);
    }

    fn writes(&self, w: &mut ContextWorld, i: usize) -> Option<()> {
        let Send::Saw(seen, began) = w.sends[i] else {
            return None;
        };
        let remembered = |thread: Thread| {
            let keep = if self.is(Mutant::NoTombstone) {
                0
            } else {
                self.tombstone()
            };
            self.server_made || self.is(Mutant::NeverNew) || began < thread.expires_at + keep
        };
        match seen {
            Some(thread) if thread.lives(began) || self.is(Mutant::ExpiryUnchecked) => {
                self.continues(w, i, thread, began);
            }
            Some(thread) if remembered(thread) => self.refuses(w, i, seen, began),
            None if self.server_made && !self.is(Mutant::ServerIdMade) => {
                self.refuses(w, i, seen, began);
            }
            _ => self.begins(w, i, seen, began),
        }
        Some(())
    }

    /// Refreshes the thread that was read.
    fn continues(&self, w: &mut ContextWorld, i: usize, seen: Thread, began: u8) {
        let unconditional = self.is(Mutant::RefreshUnconditional) && w.thread.is_some();
        if w.thread != Some(seen) && !unconditional {
            // Another call was faster: decide again, by the same clock reading.
            w.sends[i] = Send::Saw(w.thread, began);
            return;
        }
        let stored = w.thread.unwrap_or(seen);
        // Another call has refreshed the thread further; this older call leaves it.
        if !unconditional
            && began + TTL <= stored.expires_at
            && stored.lives(began)
            && !self.is(Mutant::RefreshShortens)
        {
            w.sends[i] = Send::Accepted(stored.generation);
            return;
        }
        // By the clock of the call the thread had not expired.
        w.revived |= stored.noted || seen.expires_at <= began;
        let next = Thread {
            version: stored.version + 1,
            noted: false,
            expires_at: began + TTL,
            ..stored
        };
        if !self.is(Mutant::StateNotRefreshed)
            && let Some(state) = &mut w.state
            && state.version == next.state
        {
            state.until = next.expires_at;
        }
        w.thread = Some(next);
        w.ended = w.ended.max(next.expires_at);
        w.sends[i] = Send::Accepted(next.generation);
    }

    /// Refuses the send because of the thread as it was read, at the time it was read.
    fn refuses(&self, w: &mut ContextWorld, i: usize, seen: Option<Thread>, began: u8) {
        let free = |thread: Thread| !self.server_made && began >= thread.expires_at + TOMBSTONE;
        w.refused_alive |= seen.is_some_and(|thread| thread.lives(began) || free(thread));
        w.sends[i] = Send::Refused;
    }

    /// Begins a context in place of the thread that was read.
    fn begins(&self, w: &mut ContextWorld, i: usize, seen: Option<Thread>, began: u8) {
        if w.thread != seen {
            w.sends[i] = Send::Saw(w.thread, began);
            return;
        }
        w.forgotten |=
            w.generations > 0 && (self.server_made || began < w.ended + self.tombstone());
        w.generations += 1;
        let left = seen.unwrap_or_default();
        let next = Thread {
            version: left.version + 1,
            generation: w.generations,
            noted: false,
            expires_at: began + TTL,
            state: if self.is(Mutant::StateKept) {
                left.state
            } else {
                0
            },
        };
        w.thread = Some(next);
        w.ended = next.expires_at;
        w.sends[i] = Send::Accepted(next.generation);
    }

    /// Writes thread and state in one transaction, for a turn that was accepted.
    fn keeps(&self, w: &mut ContextWorld) -> Option<()> {
        let thread = w
            .thread
            .filter(|thread| thread.lives(w.now) && thread.version < 3)?;
        let next = Thread {
            version: thread.version + 1,
            expires_at: w.now + TTL,
            state: thread.version + 1,
            ..thread
        };
        w.thread = Some(next);
        w.state = Some(State {
            version: next.version,
            generation: next.generation,
            until: next.expires_at,
        });
        w.ended = w.ended.max(next.expires_at);
        Some(())
    }

    fn loads(&self, w: &mut ContextWorld) -> Option<()> {
        let thread = w.thread.filter(|thread| thread.lives(w.now))?;
        let state = w.state?;
        let shown = self.is(Mutant::StateVersionUnchecked)
            || (thread.state > 0 && state.version == thread.state);
        w.foreign_state |= shown && state.generation != thread.generation;
        Some(())
    }

    /// The sweep records an expiry and removes the state.
    fn sweep(&self, w: &mut ContextWorld, action: Action) -> Option<()> {
        match action {
            Action::SweepReads if w.sweep.is_none() => {
                w.sweep = Some(w.thread.filter(|t| t.expires_at <= w.now && !t.noted)?);
            }
            Action::SweepWrites => {
                let read = w.sweep.take()?;
                if self.is(Mutant::SweepUnconditional) {
                    self.state_goes(w);
                } else if w.thread == Some(read) {
                    w.thread = Some(Thread {
                        version: read.version + 1,
                        noted: true,
                        state: 0,
                        ..read
                    });
                    w.state = None;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

impl Model for Context {
    type State = ContextWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<ContextWorld> {
        let made = self.server_made;
        vec![ContextWorld {
            crashes: self.crashes,
            generations: u8::from(made),
            ended: if made { TTL } else { 0 },
            thread: made.then_some(Thread {
                version: 1,
                generation: 1,
                expires_at: TTL,
                ..Thread::default()
            }),
            ..ContextWorld::default()
        }]
    }

    fn actions(&self, w: &ContextWorld, actions: &mut Vec<Action>) {
        use Action as A;
        actions.extend([A::Tick, A::RemoveThread, A::RemoveState, A::Keeps, A::Loads]);
        actions.extend([A::SweepReads, A::SweepWrites]);
        for i in 0..w.sends.len() {
            actions.extend([A::Reads(i), A::Writes(i), A::Crash(i)]);
        }
    }

    fn next_state(&self, last: &ContextWorld, action: Action) -> Option<ContextWorld> {
        use Action as A;
        let mut w = *last;
        match action {
            A::Tick | A::RemoveThread | A::RemoveState => self.time(&mut w, action)?,
            A::Reads(i) => {
                (w.sends[i] == Send::Start).then_some(())?;
                w.sends[i] = Send::Saw(w.thread, w.now);
            }
            A::Writes(i) => self.writes(&mut w, i)?,
            A::Crash(i) => {
                w.crashes = w.crashes.checked_sub(1)?;
                matches!(w.sends[i], Send::Saw(..)).then_some(())?;
                w.sends[i] = Send::Dead;
            }
            A::Keeps => self.keeps(&mut w)?,
            A::Loads => self.loads(&mut w)?,
            A::SweepReads | A::SweepWrites => self.sweep(&mut w, action)?,
        }
        Some(w)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        props::properties(self)
    }
}
