//! Push configs beside their tasks.

use super::{Broken, SampleData, Stores};
use crate::records::Deliveries;
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{CommitResult, TaskWrite};
use a2a_lambda_model::task::{
    Change, Delivery, Generation, PushId, PushLease, PushRecord, PushRegistration, Sealed,
    TaskRecord, WriteId,
};
use std::time::Duration;

impl SampleData {
    /// A push config of `record` under `id` that no commit has registered yet.
    #[must_use]
    pub fn push(&self, record: &TaskRecord, id: &PushId) -> PushRecord {
        PushRecord {
            owner: record.owner.clone(),
            task: record.id.clone(),
            incarnation: record.incarnation.clone(),
            registration: PushRegistration {
                signs: false,
                trace_parent: Some("00-1-2-01".to_owned()),
                id: id.clone(),
                generation: Generation::V03,
                url: "https://hook.example/x".to_owned(),
                schemes: vec!["Bearer".to_owned()],
                token: Some(Sealed::from_text(format!("sealed {}", self.number()))),
                credentials: None,
            },
            created_at: self.now,
            delivery: Delivery::after(record.last_seq),
        }
    }

    /// A new lease until `millis` after the time of the case.
    fn push_lease(&self, millis: i64) -> PushLease {
        PushLease {
            holder: WriteId::made_of(self.number()),
            until: self.at(millis),
        }
    }

    /// The commit that registers `push` on top of `before`.
    fn registers(&self, before: &TaskRecord, push: &PushRecord) -> Result<TaskWrite, Broken> {
        let register = Change::RegisterPush(Box::new(push.registration.clone()));
        let record = self.next(before, [register])?;
        let mut write = self.update(&record, before);
        write.pushes.push(push.clone());
        Ok(write)
    }

    /// A stored task with a push config.
    ///
    /// # Errors
    /// [`Broken`] when the store fails.
    pub async fn listened(&self, stores: &Stores) -> Result<(TaskRecord, PushRecord), Broken> {
        let task = self.task()?;
        self.stored(stores, &task).await?;
        let push = self.push(&task, &PushId::only());
        let write = self.registers(&task, &push)?;
        let answer = stores.records.commit(&write).await?;
        assert_eq!(answer, CommitResult::Done, "a push config is registered");
        Ok((write.record, push))
    }
}

async fn stored(deliveries: &Deliveries, record: &TaskRecord) -> Result<Vec<PushRecord>, Broken> {
    Ok(deliveries.pushes(&record.owner, &record.id).await?)
}

/// A commit that loses its race registers nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_push_config_is_stored_with_its_commit_or_not_at_all(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, push) = sample.listened(stores).await?;
    assert_eq!(
        stored(&stores.deliveries, &record).await?,
        std::slice::from_ref(&push)
    );
    assert_eq!(sample.loaded(stores, &record).await?, Some(record.clone()));
    let late = sample.push(&record, &PushId::made_of(1));
    let mut lost = sample.registers(&record, &late)?;
    lost.expect = a2a_lambda_model::store::Expect::Version {
        version: record.version + 7,
        incarnation: record.incarnation.clone(),
        kept_until: record.kept_until,
    };
    let answer = stores.records.commit(&lost).await?;
    assert_eq!(answer, CommitResult::Conflict(Some(record.clone())));
    assert_eq!(
        stored(&stores.deliveries, &record).await?,
        std::slice::from_ref(&push)
    );
    // Another config of the same id replaces the first; the list is ordered by id.
    let (again, other) = (sample.push(&record, &PushId::only()), late);
    let first = sample.registers(&record, &again)?;
    assert_eq!(stores.records.commit(&first).await?, CommitResult::Done);
    let second = sample.registers(&first.record, &other)?;
    assert_eq!(stores.records.commit(&second).await?, CommitResult::Done);
    assert_eq!(stored(&stores.deliveries, &record).await?, [again, other]);
    Ok(())
}

/// Registering a config does not write a task that has ended.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_push_config_of_a_finished_task_leaves_the_task_unchanged(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let done = sample.finished(&task)?;
    stores.records.commit(&sample.update(&done, &task)).await?;
    let push = sample.push(&done, &PushId::made_of(2));
    stores.records.put_push(&push, done.kept_until).await?;
    assert_eq!(stored(&stores.deliveries, &done).await?, [push]);
    assert_eq!(sample.loaded(stores, &done).await?, Some(done));
    Ok(())
}

/// Removing a config is idempotent.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_push_config_can_be_removed_twice(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, push) = sample.listened(stores).await?;
    for _ in 0..2 {
        let id = &push.registration.id;
        stores
            .records
            .delete_push(&record.owner, &record.id, id)
            .await?;
        assert_eq!(stored(&stores.deliveries, &record).await?, []);
    }
    let lease = sample.push_lease(30_000);
    assert!(!taken(&stores.deliveries, sample, &push, &lease).await?);
    let moved = noted(&stores.deliveries, &push, &lease, Delivery::after(9));
    assert!(!moved.await?);
    assert_eq!(
        stored(&stores.deliveries, &record).await?,
        [],
        "it stays removed"
    );
    Ok(())
}

/// Neither another subject nor another tenant reads or removes a config.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_the_owner_reads_or_removes_a_push_config(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, push) = sample.listened(stores).await?;
    for other in [&sample.colleague, &sample.stranger] {
        assert_eq!(
            stores.deliveries.pushes(other, &record.id).await?,
            [],
            "{other:?}"
        );
        let id = &push.registration.id;
        stores.records.delete_push(other, &record.id, id).await?;
    }
    assert_eq!(stored(&stores.deliveries, &record).await?, [push]);
    Ok(())
}

/// Takes the lease at the time of the case.
async fn taken(
    deliveries: &Deliveries,
    sample: &SampleData,
    push: &PushRecord,
    lease: &PushLease,
) -> Result<bool, Broken> {
    let leased = deliveries.lease_push(push, lease, sample.now);
    Ok(leased.await?)
}

/// Records `delivery` for the holder of `lease`.
async fn noted(
    deliveries: &Deliveries,
    push: &PushRecord,
    lease: &PushLease,
    delivery: Delivery,
) -> Result<bool, Broken> {
    Ok(deliveries
        .note_delivery(push, &lease.holder, &delivery)
        .await?)
}

/// The stored push config, if there is only one.
async fn only(deliveries: &Deliveries, record: &TaskRecord) -> Result<Option<PushRecord>, Broken> {
    Ok(stored(deliveries, record).await?.pop())
}

/// A lease is exclusive until it has expired or was dropped.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_one_delivery_worker_holds_a_push_lease(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, push) = sample.listened(stores).await?;
    let (mine, other) = (sample.push_lease(30_000), sample.push_lease(60_000));
    assert!(taken(&stores.deliveries, sample, &push, &mine).await?);
    let leased = PushRecord {
        delivery: Delivery {
            lease: Some(mine.clone()),
            ..push.delivery.clone()
        },
        ..push.clone()
    };
    assert_eq!(
        only(&stores.deliveries, &record).await?,
        Some(leased.clone())
    );
    assert!(!taken(&stores.deliveries, sample, &push, &other).await?);
    assert!(
        taken(&stores.deliveries, sample, &push, &mine).await?,
        "its holder"
    );
    let at = |millis| {
        stores
            .deliveries
            .lease_push(&leased, &other, sample.at(millis))
    };
    assert!(!at(29_999).await?, "not expired");
    assert!(at(30_000).await?, "expired");
    let late = noted(&stores.deliveries, &push, &mine, Delivery::after(7));
    assert!(!late.await?, "it was taken over");
    let dropped = stores
        .deliveries
        .note_delivery(&push, &other.holder, &push.delivery);
    assert!(dropped.await?);
    assert_eq!(only(&stores.deliveries, &record).await?, Some(push.clone()));
    assert!(
        taken(&stores.deliveries, sample, &push, &mine).await?,
        "it was dropped"
    );
    Ok(())
}

/// The holder records the progress and keeps or drops its lease in the same write. A
/// worker with an older view of the progress does not get the lease.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_the_lease_holder_records_a_delivery(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, push) = sample.listened(stores).await?;
    let (mine, other) = (sample.push_lease(30_000), sample.push_lease(30_000));
    let none = noted(&stores.deliveries, &push, &mine, Delivery::after(1));
    assert!(!none.await?, "no lease is held");
    assert!(taken(&stores.deliveries, sample, &push, &mine).await?);
    let further = Delivery {
        cursor: 3,
        attempts: 0,
        retry_at: sample.at(-1),
        took: Duration::from_millis(9_876),
        lease: Some(PushLease {
            until: sample.at(40_000),
            ..mine.clone()
        }),
    };
    for (holder, noted) in [(&other.holder, false), (&mine.holder, true)] {
        let moved = stores.deliveries.note_delivery(&push, holder, &further);
        assert_eq!(moved.await?, noted);
    }
    let moved = PushRecord {
        delivery: further.clone(),
        ..push.clone()
    };
    assert_eq!(
        only(&stores.deliveries, &record).await?,
        Some(moved.clone())
    );
    let failed = Delivery {
        attempts: 1,
        retry_at: sample.at(1_000),
        lease: None,
        ..further
    };
    for noted in [true, false] {
        let left = stores
            .deliveries
            .note_delivery(&push, &mine.holder, &failed);
        assert_eq!(left.await?, noted, "the lease was dropped with it");
    }
    let left = PushRecord {
        delivery: failed,
        ..push.clone()
    };
    assert_eq!(only(&stores.deliveries, &record).await?, Some(left.clone()));
    for seen in [&push, &moved] {
        assert!(
            !taken(&stores.deliveries, sample, seen, &other).await?,
            "an older view"
        );
    }
    assert!(taken(&stores.deliveries, sample, &left, &other).await?);
    assert_eq!(sample.loaded(stores, &record).await?, Some(record));
    Ok(())
}

/// A lease and progress of an earlier registration do not apply to the current one.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_push_lease_holds_for_one_registration_only(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, push) = sample.listened(stores).await?;
    let lease = sample.push_lease(30_000);
    assert!(taken(&stores.deliveries, sample, &push, &lease).await?);
    let anew = sample.push(&record, &push.registration.id);
    let write = sample.registers(&record, &anew)?;
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    assert!(!taken(&stores.deliveries, sample, &push, &lease).await?);
    let moved = noted(&stores.deliveries, &push, &lease, Delivery::after(9));
    assert!(!moved.await?);
    let another = PushRecord {
        incarnation: WriteId::made_of(sample.number()),
        ..anew.clone()
    };
    assert!(!taken(&stores.deliveries, sample, &another, &lease).await?);
    assert_eq!(only(&stores.deliveries, &record).await?, Some(anew.clone()));
    assert!(taken(&stores.deliveries, sample, &anew, &lease).await?);
    // The same for a task that has ended.
    let once_more = sample.push(&record, &push.registration.id);
    stores
        .records
        .put_push(&once_more, record.kept_until)
        .await?;
    let moved = noted(&stores.deliveries, &anew, &lease, Delivery::after(9));
    assert!(!moved.await?);
    assert_eq!(only(&stores.deliveries, &record).await?, Some(once_more));
    Ok(())
}

/// A task at rest is found until it is confirmed. The version does not change, and a
/// later commit is found again.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_sweep_finds_a_task_at_rest_until_its_pushes_are_confirmed(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let (record, _) = sample.listened(stores).await?;
    assert!(
        !stores.deliveries.confirm_pushes(&record).await?,
        "not at rest"
    );
    let done = sample.finished(&record)?;
    stores
        .records
        .commit(&sample.update(&done, &record))
        .await?;
    let open = OpenTask {
        owner: done.owner.clone(),
        task: done.id.clone(),
    };
    let found = || async {
        let shards = super::open::shards(stores, sample, 100).await?;
        Ok::<_, Broken>(shards.concat().contains(&open))
    };
    assert!(found().await?, "not confirmed");
    let mut older = done.clone();
    older.fields().version -= 1;
    assert!(
        !stores.deliveries.confirm_pushes(&older).await?,
        "an older version"
    );
    let mut another = done.clone();
    another.fields().incarnation = sample.write_id();
    assert!(
        !stores.deliveries.confirm_pushes(&another).await?,
        "an earlier task"
    );
    assert!(found().await?);
    assert!(stores.deliveries.confirm_pushes(&done).await?);
    assert!(!found().await?, "confirmed");
    assert_eq!(sample.loaded(stores, &done).await?, Some(done));
    Ok(())
}
