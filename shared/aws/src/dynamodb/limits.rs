//! Counts what a tenant uses, one conditional write a decision.
//!
//! - `tokens`: the buckets of rates
//! - `slots`: the leased slots of pools
//! - here: totals and blocks
//!
//! All items of a tenant are in one partition of their own. The tiers of a tenant share an
//! item, so that a block of the tenant is one attribute there. Each item has a `ttl`, except
//! while its tenant is blocked: a block does not expire.

mod slots;
mod tokens;

use super::conditional_write::{ConditionalWrite, WriteKind};
use super::item::{self, Item};
use super::key;
use super::outcome::Check;
use super::store::DynamoStore;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::limits::{
    Limits, Rate, RateBucket, Slot, SlotLease, SlotPool, Tokens, Total,
};
use a2a_lambda_model::task::{TenantId, Timestamp, WriteId};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;

/// How often a decision is tried again after another writer came first.
const ROUNDS: u32 = 8;
/// The attribute that blocks a tenant.
const BLOCKED: &str = "blocked";
/// The condition that holds while the tenant is not blocked.
const OPEN: &str = "attribute_not_exists(#blocked)";
/// The attribute of a total.
const SUM: &str = "total";

/// An update of the item at `partition` and `sort`, with the name of [`BLOCKED`].
fn update(partition: &str, sort: &str, expression: String) -> ConditionalWrite {
    let mut update = ConditionalWrite::bare(WriteKind::Update {
        key: item::key_of(partition, sort),
        expression,
    });
    update.name(BLOCKED);
    update
}

/// The stored item behind a refused condition; empty if there is none.
fn refused(checks: Vec<Check>) -> Item {
    let found = checks.into_iter().find_map(|check| match check {
        Check::Failed(item) => item,
        Check::Held => None,
    });
    found.unwrap_or_default()
}

/// The error when other writers came first in every round.
fn contended() -> StoreError {
    StoreError::Contended("other writers changed a limit in every round".to_owned())
}

impl DynamoStore {
    async fn add_up(
        &self,
        total: &Total,
        amount: u64,
        most: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(before) = most.checked_sub(amount) else {
            return Ok(false);
        };
        let Total::UploadBytes(tenant, day) = total;
        let set = "SET #total = if_not_exists(#total, :none) + :amount, #ttl = :ttl";
        let mut add = ConditionalWrite::bare(WriteKind::Update {
            key: item::key_of(&key::limits(tenant), &key::uploads_of(*day)),
            expression: set.to_owned(),
        });
        add.name(SUM);
        add.name(item::TTL);
        add.value(":none", item::number(0));
        add.value(":amount", item::number(amount));
        add.value(":before", item::number(before));
        add.value(":ttl", item::number(clean_at.ttl_seconds()));
        self.write_once(add.when("attribute_not_exists(#total) OR #total <= :before"))
            .await
    }

    async fn set_block(&self, tenant: &TenantId, blocked: bool) -> Result<(), StoreError> {
        for sort in [key::TIERS, key::STREAMS] {
            let partition = key::limits(tenant);
            if blocked {
                let set = "SET #blocked = :blocked REMOVE #ttl".to_owned();
                let mut block = update(&partition, sort, set);
                block.name(item::TTL);
                block.value(":blocked", AttributeValue::Bool(true));
                self.write_once(block).await?;
            } else {
                let end = update(&partition, sort, "REMOVE #blocked".to_owned());
                self.write_once(end.when("attribute_exists(#blocked)"))
                    .await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Limits for DynamoStore {
    async fn take_tokens(
        &self,
        bucket: &RateBucket,
        rate: Rate,
        lot: u32,
        now: Timestamp,
    ) -> Result<Tokens, StoreError> {
        self.take(bucket, rate, lot, now).await
    }

    async fn lease_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        lease: SlotLease,
    ) -> Result<Slot, StoreError> {
        self.lease(pool, holder, lease).await
    }

    async fn renew_slot(
        &self,
        pool: &SlotPool,
        holder: &WriteId,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.renew(pool, holder, until).await
    }

    async fn free_slot(&self, pool: &SlotPool, holder: &WriteId) -> Result<(), StoreError> {
        self.free(pool, holder).await
    }

    async fn add(
        &self,
        total: &Total,
        amount: u64,
        most: u64,
        clean_at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.add_up(total, amount, most, clean_at).await
    }

    async fn block(&self, tenant: &TenantId, blocked: bool) -> Result<(), StoreError> {
        self.set_block(tenant, blocked).await
    }
}
