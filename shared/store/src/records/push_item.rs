//! Converts push configs to their two items and back.

use crate::item::{self, Attributes, LEASE_UNTIL, TTL, count};
use crate::table::Item;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{Delivery, Owner, PushLease, PushRecord, Timestamp, WriteId};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// The hash of the owner's subject.
pub(super) const SUBJECT: &str = "subject";
pub(super) const CURSOR: &str = "cursor";
pub(super) const ATTEMPTS: &str = "attempts";
const RETRY_AT: &str = "retry_at";
/// The duration of the last successful delivery, in milliseconds.
const TOOK: &str = "took";
/// The id of the lease's holder.
pub(super) const HOLDER: &str = "holder";
/// The hash of the registration.
pub(super) const MARK: &str = "mark";

/// The two items of a push config, without their keys: the registration and the progress of its
/// deliveries. Both are kept until `until`.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(super) fn items(push: &PushRecord, until: Timestamp) -> Result<[Item; 2], StoreError> {
    let both = vec![
        (SUBJECT, Some(subject(&push.owner).into())),
        (MARK, Some(mark(push)?.into())),
        (CURSOR, Some(count(push.delivery.cursor))),
        (TTL, Some(item::seconds(until))),
    ];
    let mut registration = item::of(both.clone());
    registration.insert(item::BODY.to_owned(), stored::push_text(push)?.into());
    let mut progress = item::of(both);
    progress.extend(item::of(delivery_attributes(&push.delivery)));
    Ok([registration, progress])
}

/// The hash of the subject of an owner, as the items of a push config hold it.
pub(super) fn subject(owner: &Owner) -> String {
    owner.subject.hash()
}

/// The progress of the deliveries; the lease is absent if there is none.
pub(super) fn delivery_attributes(delivery: &Delivery) -> Attributes {
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

pub(super) fn lease_attributes(lease: Option<&PushLease>) -> Attributes {
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
pub(super) fn push_of(item: &Item, progress: Option<&Item>) -> Result<PushRecord, StoreError> {
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
            holder: WriteId::stored(item::text(item, HOLDER)?),
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
pub(super) fn mark(push: &PushRecord) -> Result<String, StoreError> {
    Ok(hex::encode(Sha256::digest(stored::push_identity(push)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::distinct::Values;

    #[test]
    fn a_push_config_reads_back_from_its_items_unchanged() {
        let mut values = Values::default();
        for _ in 0..2 {
            let push: PushRecord = values.make();
            let [registered, delivered] = items(&push, values.make()).unwrap();
            assert_eq!(push_of(&registered, Some(&delivered)).unwrap(), push);
            let begun = PushRecord {
                delivery: Delivery::after(push.delivery.cursor),
                ..push
            };
            assert_eq!(push_of(&registered, None).unwrap(), begun);
        }
    }
}
