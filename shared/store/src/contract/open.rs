//! The index of open tasks, over all tenants.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{CommitResult, StoreError};
use a2a_lambda_model::task::{
    Change, Message, Owner, Part, SavedSlot, Subject, TaskId, TaskRecord,
};

/// The open tasks of this case's tenant, shard by shard in page order.
async fn found(
    stores: &Stores,
    sample: &SampleData,
    limit: usize,
) -> Result<Vec<OpenTask>, Broken> {
    Ok(shards(stores, sample, limit).await?.concat())
}

/// The same, one list per shard.
pub(super) async fn shards(
    stores: &Stores,
    sample: &SampleData,
    limit: usize,
) -> Result<Vec<Vec<OpenTask>>, Broken> {
    let mut all = Vec::new();
    for shard in 0..stores.sweep.open_shards() {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = stores.sweep.open_tasks(shard, after, limit).await?;
            assert!(page.len() <= limit, "a page holds {limit} tasks at most");
            found.extend(page);
            after = next;
            if after.is_none() {
                break;
            }
        }
        found.retain(|open| open.owner.tenant == sample.owner.tenant);
        all.push(found);
    }
    Ok(all)
}

fn open(record: &TaskRecord) -> OpenTask {
    OpenTask {
        owner: record.owner.clone(),
        task: record.id.clone(),
    }
}

/// A sweep finds a task from its creation until it rests, and again when it
/// continues.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_sweep_finds_open_tasks_and_none_at_rest(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let message = || Message::from_agent("m-2", vec![Part::text("which?")]);
    let lease_until = sample.at(60_000);
    let steps = [
        (sample.start(), true),
        (Change::HandOver { progress: false }, true),
        (Change::Claim { lease_until }, true),
        (
            Change::AskInput {
                message: message(),
                slot: SavedSlot {
                    version: 1,
                    value: serde_json::Value::Null,
                },
            },
            false,
        ),
        (
            Change::Queue {
                message: message(),
                secret: None,
            },
            true,
        ),
        (Change::Cancel, false),
    ];
    let mut task = sample.task()?;
    assert_eq!(found(stores, sample, 100).await?, []);
    sample.stored(stores, &task).await?;
    assert_eq!(found(stores, sample, 100).await?, [open(&task)]);
    for (change, is_open) in steps {
        let next = sample.next(&task, [change])?;
        let answer = stores.records.commit(&sample.update(&next, &task)).await?;
        assert_eq!(answer, CommitResult::Done);
        task = next;
        let expected: Vec<_> = is_open.then(|| open(&task)).into_iter().collect();
        let found = found(stores, sample, 100).await?;
        assert_eq!(found, expected, "{:?}", task.state());
    }
    let finished = sample.finished(&sample.task()?)?;
    sample.stored(stores, &finished).await?;
    assert_eq!(found(stores, sample, 100).await?, []);
    Ok(())
}

/// A hit is enough to load the task: it has the subject itself, not its hash.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_open_task_names_its_owner_and_its_id(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut expected = Vec::new();
    for subject in ["ann", "a#b~c", "T#x#K#y", "\u{0}", "\u{1F600}"] {
        let owner = Owner {
            tenant: sample.owner.tenant.clone(),
            subject: Subject::parse(subject)?,
        };
        for id in [TaskId::made_of(sample.number()), TaskId::parse("K:x")?] {
            let task = sample.new_task(&owner, id)?;
            sample.stored(stores, &task).await?;
            expected.push(open(&task));
        }
    }
    let mut found = found(stores, sample, 100).await?;
    for hit in &found {
        let task = stores
            .records
            .load(&hit.owner, &hit.task, sample.now)
            .await?;
        assert_eq!(task.as_ref().map(open).as_ref(), Some(hit));
    }
    let by_name = |a: &OpenTask, b: &OpenTask| (&a.owner, &a.task).cmp(&(&b.owner, &b.task));
    found.sort_by(by_name);
    expected.sort_by(by_name);
    assert_eq!(found, expected);
    Ok(())
}

/// Pages of any size neither repeat nor skip a task. Those of a shard are oldest
/// first.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_of_open_tasks_join_oldest_first(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut tasks = Vec::new();
    for age in [3_i64, 1, 4, 0, 2, 9, 5, 8, 7, 6] {
        let mut task = sample.task()?;
        task.fields().created_at = sample.at(-1_000 * age);
        sample.stored(stores, &task).await?;
        tasks.push(task);
    }
    tasks.sort_by_key(|task| task.created_at);
    let expected: Vec<_> = tasks.iter().map(open).collect();
    // Two tasks of the same creation time, so that a page can end between them.
    let twin = sample.task()?;
    sample.stored(stores, &twin).await?;
    for limit in [1, 2, 100] {
        let shards = shards(stores, sample, limit).await?;
        let mut count = 0;
        for mut shard in shards {
            count += shard.len();
            shard.retain(|hit| *hit != open(&twin));
            // The shard has the order of all tasks, without those of other shards.
            let of_shard = expected.iter().filter(|hit| shard.contains(hit));
            let of_shard: Vec<OpenTask> = of_shard.cloned().collect();
            assert_eq!(shard, of_shard, "pages of {limit}");
        }
        assert_eq!(count, expected.len() + 1, "pages of {limit}");
    }
    Ok(())
}

/// A position comes from an earlier page of the same shard.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_page_position_of_another_shard_is_refused(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    sample.stored(stores, &sample.task()?).await?;
    let shards = stores.sweep.open_shards();
    let mut position_count = 0;
    for shard in 0..shards {
        let (_, next) = stores.sweep.open_tasks(shard, None, 1).await?;
        if next.is_some() {
            position_count += 1;
            let answer = stores.sweep.open_tasks((shard + 1) % shards, next, 1).await;
            assert!(matches!(answer, Err(StoreError::Refused(_))), "{shard}");
        }
    }
    assert_ne!(position_count, 0);
    Ok(())
}
