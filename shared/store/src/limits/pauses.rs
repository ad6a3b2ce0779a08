//! Pauses a bucket of tokens.
//!
//! The end of a pause gives no tokens: who may try whether it is over replaces it by a short
//! one.

use super::{BucketPause, Limits, PAUSE, RateBucket};
use crate::item;
use crate::keys;
use crate::table::{Comparison, Condition, Item, ItemChange, Statement};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Timestamp;

/// The attribute with the number of pauses in a row.
const PAUSES: &str = "pauses";

/// The pause of a bucket, also one that is over.
pub(super) fn pause(bucket: &Item) -> Result<Option<BucketPause>, StoreError> {
    let until = item::optional_number(bucket, PAUSE)?;
    let number = item::optional_number(bucket, PAUSES)?.unwrap_or_default();
    Ok(until.map(|until| BucketPause {
        until: Timestamp::from_millis(until),
        number: u32::try_from(number).unwrap_or(u32::MAX),
    }))
}

impl Limits {
    /// Replaces the pause `before` of a bucket by `next`. Returns `false`, and changes nothing,
    /// if the bucket has another one.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then it may be replaced.
    pub async fn replace_pause(
        &self,
        bucket: &RateBucket,
        before: Option<BucketPause>,
        next: Option<BucketPause>,
    ) -> Result<bool, StoreError> {
        let same = match before {
            None => Condition::absent(PAUSE),
            Some(it) => Condition::is(PAUSE, Comparison::Equal, it.until.as_millis()),
        };
        let changes = match next {
            None => [PAUSE, PAUSES].map(|name| ItemChange::Remove(name.into())),
            Some(it) => [
                ItemChange::set(PAUSE, it.until.as_millis()),
                ItemChange::set(PAUSES, i64::from(it.number)),
            ],
        };
        let key = keys::bucket(bucket).0;
        self.done(Statement::update(key, changes).when(same)).await
    }
}
