//! Relay, queue, sweep, and the faults of the world.

use super::{Action, At, CallAt, Lease, Mutant, Proc, State, TASKS, Turn, TurnWorld, Who};

impl Turn {
    pub(super) fn queue_actions(&self, actions: &mut Vec<Action>) {
        for task in 0..TASKS {
            actions.push(Action::RelaySend(task, false));
            actions.push(Action::RelaySend(task, true));
            actions.push(Action::LeaseEnds(task));
            actions.push(Action::SweepRead(task));
            actions.push(Action::LoseRecord(task));
        }
        actions.push(Action::RelayCheckpoint);
        actions.push(Action::SweepWrite);
        actions.push(Action::Crash(Proc::Relay));
        actions.extend((0..2).map(|i| Action::Crash(Proc::Who(Who::Worker(i)))));
        let calls = 0..self.scenario.calls.len();
        actions.extend(calls.map(|i| Action::Crash(Proc::Who(Who::Call(i)))));
    }

    /// The relay sends the message of a stream record. A failed entry stays in the stream.
    pub(super) fn relay_send(
        &self,
        world: &mut TurnWorld,
        task: usize,
        failed: bool,
    ) -> Option<()> {
        if world.relay > 0 || world.stream[task] == 0 {
            return None;
        }
        let turn = 1 << world.tasks[task].turn;
        let repeat = self.is(Mutant::RelayDropsRepeats) && world.relayed[task] & turn != 0;
        if failed {
            // The relay reports the entry and tries again: no step, unless a mutant ignores the
            // failure.
            if !self.is(Mutant::RelayIgnoresFailed) || world.glitches == 0 {
                return None;
            }
            world.glitches -= 1;
        } else if !repeat {
            world.enqueue_message(task);
        }
        if self.is(Mutant::RelayDropsRepeats) {
            world.relayed[task] |= turn;
        }
        world.relay = task as u8 + 1;
        Some(())
    }

    pub(super) fn relay_checkpoint(&self, world: &mut TurnWorld) -> Option<()> {
        let _ = self;
        let task = usize::from(world.relay).checked_sub(1)?;
        world.stream[task] -= 1;
        world.relay = 0;
        Some(())
    }

    /// The queue shows a message again before its worker has finished with it.
    pub(super) fn redeliver(&self, world: &mut TurnWorld, i: usize) -> Option<()> {
        let run = world.workers[i];
        let slot = usize::from(run.slot).checked_sub(1)?;
        if run.stale || world.glitches == 0 || world.slots[slot] == 0 {
            return None;
        }
        let _ = self;
        world.glitches -= 1;
        world.slots[slot] &= !1;
        world.workers[i].stale = true;
        Some(())
    }

    /// A lease ends: freely if its holder is gone, early as a glitch.
    pub(super) fn lease_ends(&self, world: &mut TurnWorld, task: usize) -> Option<()> {
        let meta = world.tasks[task];
        if meta.lease != Lease::Live {
            return None;
        }
        let unsure = |i: usize| {
            let call = &world.calls[i];
            call.at == CallAt::Unsure && usize::from(call.task) == task
        };
        let held = world
            .runs()
            .any(|run| usize::from(run.task) == task && run.epoch == meta.epoch && run.may_write())
            || (0..self.scenario.calls.len()).any(unsure);
        if held {
            world.glitches = world.glitches.checked_sub(1)?;
        }
        world.tasks[task].lease = Lease::Ended;
        Some(())
    }

    /// A stream record is lost: DynamoDB Streams keep a record for 24 hours.
    pub(super) fn lose_record(&self, world: &mut TurnWorld, task: usize) -> Option<()> {
        if !self.scenario.aging || world.stream[task] == 0 || world.relay > 0 {
            return None;
        }
        world.glitches = world.glitches.checked_sub(1)?;
        world.stream[task] -= 1;
        world.record_lost[task] = true;
        Some(())
    }

    /// The sweep finds a task with an ended lease, or one that has waited too long.
    pub(super) fn sweep_read(&self, world: &mut TurnWorld, task: usize) -> Option<()> {
        let meta = world.tasks[task];
        if !self.scenario.sweep || world.sweep.0 > 0 || meta.state == State::Absent {
            return None;
        }
        let ended = meta.state == State::Working && meta.lease == Lease::Ended;
        let waits = meta.state == State::Submitted
            || (meta.state == State::Working && meta.lease == Lease::None);
        if !ended && !waits {
            return None;
        }
        let by_age = self.is(Mutant::SweepByAge) || self.is(Mutant::SweepFailsByAge);
        if waits && !by_age && !self.scenario.aging {
            return None;
        }
        if waits && !(by_age && world.messages(task) < 2) && !Self::forgotten(world, task) {
            // `dispatched_at` is old only if a fault delayed the message.
            world.glitches = world.glitches.checked_sub(1)?;
        }
        world.sweep = (task as u8 + 1, meta.version);
        // The conditional write decides, so read and write are one step. Without the condition
        // they are two.
        if self.is(Mutant::SweepWithoutCondition) {
            Some(())
        } else {
            self.sweep_write(world)
        }
    }

    /// Whether no record, message or process is left for the task.
    fn forgotten(world: &TurnWorld, task: usize) -> bool {
        let held = |run: &super::Run| run.at != At::Idle && usize::from(run.task) == task;
        world.stream[task] == 0 && world.messages(task) == 0 && !world.runs().any(held)
    }

    /// The sweep's action. For a valid intent it sends the message again without a write.
    /// For an ended lease it writes a new dispatch, or fails the task.
    pub(super) fn sweep_write(&self, world: &mut TurnWorld) -> Option<()> {
        let (task, version) = (usize::from(world.sweep.0).checked_sub(1)?, world.sweep.1);
        world.sweep = (0, 0);
        let meta = world.tasks[task];
        if meta.version != version && !self.is(Mutant::SweepWithoutCondition) {
            return Some(());
        }
        let spent = meta.lease == Lease::Ended && self.is_spent(world, task);
        if spent || (meta.lease == Lease::None && self.is(Mutant::SweepFailsByAge)) {
            self.give_up(world, task);
            return Some(());
        }
        world.record_lost[task] = false;
        if meta.lease == Lease::None && meta.queued {
            world.enqueue_message(task);
            return Some(());
        }
        // 200 is the write id of the sweep, which no call and no run uses.
        let counted = !self.is(Mutant::AttemptNotCounted);
        self.commit(world, task, 200, |meta| {
            meta.attempt += u8::from(counted && meta.lease == Lease::Ended);
            meta.lease = Lease::None;
            meta.queued = true;
            meta.dispatch = meta.version;
        });
        Some(())
    }

    /// A process dies between any two of its store calls.
    pub(super) fn crash(&self, world: &mut TurnWorld, process: Proc) -> Option<()> {
        let _ = self;
        world.crashes = world.crashes.checked_sub(1)?;
        match process {
            Proc::Relay if world.relay > 0 => world.relay = 0,
            Proc::Who(Who::Worker(i)) if world.workers[i].at != At::Idle => world.leave(i),
            Proc::Who(Who::Call(i)) if world.calls[i].in_flight() => {
                world.calls[i].run = super::Run::default();
                world.calls[i].at = CallAt::Dead;
            }
            _ => return None,
        }
        Some(())
    }
}
