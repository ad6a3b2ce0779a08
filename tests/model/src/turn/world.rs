//! The state of the model: stored items, queued messages and the position of each process.

/// Tasks in a world. A second one exists only if two sends have no key in common, or if a
/// rule is broken.
pub(crate) const TASKS: usize = 2;
/// Calls in a world.
pub(crate) const CALLS: usize = 4;
const SLOTS: usize = 6;
const KEYS: usize = 10;

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum State {
    #[default]
    Absent,
    Submitted,
    Working,
    Input,
    Completed,
    Failed,
    Canceled,
}

impl State {
    pub(crate) fn terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    pub(crate) fn at_rest(self) -> bool {
        self.terminal() || self == Self::Input
    }
}

/// The lease of a working task. An ended lease only permits a takeover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lease {
    #[default]
    None,
    Live,
    Ended,
}

/// The stored task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Meta {
    pub(crate) state: State,
    pub(crate) version: u8,
    pub(crate) epoch: u8,
    pub(crate) lease: Lease,
    /// The version that requested a worker; 0 = none.
    pub(crate) dispatch: u8,
    pub(crate) turn: u8,
    pub(crate) attempt: u8,
    /// The last two write ids. The runtime keeps eight; two make the list overflow here.
    pub(crate) wids: [u8; 2],
    pub(crate) turn_wid: u8,
    /// The write that created the task: its incarnation.
    pub(crate) made_by: u8,
    /// The calls with a stored write: messages of the history, a cancel.
    pub(crate) applied: u8,
    /// The epoch that wrote the artifact the task points to; 0 = no artifact.
    pub(crate) artifact: u8,
    /// This turn was dispatched, so that a queue message exists for it.
    pub(crate) queued: bool,
    /// How often the skill was started since the last progress (for the proof).
    pub(crate) runs: u8,
}

/// The position of a process that runs a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    #[default]
    Idle,
    /// It has a message and has not read the task.
    Got,
    /// The claim's reply was lost.
    UnsureClaim,
    /// The skill runs.
    Running,
    /// The skill has ended and its artifact's bytes are stored.
    Stored,
    UnsureEnd,
    /// The skill was dropped to hand the turn over.
    Dropped,
    UnsureHand,
    /// Handed over while the skill still runs (a mutant).
    HandedRunning,
    /// Its commit lost its condition.
    Fenced,
    /// Only the message is left to delete.
    Done,
}

/// A process that runs a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) at: At,
    pub(crate) task: u8,
    pub(crate) epoch: u8,
    /// The turn it runs: part of its write ids, and compared by the proof.
    pub(crate) turn: u8,
    /// The message's slot + 1; 0 = none.
    pub(crate) slot: u8,
    /// The message was shown again since: the receipt is superseded.
    pub(crate) stale: bool,
}

impl Run {
    /// Its skill's future is alive.
    pub(crate) fn skill_alive(&self) -> bool {
        matches!(self.at, At::Running | At::Stored | At::HandedRunning)
    }

    /// It may still write the task under its epoch.
    pub(crate) fn may_write(&self) -> bool {
        self.skill_alive() || matches!(self.at, At::Dropped | At::UnsureClaim)
    }
}

/// The position of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum CallAt {
    #[default]
    Start,
    /// The skill runs and nothing is written.
    Deferred,
    Checked,
    /// Written, not yet in the queue (a mutant).
    Enqueue,
    Unsure,
    /// The turn runs in the call.
    Inline,
    Written,
    Ok,
    Refused,
    Dead,
}

/// A call of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) at: CallAt,
    pub(crate) task: u8,
    /// The version it read.
    pub(crate) seen: u8,
    pub(crate) run: Run,
}

impl Call {
    pub(crate) fn in_flight(&self) -> bool {
        use CallAt as C;
        !matches!(self.at, C::Start | C::Ok | C::Refused | C::Dead)
    }
}

/// Violations that are recorded when they happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Broken {
    TerminalChanged = 1,
    FencedWrote = 2,
    RefusedForNothing = 4,
    FailedEarly = 8,
}

/// The complete state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TurnWorld {
    pub(crate) tasks: [Meta; TASKS],
    /// Object contents by key: the epoch that wrote them; 0 = no object.
    pub(crate) objects: [[u8; KEYS]; TASKS],
    /// The task under the idempotency key + 1; 0 = none.
    pub(crate) key: u8,
    /// Stream records with a `dispatch` of their own version that the relay has not passed.
    pub(crate) stream: [u8; TASKS],
    /// The task + 1 of the message that the relay sent and has not checkpointed.
    pub(crate) relay: u8,
    /// Turns the relay has sent, for the mutant that drops repeats.
    pub(crate) relayed: [u8; TASKS],
    /// Queue messages: 0 = none, else (task + 1) * 2, + 1 while in flight.
    pub(crate) slots: [u8; SLOTS],
    pub(crate) calls: [Call; CALLS],
    pub(crate) workers: [Run; 2],
    /// The task + 1 that the sweep has read, and the version it read.
    pub(crate) sweep: (u8, u8),
    /// A stream record of the task was lost: only the sweep can find the task.
    pub(crate) record_lost: [bool; TASKS],
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    pub(crate) lost: u8,
    pub(crate) handovers: u8,
    pub(crate) broken: u8,
}

impl TurnWorld {
    pub(crate) fn breaks(&mut self, rule: Broken) {
        self.broken |= rule as u8;
    }

    pub(crate) fn has_broken(&self, rule: Broken) -> bool {
        self.broken & rule as u8 != 0
    }

    /// The first turn has asked its question, and a late copy of its message is queued.
    pub(crate) fn interrupted(&mut self) {
        self.tasks[0] = Meta {
            state: State::Input,
            version: 3,
            epoch: 1,
            turn: 1,
            attempt: 1,
            runs: 1,
            applied: 1,
            turn_wid: 1,
            made_by: 1,
            queued: true,
            ..Meta::default()
        };
        self.calls[0].at = CallAt::Ok;
        self.enqueue_message(0);
    }

    pub(crate) fn enqueue_message(&mut self, task: usize) {
        let referenced = |slot: usize| self.workers.iter().any(|w| usize::from(w.slot) == slot + 1);
        let free = (0..SLOTS).find(|&slot| self.slots[slot] == 0 && !referenced(slot));
        self.slots[free.expect("the queue of the model is large enough")] = (task as u8 + 1) * 2;
    }

    /// The number of messages of `task`, visible or in flight.
    pub(crate) fn messages(&self, task: usize) -> usize {
        let own = (task as u8 + 1) * 2;
        self.slots.iter().filter(|&&slot| slot & !1 == own).count()
    }

    /// A worker takes a visible message.
    pub(crate) fn receive(&mut self, worker: usize, slot: usize) -> Option<()> {
        let message = self.slots[slot];
        if message == 0 || message & 1 == 1 {
            return None;
        }
        self.slots[slot] |= 1;
        self.workers[worker] = Run {
            at: At::Got,
            task: message / 2 - 1,
            slot: slot as u8 + 1,
            ..Run::default()
        };
        Some(())
    }

    /// The worker stops. The queue shows its message again, unless the receipt is superseded.
    pub(crate) fn leave(&mut self, worker: usize) {
        let run = self.workers[worker];
        if run.slot > 0 && !run.stale {
            self.slots[usize::from(run.slot) - 1] &= !1;
        }
        self.workers[worker] = Run::default();
    }

    /// Every process that runs a turn.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        let inline = self.calls.iter().filter(|c| c.at == CallAt::Inline);
        self.workers.iter().chain(inline.map(|c| &c.run))
    }

    /// Nothing moves any more unless a client, a fault or the sweep begins.
    pub(crate) fn quiet(&self) -> bool {
        self.relay == 0
            && self.stream.iter().all(|&images| images == 0)
            && self.slots.iter().all(|&slot| slot == 0)
            && self.workers.iter().all(|worker| worker.at == At::Idle)
            && !self.calls.iter().any(Call::in_flight)
    }

    /// Sorts workers and messages: worlds that differ only in their order are one world.
    pub(crate) fn canonical(&mut self) {
        let mut order: [usize; SLOTS] = std::array::from_fn(|slot| slot);
        let holders = |slot: usize| {
            let holds = |w: &&Run| usize::from(w.slot) == slot + 1;
            self.workers
                .iter()
                .filter(holds)
                .map(|w| 1 + u8::from(w.stale))
                .sum::<u8>()
        };
        order.sort_by_key(|&slot| std::cmp::Reverse((self.slots[slot], holders(slot))));
        let slots = self.slots;
        for (place, &slot) in order.iter().enumerate() {
            self.slots[place] = slots[slot];
        }
        for worker in &mut self.workers {
            if let Some(slot) = usize::from(worker.slot).checked_sub(1) {
                let place = order.iter().position(|&from| from == slot);
                worker.slot = place.map_or(0, |place| place as u8 + 1);
            }
        }
        self.workers.sort_unstable();
    }
}
