//! Runs the processes of a history on one thread and without a runtime, one poll at a
//! time: the seed determines the whole schedule.

use crate::clients::{Endpoint, Letter, after};
use crate::hub::{Hub, SimulationWorld};
use crate::oracle::{Life, Moment, Seen};
use crate::queue::Messages;
use crate::webhooks::BRINGS;
use a2a_lambda::task::Timestamp;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// The limit of rounds while the history heals. It has room for a backlog of attempts,
/// each with its lease and its wait.
const ROUNDS: usize = 600;
/// How many sweeps bring all push deliveries that the queue refused.
const SWEEPS: usize = 8;
/// Milliseconds between two sweeps.
const SWEEP: i64 = 300_000;

/// Records whether a process asked to be polled again.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Process {
    name: &'static str,
    number: u64,
    future: Running,
    /// It waits for the clock.
    idle: bool,
    /// When it began.
    begun: Moment,
    /// The time at which the platform ends it.
    deadline: Option<i64>,
}

/// The processes that are alive.
pub(crate) struct Driver {
    pub(crate) site: Endpoint,
    hub: Arc<Hub>,
    live: Vec<Process>,
    wake_flag: Arc<WakeFlag>,
    waker: Waker,
    started: u64,
    pub(crate) steps: u64,
    pub(crate) kills: u64,
}

impl Driver {
    pub(crate) fn new(site: Endpoint) -> Self {
        let wake_flag = Arc::new(WakeFlag::default());
        Self {
            hub: Arc::clone(&site.hub),
            site,
            live: Vec::new(),
            waker: Waker::from(Arc::clone(&wake_flag)),
            wake_flag,
            started: 0,
            steps: 0,
            kills: 0,
        }
    }

    pub(crate) fn start(
        &mut self,
        name: &'static str,
        deadline: Option<Timestamp>,
        future: impl Future<Output = ()> + 'static,
    ) {
        self.started += 1;
        let number = self.started;
        self.note(|| format!("start {name} {number}"));
        let begun = self.hub.world().oracle.passes();
        self.live.push(Process {
            begun,
            name,
            number,
            future: Box::pin(future),
            idle: false,
            deadline: deadline.map(Timestamp::as_millis),
        });
    }

    fn note(&self, text: impl FnOnce() -> String) {
        self.hub.world().oracle.note(text);
    }

    pub(crate) fn is_running(&self, name: &str) -> bool {
        self.live.iter().any(|process| process.name == name)
    }

    /// Whether the process that began at this moment is alive.
    pub(crate) fn is_alive(&self, begun: Moment) -> bool {
        self.live.iter().any(|process| process.begun == begun)
    }

    pub(crate) const fn living(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn is_broken(&self) -> bool {
        let world = self.hub.world();
        world.oracle.abandoned || !world.oracle.violations.is_empty()
    }

    /// Polls one random process; false if all wait for the clock.
    pub(crate) fn poll_one(&mut self) -> bool {
        let ready: Vec<usize> = (0..self.live.len())
            .filter(|n| self.live.get(*n).is_some_and(|process| !process.idle))
            .collect();
        let Some(chosen) = self.hub.world().chance.pick(&ready).copied() else {
            return false;
        };
        self.poll(chosen);
        true
    }

    /// Polls only the process of this name; false if it waits or has ended.
    pub(crate) fn poll_named(&mut self, name: &str) -> bool {
        let named = |process: &Process| process.name == name && !process.idle;
        let Some(place) = self.live.iter().position(named) else {
            return false;
        };
        self.poll(place);
        true
    }

    fn poll(&mut self, place: usize) {
        self.steps += 1;
        self.hub.world().moved = false;
        self.wake_flag.0.store(false, Ordering::Relaxed);
        let Some(process) = self.live.get_mut(place) else {
            return;
        };
        self.hub.world().oracle.begun = process.begun;
        let mut context = Context::from_waker(&self.waker);
        let done = process.future.as_mut().poll(&mut context).is_ready();
        let (moved, kill) = {
            let mut world = self.hub.world();
            (world.moved, std::mem::take(&mut world.kill))
        };
        process.idle = !moved && !self.wake_flag.0.load(Ordering::Relaxed);
        if kill && !done {
            self.kill(place);
        } else if done {
            self.live.swap_remove(place);
        }
    }

    fn kill(&mut self, place: usize) {
        if place < self.live.len() {
            self.kills += 1;
            let dead = self.live.swap_remove(place);
            self.note(|| format!("kill {} {}", dead.name, dead.number));
        }
    }

    pub(crate) fn kill_one(&mut self) {
        let chosen = self.hub.world().chance.below(self.live.len() as u64);
        self.kill(usize::try_from(chosen).unwrap_or(0));
    }

    /// Kills every process.
    pub(crate) fn kill_all(&mut self) {
        while !self.live.is_empty() {
            self.kill(0);
        }
    }

    /// Moves time. The platform ends every process that is past its deadline.
    pub(crate) fn advance_to(&mut self, at: i64) {
        let sleepers = {
            let mut world = self.hub.world();
            world.now = world.now.max(at);
            world.next_wake = None;
            std::mem::take(&mut world.sleepers)
        };
        // A future that polls several others at a time may skip those that nothing woke.
        sleepers.iter().for_each(Waker::wake_by_ref);
        let now = self.hub.world().now;
        self.note(|| format!("clock {now}"));
        for process in &mut self.live {
            process.idle = false;
        }
        while let Some(place) = self
            .live
            .iter()
            .position(|process| process.deadline.is_some_and(|at| at < now))
        {
            self.kill(place);
        }
    }

    /// Moves time to the next moment that a process waits for.
    pub(crate) fn advance(&mut self) {
        let (now, wake) = {
            let world = self.hub.world();
            (world.now, world.next_wake)
        };
        self.advance_to(wake.map_or(now + 1000, |at| at.max(now + 1)));
    }

    /// Runs every process to its end.
    pub(crate) fn finish(&mut self) {
        let mut rounds = 0;
        while !self.live.is_empty() {
            if self.is_broken() {
                return;
            }
            if !self.poll_one() {
                rounds += 1;
                if rounds > 20_000 {
                    let names: Vec<_> = self.live.iter().map(|process| process.name).collect();
                    self.broken(format!("G15: {names:?} never end"));
                    return;
                }
                self.advance();
            }
        }
    }

    fn broken(&self, text: String) {
        self.hub.world().oracle.broken(text);
    }

    pub(crate) fn work(&mut self, number: u64, seconds: u64) {
        let deadline = Some(after(&self.hub, seconds));
        let site = self.site.on_any_machine();
        self.start("worker", deadline, site.work(number, deadline));
    }

    pub(crate) fn bring(&mut self, number: u64) {
        let deadline = Some(after(&self.hub, BRINGS.as_secs()));
        let site = self.site.on_any_machine();
        self.start("push delivery", deadline, site.bring(number, deadline));
    }

    /// Faults stop. Relay, workers and sweep bring every task to rest.
    pub(crate) fn heal(&mut self) {
        {
            let mut world = self.hub.world();
            world.faulty = false;
            world.kill_at.clear();
        }
        self.site.store.memory.table.catch_up_indexes();
        // Work that was ever queued comes to rest without the sweep.
        self.drain(false);
        let stuck = self.open(|seen| seen.dispatched);
        if let Some(id) = stuck.first() {
            self.broken(format!(
                "G1: task {id} was queued, is not at rest, and no message is left"
            ));
        }
        self.check_hooks(|messages, hook| !messages.unqueued.contains(hook));
        self.drain(true);
        if let Some(id) = self.open(|_| true).first() {
            self.broken(format!("G1: task {id} never comes to rest"));
        }
        for _ in 0..SWEEPS {
            if self.is_broken() || self.site.store.unheard(&self.hub.world().oracle).is_empty() {
                break;
            }
            let now = self.hub.world().now;
            self.advance_to(now + SWEEP);
            self.start("sweep", None, self.site.on_any_machine().sweep());
            self.finish();
            self.drain(false);
        }
        self.check_hooks(|_, _| true);
    }

    /// Checks that these webhooks of tasks at rest have received every event.
    fn check_hooks(&self, which: impl Fn(&Messages, &str) -> bool) {
        let missed = self.site.store.unheard(&self.hub.world().oracle);
        for (hook, text) in missed {
            if which(&self.hub.world().messages, &hook) {
                self.broken(text);
            }
        }
    }

    /// The tasks that are not at rest.
    fn open(&self, which: impl Fn(&Seen) -> bool) -> Vec<Life> {
        let world = self.hub.world();
        let open = world
            .oracle
            .living()
            .filter(|(_, seen)| !seen.record.state().is_at_rest() && which(seen));
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Runs relay and workers, and the sweep if `sweeping`, until nothing is left to do.
    fn drain(&mut self, sweeping: bool) {
        for _ in 0..ROUNDS {
            if self.is_broken() {
                return;
            }
            if self.hub.world().messages.has_images() {
                self.start("relay", None, self.site.clone().relay());
                self.finish();
                continue;
            }
            if sweeping && self.open(|_| true).is_empty() {
                return;
            }
            let (now, visible, next) = {
                let world = self.hub.world();
                let messages = &world.messages;
                let (work, push_messages) = (&messages.work, &messages.push_messages);
                let visible = (work.visible(world.now), push_messages.visible(world.now));
                let next = [work.next_visible(), push_messages.next_visible()];
                (world.now, visible, next.into_iter().flatten().min())
            };
            let (work, push_messages) = visible;
            if !work.is_empty() || !push_messages.is_empty() {
                for number in work {
                    self.work(number, 900);
                }
                for number in push_messages {
                    self.bring(number);
                }
                self.finish();
                continue;
            }
            match next {
                Some(at) => self.advance_to(at),
                None if sweeping => {
                    self.advance_to(now + SWEEP);
                    self.start("sweep", None, self.site.on_any_machine().sweep());
                    self.finish();
                }
                None => return,
            }
        }
    }

    /// Checks the history at rest: late messages change nothing, every reader gets the events
    /// it missed, every artifact has its bytes.
    pub(crate) fn check(&mut self) {
        {
            let mut world = self.hub.world();
            let now = world.now;
            let messages = &mut world.messages;
            let again: BTreeSet<_> = messages.work.sent.iter().cloned().collect();
            for item in again {
                messages.work.add(item, now);
            }
            let again: BTreeSet<_> = messages.push_messages.sent.iter().cloned().collect();
            for item in again {
                messages.push_messages.add(item, now);
            }
        }
        self.drain(true);
        self.settle();
        let positions = self.hub.world().oracle.positions.clone();
        for (place, position) in positions.iter().enumerate() {
            let lives = self.hub.world().oracle.lives(&position.life);
            if position.last.is_some() && lives {
                let site = self.site.clone();
                let task = position.life.task.clone();
                self.start("reader", None, site.subscribe(task, Some(place), u64::MAX));
            }
        }
        let world = self.hub.world();
        let living = world.oracle.living();
        let tasks: Vec<Life> = living.map(|(life, _)| life.clone()).collect();
        drop(world);
        for life in tasks {
            self.start("get", None, self.site.clone().find(life));
        }
        self.finish();
        let mut world = self.hub.world();
        check_readers(&mut world, positions.len());
        world.oracle.check_said();
        drop(world);
        self.check_lost();
    }

    /// Checks that what lives has all its items.
    fn check_lost(&self) {
        let has_keys = !self.site.store.keeps_keys_loose();
        let lost = {
            let world = self.hub.world();
            self.site.store.lost(&world.oracle, world.now, has_keys)
        };
        for text in lost {
            self.broken(text);
        }
    }

    /// Nine days later, when the table has removed what has expired, what lives has all its items,
    /// and takes the answers to its questions.
    pub(crate) fn age(&mut self) {
        let now = self.hub.world().now;
        self.advance_to(now + 9 * DAY);
        self.site.store.clean_up();
        self.start("sweep", None, self.site.on_any_machine().sweep());
        self.finish();
        self.check_lost();
        let asked: Vec<(Life, u32)> = {
            let world = self.hub.world();
            let now = Timestamp::from_millis(world.now + DAY);
            let open = world
                .oracle
                .living()
                .filter(|(_, seen)| seen.record.is_open(now));
            open.map(|(life, seen)| (life.clone(), seen.record.turn))
                .collect()
        };
        for (life, _) in &asked {
            let letter = Letter {
                task: Some(life.task.clone()),
                ..Letter::new("", "go")
            };
            let site = self.site.on_any_machine();
            self.start("late answer", None, site.send(letter, None));
        }
        self.finish();
        for (life, turn) in asked {
            let now = self
                .hub
                .world()
                .oracle
                .tasks
                .get(&life)
                .map(|it| it.record.turn);
            if now.is_none_or(|now| now <= turn) {
                self.broken(format!("G20: the question of task {life} takes no answer"));
            }
        }
    }
}

/// How long a deletion takes to complete, and until the sweep looks at an object: 25 h.
const DAY: i64 = 25 * 3_600_000;

impl Driver {
    /// After two days of sweeps no deleted content is left, and no object that no task
    /// names.
    fn settle(&mut self) {
        for _ in 0..2 {
            let now = self.hub.world().now;
            self.advance_to(now + DAY);
            self.start("sweep", None, self.site.on_any_machine().sweep());
            self.finish();
        }
        let left = self.site.store.left_over(&self.hub.world().oracle);
        for text in left {
            self.broken(text);
        }
    }
}

/// Checks that the readers that resumed, from the place `from` on, have seen everything.
fn check_readers(world: &mut SimulationWorld, from: usize) {
    let positions = world.oracle.positions.clone();
    for position in positions.iter().skip(from).filter(|it| it.last.is_some()) {
        let last = world.oracle.last_seq(&position.life);
        if last > position.seq {
            let text = format!(
                "G7: a reader of task {} has {} of {last} events",
                position.life, position.seq
            );
            world.oracle.broken(text);
        }
    }
}
