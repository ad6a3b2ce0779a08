//! A client's call, from its first read to its response.

use super::{Action, At, Broken, CallAt, Kind, Lease, Meta, Mutant, Reply, Run, State, Turn};
use super::{TurnWorld, Who};

impl Turn {
    pub(super) fn call_actions(&self, world: &TurnWorld, i: usize, actions: &mut Vec<Action>) {
        let replies = [Reply::Heard, Reply::Lost, Reply::Throttled];
        match world.calls[i].at {
            CallAt::Start => {
                actions.push(Action::Begin(i));
                actions.extend(replies.map(|reply| Action::Write(i, reply)));
            }
            CallAt::Deferred => {
                actions.extend(replies.map(|reply| Action::Write(i, reply)));
                actions.extend(replies.map(|reply| Action::Finish(i, reply)));
            }
            CallAt::Checked => actions.extend(replies.map(|reply| Action::Write(i, reply))),
            CallAt::Enqueue => actions.push(Action::Enqueue(i)),
            CallAt::Unsure => actions.push(Action::Resolve(i)),
            CallAt::Inline => Self::run_actions(&world.calls[i].run, Who::Call(i), actions),
            CallAt::Written => actions.push(Action::Answer(i)),
            CallAt::Ok | CallAt::Refused | CallAt::Dead => {}
        }
    }

    fn keyed(&self, i: usize) -> bool {
        use Kind as K;
        matches!(
            self.scenario.calls[i],
            K::Queued { keyed: true } | K::Blocking { keyed: true }
        )
    }

    /// The task that continuations and cancels name, once it exists.
    fn target(world: &TurnWorld) -> Option<usize> {
        world
            .tasks
            .iter()
            .position(|meta| meta.state != State::Absent)
    }

    /// The call's read, or the start of a deferred send's skill.
    pub(super) fn begin(&self, world: &mut TurnWorld, i: usize) -> Option<()> {
        if world.calls[i].at != CallAt::Start {
            return None;
        }
        match self.scenario.calls[i] {
            Kind::Queued { keyed: true } if self.is(Mutant::KeyReadThenWrite) => {
                if world.key > 0 {
                    self.replay(world, i);
                } else {
                    world.calls[i].at = CallAt::Checked;
                }
            }
            Kind::Blocking { keyed } if !keyed || self.is(Mutant::KeyedSendDeferred) => {
                world.calls[i].at = CallAt::Deferred;
            }
            Kind::Continue { .. } => {
                let task = Self::target(world)?;
                let meta = world.tasks[task];
                if meta.state != State::Input && meta.turn < 2 && !meta.state.terminal() {
                    return None; // The skill has not asked its question yet.
                }
                let call = &mut world.calls[i];
                call.task = task as u8;
                call.seen = meta.version;
                call.at = match meta.state {
                    State::Input if self.is(Mutant::ContinuationDeferred) => CallAt::Deferred,
                    State::Input => CallAt::Checked,
                    _ => CallAt::Refused,
                };
            }
            Kind::Cancel => {
                let task = Self::target(world)?;
                let meta = world.tasks[task];
                let call = &mut world.calls[i];
                call.task = task as u8;
                call.seen = meta.version;
                call.at = if meta.state.terminal() {
                    CallAt::Refused
                } else {
                    CallAt::Checked
                };
            }
            Kind::Queued { .. } | Kind::Blocking { .. } => return None,
        }
        Some(())
    }

    /// The call's conditional write.
    pub(super) fn write(&self, world: &mut TurnWorld, i: usize, reply: Reply) -> Option<()> {
        let at = world.calls[i].at;
        if reply == Reply::Throttled {
            // The store decided nothing and the caller repeats the same write: no step.
            if !self.is(Mutant::ThrottleIsConflict) || at != CallAt::Checked || world.glitches == 0
            {
                return None;
            }
            world.glitches -= 1;
            return self.refuse(world, i);
        }
        match (self.scenario.calls[i], at) {
            (Kind::Queued { keyed }, CallAt::Start | CallAt::Checked) => {
                let checks = keyed && self.is(Mutant::KeyReadThenWrite);
                if checks != (at == CallAt::Checked) {
                    return None;
                }
                self.create(world, i, State::Submitted)?;
            }
            (Kind::Blocking { keyed }, CallAt::Start | CallAt::Deferred) => {
                let deferred = !keyed || self.is(Mutant::KeyedSendDeferred);
                if deferred != (at == CallAt::Deferred) {
                    return None;
                }
                self.create(world, i, State::Working)?;
            }
            (Kind::Continue { inline }, CallAt::Checked | CallAt::Deferred) => {
                self.go_on(world, i, inline);
            }
            (Kind::Cancel, CallAt::Checked) => self.cancel(world, i),
            _ => return None,
        }
        Self::lose(world, i, reply)
    }

    /// Writes the finished task of a deferred send in one Put.
    pub(super) fn finish(&self, world: &mut TurnWorld, i: usize, reply: Reply) -> Option<()> {
        let send = matches!(self.scenario.calls[i], Kind::Blocking { .. });
        if world.calls[i].at != CallAt::Deferred || !send || reply == Reply::Throttled {
            return None;
        }
        self.create(world, i, State::Completed)?;
        Self::lose(world, i, reply)
    }

    /// The reply of an applied write may be lost.
    fn lose(world: &mut TurnWorld, i: usize, reply: Reply) -> Option<()> {
        let applied = matches!(world.calls[i].at, CallAt::Written | CallAt::Inline);
        if reply == Reply::Lost {
            if !applied || world.lost == 0 {
                return None;
            }
            world.lost -= 1;
            world.calls[i].at = CallAt::Unsure;
        }
        Some(())
    }

    fn create(&self, world: &mut TurnWorld, i: usize, state: State) -> Option<()> {
        let keyed = self.keyed(i);
        if keyed && world.key > 0 && !self.is(Mutant::KeyReadThenWrite) {
            self.replay(world, i);
            return Some(());
        }
        let sends = &self.scenario.calls[..i];
        let before = sends
            .iter()
            .filter(|k| matches!(k, Kind::Queued { .. } | Kind::Blocking { .. }));
        let task = before.count();
        if world.tasks[task].state != State::Absent {
            return None;
        }
        let dispatched = state == State::Submitted && !self.is(Mutant::WriteThenEnqueue);
        self.commit(world, task, i as u8 + 1, |meta| {
            *meta = Meta {
                state,
                version: meta.version,
                wids: meta.wids,
                turn: 1,
                turn_wid: i as u8 + 1,
                made_by: i as u8 + 1,
                applied: 1 << i,
                queued: state == State::Submitted,
                dispatch: if dispatched { meta.version } else { 0 },
                ..Meta::default()
            };
            if state == State::Working {
                self.start_inline(meta);
            }
        });
        if keyed {
            world.key = task as u8 + 1;
        }
        let call = &mut world.calls[i];
        call.task = task as u8;
        match state {
            State::Working => Self::run_inline(world, i),
            State::Submitted if !dispatched => call.at = CallAt::Enqueue,
            _ => call.at = CallAt::Written,
        }
        Some(())
    }

    /// A repeat with the same key and content receives the task as it is.
    fn replay(&self, world: &mut TurnWorld, i: usize) {
        let task = world.key - 1;
        world.calls[i].task = task;
        world.calls[i].at = CallAt::Ok;
        let _ = self;
    }

    fn start_inline(&self, meta: &mut Meta) {
        meta.state = State::Working;
        meta.lease = Lease::Live;
        meta.epoch += u8::from(!self.is(Mutant::EpochKeptByResume));
        meta.attempt = 1;
        meta.runs = 1;
    }

    fn run_inline(world: &mut TurnWorld, i: usize) {
        let call = &mut world.calls[i];
        let meta = world.tasks[usize::from(call.task)];
        call.at = CallAt::Inline;
        call.run = Run {
            at: At::Running,
            task: call.task,
            epoch: meta.epoch,
            turn: meta.turn,
            ..Run::default()
        };
    }

    fn go_on(&self, world: &mut TurnWorld, i: usize, inline: bool) {
        let task = usize::from(world.calls[i].task);
        let meta = world.tasks[task];
        if meta.version != world.calls[i].seen && !self.is(Mutant::ContinueCheckThenAct) {
            world.calls[i].at = CallAt::Start; // The call reads again and decides again.
            return;
        }
        self.commit(world, task, i as u8 + 1, |meta| {
            meta.turn += 1;
            meta.turn_wid = i as u8 + 1;
            meta.applied |= 1 << i;
            meta.attempt = 0;
            meta.runs = 0;
            meta.queued = !inline;
            if inline {
                self.start_inline(meta);
            } else {
                meta.state = State::Submitted;
                meta.epoch += 1;
                meta.lease = Lease::None;
                meta.dispatch = meta.version;
            }
        });
        if inline {
            Self::run_inline(world, i);
        } else {
            world.calls[i].at = CallAt::Written;
        }
    }

    fn cancel(&self, world: &mut TurnWorld, i: usize) {
        let task = usize::from(world.calls[i].task);
        let stale = world.tasks[task].version != world.calls[i].seen;
        if stale && !self.is(Mutant::CancelReadThenWrite) {
            world.calls[i].at = CallAt::Start;
            return;
        }
        self.commit(world, task, i as u8 + 1, |meta| {
            meta.state = State::Canceled;
            meta.epoch += 1;
            meta.lease = Lease::None;
            meta.dispatch = 0;
            meta.applied |= 1 << i;
        });
        world.calls[i].at = CallAt::Written;
    }

    /// Puts the message into the queue after the write (a mutant).
    pub(super) fn enqueue(&self, world: &mut TurnWorld, i: usize) -> Option<()> {
        if world.calls[i].at != CallAt::Enqueue {
            return None;
        }
        world.enqueue_message(usize::from(world.calls[i].task));
        world.calls[i].at = CallAt::Written;
        Some(())
    }

    /// The reply was lost: the write id tells whether the write is stored.
    pub(super) fn resolve(&self, world: &mut TurnWorld, i: usize) -> Option<()> {
        let call = world.calls[i];
        if call.at != CallAt::Unsure {
            return None;
        }
        let ours = self.knows(&world.tasks[usize::from(call.task)], i as u8 + 1);
        match self.scenario.calls[i] {
            _ if ours && call.run.at != At::Idle => world.calls[i].at = CallAt::Inline,
            _ if ours => world.calls[i].at = CallAt::Written,
            Kind::Continue { .. } | Kind::Cancel => {
                world.calls[i].run = Run::default();
                world.calls[i].at = CallAt::Start;
            }
            // The key leads to the task. Without a key the id is taken, and the send is refused.
            _ if self.keyed(i) => self.replay(world, i),
            _ => return self.refuse(world, i),
        }
        Some(())
    }

    /// Refuses the call because another write was first.
    fn refuse(&self, world: &mut TurnWorld, i: usize) -> Option<()> {
        let open = world.tasks[usize::from(world.calls[i].task)].state == State::Input;
        if open && matches!(self.scenario.calls[i], Kind::Continue { .. }) {
            world.breaks(Broken::RefusedForNothing);
        }
        world.calls[i].at = CallAt::Refused;
        Some(())
    }

    /// Sends the response. From here on the client relies on it.
    pub(super) fn answer(&self, world: &mut TurnWorld, i: usize) -> Option<()> {
        let _ = self;
        (world.calls[i].at == CallAt::Written).then(|| world.calls[i].at = CallAt::Ok)
    }

    /// After an inline step: responds if the turn is at rest or was handed over.
    pub(super) fn inline_answer(world: &mut TurnWorld, i: usize) {
        if world.calls[i].run.at == At::Done {
            world.calls[i].run = Run::default();
            world.calls[i].at = CallAt::Written;
        }
    }

    /// Whether `wid` wrote this task.
    pub(super) fn knows(&self, meta: &Meta, wid: u8) -> bool {
        match self.mutant {
            Some(Mutant::WriteIdIgnored) => false,
            Some(Mutant::WriteIdLatestOnly) => meta.wids[0] == wid,
            _ => meta.wids.contains(&wid) || meta.turn_wid == wid || meta.made_by == wid,
        }
    }

    /// Commits once. Every change of a stored task uses this function.
    pub(super) fn commit(
        &self,
        world: &mut TurnWorld,
        task: usize,
        wid: u8,
        change: impl FnOnce(&mut Meta),
    ) {
        let _ = self;
        let meta = &mut world.tasks[task];
        let terminal = meta.state.terminal();
        meta.version += 1;
        meta.wids = [wid, meta.wids[0]];
        change(meta);
        // The stream carries the new image; the relay's filter passes only an image with a
        // `dispatch` of its own version.
        if meta.dispatch == meta.version {
            world.stream[task] += 1;
        }
        if terminal {
            world.breaks(Broken::TerminalChanged);
        }
    }
}
