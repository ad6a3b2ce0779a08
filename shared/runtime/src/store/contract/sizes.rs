//! The largest record that can be stored.

use super::{Broken, Stores, World};
use crate::store::{Committed, StoreError, stored};
use crate::task::{Message, Part, TaskId, TaskRecord};

/// A task whose stored form has exactly `bytes` bytes.
fn of_size(world: &World, bytes: usize) -> Result<TaskRecord, Broken> {
    let id = TaskId::made_of(world.number());
    let mut task = world.new_task(&world.owner, id)?;
    let say = |length| Message::from_user("m-1", vec![Part::text("x".repeat(length))]);
    task.history = vec![say(0)];
    let empty = stored::task_text(&task)?.len();
    task.history = vec![say(bytes.saturating_sub(empty))];
    Ok(task)
}

/// Up to the limit a record is stored and read whole.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_record_of_the_largest_size_is_stored(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let task = of_size(world, stored::MAX_BYTES)?;
    assert_eq!(stored::task_text(&task)?.len(), stored::MAX_BYTES);
    world.stored(stores, &task).await?;
    assert_eq!(world.loaded(stores, &task).await?, Some(task));
    Ok(())
}

/// Above it the answer is permanent, and what was stored stays.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_record_above_the_largest_size_is_refused(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    for bytes in [stored::MAX_BYTES + 1, 401 * 1024, 1024 * 1024] {
        let large = of_size(world, bytes)?;
        let answer = stores.tasks.commit(&world.create(&large)).await;
        assert!(matches!(answer, Err(StoreError::TooLarge(_))), "{answer:?}");
        assert_eq!(world.loaded(stores, &large).await?, None);

        let small = world.new_task(&world.owner, large.id().clone())?;
        world.stored(stores, &small).await?;
        let mut grown = world.next(&small, [world.start()])?;
        grown.history.clone_from(&large.history);
        let answer = stores.tasks.commit(&world.update(&grown, &small)).await;
        assert!(matches!(answer, Err(StoreError::TooLarge(_))), "{answer:?}");
        assert_eq!(world.loaded(stores, &small).await?, Some(small.clone()));

        let mut write = world.update(&world.finished(&small)?, &small);
        let mut thread = world.thread(&world.owner, small.context_id(), 0);
        thread.record.state.events.clone_from(&large.history);
        write.thread = Some(thread);
        let answer = stores.tasks.commit(&write).await;
        assert!(
            matches!(answer, Ok(Committed::Done) | Err(StoreError::TooLarge(_))),
            "{answer:?}"
        );
    }
    Ok(())
}
