//! Converts push configs to their two items and back.

use super::item::{self, Attributes, Item};
use super::key;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{Delivery, PushLease, PushRecord, TaskKey, Timestamp, WriteId};
use std::time::Duration;

pub(super) const CURSOR: &str = "cursor";
pub(super) const ATTEMPTS: &str = "attempts";
pub(super) const RETRY_AT: &str = "retry_at";
/// The duration of the last successful delivery, in milliseconds.
pub(super) const TOOK: &str = "took";
/// The id of the lease's holder.
pub(super) const HOLDER: &str = "holder";
/// The end of the lease, in milliseconds.
pub(super) const LEASE_UNTIL: &str = "lease_until";
/// The hash of the registration.
pub(super) const MARK: &str = "mark";

/// The two items of a push config: the registration and the progress of its deliveries.
///
/// # Errors
/// [`StoreError::Refused`], which does not happen for a valid record.
pub(super) fn items_of(push: &PushRecord) -> Result<[Item; 2], StoreError> {
    let both = [
        (item::SUBJECT, item::subject(&push.owner)),
        (MARK, item::text(mark(push)?)),
        (CURSOR, item::number(push.delivery.cursor)),
        (item::TTL, item::number(push.clean_at.ttl_seconds())),
    ];
    let mut registered = Attributes::from(both.clone());
    registered.insert(item::BODY, item::text(stored::push_text(push)?));
    let mut delivered = Attributes::from(both);
    delivered.extend(delivery_attributes(&push.delivery));
    let id = &push.listener.id;
    let at = |sort: String, attributes: Attributes| {
        let mut item = item::key_of(&partition(push), &sort);
        let named = attributes.into_iter();
        item.extend(named.map(|(name, value)| (name.to_owned(), value)));
        item
    };
    Ok([
        at(key::push(id), registered),
        at(key::delivery(id), delivered),
    ])
}

/// The progress of the deliveries, with the lease if there is one.
pub(super) fn delivery_attributes(delivery: &Delivery) -> Attributes {
    let took = u64::try_from(delivery.took.as_millis()).unwrap_or(u64::MAX);
    let mut attributes = Attributes::from([
        (CURSOR, item::number(delivery.cursor)),
        (ATTEMPTS, item::number(delivery.attempts)),
        (RETRY_AT, item::number(delivery.retry_at.as_millis())),
        (TOOK, item::number(took)),
    ]);
    attributes.extend(delivery.lease.iter().flat_map(lease_attributes));
    attributes
}

pub(super) fn lease_attributes(lease: &PushLease) -> Attributes {
    Attributes::from([
        (HOLDER, item::text(lease.holder.as_str())),
        (LEASE_UNTIL, item::number(lease.until.as_millis())),
    ])
}

/// The push config of an item, with the progress of its deliveries. If `delivered` is
/// missing or of another registration, nothing was delivered yet.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn push_of(item: &Item, delivered: Option<&&Item>) -> Result<PushRecord, StoreError> {
    let mut push = stored::push_of_text(item::string(item, item::BODY)?)?;
    let kept: i64 = item::integer(item, item::TTL)?;
    push.clean_at = Timestamp::from_millis(kept.saturating_mul(1000));
    let same = |delivered: &&&Item| delivered.get(MARK) == item.get(MARK);
    push.delivery = match delivered.filter(same) {
        Some(delivered) => delivery_of(delivered)?,
        None => Delivery::after(item::integer(item, CURSOR)?),
    };
    Ok(push)
}

pub(super) fn delivery_of(item: &Item) -> Result<Delivery, StoreError> {
    let lease = || {
        Ok::<_, StoreError>(PushLease {
            holder: WriteId::stored(item::string(item, HOLDER)?),
            until: Timestamp::from_millis(item::integer(item, LEASE_UNTIL)?),
        })
    };
    Ok(Delivery {
        cursor: item::integer(item, CURSOR)?,
        attempts: item::integer(item, ATTEMPTS)?,
        retry_at: Timestamp::from_millis(item::integer(item, RETRY_AT)?),
        took: Duration::from_millis(item::integer(item, TOOK)?),
        lease: item.contains_key(HOLDER).then(lease).transpose()?,
    })
}

pub(super) fn partition(push: &PushRecord) -> String {
    key::task(&TaskKey::new(&push.owner, &push.task))
}

pub(super) fn mark(push: &PushRecord) -> Result<String, StoreError> {
    use sha2::{Digest as _, Sha256};
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
            let [registered, delivered] = items_of(&push).unwrap();
            assert_eq!(push_of(&registered, Some(&&delivered)).unwrap(), push);
            let begun = PushRecord {
                delivery: Delivery::after(push.delivery.cursor),
                ..push
            };
            assert_eq!(push_of(&registered, None).unwrap(), begun);
        }
    }
}
