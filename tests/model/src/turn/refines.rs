//! Compares the model with the task record: each commit of the model is one commit of a
//! record, and both agree on the values that decide a write.

use super::{Action as A, At, Do, Kind, Lease, Proc, Reply::Heard, Scenario, State, Turn, Who};
use a2a_lambda::store::{queue::TaskImage, stored};
use a2a_lambda::task::{
    Change, ContextId, Generation, Message, Owner, Part, SavedSlot, Subject, TaskId, TaskRecord,
    TaskState, TenantId, Timestamp, WriteId,
};
use stateright::Model as _;

const AT: Timestamp = Timestamp::from_millis(1_000);

/// State, version, epoch, lease, dispatch, turn, attempt.
type Facts = (State, u64, u64, bool, Option<u64>, u32, u64);

struct Walk {
    model: Turn,
    world: super::TurnWorld,
    record: TaskRecord,
}

impl Walk {
    fn new(calls: &'static [Kind], attempts: u8, asks: bool) -> Self {
        let scenario = Scenario {
            calls,
            crashes: 2,
            glitches: 2,
            lost: 0,
            handovers: 1,
            attempts,
            asks,
            asked: false,
            sweep: true,
            aging: true,
        };
        let mutant = None;
        let model = Turn { scenario, mutant };
        let record = TaskRecord::create(
            TaskId::made_of(1),
            Owner {
                tenant: TenantId::parse("acme").unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            ContextId::made_of(1),
            WriteId::made_of(1),
            Generation::V10,
            serde_json::Map::new(),
            AT,
        );
        let world = model.init_states().remove(0);
        Self {
            model,
            world,
            record,
        }
    }

    fn go(&mut self, actions: &[A]) {
        for action in actions {
            let next = self.model.next_state(&self.world, *action);
            self.world = next.unwrap_or_else(|| panic!("{action:?} is not possible here"));
        }
    }

    /// Takes the model's actions and the record's commit, and compares the results.
    fn agree(&mut self, actions: &[A], changes: impl IntoIterator<Item = Change>) {
        self.go(actions);
        let write = WriteId::made_of(u128::from(self.record.version) + 1);
        let next = self.record.next(changes, write, AT, AT).unwrap();
        assert_eq!(&next.incarnation, &self.record.incarnation);
        self.record = next;
        assert_eq!(self.of_model(), self.of_record(), "after {actions:?}");
    }

    fn of_model(&self) -> Facts {
        let meta = &self.world.tasks[0];
        let dispatch = Some(meta.dispatch.into()).filter(|version| *version > 0);
        let (version, epoch) = (meta.version.into(), meta.epoch.into());
        let lease = meta.lease != Lease::None;
        let (turn, attempt) = (meta.turn.into(), meta.attempt.into());
        (meta.state, version, epoch, lease, dispatch, turn, attempt)
    }

    fn of_record(&self) -> Facts {
        let record = &self.record;
        let (form, image) = (stored::encode(record), TaskImage::of(record));
        let state = match record.state() {
            TaskState::Submitted => State::Submitted,
            TaskState::Working => State::Working,
            TaskState::InputRequired => State::Input,
            TaskState::Completed => State::Completed,
            TaskState::Failed => State::Failed,
            TaskState::Canceled => State::Canceled,
            other => panic!("the model has no {other:?}"),
        };
        // The stored form leaves out the first attempt.
        let attempt = form.get("attempt").map_or(1, |it| it.as_u64().unwrap());
        let lease = form.get("leaseUntil").is_some();
        let (version, epoch) = (record.version, record.epoch);
        (
            state,
            version,
            epoch,
            lease,
            image.dispatch,
            image.turn,
            attempt,
        )
    }

    fn worker(&self) -> usize {
        let busy = |run: &super::Run| run.at != At::Idle;
        self.world.workers.iter().position(busy).unwrap()
    }

    fn by_worker(&self, step: Do) -> A {
        A::Run(Who::Worker(self.worker()), step)
    }

    /// The relay and the queue bring the message to a worker, and the worker claims the task.
    fn claims(&mut self, sent: bool) {
        if sent {
            self.go(&[A::RelaySend(0, false), A::RelayCheckpoint]);
        }
        let visible = |message: &u8| *message > 0 && message & 1 == 0;
        let slot = self.world.slots.iter().position(visible).unwrap();
        self.go(&[A::Receive(0, slot)]);
        self.agree(&[self.by_worker(Do::Claim(Heard))], [claim()]);
    }

    fn dies(&mut self) {
        let worker = Proc::Who(Who::Worker(self.worker()));
        self.go(&[A::Crash(worker), A::LeaseEnds(0)]);
    }
}

fn says() -> Message {
    Message::from_user("m", vec![Part::text("hello")])
}

fn accept() -> Change {
    Change::Accept { message: says() }
}

fn start() -> Change {
    Change::Start { lease_until: AT }
}

fn claim() -> Change {
    Change::Claim { lease_until: AT }
}

fn ask() -> Change {
    let (version, value) = (1, serde_json::Value::Null);
    let slot = SavedSlot { version, value };
    let message = says();
    Change::AskInput { message, slot }
}

fn fail() -> Change {
    Change::Fail { message: says() }
}

#[test]
fn model_and_record_agree_on_inline_turns_and_answers() {
    const CALLS: &[Kind] = &[
        Kind::Blocking { keyed: true },
        Kind::Continue { inline: true },
    ];
    let mut walk = Walk::new(CALLS, 3, true);
    let inline = |call, step| A::Run(Who::Call(call), step);
    walk.agree(&[A::Write(0, Heard)], [accept(), start()]);
    walk.agree(&[inline(0, Do::End(Heard))], [ask()]);
    let (message, secret, lease_until) = (says(), None, AT);
    let resume = Change::Resume {
        began_at: Timestamp::default(),
        message,
        secret,
        lease_until,
    };
    walk.agree(&[A::Begin(1), A::Write(1, Heard)], [resume]);
    let end = [inline(1, Do::Store), inline(1, Do::End(Heard))];
    walk.agree(&end, [Change::Complete { message: None }]);
}

#[test]
fn model_and_record_agree_on_workers_hand_over_and_cancel() {
    const CALLS: &[Kind] = &[
        Kind::Queued { keyed: false },
        Kind::Continue { inline: false },
        Kind::Cancel,
    ];
    let mut walk = Walk::new(CALLS, 3, true);
    walk.agree(&[A::Write(0, Heard)], [accept(), Change::Dispatch]);
    walk.claims(true);
    walk.agree(&[walk.by_worker(Do::End(Heard))], [ask()]);
    walk.go(&[walk.by_worker(Do::Delete(false))]);
    let (message, secret) = (says(), None);
    walk.agree(
        &[A::Begin(1), A::Write(1, Heard)],
        [Change::Queue { message, secret }],
    );
    walk.claims(true);
    let hands = [
        walk.by_worker(Do::Drop),
        walk.by_worker(Do::HandOver(Heard)),
    ];
    walk.agree(&hands, [Change::HandOver { progress: true }]);
    walk.go(&[walk.by_worker(Do::Delete(false))]);
    walk.claims(true);
    walk.agree(&[A::Begin(2), A::Write(2, Heard)], [Change::Cancel]);
}

#[test]
fn model_and_record_agree_on_releases_and_their_attempts() {
    let mut walk = Walk::new(&[Kind::Queued { keyed: false }], 2, false);
    walk.agree(&[A::Write(0, Heard)], [accept(), Change::Dispatch]);
    walk.claims(true);
    let releases = [walk.by_worker(Do::Drop), walk.by_worker(Do::Release(Heard))];
    walk.agree(&releases, [Change::Release { not_before: AT }]);
    walk.go(&[walk.by_worker(Do::Delete(false))]);
    walk.claims(true);
    walk.dies();
    walk.agree(&[A::SweepRead(0)], [Change::Dispatch]);
    walk.claims(true);
    walk.dies();
    walk.agree(&[A::SweepRead(0)], [fail()]);
}

#[test]
fn model_and_record_agree_on_sweep_and_takeover() {
    let mut walk = Walk::new(&[Kind::Queued { keyed: false }], 2, false);
    walk.agree(&[A::Write(0, Heard)], [accept(), Change::Dispatch]);
    // The sweep sends the intent again and writes nothing.
    walk.go(&[A::LoseRecord(0), A::SweepRead(0)]);
    assert_eq!(walk.of_model(), walk.of_record());
    walk.claims(false);
    walk.dies();
    walk.claims(false);
    walk.dies();
    walk.agree(&[A::SweepRead(0)], [fail()]);
}
