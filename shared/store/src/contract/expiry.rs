//! Expiry is judged by the time in the call, to the millisecond.

use super::{Broken, Stores, World};
use a2a_lambda_model::store::{Committed, RecordQuery};
use a2a_lambda_model::task::{Change, Message, Part, SavedSlot, TaskRecord};

/// A task that waits for the client's answer.
fn asking(world: &World) -> Result<TaskRecord, Broken> {
    let message = Message::from_agent("q", vec![Part::text("which?")]);
    let slot = SavedSlot {
        version: 1,
        value: serde_json::Value::Null,
    };
    world.next(
        &world.task()?,
        [world.start(), Change::AskInput { message, slot }],
    )
}

/// A task is there one millisecond before its expiry, and gone at its expiry.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_task_at_rest_is_gone_from_its_expiry_on(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    let task = asking(world)?;
    world.stored(stores, &task).await?;
    let end = world.expiry().as_millis();
    for (offset, there) in [(0, false), (1, false), (-1, true)] {
        let now = a2a_lambda_model::task::Timestamp::from_millis(end + offset);
        let found = stores.records.load(&world.owner, task.id(), now).await?;
        assert_eq!(found.is_some(), there, "load at {offset} ms");
        let query = RecordQuery {
            now,
            ..world.everything()
        };
        let page = stores.records.list(&world.owner, &query).await?;
        assert_eq!(
            page.records.len(),
            usize::from(there),
            "list at {offset} ms"
        );
        assert_eq!(page.matching, usize::from(there), "count at {offset} ms");
        let next = world.next(&task, [Change::Cancel])?;
        let mut write = world.update(&next, &task);
        write.now = now;
        let expected = if there {
            Committed::Done
        } else {
            Committed::Conflict(None)
        };
        let answer = stores.records.commit(&write).await?;
        assert_eq!(answer, expected, "commit at {offset} ms");
    }
    Ok(())
}

/// An id is free when its task has expired, and not before.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_create_takes_the_place_of_an_expired_task_only(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    for (offset, free) in [(-1, false), (0, true), (1, true)] {
        let task = asking(world)?;
        world.stored(stores, &task).await?;
        let again = world.new_task(&world.owner, task.id().clone())?;
        let mut write = world.create(&again);
        write.now =
            a2a_lambda_model::task::Timestamp::from_millis(world.expiry().as_millis() + offset);
        let (answer, stays) = if free {
            (Committed::Done, again)
        } else {
            (Committed::Conflict(Some(task.clone())), task)
        };
        assert_eq!(stores.records.commit(&write).await?, answer, "{offset} ms");
        assert_eq!(world.loaded(stores, &stays).await?, Some(stays));
    }
    Ok(())
}

/// A create that the network sends again after its task has ended and expired, as a deletion
/// lets it, does not bring the task back.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_create_that_arrives_again_does_not_replace_its_own_expired_task(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    let task = world.task()?;
    let mut create = world.create(&task);
    assert_eq!(stores.records.commit(&create).await?, Committed::Done);
    let ended = world.next(&task, [Change::Cancel])?;
    let update = world.update(&ended, &task);
    assert_eq!(stores.records.commit(&update).await?, Committed::Done);
    create.now = world.expiry();
    assert_eq!(stores.records.commit(&create).await?, Committed::Done);
    assert_eq!(world.loaded(stores, &ended).await?, Some(ended));
    Ok(())
}

/// A submitted or working task does not expire.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_open_task_does_not_expire(stores: &Stores, world: &World) -> Result<(), Broken> {
    let task = world.task()?;
    world.stored(stores, &task).await?;
    let late = world.at(1_000_000_000);
    let found = stores.records.load(&world.owner, task.id(), late).await?;
    assert_eq!(found, Some(task.clone()));
    let working = world.next(&task, [world.start()])?;
    let mut write = world.update(&working, &task);
    write.now = late;
    assert_eq!(stores.records.commit(&write).await?, Committed::Done);
    let query = RecordQuery {
        now: late,
        ..world.everything()
    };
    let page = stores.records.list(&world.owner, &query).await?;
    assert_eq!(page.records, [working]);
    let mut create = world.create(&world.new_task(&world.owner, task.id().clone())?);
    create.now = late;
    let answer = stores.records.commit(&create).await?;
    assert!(matches!(answer, Committed::Conflict(Some(_))), "{answer:?}");
    Ok(())
}

/// A task that rested and was continued does not expire, whatever expiry it had at
/// rest.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_continued_task_does_not_expire(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    let asking = asking(world)?;
    world.stored(stores, &asking).await?;
    let resume = Change::Resume {
        message: Message::from_user("m-2", vec![Part::text("blue")]),
        secret: None,
        lease_until: world.at(60_000),
    };
    let working = world.committed(stores, &asking, [resume]).await?;
    let late = world.at(1_000_000_000);
    let found = stores
        .records
        .load(&world.owner, working.id(), late)
        .await?;
    assert_eq!(found.as_ref(), Some(&working));
    let query = RecordQuery {
        now: late,
        ..world.everything()
    };
    let page = stores.records.list(&world.owner, &query).await?;
    assert_eq!(page.records, std::slice::from_ref(&working));
    let done = world.next(&working, [Change::Complete { message: None }])?;
    let mut write = world.update(&done, &working);
    write.now = late;
    assert_eq!(stores.records.commit(&write).await?, Committed::Done);
    Ok(())
}

/// A retry after the expiry still learns that its write was stored.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_write_that_was_stored_is_done_even_after_its_expiry(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    let task = world.task()?;
    world.stored(stores, &task).await?;
    let done = world.finished(&task)?;
    let mut write = world.update(&done, &task);
    assert_eq!(stores.records.commit(&write).await?, Committed::Done);
    write.now = world.expiry();
    assert_eq!(stores.records.commit(&write).await?, Committed::Done);
    Ok(())
}
