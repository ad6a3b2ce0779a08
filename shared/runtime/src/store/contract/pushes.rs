//! Webhooks beside their tasks.

use super::{Broken, Stores, World};
use crate::store::push::Pushes;
use crate::store::queue::OpenTask;
use crate::store::{Committed, TaskWrite};
use crate::task::{
    Change, Generation, Listener, PushId, PushRecord, Sealed, TaskRecord, Timestamp, WriteId,
};

impl World {
    /// A webhook of `record` under `id`, registered by no commit yet.
    #[must_use]
    pub fn push(&self, record: &TaskRecord, id: &PushId) -> PushRecord {
        PushRecord {
            owner: record.owner().clone(),
            task: record.id().clone(),
            incarnation: record.incarnation.clone(),
            listener: Listener {
                id: id.clone(),
                generation: Generation::V03,
                url: "https://hook.example/x".to_owned(),
                schemes: vec!["Bearer".to_owned()],
                token: Some(Sealed::stored(format!("sealed {}", self.number()))),
                credentials: None,
            },
            created_at: self.now,
            cursor: record.last_seq,
            attempts: 0,
            retry_at: Timestamp::default(),
            clean_at: self.expiry(),
        }
    }

    /// The commit that registers `push` on top of `before`.
    fn registers(&self, before: &TaskRecord, push: &PushRecord) -> Result<TaskWrite, Broken> {
        let listen = Change::Listen(Box::new(push.listener.clone()));
        let record = self.next(before, [listen])?;
        let mut write = self.update(&record, before);
        write.pushes.push(push.clone());
        Ok(write)
    }

    /// A task with a webhook, as stored.
    ///
    /// # Errors
    /// [`Broken`] when the store fails.
    pub async fn listened(&self, stores: &Stores<'_>) -> Result<(TaskRecord, PushRecord), Broken> {
        let task = self.task()?;
        self.stored(stores, &task).await?;
        let push = self.push(&task, &PushId::only());
        let write = self.registers(&task, &push)?;
        let answer = stores.tasks.commit(&write).await?;
        assert_eq!(answer, Committed::Done, "a webhook is registered");
        Ok((write.record, push))
    }
}

async fn stored(pushes: &dyn Pushes, record: &TaskRecord) -> Result<Vec<PushRecord>, Broken> {
    Ok(pushes.pushes(record.owner(), record.id()).await?)
}

/// A commit that loses its race registers nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_webhook_is_stored_with_its_commit_or_not_at_all(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let (record, push) = world.listened(stores).await?;
    assert_eq!(stored(pushes, &record).await?, std::slice::from_ref(&push));
    assert_eq!(world.loaded(stores, &record).await?, Some(record.clone()));
    let late = world.push(&record, &PushId::made_of(1));
    let mut lost = world.registers(&record, &late)?;
    lost.expect = crate::store::Expect::Version {
        version: record.version() + 7,
        incarnation: record.incarnation.clone(),
    };
    let answer = stores.tasks.commit(&lost).await?;
    assert_eq!(answer, Committed::Conflict(Some(Box::new(record.clone()))));
    assert_eq!(stored(pushes, &record).await?, std::slice::from_ref(&push));
    // Another one of the same id takes its place; the order is that of the ids.
    let (again, other) = (world.push(&record, &PushId::only()), late);
    let first = world.registers(&record, &again)?;
    assert_eq!(stores.tasks.commit(&first).await?, Committed::Done);
    let second = world.registers(&first.record, &other)?;
    assert_eq!(stores.tasks.commit(&second).await?, Committed::Done);
    assert_eq!(stored(pushes, &record).await?, [again, other]);
    Ok(())
}

/// What has ended is never written again.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_webhook_of_a_finished_task_leaves_the_task_alone(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let task = world.task()?;
    world.stored(stores, &task).await?;
    let done = world.finished(&task)?;
    stores.tasks.commit(&world.update(&done, &task)).await?;
    let push = world.push(&done, &PushId::made_of(2));
    pushes.put_push(&push).await?;
    assert_eq!(stored(pushes, &done).await?, [push]);
    assert_eq!(world.loaded(stores, &done).await?, Some(done));
    Ok(())
}

/// Removing is idempotent.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_removed_webhook_is_gone_and_may_be_removed_again(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let (record, push) = world.listened(stores).await?;
    for _ in 0..2 {
        let id = &push.listener.id;
        pushes.delete_push(record.owner(), record.id(), id).await?;
        assert_eq!(stored(pushes, &record).await?, []);
    }
    assert!(!pushes.advance_push(&push, 9, world.expiry()).await?);
    assert!(!pushes.attempt_push(&push, world.at(1)).await?);
    assert_eq!(stored(pushes, &record).await?, [], "nothing revives it");
    Ok(())
}

/// Neither a colleague nor another tenant.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn nobody_sees_or_removes_anothers_webhook(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let (record, push) = world.listened(stores).await?;
    for other in [&world.colleague, &world.stranger] {
        assert_eq!(pushes.pushes(other, record.id()).await?, [], "{other:?}");
        let id = &push.listener.id;
        pushes.delete_push(other, record.id(), id).await?;
    }
    assert_eq!(stored(pushes, &record).await?, [push]);
    Ok(())
}

/// A delivery of a registration that was replaced moves nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_cursor_moves_forward_and_for_its_own_registration_only(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let (record, push) = world.listened(stores).await?;
    assert!(pushes.attempt_push(&push, world.at(1_000)).await?);
    let later = world.at(7_200_000);
    assert!(pushes.advance_push(&push, 3, later).await?);
    let moved = PushRecord {
        cursor: 3,
        clean_at: later,
        ..push.clone()
    };
    assert_eq!(stored(pushes, &record).await?, std::slice::from_ref(&moved));
    for back in [3, 2, 0] {
        assert!(!pushes.advance_push(&push, back, later).await?, "{back}");
    }
    let anew = world.push(&record, &push.listener.id);
    let write = world.registers(&record, &anew)?;
    assert_eq!(stores.tasks.commit(&write).await?, Committed::Done);
    assert!(!pushes.advance_push(&push, 9, later).await?);
    assert!(!pushes.attempt_push(&push, later).await?);
    let another = PushRecord {
        incarnation: WriteId::made_of(world.number()),
        ..anew.clone()
    };
    assert!(!pushes.advance_push(&another, 9, later).await?);
    assert_eq!(stored(pushes, &record).await?, [anew]);
    assert_eq!(
        world.loaded(stores, &record).await?,
        Some(write.record),
        "the task knows nothing of it"
    );
    Ok(())
}

/// Two that tried at once do not count twice.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_attempt_is_noted_once(stores: &Stores<'_>, world: &World) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let (record, push) = world.listened(stores).await?;
    let until = world.at(5_000);
    assert!(pushes.attempt_push(&push, until).await?);
    assert!(!pushes.attempt_push(&push, world.at(9_000)).await?);
    let tried = PushRecord {
        attempts: 1,
        retry_at: until,
        ..push
    };
    assert_eq!(stored(pushes, &record).await?, std::slice::from_ref(&tried));
    assert!(pushes.attempt_push(&tried, world.at(9_000)).await?);
    let twice = stored(pushes, &record).await?;
    assert_eq!(twice.first().map(|push| push.attempts), Some(2));
    Ok(())
}

/// Found at rest until confirmed; the version stays, and what follows is found
/// again.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_sweep_finds_a_task_until_its_webhooks_have_heard_of_its_rest(
    stores: &Stores<'_>,
    world: &World,
) -> Result<(), Broken> {
    let Some(pushes) = stores.pushes else {
        return Ok(());
    };
    let (record, _) = world.listened(stores).await?;
    assert!(!pushes.confirm_pushes(&record).await?, "it is not at rest");
    let done = world.finished(&record)?;
    stores.tasks.commit(&world.update(&done, &record)).await?;
    let open = OpenTask {
        owner: done.owner().clone(),
        task: done.id().clone(),
    };
    let found = || async {
        let shards = super::open::shards(stores, world, 100).await?;
        Ok::<_, Broken>(shards.concat().contains(&open))
    };
    assert!(found().await?, "nobody has confirmed it");
    assert!(!pushes.confirm_pushes(&record).await?, "an older version");
    assert!(found().await?);
    assert!(pushes.confirm_pushes(&done).await?);
    assert!(!found().await?, "it is confirmed");
    assert_eq!(world.loaded(stores, &done).await?, Some(done));
    Ok(())
}
