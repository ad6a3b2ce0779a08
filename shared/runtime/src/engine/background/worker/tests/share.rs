//! Tests the share of the workers that the turns of one tenant may use.

use super::*;
use crate::engine::LimitPolicy;
use crate::engine::Services;
use crate::store::limits::Limits;
use crate::store::memory::MemoryTable;
use crate::task::{Owner, Subject, TenantId};

/// A fixture whose tenants run at most two turns each.
fn fixture_with_share() -> WorkerFixture {
    let mut fixture = WorkerFixture::new();
    let agent = Agent::builder("test").skill(Worker(fixture.counter.clone()));
    let services = Services {
        limits: Some(Limits::new(Arc::new(MemoryTable::default()))),
        ..services(&fixture.store)
    };
    let policy = Policy {
        limits: LimitPolicy {
            turns_per_tenant: Some(2),
            ..LimitPolicy::default()
        },
        ..Policy::default()
    };
    fixture.engine = Engine::new(Arc::new(agent.build().unwrap()), services, policy);
    fixture
}

/// The queue message of a new turn of ten minutes.
async fn long_turn(fixture: &WorkerFixture) -> WorkItem {
    let task = fixture.send("long", SendMode::Immediate).await;
    fixture.item(&task.id).await
}

#[tokio::test(start_paused = true)]
async fn tenant_with_all_its_workers_taken_waits_and_others_do_not() {
    let fixture = fixture_with_share();
    let running = [long_turn(&fixture).await, long_turn(&fixture).await];
    let third = long_turn(&fixture).await;
    let other = Owner {
        tenant: TenantId::parse("globex").unwrap(),
        subject: Subject::parse("bob").unwrap(),
    };
    let [first, second] = running
        .each_ref()
        .map(|item| fixture.engine.turns.work(item, &fixture.line, None));
    let others = async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        fixture.line.hidden.lock().unwrap().clear();
        let ack = fixture.engine.turns.work(&third, &fixture.line, None).await;
        let waits = std::mem::take(&mut *fixture.line.hidden.lock().unwrap());
        let caller = Caller::behind(&other, None);
        let command = send_command("quick", SendMode::Immediate);
        let task = sent_task(&fixture.engine, &caller, command).await;
        let now = fixture.engine.reader.clock.now();
        let record = fixture.store.records.load(&other, &task.id, now).await;
        let item = work_item(&record.unwrap().unwrap());
        let ack_of_other = fixture.engine.turns.work(&item, &fixture.line, None).await;
        (ack, waits.last().copied().unwrap(), ack_of_other)
    };
    let (first, second, (third_ack, wait, other_ack)) = tokio::join!(first, second, others);
    assert_eq!(
        (first, second, other_ack),
        (Ack::Delete, Ack::Delete, Ack::Delete)
    );
    assert_eq!(third_ack, Ack::Keep);
    // A quarter of 100 s, more or less by half.
    assert!((12..=38).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(
        fixture.record(&third.task).await.state(),
        TaskState::Submitted
    );
    assert_eq!(
        fixture.engine.turns.work(&third, &fixture.line, None).await,
        Ack::Delete
    );
    assert_eq!(
        fixture.record(&third.task).await.state(),
        TaskState::Completed
    );
}

#[tokio::test(start_paused = true)]
async fn slot_of_a_worker_that_died_is_free_after_its_lease() {
    let fixture = fixture_with_share();
    for _ in 0..2 {
        let item = long_turn(&fixture).await;
        fixture
            .crash_after(&item.task, Duration::from_secs(30))
            .await;
    }
    let item = long_turn(&fixture).await;
    assert_eq!(
        fixture.engine.turns.work(&item, &fixture.line, None).await,
        Ack::Keep
    );
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(
        fixture.engine.turns.work(&item, &fixture.line, None).await,
        Ack::Delete
    );
}

#[tokio::test(start_paused = true)]
async fn sweep_sends_no_turn_of_a_tenant_with_all_its_workers_taken() {
    let fixture = fixture_with_share();
    let running = [long_turn(&fixture).await, long_turn(&fixture).await];
    long_turn(&fixture).await;
    let [first, second] = running
        .each_ref()
        .map(|item| fixture.engine.turns.work(item, &fixture.line, None));
    let sweeps = async {
        tokio::time::sleep(6 * MINUTE).await;
        let while_full = fixture.sweep(Leases::Respect).await.resent;
        tokio::time::sleep(6 * MINUTE).await;
        (while_full, fixture.sweep(Leases::Respect).await.resent)
    };
    let (_, _, resent) = tokio::join!(first, second, sweeps);
    assert_eq!(resent, (0, 1));
}
