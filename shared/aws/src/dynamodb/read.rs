//! The reads of a table, as requests to DynamoDB.

use super::expression::{self, Expressions, SdkItem};
use super::outcome;
use super::store::DynamoTable;
use crate::outcome::incomplete;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_store::keys::Key;
use a2a_lambda_store::table::{Item, Position, Query, QueryPage, QuerySource, ReadTable};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::{KeysAndAttributes, Select};

/// Items of one batch read: the limit of `BatchGetItem`.
const BATCH: usize = 100;

#[async_trait]
impl ReadTable for DynamoTable {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        // A function with the right to read single items reads one key so.
        if let [key] = keys {
            return Ok(self.one(key, true).await?.into_iter().collect());
        }
        let mut items = Vec::new();
        for chunk in keys.chunks(BATCH) {
            let chunk = chunk.iter().map(|key| expression::attributes(key.item()));
            items.append(&mut Box::pin(self.batch(chunk.collect())).await?);
        }
        Ok(items)
    }

    async fn glance(&self, key: Key) -> Result<Option<Item>, StoreError> {
        self.one(&key, false).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        if !query.check()? {
            return Ok(QueryPage::default());
        }
        let mut expressions = Expressions::default();
        let key = expressions.key(query);
        let filter = query.filter.as_ref().map(|it| expressions.condition(it));
        let only = query.only.iter().map(|name| expressions.name(name));
        let only = only.collect::<Vec<_>>().join(", ");
        let source = query.partition.source();
        let limit = query.limit.map(|it| i32::try_from(it).unwrap_or(i32::MAX));
        let start = query.start.as_ref();
        let request = self
            .client
            .query()
            .table_name(&self.name)
            .set_index_name(source.index().map(str::to_owned))
            .set_consistent_read((source == QuerySource::Table && !query.lags).then_some(true))
            .key_condition_expression(key)
            .set_filter_expression(filter)
            .set_projection_expression((!only.is_empty()).then_some(only))
            .set_select(query.count.then_some(Select::Count))
            .set_expression_attribute_names(expressions.names())
            .set_expression_attribute_values(expressions.values())
            .set_scan_index_forward(query.newest_first.then_some(false))
            .set_limit(limit)
            .set_exclusive_start_key(start.map(|start| expression::attributes(start.0.clone())));
        // Boxed, since the future of a request is large, and each caller would hold it.
        let output = Box::pin(request.send()).await;
        let output = output.map_err(|error| outcome::read_error(&error))?;
        let items = output.items.unwrap_or_default().into_iter();
        let last = output.last_evaluated_key;
        Ok(QueryPage {
            items: items.map(expression::item).collect(),
            count: usize::try_from(output.count).unwrap_or_default(),
            read: usize::try_from(output.scanned_count).unwrap_or_default(),
            next: last.map(|last| Position(expression::item(last))),
        })
    }
}

impl DynamoTable {
    /// One item.
    async fn one(&self, key: &Key, is_consistent: bool) -> Result<Option<Item>, StoreError> {
        let request = self
            .client
            .get_item()
            .table_name(&self.name)
            .set_key(Some(expression::attributes(key.item())))
            .consistent_read(is_consistent);
        // Boxed, since the future of a request is large, and each caller would hold it.
        let output = Box::pin(request.send()).await;
        let item = output.map_err(|error| outcome::read_error(&error))?.item;
        Ok(item.map(expression::item))
    }

    /// The items of `keys`, at most [`BATCH`], read consistently.
    async fn batch(&self, mut keys: Vec<SdkItem>) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        while !keys.is_empty() {
            let count = keys.len();
            let wanted_keys = KeysAndAttributes::builder()
                .set_keys(Some(keys))
                .consistent_read(true)
                .build()
                .map_err(incomplete)?;
            let mut output = self
                .client
                .batch_get_item()
                .request_items(&self.name, wanted_keys)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            let mut responses = output.responses.take().unwrap_or_default();
            let attributes = responses.remove(&self.name).unwrap_or_default();
            items.extend(attributes.into_iter().map(expression::item));
            let mut rest = output.unprocessed_keys.take().unwrap_or_default();
            let rest = rest.remove(&self.name);
            keys = rest.map(|rest| rest.keys).unwrap_or_default();
            // One response holds at most 16 MB, so keys can be left over. If DynamoDB
            // throttles it returns an error.
            if keys.len() == count {
                let why = "a batch read processed none of its keys".to_owned();
                return Err(StoreError::Unavailable(why));
            }
        }
        Ok(items)
    }
}
