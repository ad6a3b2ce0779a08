//! A model of sends and answers that a client repeats under one idempotency key.
//!
//! A call looks its key up, reads the task, and writes task and key in one transaction.
//! Each of the three is an action. Several calls with one key are a client that repeats
//! its request, or clients that send it at the same time. A task at rest, and its key
//! with it, may expire at any time.

mod props;
mod tests;

use stateright::{Model, Property};

const CALLS: usize = 4;
const TASKS: usize = CALLS;
/// The key of the send that opens a task, and the key of the answer to its question.
const KEYS: usize = 2;

/// The kinds of calls; each kind has one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Send,
    Answer,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Absent,
    Working,
    Asking,
    Completed,
    Expired,
}

impl State {
    const fn lives(self) -> bool {
        !matches!(self, Self::Absent | Self::Expired)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Meta {
    state: State,
    version: u8,
    /// Answers accepted so far.
    answers: u8,
}

/// The item of a key: the task + 1 and the call that wrote it + 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Idem {
    task: u8,
    write: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum At {
    #[default]
    Start,
    /// The key was free.
    Free,
    /// The task was read: ready to write.
    Read,
    /// Refused, unless a last lookup finds the key taken.
    Doubts,
    /// Task written, key not yet (a mutant).
    Half,
    /// The reply of the write is lost, and the client has gone.
    Unheard,
    Ok,
    Refused,
    Dead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Call {
    at: At,
    task: u8,
    /// The version it read.
    seen: u8,
    /// Whether it found a key of a task that is gone.
    dead: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct KeyWorld {
    tasks: [Meta; TASKS],
    keys: [Idem; KEYS],
    calls: [Call; CALLS],
    crashes: u8,
    lost: u8,
    expiries: u8,
    /// A repeat was refused because of its own earlier request.
    refused_for_itself: bool,
    /// A caller received a task that is not its key's task.
    told_another: bool,
    /// A caller received a task that is gone.
    told_dead: bool,
    /// A repeat received the task of a call that never got its reply.
    heard_late: bool,
    /// A key was taken again after its task had expired.
    taken_again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// A create writes its key after its task.
    KeyAfterCreate,
    /// A continuation writes its key after its task.
    KeyAfterAnswer,
    /// A create looks its key up, then writes without a condition on the key.
    CreateUnchecked,
    /// A continuation is conditional on its task, not on its key.
    AnswerWithoutKey,
    /// An error of a keyed call is returned without a second lookup of the key.
    LookedUpOnce,
    /// A key outlives its task.
    KeyOutlivesTask,
    /// The key of a task that is gone is replaced, even if it has changed meanwhile.
    ReplacedUnchecked,
}

#[derive(Clone, Copy, Debug)]
struct Keyed {
    calls: &'static [Kind],
    crashes: u8,
    lost: u8,
    expiries: u8,
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Look(usize),
    Load(usize),
    /// The transaction; `true` if its reply arrives.
    Write(usize, bool),
    WriteKey(usize),
    LookAgain(usize),
    Crash(usize),
    /// A turn ends: with a question, or for good.
    End(usize),
    Expire(usize),
}

impl Model for Keyed {
    type State = KeyWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<KeyWorld> {
        vec![KeyWorld {
            crashes: self.crashes,
            lost: self.lost,
            expiries: self.expiries,
            ..KeyWorld::default()
        }]
    }

    fn actions(&self, world: &KeyWorld, actions: &mut Vec<Action>) {
        for (i, _) in self.calls.iter().enumerate() {
            match world.calls[i].at {
                At::Start => actions.push(Action::Look(i)),
                At::Free => actions.push(Action::Load(i)),
                At::Read => {
                    actions.extend([true, false].map(|heard| Action::Write(i, heard)));
                }
                At::Half => actions.push(Action::WriteKey(i)),
                At::Doubts => actions.push(Action::LookAgain(i)),
                At::Unheard | At::Ok | At::Refused | At::Dead => {}
            }
            if matches!(world.calls[i].at, At::Free | At::Read | At::Half) {
                actions.push(Action::Crash(i));
            }
        }
        for task in 0..TASKS {
            actions.extend([Action::End(task), Action::Expire(task)]);
        }
    }

    fn next_state(&self, last: &KeyWorld, action: Action) -> Option<KeyWorld> {
        let mut world = *last;
        match action {
            Action::Look(i) => self.look(&mut world, i),
            Action::Load(i) => self.load(&mut world, i)?,
            Action::Write(i, heard) => self.write(&mut world, i, heard)?,
            Action::WriteKey(i) => {
                self.put_key(&mut world, i);
                world.answer(i, world.calls[i].task, self);
            }
            Action::LookAgain(i) => self.look_again(&mut world, i),
            Action::Crash(i) => {
                world.crashes = world.crashes.checked_sub(1)?;
                world.calls[i].at = At::Dead;
            }
            Action::End(task) => world.end(task)?,
            Action::Expire(task) => {
                let at_rest = [State::Asking, State::Completed];
                if !at_rest.contains(&world.tasks[task].state) {
                    return None;
                }
                world.expiries = world.expiries.checked_sub(1)?;
                world.tasks[task].state = State::Expired;
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        props::properties(self)
    }
}

impl Keyed {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn key(&self, call: usize) -> usize {
        match self.calls[call] {
            Kind::Send => 0,
            Kind::Answer => 1,
        }
    }

    /// The task under the key of a call, unless the task is gone.
    fn taken(&self, world: &KeyWorld, call: usize) -> Option<u8> {
        let task = world.keys[self.key(call)].task.checked_sub(1)?;
        let lives = world.tasks[usize::from(task)].state.lives();
        (lives || self.is(Mutant::KeyOutlivesTask)).then_some(task)
    }

    fn look(&self, world: &mut KeyWorld, i: usize) {
        match self.taken(world, i) {
            Some(task) => world.answer(i, task, self),
            None => {
                world.calls[i].dead = world.keys[self.key(i)].task > 0;
                world.calls[i].at = At::Free;
            }
        }
    }

    /// Reads the task that an answer belongs to.
    fn load(&self, world: &mut KeyWorld, i: usize) -> Option<()> {
        if self.calls[i] == Kind::Send {
            world.calls[i].at = At::Read;
            return Some(());
        }
        let task = world
            .tasks
            .iter()
            .position(|meta| meta.state != State::Absent)?;
        let meta = world.tasks[task];
        if meta.state == State::Working && meta.answers == 0 {
            return None; // The skill has not asked its question yet.
        }
        let call = &mut world.calls[i];
        call.task = task as u8;
        call.seen = meta.version;
        call.at = match meta.state {
            State::Asking => At::Read,
            _ => At::Doubts,
        };
        Some(())
    }

    fn look_again(&self, world: &mut KeyWorld, i: usize) {
        match self.taken(world, i) {
            Some(task) if !self.is(Mutant::LookedUpOnce) => world.answer(i, task, self),
            _ => world.refuse(i, self),
        }
    }

    fn write(&self, world: &mut KeyWorld, i: usize, heard: bool) -> Option<()> {
        let kind = self.calls[i];
        let unchecked = match kind {
            Kind::Send => self.is(Mutant::CreateUnchecked) || self.is(Mutant::KeyAfterCreate),
            Kind::Answer => self.is(Mutant::AnswerWithoutKey) || self.is(Mutant::KeyAfterAnswer),
        };
        let unchecked = unchecked || (self.is(Mutant::ReplacedUnchecked) && world.calls[i].dead);
        if !unchecked && let Some(task) = self.taken(world, i) {
            if !heard {
                return None; // Nothing was applied: the client repeats the call.
            }
            world.answer(i, task, self);
            return Some(());
        }
        match kind {
            Kind::Send => {
                world.calls[i].task = i as u8;
                world.tasks[i] = Meta {
                    state: State::Working,
                    version: 1,
                    answers: 0,
                };
            }
            Kind::Answer => {
                let call = world.calls[i];
                let meta = &mut world.tasks[usize::from(call.task)];
                if meta.state != State::Asking || meta.version != call.seen {
                    world.refuse(i, self);
                    return Some(());
                }
                meta.state = State::Working;
                meta.version += 1;
                meta.answers += 1;
            }
        }
        let late = match kind {
            Kind::Send => self.is(Mutant::KeyAfterCreate),
            Kind::Answer => self.is(Mutant::KeyAfterAnswer),
        };
        if late {
            world.calls[i].at = At::Half;
            return heard.then_some(());
        }
        self.put_key(world, i);
        if heard {
            world.answer(i, world.calls[i].task, self);
        } else {
            world.lost = world.lost.checked_sub(1)?;
            world.calls[i].at = At::Unheard;
        }
        Some(())
    }

    fn put_key(&self, world: &mut KeyWorld, i: usize) {
        let key = &mut world.keys[self.key(i)];
        world.taken_again |= key.task > 0;
        *key = Idem {
            task: world.calls[i].task + 1,
            write: i as u8 + 1,
        };
    }
}

impl KeyWorld {
    /// The caller receives its task.
    fn answer(&mut self, i: usize, task: u8, model: &Keyed) {
        let key = self.keys[model.key(i)];
        self.told_another |= key.task != task + 1;
        self.told_dead |= !self.tasks[usize::from(task)].state.lives();
        let writer = usize::from(key.write.saturating_sub(1));
        let unheard = self.calls[writer].at == At::Unheard;
        self.heard_late |= unheard && writer != i;
        self.calls[i].at = At::Ok;
        self.calls[i].task = task;
    }

    /// The caller hears that its message was not accepted. This may be wrong only for a
    /// task that is gone.
    fn refuse(&mut self, i: usize, model: &Keyed) {
        let meta = self.tasks[usize::from(self.calls[i].task)];
        let answers = model.calls[i] == Kind::Answer;
        self.refused_for_itself |= answers && meta.state.lives() && meta.answers > 0;
        self.calls[i].at = At::Refused;
    }

    fn end(&mut self, task: usize) -> Option<()> {
        let meta = &mut self.tasks[task];
        if meta.state != State::Working {
            return None;
        }
        // The first turn asks a question, and so does the second: the task stays open.
        meta.state = match meta.answers {
            0 | 1 => State::Asking,
            _ => State::Completed,
        };
        meta.version += 1;
        Some(())
    }
}
