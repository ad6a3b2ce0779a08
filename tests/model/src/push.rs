//! A model of a push config that a client registers while the turn ends.
//!
//! The first config on an open task bumps META's version in its transaction, so that a
//! running turn sees it. A commit on a task with push configs names its last event, and
//! the relay sends a push queue message. Of two push delivery workers, the one with the
//! lease delivers in order, moves the cursor and confirms the end. Until then the sweep
//! can find the task.

mod dispatcher;
mod props;

use crate::check;
use dispatcher::{At, PushDispatcher};
use stateright::{Model, Property};

/// Events of the task: one while it runs, then its end.
const EVENTS: u8 = 2;
const DISPATCHERS: usize = 2;
/// Lease values: not held, and held by a push delivery worker that has died.
const FREE: u8 = 0;
const DEAD: u8 = 9;

/// The time during which a webhook is not called; it ends when the delayed queue message
/// arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Wait {
    #[default]
    None,
    Ahead,
    Over,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Registrar {
    #[default]
    Start,
    /// It read META of this version while the task was open.
    Checked(u8),
    Written,
    Acknowledged,
    Dead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct PushWorld {
    version: u8,
    /// Events committed. With [`EVENTS`] of them the task is terminal.
    events: u8,
    has_pushes: bool,
    /// The last event to push; 0 = none.
    notify: u8,
    /// The sweep can find the task: the delivery of its end is not confirmed.
    open: bool,
    /// Whether the worker has read META, and the version and `has_pushes` it read.
    worker: (bool, u8, bool),
    registrar: Registrar,
    /// The PUSH# item: whether it is stored, its delivery cursor, the event it began after.
    config: (bool, u8, u8),
    /// Stream records with `notify` that the relay has not passed, and whether it has sent one.
    stream: u8,
    relay_sent: bool,
    /// Push queue messages: receivable, delayed, and those of dead push delivery workers,
    /// which become receivable again.
    queue: u8,
    delayed: u8,
    hidden: u8,
    dispatchers: [PushDispatcher; DISPATCHERS],
    /// The holder of the lease: [`FREE`], a push delivery worker by its number, or [`DEAD`].
    lease: u8,
    /// The lease has ended.
    past: bool,
    /// Failed attempts since the last success.
    attempts: u8,
    /// The webhook must not be called until the wait is over.
    retry: bool,
    wait: Wait,
    /// The events that the webhook received, one bit each.
    got: u8,
    out_of_order: bool,
    /// Two push delivery workers called the webhook at the same time, though neither lease had
    /// ended.
    crossed: bool,
    terminal_changed: bool,
    /// A stream record was lost: only the sweep can find the task.
    lost: bool,
    crashes: u8,
    glitches: u8,
    failures: u8,
}

impl PushWorld {
    fn terminal(&self) -> bool {
        self.events == EVENTS
    }

    fn quiet(&self) -> bool {
        let registering = matches!(self.registrar, Registrar::Checked(_) | Registrar::Written);
        self.terminal()
            && self.stream + self.queue + self.delayed + self.hidden == 0
            && self.dispatchers.iter().all(|it| it.at == At::Idle)
            && !self.relay_sent
            && !registering
    }

    /// The webhook received every event since the config was acknowledged.
    fn served(&self) -> bool {
        let wanted = (self.config.2..EVENTS).fold(0, |bits, event| bits | 1 << event);
        self.registrar != Registrar::Acknowledged || self.got & wanted == wanted
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    RegisteredWithoutMeta,
    NotifyForgotten,
    RelayIgnoresFailed,
    DeletedBeforePost,
    CursorBeforePost,
    ConfirmedBeforePost,
    TerminalBumped,
    LatestOnly,
    NoSecondLook,
    RetryBeforeMessage,
    AdvanceWithoutHolder,
    LiveLeaseTaken,
    GoesAfterItsWait,
}

#[derive(Clone, Copy, Debug)]
struct Push {
    crashes: u8,
    glitches: u8,
    failures: u8,
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The worker reads META, or commits its next event on top of what it read.
    WorkerReads,
    WorkerCommits,
    RegistrarReads,
    RegistrarWrites,
    RegistrarAnswers,
    /// The relay sends; the queue may report the entry as failed.
    RelaySends(bool),
    RelayCheckpoints,
    /// A push delivery worker takes its next step; the webhook accepts the call, or fails.
    Goes(usize),
    Answers(usize, bool),
    /// The queue shows the message again while its receiver still works.
    Redeliver(usize),
    /// The message of a dead push delivery worker is shown again, after its lease has ended.
    Shown,
    LeasePasses,
    WaitEnds,
    LoseRecord,
    Sweep,
    CrashWorker,
    CrashRegistrar,
    CrashRelay,
    CrashDispatcher(usize),
}

const ACTIONS: [Action; 26] = [
    Action::WorkerReads,
    Action::WorkerCommits,
    Action::RegistrarReads,
    Action::RegistrarWrites,
    Action::RegistrarAnswers,
    Action::RelaySends(false),
    Action::RelaySends(true),
    Action::RelayCheckpoints,
    Action::Goes(0),
    Action::Goes(1),
    Action::Answers(0, true),
    Action::Answers(1, true),
    Action::Answers(0, false),
    Action::Answers(1, false),
    Action::Redeliver(0),
    Action::Redeliver(1),
    Action::Shown,
    Action::LeasePasses,
    Action::WaitEnds,
    Action::LoseRecord,
    Action::Sweep,
    Action::CrashWorker,
    Action::CrashRegistrar,
    Action::CrashRelay,
    Action::CrashDispatcher(0),
    Action::CrashDispatcher(1),
];

impl Push {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn worker(&self, w: &mut PushWorld, action: Action) -> Option<()> {
        let (read, version, has_pushes) = w.worker;
        match action {
            Action::WorkerReads if !w.terminal() && (!read || version != w.version) => {
                w.worker = (true, w.version, w.has_pushes);
            }
            // A commit that loses its condition only makes the worker read again.
            Action::WorkerCommits if read && version == w.version && !w.terminal() => {
                w.version += 1;
                w.events += 1;
                w.worker = (!w.terminal(), w.version, has_pushes);
                if has_pushes && !self.is(Mutant::NotifyForgotten) {
                    w.notify = w.events;
                    w.stream += 1;
                }
                w.open = !w.terminal() || has_pushes;
            }
            _ => return None,
        }
        Some(())
    }

    fn registrar(&self, w: &mut PushWorld, action: Action) -> Option<()> {
        match (action, w.registrar) {
            (Action::RegistrarReads, Registrar::Start) => {
                w.registrar = Registrar::Checked(w.version)
            }
            (Action::RegistrarWrites, Registrar::Checked(seen)) => {
                let late = w.terminal() && seen == w.version;
                let blind = self.is(Mutant::RegisteredWithoutMeta) && !late;
                if !blind && seen != w.version {
                    w.registrar = Registrar::Start; // It reads again and decides again.
                    return Some(());
                }
                w.config = (true, w.events, w.events);
                w.registrar = Registrar::Written;
                if !late && !blind {
                    w.version += 1;
                    w.has_pushes = true;
                } else if late && self.is(Mutant::TerminalBumped) {
                    w.version += 1;
                    w.notify = 0;
                    w.terminal_changed = true;
                }
            }
            (Action::RegistrarAnswers, Registrar::Written) => w.registrar = Registrar::Acknowledged,
            _ => return None,
        }
        Some(())
    }

    fn relay(&self, w: &mut PushWorld, action: Action) -> Option<()> {
        match action {
            Action::RelaySends(failed) if w.stream > 0 && !w.relay_sent => {
                if failed {
                    if !self.is(Mutant::RelayIgnoresFailed) {
                        return None; // The relay reports the entry and tries again: no step.
                    }
                    w.glitches = w.glitches.checked_sub(1)?;
                } else {
                    w.queue += 1;
                }
                w.relay_sent = true;
            }
            Action::RelayCheckpoints if w.relay_sent => {
                w.relay_sent = false;
                w.stream -= 1;
            }
            Action::LoseRecord if w.stream > 0 && !w.relay_sent => {
                w.glitches = w.glitches.checked_sub(1)?;
                w.stream -= 1;
                w.lost = true;
            }
            // The sweep finds a task with an unconfirmed end and without any pending message.
            Action::Sweep if w.terminal() && w.open && w.quiet() => {
                w.settle();
                w.queue += u8::from(w.open);
            }
            _ => return None,
        }
        Some(())
    }

    fn crash(&self, w: &mut PushWorld, action: Action) -> Option<()> {
        let _ = self;
        w.crashes = w.crashes.checked_sub(1)?;
        match action {
            Action::CrashWorker if w.worker.0 => w.worker = (false, 0, false),
            Action::CrashRegistrar
                if matches!(w.registrar, Registrar::Checked(_) | Registrar::Written) =>
            {
                w.registrar = Registrar::Dead;
            }
            Action::CrashRelay if w.relay_sent => w.relay_sent = false,
            Action::CrashDispatcher(number) => dispatcher::crash(w, number)?,
            _ => return None,
        }
        Some(())
    }
}

impl Model for Push {
    type State = PushWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<PushWorld> {
        let (crashes, glitches, failures) = (self.crashes, self.glitches, self.failures);
        vec![PushWorld {
            version: 1,
            open: true,
            crashes,
            glitches,
            failures,
            ..PushWorld::default()
        }]
    }

    fn actions(&self, _: &PushWorld, actions: &mut Vec<Action>) {
        actions.extend(ACTIONS);
    }

    fn next_state(&self, last: &PushWorld, action: Action) -> Option<PushWorld> {
        use Action as A;
        let mut w = *last;
        match action {
            A::WorkerReads | A::WorkerCommits => self.worker(&mut w, action),
            A::RegistrarReads | A::RegistrarWrites | A::RegistrarAnswers => {
                self.registrar(&mut w, action)
            }
            A::RelaySends(_) | A::RelayCheckpoints | A::LoseRecord | A::Sweep => {
                self.relay(&mut w, action)
            }
            A::CrashWorker | A::CrashRegistrar | A::CrashRelay | A::CrashDispatcher(_) => {
                self.crash(&mut w, action)
            }
            _ => dispatcher::step(self, &mut w, action),
        }?;
        dispatcher::order(&mut w);
        Some(w)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        props::properties(self)
    }
}

const PUSH: Push = Push {
    crashes: 2,
    glitches: 2,
    failures: 2,
    mutant: None,
};

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn a_webhook_registered_while_the_turn_ends_gets_every_event() {
    check::holds("webhook, registered late", PUSH);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn every_broken_rule_of_push_is_noticed() {
    for (mutant, by) in [
        (Mutant::RegisteredWithoutMeta, "G8 a registered webhook"),
        (Mutant::NotifyForgotten, "G8 a registered webhook"),
        (Mutant::RelayIgnoresFailed, "G8 a registered webhook"),
        (Mutant::DeletedBeforePost, "G8 a registered webhook"),
        (Mutant::CursorBeforePost, "G8"),
        (Mutant::ConfirmedBeforePost, "G8"),
        (Mutant::TerminalBumped, "G2"),
        (Mutant::LatestOnly, "G8"),
        (Mutant::NoSecondLook, "G8 a registered webhook"),
        (Mutant::RetryBeforeMessage, "G8 a registered webhook"),
        (Mutant::AdvanceWithoutHolder, "G8 one delivery"),
        (Mutant::LiveLeaseTaken, "G8 one delivery"),
        (Mutant::GoesAfterItsWait, "G8 a registered webhook"),
    ] {
        check::caught(
            &format!("{mutant:?}"),
            &Push {
                mutant: Some(mutant),
                ..PUSH
            },
            by,
        );
    }
}
