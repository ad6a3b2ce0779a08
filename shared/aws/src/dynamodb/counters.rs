//! Sums the counters of all processes in the table.
//!
//! Each label set of a metric has an item of its own. So no item comes near 400 KB, and a
//! write costs one unit.

use super::item::{self, Item};
use super::store::DynamoStore;
use super::{key, outcome};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::counters::{COUNTER_SHARDS, Counter, Counters};
use a2a_lambda_model::store::health::HealthCheck;
use async_trait::async_trait;
use aws_sdk_dynamodb::config::{Config, retry::RetryConfig};
use aws_sdk_dynamodb::types::AttributeValue;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use std::collections::HashMap;

/// Writes that run at the same time.
const AT_ONCE: usize = 8;

#[async_trait]
impl Counters for DynamoStore {
    async fn add_counters(&self, shard: u32, counters: &[Counter]) -> Result<(), StoreError> {
        let partition = &key::counters(shard % COUNTER_SHARDS);
        let writes: Vec<_> = counters
            .iter()
            .map(|counter| self.add_counter(partition, counter))
            .collect();
        // All of them run, also after one has failed.
        let done: Vec<_> = stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        done.into_iter().collect()
    }

    async fn read_counters(&self) -> Result<Vec<Counter>, StoreError> {
        let shards: Vec<_> = (0..COUNTER_SHARDS)
            .map(|shard| self.counters_of(shard))
            .collect();
        let found: Vec<Vec<Counter>> = stream::iter(shards)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }
}

impl DynamoStore {
    async fn add_counter(&self, partition: &str, counter: &Counter) -> Result<(), StoreError> {
        let places = counter.amounts.keys().enumerate();
        let sums: Vec<String> = places.map(|(at, _)| format!("#n{at} :v{at}")).collect();
        if sums.is_empty() {
            return Ok(());
        }
        let mut names = HashMap::new();
        let mut values = HashMap::new();
        for (at, (name, amount)) in counter.amounts.iter().enumerate() {
            names.insert(format!("#n{at}"), name.clone());
            values.insert(format!(":v{at}"), item::number(*amount));
        }
        // A repeated ADD would count twice, so the SDK must not repeat this request.
        let once = Config::builder().retry_config(RetryConfig::disabled());
        let sent = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(item::key_of(partition, &counter.series)))
            .update_expression(format!("ADD {}", sums.join(", ")))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .customize()
            .config_override(once)
            .send()
            .await;
        sent.map(|_| ())
            .map_err(|error| outcome::read_error(&error))
    }

    /// The counters of one shard. The read is consistent: a sum that was smaller than the
    /// one before would look like a restart to the reader.
    async fn counters_of(&self, shard: u32) -> Result<Vec<Counter>, StoreError> {
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("#pk = :pk")
                .expression_attribute_names("#pk", key::PK)
                .expression_attribute_values(":pk", item::text(key::counters(shard)))
                .set_exclusive_start_key(start)
                .consistent_read(true)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            found.extend(page.items.unwrap_or_default().iter().filter_map(counter));
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(found);
            }
        }
    }
}

/// The counter in an item. Attributes that are not numbers belong to a later version.
fn counter(item: &Item) -> Option<Counter> {
    let amount = |(name, value): (&String, &AttributeValue)| {
        let digits = value.as_n().ok()?;
        Some((name.clone(), digits.parse().ok()?))
    };
    Some(Counter {
        series: item.get(key::SK)?.as_s().ok()?.clone(),
        amounts: item.iter().filter_map(amount).collect(),
    })
}

/// Whether the table answers: a read of one absent item.
#[async_trait]
impl HealthCheck for DynamoStore {
    async fn check_health(&self) -> Result<(), StoreError> {
        self.item(&key::counters(0), key::ABSENT).await.map(|_| ())
    }
}
