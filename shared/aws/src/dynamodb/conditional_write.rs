//! A statement in the form of the SDK. A single one becomes one request, several become a
//! transaction.

use super::expression::{self, Expressions, SdkItem};
use a2a_lambda_store::table::{Action, Statement};
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;

/// A write of one item under a condition.
#[derive(Debug)]
pub(super) struct ConditionalWrite {
    pub(super) kind: WriteKind,
    pub(super) condition: Option<String>,
    pub(super) names: Option<HashMap<String, String>>,
    pub(super) values: Option<HashMap<String, AttributeValue>>,
}

/// How the item is written.
#[derive(Debug)]
pub(super) enum WriteKind {
    /// Replaces the whole item, if there is one.
    Put(SdkItem),
    /// Changes attributes of the item.
    Update {
        /// The item's key.
        key: SdkItem,
        /// The update expression.
        expression: String,
    },
    /// Deletes the item with this key.
    Delete(SdkItem),
}

impl From<Statement> for ConditionalWrite {
    fn from(statement: Statement) -> Self {
        let mut expressions = Expressions::default();
        let condition = statement.condition.map(|it| expressions.condition(&it));
        let key = expression::attributes(statement.key.item());
        let kind = match statement.action {
            Action::Delete => WriteKind::Delete(key),
            Action::Put(item) => WriteKind::Put(
                key.into_iter()
                    .chain(expression::attributes(item))
                    .collect(),
            ),
            Action::Update(changes) => WriteKind::Update {
                key,
                expression: expressions.changes(changes),
            },
        };
        Self {
            kind,
            condition,
            names: expressions.names(),
            values: expressions.values(),
        }
    }
}

impl ConditionalWrite {
    /// Converts the statement to an action of a transaction.
    ///
    /// # Errors
    /// [`BuildError`] if the SDK finds that a member is missing, which does not happen here.
    pub(super) fn into_action(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let (names, values) = (self.names, self.values);
        let old = Some(ReturnValuesOnConditionCheckFailure::AllOld);
        let action = TransactWriteItem::builder();
        Ok(match self.kind {
            WriteKind::Put(item) => action.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(item))
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
            WriteKind::Delete(key) => action.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
            WriteKind::Update { key, expression } => action.update(
                Update::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .update_expression(expression)
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
        }
        .build())
    }
}
