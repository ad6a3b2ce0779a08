//! The state that all processes of a history share: randomness, time, ids, faults, and
//! the points at which a process can be stopped.

use crate::clients::Letter;
use crate::mutant::Mutant;
use crate::oracle::Oracle;
use crate::queue::Messages;
use a2a_lambda::engine::{Clock, Ids};
use a2a_lambda::task::Timestamp;
use futures::future::BoxFuture;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// 2026-05-28T10:00:00Z.
const START: i64 = 1_779_962_400_000;

/// A seeded xorshift generator: the only source of randomness in a history.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        // The odd constant spreads small seeds; a state of zero would stay zero.
        Self((seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD134_2543_DE82_EF95) | 1)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// True `n` times in a thousand.
    pub(crate) const fn in_thousand(&mut self, n: u64) -> bool {
        self.below(1000) < n
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let place = usize::try_from(self.below(of.len() as u64)).ok()?;
        of.get(place)
    }
}

/// The fault at one call of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// No fault.
    Fine,
    /// The call fails and has no effect.
    Refused,
    /// The call takes effect, and its reply is lost.
    Unheard,
    /// The call takes effect twice.
    Twice,
}

/// A service that can be away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// Tasks, threads and webhooks.
    Table,
    /// The bytes of files.
    Bucket,
}

/// Whether the store delays its reply to a worker that has written a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// No delay.
    Never,
    /// The next such reply is held, and then lost.
    Next,
    /// A reply is held now.
    Held,
}

/// What all processes of a history share.
#[derive(Debug)]
pub(crate) struct SimulationWorld {
    pub(crate) chance: Chance,
    pub(crate) now: i64,
    /// The earliest time that a process waits for.
    pub(crate) next_wake: Option<i64>,
    /// The wakers of processes that wait for the clock.
    pub(crate) sleepers: Vec<Waker>,
    /// Whether the polled process has passed or reached a point.
    pub(crate) moved: bool,
    /// Points passed so far.
    pub(crate) points: u64,
    /// The points at which a process is killed.
    pub(crate) kill_at: Vec<u64>,
    /// Whether the polled process has to die.
    pub(crate) kill: bool,
    /// Whether services fail.
    pub(crate) faulty: bool,
    /// The service that is away.
    pub(crate) away: Option<Service>,
    pub(crate) late: Late,
    pub(crate) ids: u128,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) oracle: Oracle,
    pub(crate) messages: Messages,
    /// The letters with a key, by the key's number.
    pub(crate) keyed: Vec<Letter>,
    /// The optional parts of the history.
    pub(crate) features: Features,
}

/// The parts of a history besides sends, answers, cancels and streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Features {
    /// The clocks of the machines differ, by up to ten seconds.
    pub(crate) skewed: bool,
    /// Clients delete tasks and contexts, and reuse their ids.
    pub(crate) deletes: bool,
    /// Programs have up to twelve steps instead of five.
    pub(crate) long: bool,
    /// Clients register webhooks.
    pub(crate) hooks: bool,
    /// The history ends with an outage of a store.
    pub(crate) outage: bool,
}

impl Features {
    /// The features of the history with this seed. Each is in every second history.
    pub(crate) fn of_history(seed: u64) -> Self {
        let mut chance = Chance::new(seed ^ 0x5EED);
        let mut has = || chance.below(2) == 0;
        Self {
            skewed: has(),
            deletes: has(),
            long: has(),
            hooks: has(),
            outage: has(),
        }
    }
}

impl SimulationWorld {
    fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        Self {
            chance: Chance::new(seed),
            now: START,
            next_wake: None,
            sleepers: Vec::new(),
            moved: false,
            points: 0,
            kill_at: Vec::new(),
            kill: false,
            faulty: true,
            away: None,
            late: Late::Never,
            ids: 0,
            mutant,
            oracle: Oracle::default(),
            messages: Messages::default(),
            keyed: Vec::new(),
            features: Features::default(),
        }
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Whether a failed call is attempted again.
    pub(crate) const fn repeats(&mut self) -> bool {
        !self.faulty || self.chance.below(2) == 0
    }

    pub(crate) const fn fate(&mut self) -> Fate {
        if !self.faulty {
            return Fate::Fine;
        }
        match self.chance.below(100) {
            0..2 => Fate::Refused,
            2..5 => Fate::Unheard,
            5 => Fate::Twice,
            _ => Fate::Fine,
        }
    }
}

/// The world behind a lock. A history runs on one thread; the lock only satisfies the
/// compiler.
#[derive(Debug)]
pub(crate) struct Hub(Mutex<SimulationWorld>);

impl Default for Hub {
    fn default() -> Self {
        Self(Mutex::new(SimulationWorld::new(0, None)))
    }
}

impl Hub {
    pub(crate) fn begin(&self, seed: u64, mutant: Option<Mutant>) {
        *self.world() = SimulationWorld::new(seed, mutant);
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, SimulationWorld> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A point: the process can be stopped here, or other processes run first.
    pub(crate) fn pause(&self) -> impl Future<Output = ()> + Send + '_ {
        let mut first = true;
        poll_fn(move |cx| {
            let mut world = self.world();
            world.moved = true;
            if std::mem::take(&mut first) {
                world.points += 1;
                let points = world.points;
                world.kill |= world.kill_at.contains(&points);
            // Futures that one process awaits together need not return in the same poll.
            } else if world.chance.below(5) > 0 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Returns when the history's time has reached `at`.
    pub(crate) fn sleep_until(&self, at: i64) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(move |cx| {
            let mut world = self.world();
            if at <= world.now {
                return Poll::Ready(());
            }
            world.sleepers.push(cx.waker().clone());
            world.next_wake = Some(world.next_wake.map_or(at, |next| next.min(at)));
            Poll::Pending
        })
    }

    /// The process dies here.
    pub(crate) async fn die(&self) {
        self.world().kill = true;
        std::future::pending::<()>().await;
    }
}

/// The clock of one machine.
#[derive(Debug)]
pub(crate) struct LocalClock {
    pub(crate) hub: Arc<Hub>,
    /// How many milliseconds it is ahead.
    pub(crate) ahead: i64,
}

impl Clock for LocalClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.hub.world().now + self.ahead)
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let at = at.as_millis() - self.ahead;
        Box::pin(self.hub.sleep_until(at))
    }
}

impl Ids for Hub {
    fn next(&self) -> u128 {
        let mut world = self.world();
        world.ids += 1;
        world.ids
    }
}
