//! A model of thread state: two tasks of one context end at the same time.
//!
//! A turn's changes are operations with ids. The final commit is one transaction of META
//! and STATE. A worker that loses the compare-and-set applies its operations again to the
//! fresh state, and never runs the skill again. The state is an S3 object: the worker
//! stores the bytes under a new key first, then the pointer.

mod props;

use crate::check;
use stateright::{Model, Property};

const TASKS: usize = 2;
/// The number of object keys; every write has its own key.
const OBJECTS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Working,
    Completed,
    Canceled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Task {
    state: State,
    epoch: u8,
    wid: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum At {
    #[default]
    Idle,
    Running,
    /// The skill has returned; STATE is to be read.
    Returned,
    /// The next state is made from STATE of this version.
    Applied,
    /// Its bytes are stored.
    Stored,
    /// The commit's reply was lost.
    Unsure,
    /// STATE is written, META is not (a mutant).
    HalfWritten,
    Done,
}

/// A worker; each task has one at a time, and at most one superseded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Worker {
    at: At,
    epoch: u8,
    version: u8,
    /// The operations in the state it is about to write.
    next: u8,
    /// The object it wrote + 1.
    object: u8,
    tries: u8,
}

/// The pointer of STATE. Its object has one bit per applied operation; each task has one
/// operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    version: u8,
    object: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ThreadWorld {
    tasks: [Task; TASKS],
    thread: Thread,
    /// The operations in each object, + 1; 0 = no object.
    objects: [u8; OBJECTS],
    workers: [[Worker; 2]; TASKS],
    /// How often each task's skill was started.
    starts: [u8; TASKS],
    doubled: bool,
    crashes: u8,
    glitches: u8,
    lost: u8,
    cancels: u8,
}

impl ThreadWorld {
    /// The operations the thread holds.
    fn ops(&self) -> Option<u8> {
        match self.thread.version {
            0 => Some(0),
            _ => self.objects[usize::from(self.thread.object)].checked_sub(1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    SkillRunAgain,
    WholeValueWritten,
    StateWithoutMeta,
    StateUnconditional,
    PointerBeforeObject,
    WriteIdIgnored,
    SameObjectKey,
    EpochUnchecked,
}

#[derive(Clone, Copy, Debug)]
struct Threads {
    crashes: u8,
    glitches: u8,
    lost: u8,
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Claim(usize),
    Return(usize, usize),
    ReadState(usize, usize),
    StoreObject(usize, usize),
    Commit(usize, usize, bool),
    Resolve(usize, usize),
    Cancel(usize),
    Crash(usize, usize),
}

impl Threads {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// A worker claims the task; if another worker still holds it, this costs a glitch.
    fn claim(&self, w: &mut ThreadWorld, t: usize) -> Option<()> {
        let _ = self;
        if w.tasks[t].state != State::Working || w.workers[t][1].at != At::Idle {
            return None;
        }
        if !matches!(w.workers[t][0].at, At::Idle | At::Done) {
            w.glitches = w.glitches.checked_sub(1)?;
            w.workers[t][1] = w.workers[t][0];
        }
        w.tasks[t].epoch += 1;
        w.starts[t] += 1;
        w.workers[t][0] = Worker {
            at: At::Running,
            epoch: w.tasks[t].epoch,
            ..Worker::default()
        };
        Some(())
    }

    /// Reads STATE and applies the operations, each id once.
    fn read_state(&self, w: &mut ThreadWorld, t: usize, i: usize) -> Option<()> {
        if w.workers[t][i].at != At::Returned {
            return None;
        }
        let ops = w.ops()?;
        let version = w.thread.version;
        let worker = &mut w.workers[t][i];
        let stale = self.is(Mutant::WholeValueWritten) && worker.tries > 0;
        worker.next = if stale { worker.next } else { ops | 1 << t };
        worker.version = version;
        worker.at = At::Applied;
        Some(())
    }

    fn store_object(&self, w: &mut ThreadWorld, t: usize, i: usize) -> Option<()> {
        let early = self.is(Mutant::PointerBeforeObject);
        let worker = w.workers[t][i];
        if worker.at != (if early { At::HalfWritten } else { At::Applied }) {
            return None;
        }
        let place = match (self.is(Mutant::SameObjectKey), early) {
            (true, _) => usize::from(worker.version) + 1,
            (_, true) => usize::from(worker.object),
            _ => w.objects.iter().position(|object| *object == 0)?,
        };
        w.objects[place] = worker.next + 1;
        w.workers[t][i].object = place as u8;
        w.workers[t][i].at = if early { At::Done } else { At::Stored };
        Some(())
    }

    /// Commits META and STATE in one transaction.
    fn commit(&self, w: &mut ThreadWorld, t: usize, i: usize, reply_lost: bool) -> Option<()> {
        let mut worker = w.workers[t][i];
        let early = self.is(Mutant::PointerBeforeObject);
        let half = self.is(Mutant::StateWithoutMeta);
        if half && worker.at == At::HalfWritten && !reply_lost {
            return Self::commit_meta(w, t, i);
        }
        if worker.at != (if early { At::Applied } else { At::Stored }) {
            return None;
        }
        let epoch = w.tasks[t].epoch == worker.epoch || self.is(Mutant::EpochUnchecked);
        let held = epoch && w.tasks[t].state == State::Working;
        let fresh = w.thread.version == worker.version || self.is(Mutant::StateUnconditional);
        if reply_lost && !(held && fresh) {
            return None;
        }
        if !held && !half {
            worker = Worker {
                at: At::Done,
                ..Worker::default()
            };
        } else if !fresh {
            worker.tries += 1;
            let again = self.is(Mutant::SkillRunAgain);
            worker.at = if again { At::Running } else { At::Returned };
            w.starts[t] += u8::from(again);
        } else {
            if early {
                worker.object = w.objects.iter().position(|object| *object == 0)? as u8;
            }
            w.thread.version += 1;
            w.thread.object = worker.object;
            if half {
                worker.at = At::HalfWritten;
                w.workers[t][i] = worker;
                return (!reply_lost).then_some(());
            }
            w.tasks[t].state = State::Completed;
            w.tasks[t].wid = worker.epoch;
            worker.at = if early { At::HalfWritten } else { At::Done };
        }
        if reply_lost {
            w.lost = w.lost.checked_sub(1)?;
            worker.at = At::Unsure;
        } else if worker.at == At::Done {
            worker = Worker {
                at: At::Done,
                ..Worker::default()
            };
        }
        w.workers[t][i] = worker;
        Some(())
    }

    fn commit_meta(w: &mut ThreadWorld, t: usize, i: usize) -> Option<()> {
        if w.tasks[t].epoch == w.workers[t][i].epoch && w.tasks[t].state == State::Working {
            w.tasks[t].state = State::Completed;
            w.tasks[t].wid = w.workers[t][i].epoch;
        }
        w.workers[t][i] = Worker {
            at: At::Done,
            ..Worker::default()
        };
        Some(())
    }

    /// The reply was lost: the write id in META tells whether the whole commit is stored.
    fn resolve(&self, w: &mut ThreadWorld, t: usize, i: usize) -> Option<()> {
        let worker = w.workers[t][i];
        if worker.at != At::Unsure {
            return None;
        }
        let ours = w.tasks[t].wid == worker.epoch && !self.is(Mutant::WriteIdIgnored);
        if !ours && w.tasks[t].state == State::Completed {
            // The worker reports a failure although its commit is stored.
            w.doubled = true;
        }
        w.workers[t][i] = Worker {
            at: At::Done,
            ..Worker::default()
        };
        Some(())
    }
}

impl Model for Threads {
    type State = ThreadWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<ThreadWorld> {
        let (crashes, glitches, lost) = (self.crashes, self.glitches, self.lost);
        vec![ThreadWorld {
            crashes,
            glitches,
            lost,
            cancels: 1,
            ..ThreadWorld::default()
        }]
    }

    fn actions(&self, _: &ThreadWorld, actions: &mut Vec<Action>) {
        for t in 0..TASKS {
            actions.extend([Action::Claim(t), Action::Cancel(t)]);
            for i in 0..2 {
                actions.extend([Action::Return(t, i), Action::ReadState(t, i)]);
                actions.extend([Action::StoreObject(t, i), Action::Resolve(t, i)]);
                actions.extend([Action::Commit(t, i, false), Action::Commit(t, i, true)]);
                actions.push(Action::Crash(t, i));
            }
        }
    }

    fn next_state(&self, last: &ThreadWorld, action: Action) -> Option<ThreadWorld> {
        let mut w = *last;
        match action {
            Action::Claim(t) => self.claim(&mut w, t)?,
            Action::Return(t, i) => {
                (w.workers[t][i].at == At::Running).then_some(())?;
                w.workers[t][i].at = At::Returned;
            }
            Action::ReadState(t, i) => self.read_state(&mut w, t, i)?,
            Action::StoreObject(t, i) => self.store_object(&mut w, t, i)?,
            Action::Commit(t, i, lost) => self.commit(&mut w, t, i, lost)?,
            Action::Resolve(t, i) => self.resolve(&mut w, t, i)?,
            Action::Cancel(t) => {
                (w.tasks[t].state == State::Working).then_some(())?;
                w.cancels = w.cancels.checked_sub(1)?;
                w.tasks[t].state = State::Canceled;
                w.tasks[t].epoch += 1;
            }
            Action::Crash(t, i) => {
                (!matches!(w.workers[t][i].at, At::Idle | At::Done)).then_some(())?;
                w.crashes = w.crashes.checked_sub(1)?;
                w.workers[t][i] = Worker::default();
            }
        }
        // A superseded worker that is done frees its place.
        for workers in &mut w.workers {
            if workers[1].at == At::Done {
                workers[1] = Worker::default();
            }
        }
        Some(w)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        props::properties(self)
    }
}

const THREADS: Threads = Threads {
    crashes: 2,
    glitches: 2,
    lost: 1,
    mutant: None,
};

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn two_turns_that_end_together_both_change_the_thread() {
    check::holds("thread, two turns", THREADS);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn every_broken_rule_of_a_thread_is_noticed() {
    let changes = "the thread has the changes";
    for (mutant, by) in [
        (Mutant::SkillRunAgain, "a skill starts once"),
        (Mutant::WholeValueWritten, changes),
        (Mutant::StateWithoutMeta, changes),
        (Mutant::StateUnconditional, changes),
        (Mutant::PointerBeforeObject, "G6"),
        (Mutant::WriteIdIgnored, "G16"),
        (Mutant::SameObjectKey, changes),
        (Mutant::EpochUnchecked, "a fenced worker"),
    ] {
        check::caught(
            &format!("{mutant:?}"),
            &Threads {
                mutant: Some(mutant),
                ..THREADS
            },
            by,
        );
    }
}
