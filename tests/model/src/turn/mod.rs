//! One task and its turns: who may write it, who works on it, who is told.
//!
//! A store call is one action. A read followed by a conditional write on what
//! was read is one action too where only the write decides; the reads on which
//! an answer to a client rests are actions of their own.

mod call;
mod props;
mod queue;
mod refines;
mod run;
mod tests;
mod world;

use stateright::{Model, Property};
pub(crate) use world::*;

/// What a client or function does, in the order it may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A send answered at once: stored with its dispatch intent.
    Queued { keyed: bool },
    /// A send whose turn runs in the call. Without a key its create is deferred.
    Blocking { keyed: bool },
    /// An answer to a question, run in the call or left to a worker.
    Continue { inline: bool },
    /// A cancel.
    Cancel,
}

/// A small world and what may go wrong in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) calls: &'static [Kind],
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    /// Replies of applied writes that never arrive.
    pub(crate) lost: u8,
    pub(crate) handovers: u8,
    pub(crate) attempts: u8,
    /// The first turn asks; the second completes.
    pub(crate) asks: bool,
    /// The first turn is over: the world begins with its question, its first
    /// call answered and a message of that turn still in the queue.
    pub(crate) asked: bool,
    pub(crate) sweep: bool,
    /// Stream records may be lost, and queued tasks look old to the sweep.
    pub(crate) aging: bool,
}

/// One rule broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    FinalWriteWithoutCondition,
    FinalWriteWithoutEpoch,
    CancelReadThenWrite,
    KeyReadThenWrite,
    MessageDeletedBeforeFinalWrite,
    ContinueCheckThenAct,
    MessageDroppedOnLiveLease,
    WriteThenEnqueue,
    MetaBeforeObject,
    FencedWorkerDeletes,
    OneObjectKey,
    DeleteByTask,
    ContinuationDeferred,
    KeyedSendDeferred,
    WriteIdIgnored,
    WriteIdLatestOnly,
    ThrottleIsConflict,
    RelayIgnoresFailed,
    RelayDropsRepeats,
    HeartbeatWithoutCondition,
    SweepWithoutCondition,
    SweepByAge,
    SweepFailsByAge,
    HandOverWithoutDispatch,
    HandOverBeforeDrop,
    AttemptNotCounted,
    EpochKeptByResume,
}

/// The model: a scenario, and at most one broken rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) scenario: Scenario,
    pub(crate) mutant: Option<Mutant>,
}

impl Turn {
    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

/// Who runs a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Worker(usize),
    Call(usize),
}

/// One step of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A call reads before it writes, or starts its skill.
    Begin(usize),
    /// A call writes; the reply arrives, is lost, or says "throttled".
    Write(usize, Reply),
    /// A deferred send's skill ends before anything was written.
    Finish(usize, Reply),
    /// A call puts a message into the queue itself (a mutant).
    Enqueue(usize),
    /// A call whose reply was lost looks for its write id.
    Resolve(usize),
    /// The client hears.
    Answer(usize),
    Receive(usize, usize),
    Run(Who, Do),
    /// The relay sends an image's message; an entry may fail.
    RelaySend(usize, bool),
    RelayCheckpoint,
    SweepRead(usize),
    SweepWrite,
    Crash(Proc),
    LeaseEnds(usize),
    /// The queue shows a worker's message again.
    Redeliver(usize),
    /// A stream record is lost.
    LoseRecord(usize),
}

/// What crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proc {
    Who(Who),
    Relay,
}

/// What the caller of a write hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Heard,
    Lost,
    Throttled,
}

/// A step of the process that runs a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    Claim(Reply),
    Beat,
    /// The artifact's bytes go to the object store.
    Store,
    /// The final commit.
    End(Reply),
    /// The skill's future is dropped, for a hand-over.
    Drop,
    HandOver(Reply),
    /// Looks for the write id of a commit whose reply was lost.
    Resolve,
    /// A fresh read after a lost commit.
    Look,
    /// Deletes the message. With `true` a superseded receipt still works.
    Delete(bool),
}

impl Model for Turn {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut world = World {
            crashes: self.scenario.crashes,
            glitches: self.scenario.glitches,
            lost: self.scenario.lost,
            handovers: self.scenario.handovers,
            ..World::default()
        };
        if self.scenario.asked {
            world.interrupted();
        }
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (i, _) in self.scenario.calls.iter().enumerate() {
            self.call_actions(world, i, actions);
        }
        for (i, worker) in world.workers.iter().enumerate() {
            if worker.at == At::Idle {
                let slots = 0..world.slots.len();
                actions.extend(slots.map(|slot| Action::Receive(i, slot)));
            } else {
                Self::run_actions(worker, Who::Worker(i), actions);
                actions.push(Action::Redeliver(i));
            }
        }
        self.queue_actions(actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = *last;
        self.step(&mut world, action)?;
        world.canonical();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        props::properties(&self.scenario, self.mutant)
    }
}

impl Turn {
    fn step(&self, world: &mut World, action: Action) -> Option<()> {
        match action {
            Action::Begin(i) => self.begin(world, i),
            Action::Write(i, reply) => self.write(world, i, reply),
            Action::Finish(i, reply) => self.finish(world, i, reply),
            Action::Enqueue(i) => self.enqueue(world, i),
            Action::Resolve(i) => self.resolve(world, i),
            Action::Answer(i) => self.answer(world, i),
            Action::Receive(i, slot) => world.receive(i, slot),
            Action::Run(who, step) => self.run(world, who, step),
            Action::RelaySend(task, failed) => self.relay_send(world, task, failed),
            Action::RelayCheckpoint => self.relay_checkpoint(world),
            Action::SweepRead(task) => self.sweep_read(world, task),
            Action::SweepWrite => self.sweep_write(world),
            Action::Crash(process) => self.crash(world, process),
            Action::LeaseEnds(task) => self.lease_ends(world, task),
            Action::Redeliver(i) => self.redeliver(world, i),
            Action::LoseRecord(task) => self.lose_record(world, task),
        }
    }
}
