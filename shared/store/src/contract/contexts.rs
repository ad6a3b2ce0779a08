//! Lists of contexts, their expiry, and removal.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::{
    CommitResult, Expiring, ExpiringThread, RecordQuery, ThreadPage, ThreadPosition, ThreadQuery,
    ThreadRecord, ThreadState,
};
use a2a_lambda_model::task::{Change, ContextId, TaskId, TaskRecord, Timestamp};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(24 * 3600);

async fn listed(
    stores: &Stores,
    sample: &SampleData,
    after: Option<ThreadPosition>,
    limit: usize,
    now: Timestamp,
) -> Result<ThreadPage, Broken> {
    let query = ThreadQuery {
        after,
        limit,
        ttl: TTL,
        now,
    };
    Ok(stores.records.list_threads(&sample.owner, &query).await?)
}

fn names(threads: &[ThreadRecord]) -> Vec<&ContextId> {
    threads.iter().map(|thread| &thread.context_id).collect()
}

/// A finished task, which its context is named after if `named`.
fn finished(sample: &SampleData, named: bool, at: Timestamp) -> Result<TaskRecord, Broken> {
    let number = sample.number();
    let id = TaskId::made_of(number);
    let mut task = sample.new_task(&sample.owner, id)?;
    task.fields().context_id = ContextId::made_of(if named { number } else { sample.number() });
    let changes = [sample.start(), Change::Complete { message: None }];
    let mut task = task.next(changes, sample.write_id(), at, sample.at(1_000_000_000))?;
    task.fields().version = 1;
    Ok(task)
}

/// A context is listed by its thread, or by the task it is named after; never twice,
/// and not after its end.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn contexts_are_listed_newest_first_and_once(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let alone = finished(sample, true, sample.at(-50))?;
    let kept = finished(sample, true, sample.at(-40))?;
    let second = finished(sample, false, sample.at(-30))?;
    for task in [&alone, &kept, &second] {
        sample.stored(stores, task).await?;
    }
    let mut thread = sample.thread(&sample.owner, &kept.context_id, 0);
    thread.record.updated_at = sample.at(-60);
    assert!(stores.records.put_thread(&thread).await?);
    let mut own = sample.thread(&sample.owner, &ContextId::parse("c:1")?, 0);
    own.record.updated_at = sample.at(-20);
    assert!(stores.records.put_thread(&own).await?);
    let mut over = sample.thread(&sample.owner, &ContextId::parse("c:2")?, 0);
    over.record.expires_at = sample.now;
    assert!(stores.records.put_thread(&over).await?);
    let theirs = sample.thread(&sample.colleague, &ContextId::parse("c:3")?, 0);
    assert!(stores.records.put_thread(&theirs).await?);

    let page = listed(stores, sample, None, 10, sample.now).await?;
    let expected = [&own.record.context_id, &alone.context_id, &kept.context_id];
    assert_eq!(names(&page.threads), expected);
    assert_eq!(page.next, None);
    let versions: Vec<u64> = page.threads.iter().map(|it| it.version).collect();
    assert_eq!(versions, [1, 0, 1]);
    assert!(
        page.threads
            .iter()
            .all(|it| it.state == ThreadState::default())
    );

    let ends = sample.at(-50).plus(TTL);
    for (at, there) in [(-1, true), (0, false)] {
        let now = Timestamp::from_millis(ends.as_millis() + at);
        let page = listed(stores, sample, None, 10, now).await?;
        let found = names(&page.threads).contains(&&alone.context_id);
        assert_eq!(found, there, "{at} ms");
    }
    Ok(())
}

/// Pages of any size contain each context once.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_of_contexts_join_to_the_whole_list(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    for n in 0..4 {
        sample
            .stored(stores, &finished(sample, true, sample.at(-n * 10))?)
            .await?;
        let id = ContextId::parse(format!("c:{n}"))?;
        let mut thread = sample.thread(&sample.owner, &id, 0);
        thread.record.updated_at = sample.at(-n * 15);
        assert!(stores.records.put_thread(&thread).await?);
    }
    let whole = listed(stores, sample, None, 100, sample.now).await?.threads;
    assert_eq!(whole.len(), 8);
    for size in [1, 2, 3, 7, 8] {
        let (mut joined, mut after) = (Vec::new(), None);
        for _ in 0..20 {
            let page = listed(stores, sample, after, size, sample.now).await?;
            assert!(page.threads.len() <= size);
            joined.extend(page.threads);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(joined, whole, "pages of {size}");
    }
    Ok(())
}

/// A bare thread, which a task opens, in its context.
async fn opens(stores: &Stores, sample: &SampleData, context: &ContextId) -> Result<(), Broken> {
    let mut thread = sample.thread(&sample.owner, context, 0);
    thread.record.state = ThreadState::default();
    thread.record.state_version = 0;
    assert!(thread.record.is_bare());
    assert!(stores.records.put_thread(&thread).await?);
    Ok(())
}

/// A context whose thread was stored for a task is listed only while it has a task. A thread
/// with a state, or one that was written again, is listed without one.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_context_begun_for_a_task_is_listed_while_it_has_one(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let context = ContextId::parse("c:1")?;
    opens(stores, sample, &context).await?;
    // Another context of the same name.
    let mut theirs = finished(sample, false, sample.now)?;
    theirs.fields().owner = sample.colleague.clone();
    theirs.fields().context_id = context.clone();
    sample.stored(stores, &theirs).await?;
    let list = async |at| {
        let page = listed(stores, sample, None, 10, sample.at(at)).await?;
        Ok::<_, Broken>(page.threads.len())
    };
    assert_eq!(list(0).await?, 0, "no task");
    let mut task = finished(sample, false, sample.now)?;
    task.fields().context_id = context.clone();
    task.fields().expires_at = sample.at(1000);
    sample.stored(stores, &task).await?;
    assert_eq!((list(0).await?, list(1000).await?), (1, 0));
    assert!(stores.records.remove_task(&task).await?);
    assert_eq!(list(0).await?, 0, "removed");
    let mut again = sample.thread(&sample.owner, &context, 1);
    again.record.updated_at = sample.at(1);
    again.record.state_version = 0;
    again.record.state = ThreadState::default();
    assert!(stores.records.put_thread(&again).await?);
    assert_eq!(list(1).await?, 1, "written again");
    Ok(())
}

/// A pointer shows nothing before its task is stored. Then the context has the task, whether
/// the create brings the pointer or finds it.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_pointer_without_its_task_shows_nothing(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let context = ContextId::parse("c:1")?;
    opens(stores, sample, &context).await?;
    let listing = RecordQuery {
        context_id: Some(context.clone()),
        ..sample.everything()
    };
    let shown = async || {
        let (heads, _) = stores
            .records
            .tasks_in(&sample.owner, &context, None, None, 10)
            .await?;
        let page = stores.records.list(&sample.owner, &listing).await?;
        let contexts = listed(stores, sample, None, 10, sample.now).await?;
        Ok::<_, Broken>((
            heads.len(),
            page.records.len(),
            page.matching,
            contexts.threads.len(),
        ))
    };
    let mut placed = finished(sample, false, sample.now)?;
    placed.fields().context_id = context.clone();
    stores
        .records
        .link_context(&placed, sample.at(1000))
        .await?;
    stores
        .records
        .link_context(&placed, sample.at(2000))
        .await?;
    assert_eq!(shown().await?, (0, 0, 0, 0));
    let mut alone = finished(sample, false, sample.now)?;
    alone.fields().context_id = context.clone();
    sample.stored(stores, &alone).await?;
    assert_eq!(shown().await?, (1, 1, 1, 1));
    let mut write = sample.create(&placed);
    write.has_pointer = true;
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    assert_eq!(shown().await?, (2, 2, 2, 1));
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
        let mut after = None;
        loop {
            let (found, next) = sweep.expiring_threads(shard, now, after, 3).await?;
            all.extend(found);
            after = next;
            if after.is_none() {
                break;
            }
        }
    }
    all.retain(|hint| hint.owner.tenant == sample.owner.tenant);
    Ok(all)
}

/// An expired state is due from the end of its hour on. A later expiry moves that
/// time, and a removed state is not due again. A state whose thread lives longer gets
/// a new expiry.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_sweep_finds_and_removes_expired_state(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::made_of(sample.number());
    let mut thread = sample.thread(&sample.owner, &id, 0);
    // Just past the hour, so that the state is due at the end of the next hour.
    let hour = 3_600_000;
    thread.record.updated_at = sample.at(-hour);
    thread.record.state_expires_at = sample.at(10);
    assert!(stores.records.put_thread(&thread).await?);
    let due = sample.at(hour);
    let early = sample.at(hour - 1);
    assert_eq!(expiring(stores, sample, early).await?, []);
    let hint = ExpiringThread {
        owner: sample.owner.clone(),
        context_id: id.clone(),
        what: Expiring::State,
    };
    assert_eq!(
        expiring(stores, sample, due).await?,
        std::slice::from_ref(&hint)
    );

    let mut later = sample.thread(&sample.owner, &id, 1);
    later.record.state_version = 1;
    later.record.state_expires_at = sample.at(hour + 10);
    assert!(stores.records.put_thread(&later).await?);
    // An expiry for a state that is not the stored one changes nothing.
    let mut other = later.record.clone();
    other.state_version = 2;
    other.state_expires_at = sample.at(5 * hour);
    stores.sweep.note_expiry(&other).await?;
    stores.sweep.note_expiry(&later.record).await?;
    assert_eq!(expiring(stores, sample, due).await?, []);
    assert_eq!(expiring(stores, sample, sample.at(2 * hour)).await?, [hint]);

    let mut without = sample.thread(&sample.owner, &id, 2);
    without.record.state_version = 0;
    without.record.state = ThreadState::default();
    assert!(stores.records.put_thread(&without).await?);
    let end = sample.at(hour + 10);
    let removed = stores.sweep.remove_state(&sample.owner, &id, end);
    assert!(removed.await?.state);
    assert_eq!(expiring(stores, sample, sample.at(9 * hour)).await?, []);
    let found = stores.records.load_thread(&sample.owner, &id).await?;
    assert_eq!(found, Some(without.record));
    Ok(())
}

/// A task is removed only at the version that was read, and only by its owner.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_removed_task_is_gone_with_everything_beside_it(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = finished(sample, true, sample.now)?;
    sample.stored(stores, &task).await?;
    let (owner, id) = (&sample.owner, &task.id);
    for (other, absent) in [(&sample.colleague, false), (&sample.stranger, true)] {
        let mut theirs = task.clone();
        theirs.fields().owner = other.clone();
        assert_eq!(
            stores.records.remove_task(&theirs).await?,
            absent,
            "{other:?}"
        );
    }
    let mut later = task.clone();
    later.fields().version += 1;
    let mut earlier = task.clone();
    earlier.fields().incarnation = sample.write_id();
    for other in [later, earlier] {
        assert!(!stores.records.remove_task(&other).await?);
        assert_eq!(sample.loaded(stores, &task).await?, Some(task.clone()));
    }
    for _ in 0..2 {
        assert!(stores.records.remove_task(&task).await?);
        assert_eq!(sample.loaded(stores, &task).await?, None);
    }
    let page = stores.records.list(owner, &sample.everything()).await?;
    assert_eq!(page.records, []);
    let again = sample.new_task(owner, id.clone())?;
    assert_eq!(
        stores.records.commit(&sample.create(&again)).await?,
        CommitResult::Done
    );
    Ok(())
}

/// Thread and state are gone, and the id can be used again.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_removed_thread_leaves_nothing(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = ContextId::parse("c:1")?;
    let first = sample.thread(&sample.owner, &id, 0);
    assert!(stores.records.put_thread(&first).await?);
    let theirs = sample.thread(&sample.colleague, &id, 0).record;
    assert!(stores.records.remove_thread(&theirs).await?);
    let mut later = first.record.clone();
    later.version += 1;
    assert!(!stores.records.remove_thread(&later).await?);
    let found = stores.records.load_thread_head(&sample.owner, &id).await?;
    assert_eq!(found.map(|it| it.version), Some(1));
    for _ in 0..2 {
        assert!(stores.records.remove_thread(&first.record).await?);
        assert_eq!(stores.records.load_thread(&sample.owner, &id).await?, None);
    }
    let page = listed(stores, sample, None, 10, sample.now).await?;
    assert_eq!(page.threads, []);
    let again = sample.thread(&sample.owner, &id, 0);
    assert!(stores.records.put_thread(&again).await?);
    Ok(())
}
