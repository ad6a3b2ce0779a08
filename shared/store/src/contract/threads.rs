//! Threads, written alone and with a task.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::{CommitResult, ThreadRecord, ThreadState, ThreadWrite};
use a2a_lambda_model::task::ContextId;

/// A load returns what was written, with and without state.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_thread_is_loaded_as_it_was_written(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::made_of(sample.number());
    let unknown = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(unknown, None);
    for version in 0..4 {
        let mut write = sample.thread(&sample.owner, &id, version);
        // No two of its times are equal, so that a swap of two is seen.
        write.record.created_at = sample.at(-7_000);
        write.record.updated_at = sample.at(-500);
        if version % 2 == 1 {
            write.record.state = ThreadState::default();
            write.record.state_version = 0;
        }
        assert!(stores.records.put_thread(&write).await?);
        let found = stores.records.load_thread(&sample.owner, &id).await?;
        assert_eq!(found, Some(write.record), "version {version}");
    }
    Ok(())
}

/// A write with an earlier `state_version` leaves the stored state as it is; a head
/// is read without the state.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_thread_is_refreshed_without_its_state(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::parse("c:1")?;
    let first = sample.thread(&sample.owner, &id, 0);
    assert!(stores.records.put_thread(&first).await?);
    for version in 1..3 {
        let mut write = sample.thread(&sample.owner, &id, version);
        write.record.state_version = 1;
        write.record.state = ThreadState::default();
        write.record.expires_at = sample.at(90_000_000);
        assert!(stores.records.put_thread(&write).await?);
        let head = stores.records.load_thread_head(&sample.owner, &id).await?;
        assert_eq!(head.as_ref(), Some(&write.record), "version {version}");
        let found = stores.records.load_thread(&sample.owner, &id).await?;
        let state = first.record.state.clone();
        let whole = ThreadRecord {
            state,
            ..write.record
        };
        assert_eq!(found, Some(whole), "version {version}");
    }
    let mut emptied = sample.thread(&sample.owner, &id, 3);
    emptied.record.state_version = 0;
    emptied.record.state = ThreadState::default();
    assert!(stores.records.put_thread(&emptied).await?);
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(emptied.record));
    let other = stores
        .records
        .load_thread_head(&sample.colleague, &id)
        .await?;
    assert_eq!(other, None);
    Ok(())
}

/// A thread is replaced only by its next version.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_thread_write_needs_the_version(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::parse("c:1")?;
    let first = sample.thread(&sample.owner, &id, 0);
    let early = sample.thread(&sample.owner, &id, 1);
    assert!(!stores.records.put_thread(&early).await?, "none is stored");
    assert!(stores.records.put_thread(&first).await?);
    for expect in [0, 2] {
        let wrong = sample.thread(&sample.owner, &id, expect);
        assert!(
            !stores.records.put_thread(&wrong).await?,
            "version {expect}"
        );
    }
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(first.record));
    Ok(())
}

/// A repeated write is `Done`, also when a later write is stored.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_repeated_thread_write_is_done(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::parse("c:1")?;
    let first = sample.thread(&sample.owner, &id, 0);
    let second = sample.thread(&sample.owner, &id, 1);
    for write in [&first, &first, &second, &first, &second] {
        assert!(stores.records.put_thread(write).await?);
    }
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(second.record));
    Ok(())
}

/// A thread recognises its last four writes, not only the last one.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_thread_recognises_its_last_four_writes(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::parse("c:1")?;
    let write = |version| sample.thread(&sample.owner, &id, version);
    let writes: Vec<ThreadWrite> = (0..6).map(write).collect();
    for write in &writes {
        assert!(stores.records.put_thread(write).await?);
    }
    for (age, write) in writes.iter().rev().take(4).enumerate() {
        let known = stores.records.put_thread(write).await?;
        assert!(known, "{age} writes ago");
    }
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found.as_ref(), writes.last().map(|last| &last.record));
    Ok(())
}

/// The store still returns an expired thread; its reader judges the expiry.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_expired_thread_is_still_loaded(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::parse("c:1")?;
    let mut write = sample.thread(&sample.owner, &id, 0);
    write.record.expires_at = sample.at(-1);
    write.record.state_expires_at = sample.at(-2);
    assert!(stores.records.put_thread(&write).await?);
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(write.record));
    Ok(())
}

/// A context id is a name inside one subject.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_the_owner_reads_a_thread(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    for id in [
        ContextId::parse("c:1")?,
        ContextId::made_of(sample.number()),
    ] {
        let write = sample.thread(&sample.owner, &id, 0);
        assert!(stores.records.put_thread(&write).await?);
        for other in [&sample.colleague, &sample.stranger] {
            let found = stores.records.load_thread(other, &id).await?;
            assert_eq!(found, None, "{other:?}");
            let theirs = sample.thread(other, &id, 0);
            assert!(stores.records.put_thread(&theirs).await?);
        }
        let found = stores.records.load_thread(&sample.owner, &id).await?;
        assert_eq!(found, Some(write.record));
    }
    Ok(())
}

/// If the condition of one half of a commit fails, neither half is stored. If both
/// fail, the result is the task's conflict.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_task_and_its_thread_are_stored_together_or_not_at_all(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let id = task.context_id.clone();
    let mut create = sample.create(&task);
    create.thread = Some(sample.thread(&sample.owner, &id, 3));
    let answer = stores.records.commit(&create).await?;
    assert_eq!(answer, CommitResult::ThreadConflict);
    assert_eq!(sample.loaded(stores, &task).await?, None);

    let first = sample.thread(&sample.owner, &id, 0);
    create.thread = Some(first.clone());
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    let stored = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(stored.as_ref(), Some(&first.record));

    let other = sample.new_task(&sample.owner, task.id.clone())?;
    for expect in [0, 1] {
        let mut write = sample.create(&other);
        write.thread = Some(sample.thread(&sample.owner, &id, expect));
        let answer = stores.records.commit(&write).await?;
        let current = Some(task.clone());
        assert_eq!(answer, CommitResult::Conflict(current), "thread {expect}");
    }
    let working = sample.next(&task, [sample.start()])?;
    let mut write = sample.update(&working, &task);
    write.thread = Some(sample.thread(&sample.owner, &id, 0));
    let answer = stores.records.commit(&write).await?;
    assert_eq!(answer, CommitResult::ThreadConflict);
    assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, stored);
    Ok(())
}

/// A repeated transaction is recognised like any other write.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_repeated_write_of_task_and_thread_is_done(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let id = task.context_id.clone();
    let mut create = sample.create(&task);
    create.thread = Some(sample.thread(&sample.owner, &id, 0));
    let working = sample.next(&task, [sample.start()])?;
    let mut update = sample.update(&working, &task);
    let second = sample.thread(&sample.owner, &id, 1);
    update.thread = Some(second.clone());
    for write in [&create, &create, &update, &create, &update] {
        assert_eq!(stores.records.commit(write).await?, CommitResult::Done);
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(working));
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(second.record));
    Ok(())
}

/// A create that is repeated after the removal of its task stores neither half: the
/// thread already has the version of the first attempt.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_repeated_create_of_a_removed_task_is_a_thread_conflict(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let id = task.context_id.clone();
    let first = sample.thread(&sample.owner, &id, 0);
    let mut create = sample.create(&task);
    create.thread = Some(first.clone());
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    assert!(stores.records.remove_task(&task).await?);
    let answer = stores.records.commit(&create).await?;
    assert_eq!(answer, CommitResult::ThreadConflict);
    assert_eq!(sample.loaded(stores, &task).await?, None);
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(first.record));
    Ok(())
}
