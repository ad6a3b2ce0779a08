//! Asks DynamoDB for the capacity of each request, and gives it to a meter.
//!
//! An interceptor sees every request of the client, so no call of the store has to ask
//! for itself. A request that failed reports no capacity and counts as nothing.

use a2a_lambda_model::store::Meter;
use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::batch_write_item::{BatchWriteItemInput, BatchWriteItemOutput};
use aws_sdk_dynamodb::operation::delete_item::{DeleteItemInput, DeleteItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::transact_write_items::{
    TransactWriteItemsInput, TransactWriteItemsOutput,
};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use std::sync::Arc;

/// Gives the capacity of each request to a meter.
#[derive(Debug)]
pub(super) struct Capacity(pub(super) Arc<dyn Meter>);

impl Intercept for Capacity {
    fn name(&self) -> &'static str {
        "Capacity"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input_mut();
        macro_rules! ask {
            ($($input:ty),+) => {
                $(if let Some(input) = input.downcast_mut::<$input>() {
                    input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
                    return Ok(());
                })+
            };
        }
        ask!(
            GetItemInput,
            PutItemInput,
            UpdateItemInput,
            QueryInput,
            BatchGetItemInput,
            TransactWriteItemsInput,
            DeleteItemInput,
            BatchWriteItemInput
        );
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Ok(output) = context.output_or_error() else {
            return Ok(());
        };
        macro_rules! take {
            ($($output:ty => $reads:literal),+) => {
                $(if let Some(output) = output.downcast_ref::<$output>() {
                    self.count($reads, output.consumed_capacity());
                    return Ok(());
                })+
            };
        }
        take!(
            GetItemOutput => true,
            PutItemOutput => false,
            UpdateItemOutput => false,
            QueryOutput => true,
            BatchGetItemOutput => true,
            TransactWriteItemsOutput => false,
            DeleteItemOutput => false,
            BatchWriteItemOutput => false
        );
        Ok(())
    }
}

impl Capacity {
    /// Counts all units of a response, if it reports some.
    fn count<'a>(&self, reads: bool, of: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        let units = of.into_iter().filter_map(|used| used.capacity_units);
        match units.reduce(|all, units| all + units) {
            Some(units) if reads => self.0.add(units, 0.0),
            Some(units) => self.0.add(0.0, units),
            None => {}
        }
    }
}
