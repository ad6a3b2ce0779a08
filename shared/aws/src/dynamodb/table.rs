//! Creates the table for an emulator. A deployment creates the same table from the
//! template.

use super::outcome;
use crate::outcome::incomplete;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_store::item::TTL;
use a2a_lambda_store::keys as key;
use a2a_lambda_store::table::QuerySource;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata as _};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, StreamSpecification, StreamViewType, TableStatus,
    TimeToLiveSpecification,
};
use std::time::Duration;

/// How often a new table is checked for its status, every 500 ms.
const ASKS: u32 = 120;

/// Creates the table unless it exists, and waits until it is active.
///
/// # Errors
/// [`StoreError`] when the service does not answer or refuses.
pub async fn create_table(client: &Client, table: &str) -> Result<(), StoreError> {
    let request = client
        .create_table()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .stream_specification(
            StreamSpecification::builder()
                .stream_enabled(true)
                // The relay reads only the new image of an item.
                .stream_view_type(StreamViewType::NewImage)
                .build()
                .map_err(incomplete)?,
        )
        .set_attribute_definitions(Some(attributes().map_err(incomplete)?))
        .set_key_schema(Some(keys(key::PK, key::SK).map_err(incomplete)?))
        .set_global_secondary_indexes(Some(indexes().map_err(incomplete)?));
    match request.send().await {
        Ok(_) => {}
        // The process that created the table also enables its TTL.
        Err(error) if error.code() == Some("ResourceInUseException") => {
            return ready(client, table).await;
        }
        Err(error) => return Err(outcome::read_error(&error)),
    }
    ready(client, table).await?;
    let ttl = TimeToLiveSpecification::builder()
        .enabled(true)
        .attribute_name(TTL)
        .build()
        .map_err(incomplete)?;
    let result = client
        .update_time_to_live()
        .table_name(table)
        .time_to_live_specification(ttl)
        .send()
        .await;
    result
        .map(|_| ())
        .map_err(|error| outcome::read_error(&error))
}

async fn ready(client: &Client, table: &str) -> Result<(), StoreError> {
    for _ in 0..ASKS {
        let result = client.describe_table().table_name(table).send().await;
        let output = result.map_err(|error| outcome::read_error(&error))?;
        let status = output.table.and_then(|table| table.table_status);
        if status == Some(TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(StoreError::Unavailable(format!(
        "the table `{table}` did not become active"
    )))
}

fn attributes() -> Result<Vec<AttributeDefinition>, BuildError> {
    let text = ScalarAttributeType::S;
    [
        (key::PK, text.clone()),
        (key::SK, text.clone()),
        (key::LISTS_PK, text.clone()),
        (key::LISTS_SK, text.clone()),
        (key::SWEEP_PK, text),
        (key::SWEEP_SK, ScalarAttributeType::N),
    ]
    .into_iter()
    .map(|(name, kind)| {
        AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(kind)
            .build()
    })
    .collect()
}

fn keys(hash: &str, range: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    [(hash, KeyType::Hash), (range, KeyType::Range)]
        .into_iter()
        .map(|(name, kind)| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
        })
        .collect()
}

fn indexes() -> Result<Vec<GlobalSecondaryIndex>, BuildError> {
    [
        (key::LISTS, QuerySource::Lists),
        (key::SWEEP, QuerySource::Sweep),
    ]
    .into_iter()
    .map(|(name, source)| {
        let (hash, range) = source.keys();
        let attributes = source.projection().iter().map(|name| (*name).to_owned());
        let projection = Projection::builder()
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(attributes.collect()));
        GlobalSecondaryIndex::builder()
            .index_name(name)
            .set_key_schema(Some(keys(hash, range)?))
            .projection(projection.build())
            .build()
    })
    .collect()
}
