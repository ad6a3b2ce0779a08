//! What a sweep finds, over all tenants.

use super::{Broken, Stores, World};
use crate::store::queue::OpenTask;
use crate::store::{Committed, StoreError};
use crate::task::{Change, Message, Owner, Part, SavedSlot, Subject, TaskId, TaskRecord};

/// The open tasks of this case's tenant, in the order of the pages, shard by
/// shard.
async fn found(stores: &Stores<'_>, world: &World, limit: usize) -> Result<Vec<OpenTask>, Broken> {
    Ok(shards(stores, world, limit).await?.concat())
}

/// The same, each shard by itself.
pub(super) async fn shards(
    stores: &Stores<'_>,
    world: &World,
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
        found.retain(|open| open.owner.tenant == world.owner.tenant);
        all.push(found);
    }
    Ok(all)
}

fn open(record: &TaskRecord) -> OpenTask {
    OpenTask {
        owner: record.owner().clone(),
        task: record.id().clone(),
    }
}

/// Found from the create on until the task rests, and again when it goes on.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_sweep_finds_what_is_open_and_nothing_at_rest(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let message = || Message::from_agent("m-2", vec![Part::text("which?")]);
    let lease_until = world.at(60_000);
    let steps = [
        (world.start(), true),
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
    let mut task = world.task()?;
    assert_eq!(found(stores, world, 100).await?, []);
    world.stored(stores, &task).await?;
    assert_eq!(found(stores, world, 100).await?, [open(&task)]);
    for (change, is_open) in steps {
        let next = world.next(&task, [change])?;
        let answer = stores.tasks.commit(&world.update(&next, &task)).await?;
        assert_eq!(answer, Committed::Done);
        task = next;
        let expected: Vec<_> = is_open.then(|| open(&task)).into_iter().collect();
        let found = found(stores, world, 100).await?;
        assert_eq!(found, expected, "{:?}", task.state());
    }
    let finished = world.finished(&world.task()?)?;
    world.stored(stores, &finished).await?;
    assert_eq!(found(stores, world, 100).await?, []);
    Ok(())
}

/// The hit is enough to read the task: the subject is the caller's, not a hash.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_open_task_names_its_owner_and_its_id(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let mut expected = Vec::new();
    for subject in ["ann", "a#b~c", "T#x#K#y", "\u{0}", "\u{1F600}"] {
        let owner = Owner {
            tenant: world.owner.tenant.clone(),
            subject: Subject::parse(subject)?,
        };
        for id in [TaskId::made_of(world.number()), TaskId::parse("K:x")?] {
            let task = world.new_task(&owner, id)?;
            world.stored(stores, &task).await?;
            expected.push(open(&task));
        }
    }
    let mut found = found(stores, world, 100).await?;
    for hit in &found {
        let task = stores.tasks.load(&hit.owner, &hit.task, world.now).await?;
        assert_eq!(task.as_ref().map(open).as_ref(), Some(hit));
    }
    let by_name = |a: &OpenTask, b: &OpenTask| (&a.owner, &a.task).cmp(&(&b.owner, &b.task));
    found.sort_by(by_name);
    expected.sort_by(by_name);
    assert_eq!(found, expected);
    Ok(())
}

/// No page repeats or skips a task, whatever its size. Those of a shard join
/// oldest first.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_of_open_tasks_join_oldest_first(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let mut tasks = Vec::new();
    for age in [3_i64, 1, 4, 0, 2, 9, 5, 8, 7, 6] {
        let mut task = world.task()?;
        task.created_at = world.at(-1_000 * age);
        world.stored(stores, &task).await?;
        tasks.push(task);
    }
    tasks.sort_by_key(|task| task.created_at);
    let expected: Vec<_> = tasks.iter().map(open).collect();
    // Two of the same time, so that a page can end between them.
    let twin = world.task()?;
    world.stored(stores, &twin).await?;
    for limit in [1, 2, 100] {
        let shards = shards(stores, world, limit).await?;
        let mut count = 0;
        for mut shard in shards {
            count += shard.len();
            shard.retain(|hit| *hit != open(&twin));
            // Each is the list of all, without what lies in others.
            let of_shard = expected.iter().filter(|hit| shard.contains(hit));
            let of_shard: Vec<OpenTask> = of_shard.cloned().collect();
            assert_eq!(shard, of_shard, "pages of {limit}");
        }
        assert_eq!(count, expected.len() + 1, "pages of {limit}");
    }
    Ok(())
}

/// A place comes from an earlier page. Another text is an error, not a start.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_place_that_is_none_of_ours_is_refused(
    stores: &Stores<'_>,
    _world: &World,
) -> Result<(), Broken> {
    for place in ["", "x", "1", "x#T#a#K#b", "#"] {
        let answer = stores.sweep.open_tasks(0, Some(place.to_owned()), 10).await;
        assert!(matches!(answer, Err(StoreError::Refused(_))), "{place}");
    }
    Ok(())
}
