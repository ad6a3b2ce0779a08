//! The tasks of a context, and deletions: what is found, what is removed, and what a
//! later context of the same id keeps.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::{
    CommitResult, Expiring, ExpiringThread, KeyWrite, StoreError, TaskWrite, ThreadQuery,
    ThreadRecord, ThreadState, ThreadStatus, ThreadWrite,
};
use a2a_lambda_model::task::{
    Change, ContextId, IdempotencyKey, Owner, TaskId, TaskRecord, Timestamp,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

/// A context with a client-made id.
fn context() -> Result<ContextId, Broken> {
    Ok(ContextId::parse("c:1")?)
}

/// The write that deletes the context of `thread` at `at`.
fn clearing(sample: &SampleData, thread: &ThreadRecord, at: Timestamp) -> ThreadWrite {
    ThreadWrite {
        record: thread.clone().clear(at),
        expect: thread.version,
        write: sample.write_id(),
    }
}

/// A finished task in the context.
async fn finished(
    stores: &Stores,
    sample: &SampleData,
    of: (&Owner, &ContextId),
    at: Timestamp,
) -> Result<TaskRecord, Broken> {
    made(stores, sample, of, (sample.now, at)).await
}

/// The same, created at one time and finished at another.
async fn made(
    stores: &Stores,
    sample: &SampleData,
    (owner, context): (&Owner, &ContextId),
    (made, at): (Timestamp, Timestamp),
) -> Result<TaskRecord, Broken> {
    let mut task = sample.new_task(owner, TaskId::made_of(sample.number()))?;
    task.fields().context_id = context.clone();
    task.fields().created_at = made;
    let changes = [sample.start(), Change::Complete { message: None }];
    let mut task = task.next(changes, sample.write_id(), at, sample.expiry())?;
    task.fields().version = 1;
    sample.stored(stores, &task).await?;
    Ok(task)
}

/// All tasks of a context, read in pages of `size`.
async fn found(
    stores: &Stores,
    owner: &Owner,
    context: &ContextId,
    size: usize,
) -> Result<Vec<TaskRecord>, Broken> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..50 {
        let (heads, next) = stores
            .records
            .tasks_in(owner, context, None, after, size)
            .await?;
        found.extend(heads);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(after, None, "pages of {size} end");
    Ok(found)
}

/// The newest creation comes first. Expired tasks are included; tasks of
/// other owners and of other contexts are not.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_of_a_context_return_all_its_tasks(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (mine, other) = (context()?, ContextId::parse("c:1x")?);
    let mut expected = BTreeSet::new();
    for n in 0..7 {
        // The finish time does not follow the creation time.
        let of = (&sample.owner, &mine);
        let task = made(stores, sample, of, (sample.at(n), sample.at(100 - n))).await?;
        expected.insert(task.id.clone());
    }
    let mut asked = sample.new_task(&sample.owner, TaskId::parse("mine")?)?;
    asked.fields().context_id = mine.clone();
    sample.stored(stores, &asked).await?;
    expected.insert(asked.id.clone());
    let over = finished(stores, sample, (&sample.owner, &mine), sample.now).await?;
    let ended = over.with_expiry(sample.write_id(), sample.at(-1));
    let write = sample.update(&ended, &over);
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    expected.insert(over.id.clone());
    finished(stores, sample, (&sample.owner, &other), sample.now).await?;
    for theirs in [&sample.colleague, &sample.stranger] {
        finished(stores, sample, (theirs, &mine), sample.now).await?;
    }
    for size in [1, 2, 3, 50] {
        let all = found(stores, &sample.owner, &mine, size).await?;
        assert!(all.is_sorted_by_key(|task| Reverse(task.created_at)));
        let all: Vec<TaskId> = all.into_iter().map(|task| task.id.clone()).collect();
        let distinct: BTreeSet<TaskId> = all.iter().cloned().collect();
        assert_eq!(distinct, expected, "pages of {size}");
        assert_eq!(all.len(), expected.len(), "pages of {size}: each once");
    }
    // A position comes from an earlier page of the same context.
    let (_, place) = stores
        .records
        .tasks_in(&sample.owner, &mine, None, None, 1)
        .await?;
    let refused = stores
        .records
        .tasks_in(&sample.owner, &other, None, place, 10);
    assert!(matches!(refused.await, Err(StoreError::Refused(_))));
    Ok(())
}

/// The task that a context is named after comes last, because it was the first.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn the_task_a_context_is_named_after_comes_last(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let number = sample.number();
    let mine = ContextId::made_of(number);
    let mut first = sample.new_task(&sample.owner, TaskId::made_of(number))?;
    first.fields().context_id = mine.clone();
    assert_eq!(found(stores, &sample.owner, &mine, 1).await?, []);
    sample.stored(stores, &first).await?;
    for n in 1..=2 {
        let of = (&sample.owner, &mine);
        made(stores, sample, of, (sample.at(n), sample.now)).await?;
    }
    for size in [1, 2, 3] {
        let all = found(stores, &sample.owner, &mine, size).await?;
        assert_eq!(all.len(), 3, "pages of {size}");
        assert_eq!(all.last().map(|task| &task.id), Some(&first.id));
    }
    let other = ContextId::made_of(sample.number());
    assert_eq!(found(stores, &sample.owner, &other, 1).await?, []);
    Ok(())
}

/// A task with the id of a removed or expired task is found in its own context only.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_reused_task_id_is_found_in_its_own_context_only(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (mine, other) = (context()?, ContextId::parse("c:2")?);
    let owner = &sample.owner;
    let create = |context: &ContextId, at: Timestamp| -> Result<TaskWrite, Broken> {
        let mut task = sample.new_task(owner, TaskId::parse("t:1")?)?;
        task.fields().context_id = context.clone();
        let mut task = sample.finished(&task)?;
        task.fields().version = 1;
        Ok(TaskWrite {
            now: at,
            ..sample.create(&task)
        })
    };
    let late = sample.expiry();
    let removed = create(&mine, sample.now)?;
    assert_eq!(stores.records.commit(&removed).await?, CommitResult::Done);
    assert!(stores.records.remove_task(&removed.record).await?);
    assert_eq!(found(stores, owner, &mine, 9).await?, []);
    let first = create(&mine, sample.now)?;
    assert_eq!(stores.records.commit(&first).await?, CommitResult::Done);
    // A create that loses leaves nothing visible.
    let lost = create(&mine, sample.now)?;
    let answer = stores.records.commit(&lost).await?;
    assert!(
        matches!(answer, CommitResult::Conflict(Some(_))),
        "{answer:?}"
    );
    let all = found(stores, owner, &mine, 9).await?;
    assert_eq!(all, std::slice::from_ref(&first.record));
    let second = create(&other, late)?;
    assert_eq!(stores.records.commit(&second).await?, CommitResult::Done);
    assert_eq!(found(stores, owner, &mine, 9).await?, []);
    let all = found(stores, owner, &other, 9).await?;
    assert_eq!(all, std::slice::from_ref(&second.record));
    let third = create(&other, late.plus(Duration::from_secs(3600)))?;
    assert_eq!(stores.records.commit(&third).await?, CommitResult::Done);
    let all = found(stores, owner, &other, 9).await?;
    assert_eq!(all, std::slice::from_ref(&third.record));
    Ok(())
}

/// The pointer from the context is written in the same transaction, with a key and
/// without.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_task_of_a_keyed_send_is_found_in_its_context(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (mine, key) = (context()?, IdempotencyKey::parse("k")?.hash(&sample.owner));
    let mut task = sample.task()?;
    task.fields().context_id = mine.clone();
    let write = TaskWrite {
        key: Some(KeyWrite {
            key,
            content: "c".to_owned(),
        }),
        ..sample.create(&task)
    };
    for _ in 0..2 {
        assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
        let all = found(stores, &sample.owner, &mine, 9).await?;
        assert_eq!(all, std::slice::from_ref(&task));
    }
    Ok(())
}

/// A deleted context has no state and is in no list. A late removal does not touch
/// what another write has stored since.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_late_removal_leaves_the_next_thread_of_the_id(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = context()?;
    let first = sample.thread(&sample.owner, &id, 0);
    assert!(stores.records.put_thread(&first).await?);
    let cleared = clearing(sample, &first.record, sample.at(5));
    let stale = clearing(
        sample,
        &ThreadRecord {
            version: 7,
            ..first.record.clone()
        },
        sample.at(5),
    );
    assert!(!stores.records.put_thread(&stale).await?, "another version");
    for _ in 0..2 {
        assert!(stores.records.put_thread(&cleared).await?);
        stores.records.forget_state(&cleared.record).await?;
        let found = stores.records.load_thread(&sample.owner, &id).await?;
        assert_eq!(found, Some(cleared.record.clone()));
    }
    assert_eq!(cleared.record.status, ThreadStatus::Cleared);
    assert_eq!(cleared.record.state, ThreadState::default());
    let query = ThreadQuery {
        after: None,
        limit: 10,
        ttl: Duration::from_secs(3600),
        now: sample.at(-1),
    };
    let page = stores.records.list_threads(&sample.owner, &query).await?;
    assert_eq!(page.threads, []);

    let mut next = sample.thread(&sample.owner, &id, 2);
    next.record.updated_at = sample.at(6);
    assert!(stores.records.put_thread(&next).await?);
    // A removal that is late or repeated.
    stores.records.forget_state(&cleared.record).await?;
    assert!(!stores.records.remove_thread(&cleared.record).await?);
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(next.record.clone()));
    assert!(stores.records.remove_thread(&next.record).await?);
    assert_eq!(stores.records.load_thread(&sample.owner, &id).await?, None);
    Ok(())
}

async fn expiring(
    stores: &Stores,
    sample: &SampleData,
    now: Timestamp,
) -> Result<Vec<ExpiringThread>, Broken> {
    let sweep = &stores.sweep;
    let mut all = Vec::new();
    for shard in 0..sweep.expiry_shards() {
        let (found, _) = sweep.expiring_threads(shard, now, None, 100).await?;
        all.extend(found);
    }
    all.retain(|hint| hint.owner.tenant == sample.owner.tenant && hint.what == Expiring::Deleted);
    Ok(all)
}

/// A deletion is due only after every task of the context must be visible, whatever
/// expiry was stored before.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_sweep_finds_a_deletion_after_the_last_possible_write(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let ours = ContextId::made_of(sample.number());
    for (id, stored) in [(&context()?, true), (&ours, true), (&ours, false)] {
        let mut thread = sample.thread(&sample.owner, id, 0);
        if stored {
            assert!(stores.records.put_thread(&thread).await?);
        } else {
            thread.record.version = 0;
        }
        let cleared = clearing(sample, &thread.record, sample.now);
        assert!(stores.records.put_thread(&cleared).await?);
        let record = &cleared.record;
        let (at, hint) = due(sample, record);
        assert!(
            at >= sample.now.plus(Duration::from_secs(15 * 60)),
            "{at:?}"
        );
        let early = Timestamp::from_millis(at.as_millis() - 1);
        assert_eq!(expiring(stores, sample, early).await?, [], "{id}");
        let found = std::slice::from_ref(&hint);
        assert_eq!(expiring(stores, sample, at).await?, found, "{id}");
        // A sweep that read the thread before the deletion stores no expiry.
        stores.sweep.note_expiry(&thread.record).await?;
        assert_eq!(expiring(stores, sample, at).await?, found, "{id}");
        for _ in 0..2 {
            assert!(stores.records.remove_thread(record).await?);
            assert_eq!(expiring(stores, sample, at).await?, []);
            assert_eq!(stores.records.load_thread(&sample.owner, id).await?, None);
        }
    }
    Ok(())
}

/// When a sweep has to handle the deletion of `thread`, and the hint it finds.
fn due(sample: &SampleData, thread: &ThreadRecord) -> (Timestamp, ExpiringThread) {
    let hint = ExpiringThread {
        owner: sample.owner.clone(),
        context_id: thread.context_id.clone(),
        what: Expiring::Deleted,
    };
    let at = thread.swept_at(Expiring::Deleted);
    (at.unwrap_or_default(), hint)
}

/// A key that names another task by now is left to that task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn removing_a_task_removes_only_its_own_keys(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let key = IdempotencyKey::parse("k")?.hash(&sample.owner);
    let keyed = |task: &TaskRecord| TaskWrite {
        key: Some(KeyWrite {
            key: key.clone(),
            content: "c".to_owned(),
        }),
        ..sample.create(task)
    };
    let held = |id: TaskId| -> Result<TaskRecord, Broken> {
        let mut task = sample.new_task(&sample.owner, id)?;
        task.hold_key(key.clone());
        let mut task = sample.finished(&task)?;
        task.fields().version = 1;
        Ok(task)
    };
    let first = held(TaskId::parse("t:1")?)?;
    assert_eq!(
        &first.keys,
        std::slice::from_ref(&key),
        "a task that has ended knows its keys"
    );
    assert_eq!(
        stores.records.commit(&keyed(&first)).await?,
        CommitResult::Done
    );
    let ended = first.with_expiry(sample.write_id(), sample.now);
    let end = sample.update(&ended, &first);
    assert_eq!(stores.records.commit(&end).await?, CommitResult::Done);
    let second = held(TaskId::parse("t:2")?)?;
    assert_eq!(
        stores.records.commit(&keyed(&second)).await?,
        CommitResult::Done
    );
    assert!(stores.records.remove_task(&ended).await?);
    let left = stores
        .records
        .load_key(&sample.owner, &key, sample.now)
        .await?;
    assert_eq!(left.map(|keyed| keyed.record), Some(second.clone()));
    assert!(stores.records.remove_task(&second).await?);
    let left = stores
        .records
        .load_key(&sample.owner, &key, sample.now)
        .await?;
    assert_eq!(left, None);
    Ok(())
}
