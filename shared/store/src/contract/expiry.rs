//! Expiry is judged by the time in the call, to the millisecond.

use super::pieces::chunk;
use super::{Broken, SampleData, Stores};
use crate::item::{self, TTL};
use crate::keys::{self, META, SK};
use crate::table::{self, Query};
use a2a_lambda_model::store::{CommitResult, KeyWrite, RecordQuery, StoreError, TaskWrite};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{
    Change, ContextId, IdempotencyKey, Message, Part, PushId, SavedSlot, TaskRecord, ThreadKey,
    Timestamp,
};
use std::time::Duration;

/// A task that waits for the client's answer.
fn asking(sample: &SampleData) -> Result<TaskRecord, Broken> {
    let message = Message::from_agent("q", vec![Part::text("which?")]);
    let slot = SavedSlot {
        version: 1,
        value: serde_json::Value::Null,
    };
    sample.next(
        &sample.task()?,
        [sample.start(), Change::AskInput { message, slot }],
    )
}

/// A task is there one millisecond before its expiry, and gone at its expiry.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_task_at_rest_is_gone_from_its_expiry_on(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = asking(sample)?;
    sample.stored(stores, &task).await?;
    let end = sample.expiry().as_millis();
    for (offset, there) in [(0, false), (1, false), (-1, true)] {
        let now = a2a_lambda_model::task::Timestamp::from_millis(end + offset);
        let found = stores.records.load(&sample.owner, &task.id, now).await?;
        assert_eq!(found.is_some(), there, "load at {offset} ms");
        let query = RecordQuery {
            now,
            ..sample.everything()
        };
        let page = stores.records.list(&sample.owner, &query).await?;
        assert_eq!(
            page.records.len(),
            usize::from(there),
            "list at {offset} ms"
        );
        assert_eq!(page.matching, usize::from(there), "count at {offset} ms");
        let next = sample.next(&task, [Change::Cancel])?;
        let mut write = sample.update(&next, &task);
        write.now = now;
        let expected = if there {
            CommitResult::Done
        } else {
            CommitResult::Conflict(None)
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
    sample: &SampleData,
) -> Result<(), Broken> {
    for (offset, free) in [(-1, false), (0, true), (1, true)] {
        let task = asking(sample)?;
        sample.stored(stores, &task).await?;
        let again = sample.new_task(&sample.owner, task.id.clone())?;
        let mut write = sample.create(&again);
        write.now =
            a2a_lambda_model::task::Timestamp::from_millis(sample.expiry().as_millis() + offset);
        let (answer, stays) = if free {
            (CommitResult::Done, again)
        } else {
            (CommitResult::Conflict(Some(task.clone())), task)
        };
        assert_eq!(stores.records.commit(&write).await?, answer, "{offset} ms");
        assert_eq!(sample.loaded(stores, &stays).await?, Some(stays));
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
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let mut create = sample.create(&task);
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    let ended = sample.next(&task, [Change::Cancel])?;
    let update = sample.update(&ended, &task);
    assert_eq!(stores.records.commit(&update).await?, CommitResult::Done);
    create.now = sample.expiry();
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    assert_eq!(sample.loaded(stores, &ended).await?, Some(ended));
    Ok(())
}

/// A submitted or working task does not expire.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_open_task_does_not_expire(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let late = sample.at(1_000_000_000);
    let found = stores.records.load(&sample.owner, &task.id, late).await?;
    assert_eq!(found, Some(task.clone()));
    let working = sample.next(&task, [sample.start()])?;
    let mut write = sample.update(&working, &task);
    write.now = late;
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    let query = RecordQuery {
        now: late,
        ..sample.everything()
    };
    let page = stores.records.list(&sample.owner, &query).await?;
    assert_eq!(page.records, [working]);
    let mut create = sample.create(&sample.new_task(&sample.owner, task.id.clone())?);
    create.now = late;
    let answer = stores.records.commit(&create).await?;
    assert!(
        matches!(answer, CommitResult::Conflict(Some(_))),
        "{answer:?}"
    );
    Ok(())
}

/// A task that rested and was continued does not expire, whatever expiry it had at
/// rest.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_continued_task_does_not_expire(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let asking = asking(sample)?;
    sample.stored(stores, &asking).await?;
    let resume = Change::Resume {
        began_at: Default::default(),
        message: Message::from_user("m-2", vec![Part::text("blue")]),
        secret: None,
        lease_until: sample.at(60_000),
    };
    let working = sample.committed(stores, &asking, [resume]).await?;
    let late = sample.at(1_000_000_000);
    let found = stores
        .records
        .load(&sample.owner, &working.id, late)
        .await?;
    assert_eq!(found.as_ref(), Some(&working));
    let query = RecordQuery {
        now: late,
        ..sample.everything()
    };
    let page = stores.records.list(&sample.owner, &query).await?;
    assert_eq!(page.records, std::slice::from_ref(&working));
    let done = sample.next(&working, [Change::Complete { message: None }])?;
    let mut write = sample.update(&done, &working);
    write.now = late;
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    Ok(())
}

/// A retry after the expiry still learns that its write was stored.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_write_that_was_stored_is_done_even_after_its_expiry(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let done = sample.finished(&task)?;
    let mut write = sample.update(&done, &task);
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    write.now = sample.expiry();
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    Ok(())
}

/// The sort keys of all items beside a task, and when the table may remove them, in seconds.
async fn beside(stores: &Stores, task: &TaskRecord) -> Result<Vec<(String, i64)>, StoreError> {
    let table = stores.records.table();
    let thread = ThreadKey::new(&task.owner, &task.context_id);
    let pointers = Query {
        range: keys::pointers(),
        ..keys::thread_items(&thread).into()
    };
    let tenant = &task.owner.tenant;
    let of_sends = task.keys.iter();
    let of_sends: Vec<_> = of_sends.map(|key| keys::idempotency(tenant, key)).collect();
    let mut items = table::query_all(&*table, keys::task_items(&task.key()).into()).await?;
    items.extend(table::query_all(&*table, pointers).await?);
    items.extend(table.get(&of_sends).await?);
    let ttls = items
        .iter()
        .map(|it| Ok((item::text(it, SK)?.to_owned(), item::number(it, TTL)?)));
    let mut ttls: Vec<_> = ttls.collect::<Result<_, StoreError>>()?;
    ttls.retain(|(sort, _)| sort != META);
    Ok(ttls)
}

/// After the lifetime of tasks was raised, a commit keeps pointer, key, push config and children
/// of a task as long as the task. A removal leaves none of them.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn items_beside_a_task_are_kept_and_removed_with_it(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let key = IdempotencyKey::parse("k")?.hash(&sample.owner);
    let mut task = sample.task()?;
    task.fields().context_id = ContextId::parse("mine:c")?;
    task.hold_key(key.clone());
    let content = "c".to_owned();
    let create = TaskWrite {
        key: Some(KeyWrite { key, content }),
        ..sample.create(&task)
    };
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    let push = sample.push(&task, &PushId::made_of(1));
    let register = Change::RegisterPush(Box::new(push.registration.clone()));
    let grown = sample.next(&task, [sample.start(), register, chunk("a", false, 9_000)])?;
    let grows = TaskWrite {
        pushes: vec![push],
        ..sample.update(&grown, &task)
    };
    assert_eq!(stores.records.commit(&grows).await?, CommitResult::Done);
    let end = grown.kept_until.plus(Duration::from_secs(1));
    let last = [chunk("a", true, 9_000), Change::Complete { message: None }];
    let mut done = grown.next(last, sample.write_id(), sample.now, end)?;
    stored::arrange(&mut done);
    let ends = sample.update(&done, &grown);
    assert_eq!(stores.records.commit(&ends).await?, CommitResult::Done);
    let items = beside(stores, &done).await?;
    assert_eq!(items.len(), 5, "{items:?}");
    let mut early = items.iter().filter(|(_, ttl)| *ttl < end.ttl_seconds());
    assert_eq!(early.next(), None);

    let ended = done.with_expiry(sample.write_id(), Timestamp::from_millis(0));
    let end = sample.update(&ended, &done);
    assert_eq!(stores.records.commit(&end).await?, CommitResult::Done);
    assert!(stores.records.remove_task(&ended).await?);
    assert_eq!(beside(stores, &ended).await?, []);
    Ok(())
}
