//! A conversation under one id: it slides with activity, expires, is
//! remembered, and at last its id counts as new, if a client made it.
//!
//! The thread is one item, its state another: a write of both is one
//! transaction, a refresh touches what is there. The table's own removal comes
//! at any time after the time an item names; the state of a thread that was
//! replaced may outlive it.

mod props;
mod tests;

use stateright::{Model, Property};

const TTL: u8 = 2;
const TOMBSTONE: u8 = 2;
/// A call lasts seconds; the lives above are hours and days.
const CALL: u8 = 1;
const END_OF_TIME: u8 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    version: u8,
    /// Which conversation under this id it is, from 1 (for the proof).
    generation: u8,
    /// Its expiry has been noted.
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

/// The state's item.
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
struct World {
    now: u8,
    thread: Option<Thread>,
    state: Option<State>,
    sends: [Send; 3],
    /// What the sweep has read.
    sweep: Option<Thread>,
    crashes: u8,
    generations: u8,
    /// When the last conversation ended, as everybody was told (for the proof).
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
    /// A thread that has expired goes on.
    ExpiryUnchecked,
    /// A refresh asks for no version.
    RefreshUnconditional,
    /// A refresh sets the time of its call, however late it comes.
    RefreshShortens,
    /// An expired id of a client counts as new at once.
    NoTombstone,
    /// The table removes a client's thread at its expiry.
    RemovedAtExpiry,
    /// An absent id of the server is made.
    ServerIdMade,
    /// An id is refused for ever.
    NeverNew,
    /// A new conversation takes the state it finds.
    StateKept,
    /// A reader takes whatever state is stored.
    StateVersionUnchecked,
    /// The sweep removes the state of what it has read as expired.
    SweepUnconditional,
    /// A refresh leaves the state's own time as it is.
    StateNotRefreshed,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    /// Whether the server made the id: its thread is there from the start.
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
    /// A turn of the conversation ends and keeps a value.
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

    fn time(&self, w: &mut World, action: Action) -> Option<()> {
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

    /// The state's item goes; a living thread must not miss it.
    fn state_goes(&self, w: &mut World) {
        let gone = w.state.take().map(|state| state.version);
        let now = w.now;
        let misses = |thread: Thread| thread.lives(now) && Some(thread.state) == gone;
        w.state_lost |= w.thread.is_some_and(misses);
    }

    fn writes(&self, w: &mut World, i: usize) -> Option<()> {
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
                self.goes_on(w, i, thread, began);
            }
            Some(thread) if remembered(thread) => self.refuses(w, i, seen, began),
            None if self.server_made && !self.is(Mutant::ServerIdMade) => {
                self.refuses(w, i, seen, began);
            }
            _ => self.begins(w, i, seen, began),
        }
        Some(())
    }

    /// The thread that was read is refreshed.
    fn goes_on(&self, w: &mut World, i: usize, seen: Thread, began: u8) {
        let unconditional = self.is(Mutant::RefreshUnconditional) && w.thread.is_some();
        if w.thread != Some(seen) && !unconditional {
            // Another was faster: decided again, by the same clock.
            w.sends[i] = Send::Saw(w.thread, began);
            return;
        }
        let stored = w.thread.unwrap_or(seen);
        // A call of an older clock finds the thread refreshed, and leaves it.
        if !unconditional
            && began + TTL <= stored.expires_at
            && stored.lives(began)
            && !self.is(Mutant::RefreshShortens)
        {
            w.sends[i] = Send::Accepted(stored.generation);
            return;
        }
        // By the clock of the call it was in time.
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

    /// Refused by what was read, at the time it was read.
    fn refuses(&self, w: &mut World, i: usize, seen: Option<Thread>, began: u8) {
        let free = |thread: Thread| !self.server_made && began >= thread.expires_at + TOMBSTONE;
        w.refused_alive |= seen.is_some_and(|thread| thread.lives(began) || free(thread));
        w.sends[i] = Send::Refused;
    }

    /// A conversation begins, in place of what was read.
    fn begins(&self, w: &mut World, i: usize, seen: Option<Thread>, began: u8) {
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

    /// Thread and state in one transaction, by a turn that has been let in.
    fn keeps(&self, w: &mut World) -> Option<()> {
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

    fn loads(&self, w: &mut World) -> Option<()> {
        let thread = w.thread.filter(|thread| thread.lives(w.now))?;
        let state = w.state?;
        let shown = self.is(Mutant::StateVersionUnchecked)
            || (thread.state > 0 && state.version == thread.state);
        w.foreign_state |= shown && state.generation != thread.generation;
        Some(())
    }

    /// The sweep notes what has expired, and removes its state.
    fn sweep(&self, w: &mut World, action: Action) -> Option<()> {
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
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let made = self.server_made;
        vec![World {
            crashes: self.crashes,
            generations: u8::from(made),
            ended: if made { TTL } else { 0 },
            thread: made.then_some(Thread {
                version: 1,
                generation: 1,
                expires_at: TTL,
                ..Thread::default()
            }),
            ..World::default()
        }]
    }

    fn actions(&self, w: &World, actions: &mut Vec<Action>) {
        use Action as A;
        actions.extend([A::Tick, A::RemoveThread, A::RemoveState, A::Keeps, A::Loads]);
        actions.extend([A::SweepReads, A::SweepWrites]);
        for i in 0..w.sends.len() {
            actions.extend([A::Reads(i), A::Writes(i), A::Crash(i)]);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
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
