//! The calls of the narrow table, as requests to DynamoDB.

use super::expression::{self, Expressions};
use super::outcome::{self, Check, WriteOptions, WriteOutcome};
use super::store::DynamoStore;
use super::{item, list};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_store::keys::Key;
use a2a_lambda_store::table::{
    ConditionCheck, Item, Outcome, Position, Query, QueryPage, QuerySource, ReadTable, Table, Write,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::Select;

#[async_trait]
impl ReadTable for DynamoStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        // A function with the right to read single items reads one key so.
        if let [key] = keys {
            let found = self.item(key.partition(), key.sort()).await?;
            return Ok(found.map(expression::item).into_iter().collect());
        }
        let mut items = Vec::new();
        for chunk in keys.chunks(list::BATCH) {
            let chunk = chunk
                .iter()
                .map(|key| item::key_of(key.partition(), key.sort()));
            let found = list::batch(&self.client, &self.table, chunk.collect()).await?;
            items.extend(found.into_iter().map(expression::item));
        }
        Ok(items)
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
            .table_name(&self.table)
            .set_index_name(source.index().map(str::to_owned))
            .set_consistent_read((source == QuerySource::Table).then_some(true))
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
        let found = Box::pin(request.send()).await;
        let found = found.map_err(|error| outcome::read_error(&error))?;
        let items = found.items.unwrap_or_default().into_iter();
        let last = found.last_evaluated_key;
        Ok(QueryPage {
            items: items.map(expression::item).collect(),
            count: usize::try_from(found.count).unwrap_or_default(),
            read: usize::try_from(found.scanned_count).unwrap_or_default(),
            next: last.map(|last| Position(expression::item(last))),
        })
    }
}

#[async_trait]
impl Table for DynamoStore {
    async fn write(&self, write: Write) -> Result<Outcome, StoreError> {
        write.check()?;
        let options = WriteOptions {
            once: !write.repeats,
            wants_old: write.wants_old,
        };
        let statements = write.statements.into_iter().map(Into::into).collect();
        let sent = outcome::write(&self.client, &self.table, statements, options);
        match Box::pin(sent).await {
            WriteOutcome::Done(old) => Ok(Outcome::Done(old.map(expression::item))),
            WriteOutcome::Refused(checks) => Ok(Outcome::Refused(
                checks.into_iter().map(Check::into).collect(),
            )),
            WriteOutcome::Unknown(why) => Ok(Outcome::Unknown(why)),
            WriteOutcome::Failed(error) | WriteOutcome::Undecided(error) => Err(error),
        }
    }
}

impl From<Check> for ConditionCheck {
    fn from(check: Check) -> Self {
        match check {
            Check::Held => Self::Held,
            Check::Failed(old) => Self::Failed(old.map(expression::item)),
        }
    }
}
