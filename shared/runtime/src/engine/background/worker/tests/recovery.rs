//! Tests turns whose worker died, was fenced or was canceled, and the sweep that finds them.

use super::*;
use crate::store::RecordQuery;
use crate::task::Event;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_step_that_completed_is_not_run_again_after_a_crash() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("steps", SendMode::Immediate).await;
    fixture.crash_after(&task.id, Duration::from_secs(50)).await;
    assert_eq!(fixture.counter.effects.load(Ordering::SeqCst), 2);
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
    assert_eq!(fixture.counter.effects.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn restarted_turn_reports_the_restart_and_doubles_no_output() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("chunks", SendMode::Immediate).await;
    fixture.crash_after(&task.id, Duration::from_secs(30)).await;
    assert_eq!(text_of(&fixture.record(&task.id).await, "log"), "one two ");
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    let record = fixture.record(&task.id).await;
    assert_eq!(text_of(&record, "log"), "one two ");
    let restarts = record.log.iter().filter(|logged| match &logged.event {
        Event::Status(update) => update.metadata.contains_key("a2a-lambda/restarted"),
        Event::Artifact(_) => false,
    });
    assert_eq!(restarts.count(), 1);
    let ids: Vec<&str> = (record.log.iter())
        .filter_map(|logged| match &logged.event {
            Event::Artifact(update) => Some((update, update.artifact.name.as_deref()?)),
            Event::Status(_) => None,
        })
        .filter(|(_, name)| *name == "log")
        .map(|(update, _)| update.artifact.id.as_str())
        .collect();
    assert!(
        ids.windows(2).all(|pair| pair[0] == pair[1]),
        "one id in every attempt"
    );
    let numbers: Vec<u64> = record.log.iter().map(|logged| logged.seq).collect();
    assert_eq!(numbers, (1..=record.last_seq).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn worker_keeps_the_message_of_a_turn_with_a_live_lease() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    let item = fixture.item(&task.id).await;
    let first = fixture.engine.turns.work(&item, &fixture.line, None);
    let second = async {
        tokio::time::sleep(2 * MINUTE).await;
        fixture.line.hidden.lock().unwrap().clear();
        let ack = fixture.engine.turns.work(&item, &fixture.line, None).await;
        (ack, fixture.line.hidden.lock().unwrap().clone())
    };
    let (first, (second, hidden)) = tokio::join!(first, second);
    assert_eq!((first, second), (Ack::Delete, Ack::Keep));
    assert!(hidden.last().unwrap() <= &MINUTE, "{hidden:?}");
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn fenced_worker_changes_nothing_and_ends_its_message() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    let item = fixture.item(&task.id).await;
    let first = fixture.engine.turns.work(&item, &fixture.line, None);
    let thief = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        // The sweep counts the first worker's lease as expired, and a second worker takes
        // over.
        fixture.sweep(Leases::CountAsExpired).await;
        let item = fixture.item(&task.id).await;
        fixture.engine.turns.work(&item, &fixture.line, None).await
    };
    let (first, second) = tokio::join!(first, thief);
    // The second dispatch has a message of its own.
    assert_eq!((first, second), (Ack::Delete, Ack::Delete));
    let record = fixture.record(&task.id).await;
    assert_eq!((record.state(), record.epoch), (TaskState::Completed, 2));
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_the_worker_at_its_next_heartbeat() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    let item = fixture.item(&task.id).await;
    let begun = Instant::now();
    let working = fixture.engine.turns.work(&item, &fixture.line, None);
    let canceling = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let command = CancelCommand {
            id: task.id.clone(),
            metadata: serde_json::Map::new(),
        };
        fixture.engine.tasks.cancel(&ann(), &command).await.unwrap()
    };
    let (ack, canceled) = tokio::join!(working, canceling);
    assert_eq!(ack, Ack::Delete);
    assert!(begun.elapsed() < MINUTE);
    let record = fixture.record(&task.id).await;
    assert_eq!(record.state(), TaskState::Canceled);
    assert_eq!(
        Some(record.version),
        canceled.last_event.map(|event| event.version)
    );
}

#[tokio::test(start_paused = true)]
async fn task_that_kills_its_workers_fails_after_five_attempts() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    for _ in 0..5 {
        fixture.crash_after(&task.id, Duration::from_secs(30)).await;
        tokio::time::sleep(3 * MINUTE).await;
    }
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    let record = fixture.record(&task.id).await;
    assert_eq!(record.state(), TaskState::Failed);
    let message = record.status.message.clone().unwrap();
    assert_eq!(
        message.metadata["a2a-lambda/errorCode"],
        "ATTEMPTS_EXHAUSTED"
    );
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_given_back_has_had_no_attempt() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    for _ in 0..7 {
        fixture.crash_after(&task.id, Duration::from_secs(30)).await;
        let swept = fixture.sweep(Leases::GivenBack).await;
        assert_eq!((swept.failed, swept.redispatched), (0, 1));
        assert_eq!(fixture.record(&task.id).await.attempt, 1);
    }
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn sweep_dispatches_an_inline_turn_that_died() {
    let fixture = WorkerFixture::new();
    let dying = fixture.send("chunks", SendMode::Blocking);
    assert!(
        tokio::time::timeout(Duration::from_secs(5), dying)
            .await
            .is_err()
    );
    let page = RecordQuery {
        context_id: None,
        state: None,
        status_after: None,
        after: None,
        limit: 1,
        count_limit: 0,
        now: fixture.engine.reader.clock.now(),
    };
    let found = fixture.store.records.list(&owner(), &page).await.unwrap();
    let id = found.records[0].id.clone();
    assert_eq!(
        fixture.sweep(Leases::Respect).await.redispatched,
        0,
        "its lease is live"
    );
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(fixture.sweep(Leases::Respect).await.redispatched, 1);
    assert_eq!(fixture.work(&id).await, Ack::Delete);
    assert_eq!(fixture.record(&id).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn sweep_resends_an_old_intent_without_a_write() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("quick", SendMode::Immediate).await;
    let before = fixture.record(&task.id).await;
    tokio::time::sleep(5 * MINUTE - Duration::from_millis(1)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!(
        swept.redispatched, 0,
        "the intent is younger than five minutes"
    );
    tokio::time::sleep(Duration::from_millis(1)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!((swept.redispatched, swept.failed), (1, 0));
    let item = fixture.item(&task.id).await;
    assert_eq!(*fixture.line.items.lock().unwrap(), [item]);
    assert_eq!(fixture.record(&task.id).await, before);
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn sweep_waits_30_seconds_after_a_lease_has_expired() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    fixture.crash_after(&task.id, Duration::from_secs(30)).await;
    let ends = fixture.record(&task.id).await.lease_until.unwrap();
    let left = ends.since(fixture.engine.reader.clock.now());
    tokio::time::sleep(left + Duration::from_millis(29_999)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!(swept.redispatched, 0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let swept = fixture.sweep(Leases::Respect).await;
    assert_eq!(swept.redispatched, 1);
}

#[tokio::test(start_paused = true)]
async fn sweep_fails_a_task_without_attempts_left() {
    let fixture = WorkerFixture::new();
    let task = fixture.send("long", SendMode::Immediate).await;
    for attempt in 1..=5 {
        fixture.crash_after(&task.id, Duration::from_secs(30)).await;
        tokio::time::sleep(3 * MINUTE).await;
        let swept = fixture.sweep(Leases::Respect).await;
        let last = usize::from(attempt == 5);
        assert_eq!((swept.failed, swept.redispatched), (last, 1 - last));
    }
    let record = fixture.record(&task.id).await;
    assert_eq!(record.state(), TaskState::Failed);
}
