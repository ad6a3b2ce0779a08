//! Stores push configs in the partition of their task.
//!
//! One item holds what the client registered. A second, small item holds the progress of the
//! deliveries, so that a delivery writes one unit. Both are written together and hold a hash
//! of the registration. So a delivery for an old registration cannot change the progress of
//! the one that replaced it.

use super::{Deliveries, RecordReader, Records, changes, task_item};
use crate::item::{self, Attributes, LEASE_UNTIL, TTL, count};
use crate::keys::{self, SK, SWEEP_PK, SWEEP_SK};
use crate::limits::Limits;
use crate::table::{Comparison, Condition, Item, Query, Statement};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{
    Delivery, Owner, PushId, PushLease, PushRecord, TaskId, TaskKey, TaskRecord, Timestamp, WriteId,
};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// The hash of the owner's subject.
const SUBJECT: &str = "subject";
const CURSOR: &str = "cursor";
const ATTEMPTS: &str = "attempts";
const RETRY_AT: &str = "retry_at";
/// The duration of the last successful delivery, in milliseconds.
const TOOK: &str = "took";
/// The id of the lease's holder.
const HOLDER: &str = "holder";
/// The hash of the registration.
pub(super) const MARK: &str = "mark";

/// Writes a push config without any delivery, over one with the same id. Both items are kept
/// until `until`.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(super) fn push(push: &PushRecord, until: Timestamp) -> Result<[Statement; 2], StoreError> {
    let mut registration = item::of(vec![
        (SUBJECT, Some(push.owner.subject.hash().into())),
        (MARK, Some(mark(push)?.into())),
        (CURSOR, Some(count(push.delivery.cursor))),
        (TTL, Some(item::seconds(until))),
    ]);
    let mut progress = registration.clone();
    registration.insert(item::BODY.to_owned(), stored::push_text(push)?.into());
    progress.extend(item::of(delivery_attributes(&push.delivery)));
    let (task, id) = (task_of(push), &push.registration.id);
    Ok([
        Statement::put(keys::push(&task, id), registration),
        Statement::put(keys::delivery(&task, id), progress),
    ])
}

/// The progress of the deliveries; the lease is absent if there is none.
fn delivery_attributes(delivery: &Delivery) -> Attributes {
    let took = u64::try_from(delivery.took.as_millis()).unwrap_or(u64::MAX);
    let mut attributes = vec![
        (CURSOR, Some(count(delivery.cursor))),
        (ATTEMPTS, Some(i64::from(delivery.attempts).into())),
        (RETRY_AT, Some(item::millis(delivery.retry_at))),
        (TOOK, Some(count(took))),
    ];
    attributes.extend(lease_attributes(delivery.lease.as_ref()));
    attributes
}

fn lease_attributes(lease: Option<&PushLease>) -> Attributes {
    vec![
        (HOLDER, lease.map(|lease| lease.holder.as_str().into())),
        (LEASE_UNTIL, lease.map(|lease| item::millis(lease.until))),
    ]
}

/// The push config of an item, with the progress of its deliveries. If `progress` is
/// missing or of another registration, nothing was delivered yet.
///
/// # Errors
/// [`StoreError::Corrupt`].
fn push_of(item: &Item, progress: Option<&Item>) -> Result<PushRecord, StoreError> {
    let mut push = stored::push_of_text(item::text(item, item::BODY)?)?;
    push.delivery = match progress.filter(|it| it.get(MARK) == item.get(MARK)) {
        Some(progress) => delivery_of(progress)?,
        None => Delivery::after(item::number(item, CURSOR)?),
    };
    Ok(push)
}

fn delivery_of(item: &Item) -> Result<Delivery, StoreError> {
    let lease = || {
        Ok::<_, StoreError>(PushLease {
            holder: WriteId::from_stored(item::text(item, HOLDER)?),
            until: item::time(item, LEASE_UNTIL)?,
        })
    };
    Ok(Delivery {
        cursor: item::number(item, CURSOR)?,
        attempts: item::number(item, ATTEMPTS)?,
        retry_at: item::time(item, RETRY_AT)?,
        took: Duration::from_millis(item::number(item, TOOK)?),
        lease: item.contains_key(HOLDER).then(lease).transpose()?,
    })
}

/// The hash of the registration.
///
/// # Errors
/// [`StoreError::TooLarge`].
fn mark(push: &PushRecord) -> Result<String, StoreError> {
    // A member added to the stored form later must not enter it, because programs of both
    // versions deliver.
    Ok(hex::encode(Sha256::digest(stored::push_text(push)?)))
}

fn task_of(push: &PushRecord) -> TaskKey {
    TaskKey::new(&push.owner, &push.task)
}

/// Changes the delivery item, if it is of this registration and `condition` holds.
fn delivery(
    push: &PushRecord,
    attributes: Attributes,
    condition: Condition,
) -> Result<Statement, StoreError> {
    let key = keys::delivery(&task_of(push), &push.registration.id);
    let same = Condition::is(MARK, Comparison::Equal, mark(push)?);
    let changes = Statement::update(key, changes(attributes));
    Ok(changes.when(Condition::All(vec![same, condition])))
}

fn is_held_by(holder: &WriteId) -> Condition {
    Condition::is(HOLDER, Comparison::Equal, holder.as_str())
}

impl RecordReader {
    /// The push configs of a task in the order of their ids, read consistently: only
    /// `owner`'s, of any incarnation.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    pub async fn pushes(
        &self,
        owner: &Owner,
        task: &TaskId,
    ) -> Result<Vec<PushRecord>, StoreError> {
        let query = Query {
            range: keys::pushes(),
            ..keys::task_items(&TaskKey::new(owner, task)).into()
        };
        let items = self.table.query(&query).await?.items;
        let sorts = items.iter().map(|item| Ok((item::text(item, SK)?, item)));
        let sorts: BTreeMap<&str, &Item> = sorts.collect::<Result<_, StoreError>>()?;
        let registrations = sorts.iter().filter(|(sort, _)| !keys::is_delivery(sort));
        let pushes = registrations.map(|(sort, item)| {
            let progress = sorts.get(keys::delivery_beside(sort).as_str());
            push_of(item, progress.copied())
        });
        let mut pushes = pushes.collect::<Result<Vec<_>, _>>()?;
        pushes.retain(|push| push.owner == *owner);
        Ok(pushes)
    }
}

impl Records {
    /// Stores a push config until `until` and replaces one with the same id. It is for a task
    /// that has ended, because no later commit changes that task. An open task gets its
    /// configs with a commit ([`TaskWrite`](a2a_lambda_model::store::TaskWrite)).
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn put_push(&self, push: &PushRecord, until: Timestamp) -> Result<(), StoreError> {
        let both = Vec::from(self::push(push, until)?);
        self.table.try_write(both).await.map(drop)
    }

    /// Removes a push config; succeeds if there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer.
    pub async fn delete_push(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &PushId,
    ) -> Result<(), StoreError> {
        let task = TaskKey::new(owner, task);
        // The condition fails if the config does not exist or belongs to another owner. Either
        // way there is nothing to remove for this owner.
        let mine = Condition::is(SUBJECT, Comparison::Equal, owner.subject.hash());
        let config = Statement::delete(keys::push(&task, id)).when(mine);
        let progress = Statement::delete(keys::delivery(&task, id));
        self.table.try_write(vec![config, progress]).await.map(drop)
    }
}

impl Deliveries {
    /// The limits in the same table.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::new(self.0.table())
    }

    /// Takes the lease of a push config for the holder in `lease`. A holder that has the
    /// lease already gets it again. Returns `false` if another holder has a lease at `now`,
    /// a delivery was recorded since `push` was read, or the config is gone or was registered
    /// again.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be taken.
    pub async fn lease_push(
        &self,
        push: &PushRecord,
        lease: &PushLease,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let attributes = lease_attributes(Some(lease));
        let is_over = Condition::is(LEASE_UNTIL, Comparison::AtMost, now.as_millis());
        let is = |name, number| Condition::is(name, Comparison::Equal, number);
        let is_free = Condition::All(vec![
            Condition::Any(vec![Condition::absent(LEASE_UNTIL), is_over]),
            is(CURSOR, count(push.delivery.cursor)),
            is(ATTEMPTS, i64::from(push.delivery.attempts).into()),
        ]);
        // A repeated write finds its own lease and succeeds.
        let free = Condition::Any(vec![is_held_by(&lease.holder), is_free]);
        self.0
            .table
            .try_write(delivery(push, attributes, free)?)
            .await
    }

    /// Records the progress of a config's deliveries; the lease ends if `delivery`
    /// has none. Returns `false` if `holder` no longer has the lease, or the config
    /// is gone or was registered again.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` it may or may not be recorded.
    pub async fn note_delivery(
        &self,
        push: &PushRecord,
        holder: &WriteId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        let attributes = delivery_attributes(delivery);
        let note = self::delivery(push, attributes, is_held_by(holder))?;
        self.0.table.try_write(note).await
    }

    /// Removes a task at rest from the sweep's index, because every push is delivered
    /// or given up. Returns `false` if the task no longer has this version. The
    /// version does not change.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the task may or may not be removed.
    pub async fn confirm_pushes(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        if !record.state().is_at_rest() {
            return Ok(false);
        }
        let no_marks = [SWEEP_PK, SWEEP_SK, task_item::NOTIFY].map(|name| (name, None));
        let confirm = Statement::update(keys::task(&record.key()), changes(no_marks.into()));
        let is_stored = Condition::All(vec![
            task_item::has_version(record.version),
            task_item::is_same(&record.incarnation),
        ]);
        self.0.table.try_write(confirm.when(is_stored)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Action;
    use a2a_lambda_model::task::distinct::Values;

    #[test]
    fn a_push_config_reads_back_from_its_items_unchanged() {
        let mut values = Values::default();
        for _ in 0..2 {
            let push: PushRecord = values.make();
            let [registered, delivered] =
                super::push(&push, values.make())
                    .unwrap()
                    .map(|put| match put.action {
                        Action::Put(item) => item,
                        action => panic!("{action:?} puts no item"),
                    });
            assert_eq!(push_of(&registered, Some(&delivered)).unwrap(), push);
            let begun = PushRecord {
                delivery: Delivery::after(push.delivery.cursor),
                ..push
            };
            assert_eq!(push_of(&registered, None).unwrap(), begun);
        }
    }
}
