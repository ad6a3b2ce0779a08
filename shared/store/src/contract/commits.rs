//! The conditions of a commit, and how a store recognises repeated writes.

use super::{Broken, SampleData, Stores};
use crate::records::end_of_life;
use a2a_lambda_model::store::{CommitResult, Expect, StoreError};
use a2a_lambda_model::task::{Change, Message, Part, TaskId};

fn conflict_with(record: &a2a_lambda_model::task::TaskRecord) -> CommitResult {
    CommitResult::Conflict(Some(record.clone()))
}

/// A load returns what was written.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_created_task_is_loaded_as_it_was_written(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    assert_eq!(sample.loaded(stores, &task).await?, Some(task.clone()));
    let working = sample.next(&task, [sample.start()])?;
    let answer = stores
        .records
        .commit(&sample.update(&working, &task))
        .await?;
    assert_eq!(answer, CommitResult::Done);
    assert_eq!(sample.loaded(stores, &task).await?, Some(working));
    Ok(())
}

/// A task that was not written is not found.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_unknown_task_is_not_found(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = TaskId::made_of(sample.number());
    let found = stores.records.load(&sample.owner, &id, sample.now).await?;
    assert_eq!(found, None);
    Ok(())
}

/// A create does not replace a live task of the same id.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_create_over_a_live_task_shows_that_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let other = sample.new_task(&sample.owner, task.id.clone())?;
    let answer = stores.records.commit(&sample.create(&other)).await?;
    assert_eq!(answer, conflict_with(&task));
    assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    Ok(())
}

/// A commit needs the version and the incarnation of the stored task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_commit_needs_the_version_and_the_incarnation(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let next = sample.next(&task, [sample.start()])?;
    let (own, other) = (task.incarnation.clone(), sample.write_id());
    for (version, incarnation) in [(0, &own), (2, &own), (1, &other), (0, &other)] {
        let incarnation = incarnation.clone();
        let write = sample.write(
            &next,
            Expect::Version {
                version,
                incarnation,
                kept_until: task.kept_until,
            },
        );
        let answer = stores.records.commit(&write).await?;
        assert_eq!(answer, conflict_with(&task), "{version}");
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(task.clone()));
    let answer = stores.records.commit(&sample.update(&next, &task)).await?;
    assert_eq!(answer, CommitResult::Done);
    Ok(())
}

/// A turn of a task that is gone changes nothing of the next task under its id, even
/// with equal version, epoch, state and lease.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_turn_of_an_earlier_task_changes_nothing_under_a_reused_id(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = TaskId::parse("again")?;
    let first = sample.new_task(&sample.owner, id.clone())?;
    sample.stored(stores, &first).await?;
    let working = sample.next(&first, [sample.start()])?;
    let ended = sample
        .next(&first, [Change::Cancel])?
        .with_expiry(sample.write_id(), sample.now);
    let answer = stores
        .records
        .commit(&sample.update(&ended, &first))
        .await?;
    assert_eq!(answer, CommitResult::Done);
    assert!(stores.records.remove_task(&ended).await?);

    let second = sample.new_task(&sample.owner, id)?;
    sample.stored(stores, &second).await?;
    let running = sample.next(&second, [sample.start()])?;
    let answer = stores
        .records
        .commit(&sample.update(&running, &second))
        .await?;
    assert_eq!(answer, CommitResult::Done);
    assert_eq!(
        (running.version, running.epoch),
        (working.version, working.epoch)
    );
    for changes in [
        vec![Change::Complete { message: None }],
        vec![Change::Cancel],
        vec![Change::Claim {
            lease_until: sample.at(60_000),
        }],
    ] {
        let late = sample.next(&working, changes)?;
        let answer = stores
            .records
            .commit(&sample.update(&late, &working))
            .await?;
        assert_eq!(answer, conflict_with(&running));
    }
    let until = sample.at(3_600_000);
    assert!(!stores.records.heartbeat(&working, until).await?);
    assert!(!stores.records.remove_task(&working).await?);
    assert_eq!(sample.loaded(stores, &second).await?, Some(running));
    Ok(())
}

/// An erasure ends the life of a task that runs: its turn can no longer store anything, so nothing is
/// left behind what the erasure has listed. A task that a client begins meanwhile stays.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_turn_stores_nothing_after_the_erasure_of_its_task_has_begun(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = TaskId::parse("erased")?;
    let task = sample.new_task(&sample.owner, id.clone())?;
    sample.stored(stores, &task).await?;
    let working = sample.next(&task, [sample.start()])?;
    let answer = stores
        .records
        .commit(&sample.update(&working, &task))
        .await?;
    assert_eq!(answer, CommitResult::Done);
    let (table, [end, removal]) = (stores.records.table(), end_of_life(&task.key()));
    assert!(table.write(end.into()).await?.is_done()?);
    assert_eq!(sample.loaded(stores, &task).await?, None);
    let late = sample.next(&working, [Change::Complete { message: None }])?;
    let answer = stores
        .records
        .commit(&sample.update(&late, &working))
        .await?;
    assert_eq!(answer, CommitResult::Conflict(None));

    let second = sample.new_task(&sample.owner, id)?;
    sample.stored(stores, &second).await?;
    assert!(!table.write(removal.into()).await?.is_done()?);
    assert_eq!(sample.loaded(stores, &second).await?, Some(second));
    Ok(())
}

/// An update does not create an absent task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_commit_to_an_absent_task_is_a_conflict(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let next = sample.next(&task, [sample.start()])?;
    let answer = stores.records.commit(&sample.update(&next, &task)).await?;
    assert_eq!(answer, CommitResult::Conflict(None));
    assert_eq!(sample.loaded(stores, &task).await?, None);
    Ok(())
}

/// A store refuses a write that it could not recognise later.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_write_without_an_id_is_refused(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut task = sample.task()?;
    task.fields().write_ids.clear();
    let answer = stores.records.commit(&sample.create(&task)).await;
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    assert_eq!(sample.loaded(stores, &task).await?, None);
    Ok(())
}

/// A write repeated after a lost response is `Done` and changes nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_repeated_write_is_done_once(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let create = sample.create(&task);
    let working = sample.next(&task, [sample.start()])?;
    let update = sample.update(&working, &task);
    for write in [&create, &create, &update, &update] {
        assert_eq!(stores.records.commit(write).await?, CommitResult::Done);
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(working));
    Ok(())
}

/// A write may be repeated after later commits. The store recognises the last eight
/// writes, and the one that opened the turn during the whole turn.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_repeated_write_is_recognised_after_later_commits(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let mut writes = vec![sample.create(&task)];
    let mut last = task.clone();
    for turn in 0..10 {
        let change = if turn == 0 {
            sample.start()
        } else {
            Change::Update {
                message: None,
                metadata: a2a_lambda_model::task::Metadata::new(),
            }
        };
        let next = sample.next(&last, [change])?;
        let write = sample.update(&next, &last);
        assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
        writes.push(write);
        last = next;
    }
    for (age, write) in writes.iter().rev().enumerate() {
        let known = last.was_written_by(write.checked_id()?);
        let answer = stores.records.commit(write).await?;
        assert_eq!(answer == CommitResult::Done, known, "{age} commits ago");
        assert_eq!(known, age < 8 || age == 10, "{age} commits ago");
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(last));
    Ok(())
}

/// Of eight writers of one version one is stored, and seven get that record.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn exactly_one_of_eight_concurrent_writes_wins(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let mut writes = Vec::new();
    for _ in 0..8 {
        writes.push(sample.update(&sample.next(&task, [sample.start()])?, &task));
    }
    let answers =
        futures::future::join_all(writes.iter().map(|write| stores.records.commit(write))).await;
    let stored = sample.loaded(stores, &task).await?;
    let mut won = 0;
    for (write, answer) in writes.iter().zip(answers) {
        match answer? {
            CommitResult::Done => {
                won += 1;
                assert_eq!(stored.as_ref(), Some(&write.record));
            }
            answer => assert_eq!(answer, CommitResult::Conflict(stored.clone())),
        }
    }
    assert_eq!(won, 1, "exactly one write is stored");
    Ok(())
}

/// A late write of an earlier version does not change a finished task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_finished_task_keeps_its_content(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let working = sample.next(&task, [sample.start()])?;
    stores
        .records
        .commit(&sample.update(&working, &task))
        .await?;
    let canceled = sample.next(&working, [Change::Cancel])?;
    let answer = stores
        .records
        .commit(&sample.update(&canceled, &working))
        .await?;
    assert_eq!(answer, CommitResult::Done);
    let late = Message::from_agent("m-2", vec![Part::text("late")]);
    let done = sample.next(
        &working,
        [Change::Complete {
            message: Some(late),
        }],
    )?;
    for write in [
        sample.update(&done, &working),
        sample.write(
            &done,
            Expect::Version {
                version: canceled.version,
                incarnation: sample.write_id(),
                kept_until: canceled.kept_until,
            },
        ),
        sample.create(&sample.new_task(&sample.owner, task.id.clone())?),
    ] {
        let answer = stores.records.commit(&write).await?;
        assert_eq!(answer, conflict_with(&canceled));
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(canceled));
    Ok(())
}
