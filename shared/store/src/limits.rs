//! Counts what a tenant uses, one conditional write a decision.
//!
//! - `tokens`: the buckets of rates, and their pauses
//! - `slots`: the leased slots of pools
//! - `day_use`: the tokens of models, by day
//! - here: totals
//!
//! All items of a tenant but those of `day_use` are in one partition of their own, and each has a
//! `ttl`.

mod day_use;
mod slots;
mod tokens;

use self::tokens::KnownBuckets;
use crate::item::{TTL, as_i64};
use crate::keys;
use crate::table::{
    Comparison, Condition, ConditionCheck, Item, ItemChange, Statement, Table, Write, WriteResult,
};
use a2a_lambda_model::store::StoreError;
pub use a2a_lambda_model::store::limits::{
    BucketPause, DayRest, DayUse, Rate, RateBucket, Reservation, SCARCE_TOKENS, Slot, SlotLease,
    SlotPool, Tokens, Total, gcra,
};
use a2a_lambda_model::task::Timestamp;
use std::sync::Arc;

/// How often a decision is tried again after another writer came first.
const ROUNDS: u32 = 8;
/// The attribute of a total.
const SUM: &str = "total";

/// Counts what a tenant uses: tokens of rates, leased slots and totals.
#[derive(Debug, Clone)]
pub struct Limits {
    table: Arc<dyn Table>,
    /// Shared by all clones, so that the first write of a process is mostly the right one.
    buckets: Arc<KnownBuckets>,
}

/// The error when other writers came first in every round.
fn contention_error() -> StoreError {
    StoreError::Contended("other writers changed a limit in every round".to_owned())
}

impl Limits {
    /// The limits in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self {
            table,
            buckets: Arc::default(),
        }
    }

    /// Adds `amount` to a total, unless it would exceed `most`. Returns whether it was added.
    /// The table forgets the total after `clean_at`.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then it may be added.
    pub async fn add(
        &self,
        total: &Total,
        amount: u64,
        most: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(before) = most.checked_sub(amount) else {
            return Ok(false);
        };
        let Total::StoredBytes(tenant, day) = total;
        let add = ItemChange::plus(SUM, Some(0), as_i64(amount));
        let changes = [add, ItemChange::set(TTL, clean_at.ttl_seconds())];
        let add = Statement::update(keys::stored_bytes(tenant, *day), changes);
        let fits = vec![
            Condition::absent(SUM),
            Condition::is(SUM, Comparison::AtMost, as_i64(before)),
        ];
        self.table.try_write(add.when(Condition::Any(fits))).await
    }

    /// Runs one statement. Returns the stored item behind a condition that does not hold,
    /// empty if there is none.
    async fn try_write(&self, statement: Statement) -> Result<Option<Item>, StoreError> {
        match self.table.write(Write::from(statement)).await? {
            WriteResult::Done(_) => Ok(None),
            WriteResult::Unknown(why) => Err(StoreError::Unavailable(why)),
            WriteResult::Refused(checks) => {
                let item = checks.into_iter().find_map(|check| match check {
                    ConditionCheck::Failed(item) => item,
                    ConditionCheck::Held => None,
                });
                Ok(Some(item.unwrap_or_default()))
            }
        }
    }
}
