//! Idempotency keys: written with their commit, free when their task has ended.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::{CommitResult, IdempotencyEntry, KeyWrite, TaskWrite};
use a2a_lambda_model::task::{
    Change, IdempotencyKey, KeyHash, Message, Metadata, Owner, Part, SavedSlot, TaskId, TaskRecord,
    Timestamp,
};
use std::time::Duration;

/// The hash of the key `name`.
fn hash(owner: &Owner, name: &str) -> Result<KeyHash, Broken> {
    Ok(IdempotencyKey::parse(name)?.hash(owner))
}

/// `write` with the key `name` and the content hash `content`.
fn under(write: &TaskWrite, name: &str, content: &str) -> Result<TaskWrite, Broken> {
    let record = &write.record;
    let key = KeyWrite {
        key: hash(&record.owner, name)?,
        content: content.to_owned(),
    };
    Ok(TaskWrite {
        key: Some(key),
        ..write.clone()
    })
}

/// The send and task of the owner's key `name` at `now`.
async fn found(
    stores: &Stores,
    sample: &SampleData,
    name: &str,
    now: Timestamp,
) -> Result<Option<IdempotencyEntry>, Broken> {
    let key = hash(&sample.owner, name)?;
    Ok(stores.records.load_key(&sample.owner, &key, now).await?)
}

fn keyed(content: &str, record: &TaskRecord) -> IdempotencyEntry {
    IdempotencyEntry {
        content: content.to_owned(),
        record: record.clone(),
    }
}

fn taken(content: &str, record: &TaskRecord) -> CommitResult {
    CommitResult::KeyTaken(Box::new(keyed(content, record)))
}

fn question() -> Change {
    Change::AskInput {
        message: Message::from_agent("q", vec![Part::text("which?")]),
        slot: SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        },
    }
}

fn answer(sample: &SampleData) -> Change {
    Change::Resume {
        began_at: Timestamp::default(),
        message: Message::from_user("a", vec![Part::text("this")]),
        secret: None,
        lease_until: sample.at(60_000),
    }
}

/// A key is free until its commit is stored, and then names that task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_key_is_stored_with_its_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let client_made = sample.new_task(&sample.owner, TaskId::parse("mine")?)?;
    for (name, task) in [("k", sample.task()?), ("\u{1F600} x#y~z", client_made)] {
        assert_eq!(found(stores, sample, name, sample.now).await?, None);
        let create = under(&sample.create(&task), name, "c")?;
        assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
        assert_eq!(sample.loaded(stores, &task).await?, Some(task.clone()));
        let there = found(stores, sample, name, sample.now).await?;
        assert_eq!(there, Some(keyed("c", &task)));
    }
    Ok(())
}

/// Another send under the key writes nothing and gets the task of the first send.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_taken_key_shows_its_task_as_it_is_now(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let create = under(&sample.create(&task), "k", "c")?;
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    let done = sample.finished(&task)?;
    stores.records.commit(&sample.update(&done, &task)).await?;
    for content in ["c", "other"] {
        let second = sample.task()?;
        let write = under(&sample.create(&second), "k", content)?;
        assert_eq!(stores.records.commit(&write).await?, taken("c", &done));
        assert_eq!(sample.loaded(stores, &second).await?, None);
    }
    let there = found(stores, sample, "k", sample.now).await?;
    assert_eq!(there, Some(keyed("c", &done)));
    Ok(())
}

/// A write repeated after a lost response is `Done`, whatever happened to the task
/// since.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_repeated_keyed_write_is_done_once(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let create = under(&sample.create(&task), "k", "c")?;
    let asking = sample.next(&task, [sample.start(), question()])?;
    let working = sample.next(&asking, [answer(sample)])?;
    let resume = under(&sample.update(&working, &asking), "a", "c")?;
    for write in [&create, &create, &sample.update(&asking, &task), &create] {
        assert_eq!(stores.records.commit(write).await?, CommitResult::Done);
    }
    let mut last = working.clone();
    for write in [&resume, &resume] {
        assert_eq!(stores.records.commit(write).await?, CommitResult::Done);
    }
    for _ in 0..9 {
        let said = Change::Update {
            message: None,
            metadata: Metadata::new(),
        };
        let next = sample.next(&last, [said])?;
        stores.records.commit(&sample.update(&next, &last)).await?;
        last = next;
    }
    for write in [&create, &resume] {
        assert_eq!(stores.records.commit(write).await?, CommitResult::Done);
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(last));
    Ok(())
}

/// A continuation that loses leaves no key. One whose key is taken by the same
/// continuation changes nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_keyed_continuation_is_stored_with_its_key_or_not_at_all(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    let asking = sample.next(&task, [sample.start(), question()])?;
    stores.records.commit(&sample.create(&task)).await?;
    let working = sample.next(&asking, [answer(sample)])?;
    let early = under(&sample.update(&working, &asking), "k", "c")?;
    let conflict = CommitResult::Conflict(Some(task.clone()));
    assert_eq!(stores.records.commit(&early).await?, conflict);
    assert_eq!(found(stores, sample, "k", sample.now).await?, None);
    stores
        .records
        .commit(&sample.update(&asking, &task))
        .await?;
    assert_eq!(stores.records.commit(&early).await?, CommitResult::Done);
    let again = sample.next(&asking, [answer(sample)])?;
    let late = under(&sample.update(&again, &asking), "k", "c")?;
    assert_eq!(stores.records.commit(&late).await?, taken("c", &working));
    assert_eq!(sample.loaded(stores, &task).await?, Some(working));
    Ok(())
}

/// Eight creates under one key make one task, and the seven others get it.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn exactly_one_of_eight_keyed_creates_wins(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    one_wins(stores, sample, sample.now).await
}

/// The same for a key whose first task has expired.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn exactly_one_create_takes_a_key_that_is_free_again(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.finished(&sample.task()?)?;
    let create = under(&sample.create(&task), "k", "c")?;
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    one_wins(stores, sample, sample.expiry()).await
}

async fn one_wins(stores: &Stores, sample: &SampleData, now: Timestamp) -> Result<(), Broken> {
    let mut writes = Vec::new();
    for _ in 0..8 {
        let mut write = under(&sample.create(&sample.task()?), "k", "c")?;
        write.now = now;
        writes.push(write);
    }
    let commits = writes.iter().map(|write| stores.records.commit(write));
    let answers = futures::future::join_all(commits).await;
    let winner = found(stores, sample, "k", now).await?;
    let mut won = 0;
    for (write, answer) in writes.iter().zip(answers) {
        let there = sample.loaded(stores, &write.record).await?;
        match answer? {
            CommitResult::Done => {
                won += 1;
                assert_eq!(winner, Some(keyed("c", &write.record)));
                assert_eq!(there, Some(write.record.clone()));
            }
            answer => {
                let shown = winner.clone().map(Box::new).map(CommitResult::KeyTaken);
                assert_eq!(Some(answer), shown);
                assert_eq!(there, None);
            }
        }
    }
    assert_eq!(won, 1, "exactly one create is stored");
    Ok(())
}

/// A key lives as long as its task; an open task has no limit.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_key_is_free_when_its_task_has_expired_and_not_before(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let open = sample.task()?;
    let create = under(&sample.create(&open), "open", "c")?;
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    for offset in [-1, 0, 1] {
        let name = format!("k{offset}");
        let task = sample.finished(&sample.task()?)?;
        let create = under(&sample.create(&task), &name, "c")?;
        assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
        let now = Timestamp::from_millis(sample.expiry().as_millis() + offset);
        let there = (offset < 0).then(|| keyed("c", &task));
        assert_eq!(found(stores, sample, &name, now).await?, there, "{offset}");
        let second = sample.task()?;
        let mut write = under(&sample.create(&second), &name, "other")?;
        write.now = now;
        let expected = match &there {
            Some(keyed) => CommitResult::KeyTaken(Box::new(keyed.clone())),
            None => CommitResult::Done,
        };
        assert_eq!(stores.records.commit(&write).await?, expected, "{offset}");
        if there.is_none() {
            let now_there = found(stores, sample, &name, now).await?;
            assert_eq!(now_there, Some(keyed("other", &second)), "{offset}");
            // A repeat of the first send does not take the key back.
            let again = stores
                .records
                .commit(&under(&write, &name, "other")?)
                .await?;
            assert_eq!(again, CommitResult::Done);
        }
        let still = found(stores, sample, "open", now).await?;
        assert_eq!(still, Some(keyed("c", &open)), "{offset}");
    }
    Ok(())
}

/// A later task under the same id does not have the keys of the first.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_key_does_not_pass_to_a_later_task_of_the_same_id(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = TaskId::parse("mine")?;
    let task = sample.finished(&sample.new_task(&sample.owner, id.clone())?)?;
    let create = under(&sample.create(&task), "k", "c")?;
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    let again = sample.new_task(&sample.owner, id)?;
    let mut write = sample.create(&again);
    write.now = sample.expiry();
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    assert_eq!(found(stores, sample, "k", sample.now).await?, None);
    Ok(())
}

/// A task that prolongs a key that is gone does not take the key again.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_key_that_is_gone_is_not_prolonged(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let key = hash(&sample.owner, "k")?;
    let mut task = sample.task()?;
    // The task knows a key that no commit has written, as after a removal of the key.
    task.hold_key(key);
    sample.stored(stores, &task).await?;
    let late = task.kept_until;
    let next = task.next(
        [],
        sample.write_id(),
        sample.now,
        late.plus(Duration::from_secs(1)),
    )?;
    let write = sample.update(&next, &task);
    assert!(write.prolongs());
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    assert_eq!(found(stores, sample, "k", sample.now).await?, None);
    let second = sample.task()?;
    let write = under(&sample.create(&second), "k", "c")?;
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    let there = found(stores, sample, "k", sample.now).await?;
    assert_eq!(there, Some(keyed("c", &second)));
    Ok(())
}

/// Two callers can use the same key, and neither finds the key of the other by its
/// address.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_caller_finds_only_its_own_key(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let owners = [&sample.owner, &sample.colleague, &sample.stranger];
    for owner in owners {
        let task = sample.new_task(owner, TaskId::made_of(sample.number()))?;
        let create = under(&sample.create(&task), "k", "c")?;
        assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    }
    for owner in owners {
        for other in owners {
            let key = hash(other, "k")?;
            let there = stores.records.load_key(owner, &key, sample.now).await?;
            assert_eq!(there.is_some(), owner == other);
        }
    }
    Ok(())
}
