//! Leases: what a heartbeat may change, and when.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::CommitResult;
use a2a_lambda_model::task::{Change, Message, OutputCounts, Part, SavedSlot, TaskRecord};
use std::time::Duration;

/// A stored task whose turn runs.
async fn running(stores: &Stores, sample: &SampleData) -> Result<TaskRecord, Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    commit(stores, sample, &task, sample.start()).await
}

/// The stored record after one more change.
async fn commit(
    stores: &Stores,
    sample: &SampleData,
    before: &TaskRecord,
    change: Change,
) -> Result<TaskRecord, Broken> {
    let next = sample.next(before, [change])?;
    let answer = stores.records.commit(&sample.update(&next, before)).await?;
    assert_eq!(answer, CommitResult::Done);
    Ok(next)
}

/// A heartbeat sets the lease, longer or shorter; everything else stays.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_heartbeat_extends_the_lease_and_nothing_else(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut task = running(stores, sample).await?;
    for millis in [90_000, 80_000, 3_600_000] {
        let until = sample.at(millis);
        assert!(stores.records.heartbeat(&task, until).await?);
        task.fields().lease_until = Some(until);
        assert_eq!(sample.loaded(stores, &task).await?.as_ref(), Some(&task));
        let listed = stores
            .records
            .list(&task.owner, &sample.everything())
            .await?
            .records;
        assert_eq!(listed, [task.clone()]);
    }
    Ok(())
}

/// A heartbeat of another epoch or incarnation is refused. So is one for a task that
/// waits, was handed over, or is at rest.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_heartbeat_needs_the_running_turn_of_its_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let until = sample.at(3_600_000);
    let question = Change::AskInput {
        message: Message::from_agent("q", vec![Part::text("which?")]),
        slot: SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        },
    };
    let unknown = sample.next(&sample.task()?, [sample.start()])?;
    let beat = stores.records.heartbeat(&unknown, until);
    assert!(!beat.await?, "unknown task");

    let waiting = sample.task()?;
    sample.stored(stores, &waiting).await?;
    let claim = Change::Claim {
        lease_until: sample.at(60_000),
    };
    let claimed = commit(stores, sample, &running(stores, sample).await?, claim).await?;
    // The turn that asked and the resumed one are both `working`; a heartbeat can
    // distinguish them by the epoch only.
    let asks = running(stores, sample).await?;
    let asked = commit(stores, sample, &asks, question.clone()).await?;
    let resume = Change::Resume {
        began_at: Default::default(),
        message: Message::from_user("a", vec![Part::text("that one")]),
        secret: None,
        lease_until: sample.at(60_000),
    };
    let answers = commit(stores, sample, &asked, resume).await?;
    let (mut earlier, mut later) = (claimed.clone(), claimed.clone());
    earlier.fields().epoch -= 1;
    later.fields().epoch += 1;
    let mut another = claimed.clone();
    another.fields().incarnation = sample.write_id();
    let mut refused = vec![(waiting.clone(), waiting), (answers, asks)];
    refused.extend([earlier, later, another].map(|beating| (claimed.clone(), beating)));
    for change in [
        Change::HandOver { progress: true },
        question,
        Change::Complete { message: None },
    ] {
        let task = commit(stores, sample, &running(stores, sample).await?, change).await?;
        refused.push((task.clone(), task));
    }
    for (task, beating) in refused {
        let beat = stores.records.heartbeat(&beating, until);
        assert!(!beat.await?, "{:?} {}", task.state(), beating.epoch);
        assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    }
    Ok(())
}

/// A commit in flight during a heartbeat is stored, and the lease is that of its
/// record.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_heartbeat_does_not_make_a_commit_lose(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = running(stores, sample).await?;
    let until = sample.at(3_600_000);
    assert!(stores.records.heartbeat(&task, until).await?);
    let save = Change::Save {
        key: "k".to_owned(),
        value: serde_json::json!(1),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    };
    let saved = commit(stores, sample, &task, save).await?;
    assert_eq!(sample.loaded(stores, &task).await?.as_ref(), Some(&saved));

    let hand_over = Change::HandOver { progress: false };
    let handed = commit(stores, sample, &saved, hand_over).await?;
    assert_eq!(handed.lease_until, None);
    assert_eq!(sample.loaded(stores, &task).await?, Some(handed));
    Ok(())
}

/// Only the owner of a task extends its lease.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_the_owner_extends_a_lease(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = running(stores, sample).await?;
    let until = task.lease_until.map(|at| at.plus(Duration::from_secs(60)));
    let until = until.unwrap_or(sample.now);
    for other in [&sample.colleague, &sample.stranger] {
        let mut beating = task.clone();
        beating.fields().owner = other.clone();
        assert!(!stores.records.heartbeat(&beating, until).await?);
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    Ok(())
}
