//! The writes of a table. A single statement becomes one request, several become a transaction.

use super::expression::{self, Expressions};
use super::outcome::{self, NeverTwice};
use super::store::DynamoTable;
use crate::outcome::incomplete;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_store::table::{Action, Statement, Table, Write, WriteResult};
use async_trait::async_trait;
use aws_sdk_dynamodb::config::Config;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};

#[async_trait]
impl Table for DynamoTable {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        write.check()?;
        let statements = write.statements.into_iter();
        let writes = statements.map(|statement| SdkWrite::of(statement, &self.name));
        let writes = writes.collect::<Result<Vec<_>, _>>()?;
        // Boxed, since the future of a request is large, and each caller would hold it.
        match <[SdkWrite; 1]>::try_from(writes) {
            Ok([only]) => Box::pin(self.write_one(only, write.repeats, write.wants_old)).await,
            Err(several) => Box::pin(self.write_several(several)).await,
        }
    }
}

/// A statement in the form of the SDK.
enum SdkWrite {
    Put(Put),
    Update(Update),
    Delete(Delete),
}

impl SdkWrite {
    fn of(statement: Statement, table: &str) -> Result<Self, StoreError> {
        let mut expressions = Expressions::default();
        let condition = statement.condition.map(|it| expressions.condition(&it));
        let key = expression::attributes(statement.key.item());
        macro_rules! build {
            ($builder:expr) => {
                $builder
                    .table_name(table)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(
                        ReturnValuesOnConditionCheckFailure::AllOld,
                    )
                    .build()
                    .map_err(incomplete)?
            };
        }
        Ok(match statement.action {
            Action::Put(item) => {
                let item = key.into_iter().chain(expression::attributes(item));
                Self::Put(build!(Put::builder().set_item(Some(item.collect()))))
            }
            Action::Update(changes) => {
                let update = Update::builder().set_key(Some(key));
                let update = update.update_expression(expressions.changes(changes));
                Self::Update(build!(update))
            }
            Action::Delete => Self::Delete(build!(Delete::builder().set_key(Some(key)))),
        })
    }
}

impl From<SdkWrite> for TransactWriteItem {
    fn from(write: SdkWrite) -> Self {
        let action = Self::builder();
        match write {
            SdkWrite::Put(put) => action.put(put),
            SdkWrite::Update(update) => action.update(update),
            SdkWrite::Delete(delete) => action.delete(delete),
        }
        .build()
    }
}

impl DynamoTable {
    /// Unless the write `repeats`, the SDK must not send it again if it may be stored.
    async fn write_one(
        &self,
        write: SdkWrite,
        repeats: bool,
        wants_old: bool,
    ) -> Result<WriteResult, StoreError> {
        macro_rules! send {
            ($request:expr, $write:ident, $error:ident) => {{
                let old = $write.return_values_on_condition_check_failure;
                let request = $request
                    .table_name($write.table_name)
                    .set_condition_expression($write.condition_expression)
                    .set_expression_attribute_names($write.expression_attribute_names)
                    .set_expression_attribute_values($write.expression_attribute_values)
                    .set_return_values(wants_old.then_some(ReturnValue::AllOld))
                    .set_return_values_on_condition_check_failure(old);
                let sent = if repeats {
                    request.send().await
                } else {
                    let once = Config::builder().retry_classifier(NeverTwice);
                    request.customize().config_override(once).send().await
                };
                let error = match sent {
                    Ok(done) => {
                        return Ok(WriteResult::Done(done.attributes.map(expression::item)));
                    }
                    Err(error) => error,
                };
                match error.as_service_error() {
                    Some($error::ConditionalCheckFailedException(failed)) => Ok(
                        WriteResult::Refused(vec![outcome::failed_check(failed.item.as_ref())]),
                    ),
                    _ => outcome::outcome(&error),
                }
            }};
        }
        let client = &self.client;
        match write {
            SdkWrite::Put(put) => {
                send!(
                    client.put_item().set_item(Some(put.item)),
                    put,
                    PutItemError
                )
            }
            SdkWrite::Update(update) => {
                let request = client.update_item().set_key(Some(update.key));
                let request = request.update_expression(update.update_expression);
                send!(request, update, UpdateItemError)
            }
            SdkWrite::Delete(delete) => {
                let request = client.delete_item().set_key(Some(delete.key));
                send!(request, delete, DeleteItemError)
            }
        }
    }

    async fn write_several(&self, writes: Vec<SdkWrite>) -> Result<WriteResult, StoreError> {
        let actions = writes.into_iter().map(Into::into).collect();
        // The SDK adds a client token and keeps it over its attempts, so a repeated
        // transaction is applied once.
        let request = self.client.transact_write_items();
        let Err(error) = request.set_transact_items(Some(actions)).send().await else {
            return Ok(WriteResult::Done(None));
        };
        match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(canceled_by)) => {
                outcome::classify_reasons(canceled_by.cancellation_reasons())
            }
            _ => outcome::outcome(&error),
        }
    }
}
