//! A process that runs a turn: a worker with its message, or a call.

use super::{Action, At, Broken, Do, Lease, Mutant, Reply, Run, State, Turn, TurnWorld, Who};

/// The write id of a run's commit. An epoch of a turn has one run, so the id is unique.
fn wid(turn: u8, epoch: u8, kind: u8) -> u8 {
    // The ids below 16 belong to the writes of calls.
    16 + turn * 64 + epoch * 4 + kind
}
const CLAIM: u8 = 0;
const HAND: u8 = 1;
const END: u8 = 2;
const GIVE_UP: u8 = 3;

impl Turn {
    pub(super) fn run_actions(run: &Run, who: Who, actions: &mut Vec<Action>) {
        use Reply::{Heard, Lost};
        let steps: &[Do] = match run.at {
            At::Idle => &[],
            At::Got => &[Do::Claim(Heard), Do::Claim(Lost)],
            At::Running | At::HandedRunning => &[
                Do::Beat,
                Do::Store,
                Do::Drop,
                Do::HandOver(Heard),
                Do::HandOver(Lost),
                Do::End(Heard),
                Do::End(Lost),
                Do::Delete(false),
            ],
            At::Stored => &[Do::Beat, Do::End(Heard), Do::End(Lost)],
            At::Dropped => &[
                Do::HandOver(Heard),
                Do::HandOver(Lost),
                Do::Release(Heard),
                Do::Release(Lost),
            ],
            At::UnsureClaim | At::UnsureEnd | At::UnsureHand => &[Do::Resolve],
            At::Fenced => &[Do::Look],
            At::Done => &[Do::Delete(false), Do::Delete(true)],
        };
        actions.extend(steps.iter().map(|&step| Action::Run(who, step)));
    }

    pub(super) fn run(&self, world: &mut TurnWorld, who: Who, step: Do) -> Option<()> {
        let mut run = match who {
            Who::Worker(i) => world.workers[i],
            Who::Call(i) => world.calls[i].run,
        };
        match step {
            Do::Claim(reply) => return self.claim(world, who, run, reply),
            Do::Look => return self.look(world, who, run),
            Do::Delete(works) => return self.delete(world, who, run, works),
            Do::Beat => self.beat(world, &mut run)?,
            Do::Store => self.store(world, &mut run)?,
            Do::End(reply) => self.end(world, &mut run, reply)?,
            Do::Drop => self.drop_skill(world, &mut run)?,
            Do::HandOver(reply) => self.hand_over(world, &mut run, reply, false)?,
            Do::Release(reply) => self.hand_over(world, &mut run, reply, true)?,
            Do::Resolve => self.resolve_run(world, &mut run)?,
        }
        Self::put_back(world, who, run);
        Some(())
    }

    fn put_back(world: &mut TurnWorld, who: Who, run: Run) {
        match who {
            Who::Worker(i) => world.workers[i] = run,
            Who::Call(i) => {
                world.calls[i].run = run;
                Self::inline_answer(world, i);
            }
        }
    }

    /// Reads the task and claims it, or decides how to treat the message.
    fn claim(&self, world: &mut TurnWorld, who: Who, mut run: Run, reply: Reply) -> Option<()> {
        let Who::Worker(worker) = who else {
            return None;
        };
        let task = usize::from(run.task);
        let meta = world.tasks[task];
        let live = meta.state == State::Working && meta.lease == Lease::Live;
        let claimable = !meta.state.at_rest() && !live && !self.is_spent(world, task);
        if reply == Reply::Lost && (!claimable || world.lost == 0) {
            return None;
        }
        if meta.state.at_rest() {
            run.at = At::Done;
        } else if live && !self.is(Mutant::MessageDroppedOnLiveLease) {
            world.leave(worker);
            return Some(());
        } else if live {
            run.at = At::Done;
        } else if !claimable {
            self.give_up(world, task);
            run.at = At::Done;
        } else {
            let dead = meta.lease == Lease::Ended && !self.is(Mutant::AttemptNotCounted);
            self.commit(world, task, wid(meta.turn, meta.epoch + 1, CLAIM), |meta| {
                meta.state = State::Working;
                meta.epoch += 1;
                meta.attempt = (meta.attempt + u8::from(dead)).max(1);
                meta.runs += 1;
                meta.lease = Lease::Live;
                meta.dispatch = 0;
            });
            run.epoch = meta.epoch + 1;
            run.turn = meta.turn;
            run.at = At::Running;
            if reply == Reply::Lost {
                world.lost -= 1;
                run.at = At::UnsureClaim;
            }
        }
        world.workers[worker] = run;
        Some(())
    }

    /// Whether a turn without a live lease has used up its attempts.
    pub(super) fn is_spent(&self, world: &TurnWorld, task: usize) -> bool {
        let (meta, most) = (world.tasks[task], self.scenario.attempts);
        match meta.lease {
            Lease::Ended => meta.attempt >= most,
            Lease::None | Lease::Live => meta.attempt > most,
        }
    }

    /// Fails the task, because its attempts are used up.
    pub(super) fn give_up(&self, world: &mut TurnWorld, task: usize) {
        let meta = world.tasks[task];
        if meta.attempt < self.scenario.attempts {
            world.breaks(Broken::FailedEarly);
        }
        self.commit(world, task, wid(meta.turn, meta.epoch, GIVE_UP), |meta| {
            meta.state = State::Failed;
            meta.lease = Lease::None;
            meta.dispatch = 0;
        });
    }

    /// Whether the run still holds the task: its epoch, and the task is working.
    fn holds(world: &TurnWorld, run: &Run) -> bool {
        let meta = &world.tasks[usize::from(run.task)];
        meta.epoch == run.epoch && meta.state == State::Working
    }

    /// The heartbeat extends the lease, or finds that the run is fenced out.
    fn beat(&self, world: &mut TurnWorld, run: &mut Run) -> Option<()> {
        let task = usize::from(run.task);
        let lease = world.tasks[task].lease;
        if self.is(Mutant::HeartbeatWithoutCondition) {
            if lease == Lease::Live {
                return None;
            }
            world.tasks[task].lease = Lease::Live;
            if world.tasks[task].state.terminal() {
                world.breaks(Broken::TerminalChanged);
            }
        } else if !Self::holds(world, run) {
            run.at = At::Fenced;
        } else if lease == Lease::Live {
            return None;
        } else {
            world.tasks[task].lease = Lease::Live;
        }
        Some(())
    }

    const fn asks(&self, run: &Run) -> bool {
        self.scenario.asks && run.turn == 1
    }

    /// Notices a commit of a run that does not hold the task. It also compares the turn, which
    /// no condition of a write does.
    fn push_payload(world: &mut TurnWorld, run: &Run) {
        let turn = world.tasks[usize::from(run.task)].turn;
        if !Self::holds(world, run) || turn != run.turn {
            world.breaks(Broken::FencedWrote);
        }
    }

    /// Stores the artifact's bytes under a key of this epoch.
    fn store(&self, world: &mut TurnWorld, run: &mut Run) -> Option<()> {
        if !matches!(run.at, At::Running | At::HandedRunning) || self.asks(run) {
            return None;
        }
        let key = self.object_key(run.epoch);
        world.objects[usize::from(run.task)][key] = run.epoch;
        run.at = At::Stored;
        Some(())
    }

    pub(super) fn object_key(&self, epoch: u8) -> usize {
        if self.is(Mutant::OneObjectKey) {
            0
        } else {
            usize::from(epoch)
        }
    }

    /// The final commit: completed with its artifact, or a question.
    fn end(&self, world: &mut TurnWorld, run: &mut Run, reply: Reply) -> Option<()> {
        let asks = self.asks(run);
        let early = asks || self.is(Mutant::MetaBeforeObject);
        if run.at == At::HandedRunning || (run.at == At::Running) != early {
            return None;
        }
        let task = usize::from(run.task);
        let working = world.tasks[task].state == State::Working;
        let allowed = Self::holds(world, run)
            || self.is(Mutant::FinalWriteWithoutCondition)
            || (self.is(Mutant::FinalWriteWithoutEpoch) && working);
        if reply == Reply::Lost && (!allowed || world.lost == 0) {
            return None;
        }
        if !allowed {
            run.at = At::Fenced;
            return Some(());
        }
        Self::push_payload(world, run);
        self.commit(world, task, wid(run.turn, run.epoch, END), |meta| {
            meta.state = if asks { State::Input } else { State::Completed };
            meta.artifact = if asks { 0 } else { run.epoch };
            meta.lease = Lease::None;
            meta.dispatch = 0;
        });
        run.at = At::Done;
        if reply == Reply::Lost {
            world.lost -= 1;
            run.at = At::UnsureEnd;
        }
        Some(())
    }

    fn drop_skill(&self, world: &mut TurnWorld, run: &mut Run) -> Option<()> {
        if run.at == At::HandedRunning {
            run.at = At::Done;
            return Some(());
        }
        let early = self.is(Mutant::HandOverBeforeDrop);
        if run.at != At::Running || world.handovers == 0 || early {
            return None;
        }
        world.handovers -= 1;
        run.at = At::Dropped;
        Some(())
    }

    /// Commits checkpoint and dispatch, and removes the lease. A release commits no
    /// checkpoint, and its run is no attempt.
    fn hand_over(
        &self,
        world: &mut TurnWorld,
        run: &mut Run,
        reply: Reply,
        release: bool,
    ) -> Option<()> {
        let early = self.is(Mutant::HandOverBeforeDrop);
        if run.at != (if early { At::Running } else { At::Dropped }) {
            return None;
        }
        if early {
            world.handovers = world.handovers.checked_sub(1)?;
        }
        let held = Self::holds(world, run);
        if reply == Reply::Lost && (!held || world.lost == 0) {
            return None;
        }
        if !held {
            run.at = At::Fenced;
            return Some(());
        }
        let dispatched = !self.is(Mutant::HandOverWithoutDispatch);
        let name = wid(run.turn, run.epoch, HAND);
        Self::push_payload(world, run);
        self.commit(world, usize::from(run.task), name, |meta| {
            // The sweep has counted the run if it took its lease away.
            let counted = meta.lease == Lease::None;
            meta.lease = Lease::None;
            (meta.attempt, meta.runs) = match release {
                true => (meta.attempt, meta.runs - u8::from(!counted)),
                false => (0, 0),
            };
            meta.queued = true;
            meta.dispatch = if dispatched { meta.version } else { 0 };
        });
        run.at = if early { At::HandedRunning } else { At::Done };
        if reply == Reply::Lost {
            world.lost -= 1;
            run.at = At::UnsureHand;
        }
        Some(())
    }

    /// A stored write is done. A write that is not stored, while the run still holds the task,
    /// lost against another write and is applied again.
    fn resolve_run(&self, world: &TurnWorld, run: &mut Run) -> Option<()> {
        let asked = self.asks(run) || self.is(Mutant::MetaBeforeObject);
        let (kind, known, again) = match run.at {
            At::UnsureClaim => (CLAIM, At::Running, At::Fenced),
            At::UnsureEnd if asked => (END, At::Done, At::Running),
            At::UnsureEnd => (END, At::Done, At::Stored),
            At::UnsureHand => (HAND, At::Done, At::Dropped),
            _ => return None,
        };
        let name = wid(run.turn, run.epoch, kind);
        run.at = if self.knows(&world.tasks[usize::from(run.task)], name) {
            known
        } else if Self::holds(world, run) {
            again
        } else {
            At::Fenced
        };
        Some(())
    }

    /// Reads the task after a lost commit: at rest → delete the message, else keep it.
    fn look(&self, world: &mut TurnWorld, who: Who, mut run: Run) -> Option<()> {
        let rests = world.tasks[usize::from(run.task)].state.at_rest();
        let done = rests || self.is(Mutant::FencedWorkerDeletes);
        match who {
            Who::Worker(i) if !done => world.leave(i),
            _ => {
                run.at = At::Done;
                Self::put_back(world, who, run);
            }
        }
        Some(())
    }

    /// Deletes the message by its receipt. The queue chooses whether a superseded receipt
    /// still works.
    fn delete(&self, world: &mut TurnWorld, who: Who, run: Run, works: bool) -> Option<()> {
        let Who::Worker(i) = who else { return None };
        let slot = usize::from(run.slot).checked_sub(1);
        if run.at == At::Done {
            if works && !run.stale {
                return None;
            }
            if self.is(Mutant::DeleteByTask) {
                let own = (run.task + 1) * 2;
                world
                    .slots
                    .iter_mut()
                    .filter(|s| **s & !1 == own)
                    .for_each(|s| *s = 0);
            } else if let Some(slot) = slot
                && (!run.stale || works)
            {
                world.slots[slot] = 0;
            }
            world.workers[i] = Run::default();
            return Some(());
        }
        let early = run.at == At::Running && self.is(Mutant::MessageDeletedBeforeFinalWrite);
        let slot = slot.filter(|_| early && !works)?;
        world.slots[slot] = 0;
        world.workers[i].slot = 0;
        Some(())
    }
}
