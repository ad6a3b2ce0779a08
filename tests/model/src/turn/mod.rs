//! A model of one task and its turns: writes, runs, dispatches and responses.
//!
//! One store call is one action. A read and the conditional write on top of it are also
//! one action where only the write decides. The reads that a response to a client depends
//! on are separate actions.

mod call;
mod props;
mod queue;
mod refines;
mod run;
mod tests;
mod world;

use stateright::{Model, Property};
pub(crate) use world::*;

/// The calls of a scenario, in the order in which they may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A send with an immediate response: the task is stored with its dispatch intent.
    Queued { keyed: bool },
    /// A send with its turn inside the call. Without a key its create is deferred.
    Blocking { keyed: bool },
    /// An answer to a question, run inside the call or by a worker.
    Continue { inline: bool },
    /// A cancel.
    Cancel,
}

/// A small world and its budget of faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) calls: &'static [Kind],
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    /// Replies of applied writes that never arrive.
    pub(crate) lost: u8,
    pub(crate) handovers: u8,
    pub(crate) attempts: u8,
    /// The first turn asks a question; the second completes.
    pub(crate) asks: bool,
    /// The first turn is over: the world begins with its question, the first call has its
    /// response, and a message of that turn is still in the queue.
    pub(crate) asked: bool,
    pub(crate) sweep: bool,
    /// Stream records may be lost, and the sweep may find queued tasks old.
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

/// The process that runs a turn.
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
    /// A call writes; its reply arrives, is lost, or says "throttled".
    Write(usize, Reply),
    /// A deferred send's skill ends before anything was written.
    Finish(usize, Reply),
    /// A call puts a message into the queue directly (a mutant).
    Enqueue(usize),
    /// A call that got no reply looks for its write id.
    Resolve(usize),
    /// The client receives the response.
    Answer(usize),
    Receive(usize, usize),
    Run(Who, Do),
    /// The relay sends the message of a stream record; the entry may fail.
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

/// A process that may crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proc {
    Who(Who),
    Relay,
}

/// The reply that the caller of a write gets.
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
    /// Stores the artifact's bytes in the object store.
    Store,
    /// The final commit.
    End(Reply),
    /// Drops the skill's future, for a hand-over.
    Drop,
    HandOver(Reply),
    /// Gives the turn back whose run an outage ended.
    Release(Reply),
    /// Looks for the write id of a commit that got no reply.
    Resolve,
    /// Reads the task again after a lost commit.
    Look,
    /// Deletes the message. With `true` the queue still accepts a superseded receipt.
    Delete(bool),
}

impl Model for Turn {
    type State = TurnWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<TurnWorld> {
        let mut world = TurnWorld {
            crashes: self.scenario.crashes,
            glitches: self.scenario.glitches,
            lost: self.scenario.lost,
            handovers: self.scenario.handovers,
            ..TurnWorld::default()
        };
        if self.scenario.asked {
            world.interrupted();
        }
        vec![world]
    }

    fn actions(&self, world: &TurnWorld, actions: &mut Vec<Action>) {
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

    fn next_state(&self, last: &TurnWorld, action: Action) -> Option<TurnWorld> {
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
    fn step(&self, world: &mut TurnWorld, action: Action) -> Option<()> {
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
