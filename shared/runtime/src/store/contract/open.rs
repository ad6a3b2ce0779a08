//! What a sweep finds, over all tenants.

use super::{Broken, Stores, World};
use crate::store::queue::OpenTask;
use crate::store::{Committed, StoreError};
use crate::task::{Change, Message, Owner, Part, SavedSlot, Subject, TaskId, TaskRecord};

/// The open tasks of this case's tenant, in the order of the pages.
async fn found(stores: &Stores<'_>, world: &World, limit: usize) -> Result<Vec<OpenTask>, Broken> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let (page, next) = stores.sweep.open_tasks(after, limit).await?;
        assert!(page.len() <= limit, "a page holds {limit} tasks at most");
        all.extend(page);
        after = next;
        if after.is_none() {
            all.retain(|open| open.owner.tenant == world.owner.tenant);
            return Ok(all);
        }
    }
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
                secret: false,
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

/// No page repeats or skips a task, whatever its size.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_of_open_tasks_join_oldest_first(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let mut tasks = Vec::new();
    for age in [3_i64, 1, 4, 0, 2] {
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
        let mut found = found(stores, world, limit).await?;
        let twins = found.iter().filter(|hit| **hit == open(&twin)).count();
        assert_eq!(twins, 1, "pages of {limit}");
        found.retain(|hit| *hit != open(&twin));
        assert_eq!(found, expected, "pages of {limit}");
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
        let answer = stores.sweep.open_tasks(Some(place.to_owned()), 10).await;
        assert!(matches!(answer, Err(StoreError::Refused(_))), "{place}");
    }
    Ok(())
}
