//! Reads the stream of a table, from its beginning.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::task_image;
use a2a_lambda::store::queue::TaskImage;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// How long a reader waits after a read without records.
const POLL: Duration = Duration::from_millis(100);
/// How long a reader waits after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// A reader looks for new shards once in this many rounds.
const DISCOVER: u32 = 100;

/// The task commits among the records. A corrupt record is logged and left out.
pub(crate) fn images(records: &[Record]) -> Vec<TaskImage> {
    let mut images = Vec::new();
    for record in records {
        match image(record) {
            Ok(image) => images.extend(image),
            // Skipped: a retry would not help, and would block the shard.
            Err(error) => tracing::error!("failed to read a record of the stream: {error}"),
        }
    }
    images
}

/// The stream of one table, and how far it has been read.
#[derive(Debug)]
pub(crate) struct Stream {
    client: Client,
    table: String,
    arn: Option<String>,
    shards: BTreeMap<String, Shard>,
}

/// How far a shard has been read.
#[derive(Debug, Default)]
struct Shard {
    /// Where the next read begins; `None` behind the last record that is done.
    iterator: Option<String>,
    /// The sequence number of the last record that is done.
    last: Option<String>,
    /// Whether the shard is closed and read to its end.
    is_over: bool,
}

impl Stream {
    pub(crate) fn new(client: Client, table: &str) -> Self {
        Self {
            client,
            table: table.to_owned(),
            arn: None,
            shards: BTreeMap::new(),
        }
    }

    /// Reads all shards for ever. `take` gets the records of one read, oldest first; they come
    /// again if it does not take them.
    pub(crate) async fn follow(mut self, take: impl AsyncFn(&[Record]) -> bool) {
        let mut rounds: u32 = 0;
        loop {
            if rounds.is_multiple_of(DISCOVER)
                && let Err(error) = self.discover().await
            {
                tracing::warn!("{error}");
                sleep(PAUSE).await;
                continue;
            }
            rounds = rounds.wrapping_add(1);
            let mut idle = true;
            let (client, arn) = (&self.client, self.arn.as_deref());
            for (id, shard) in self.shards.iter_mut().filter(|(_, shard)| !shard.is_over) {
                match shard.read(client, arn, id, &take).await {
                    Ok(is_empty) => idle &= is_empty,
                    Err(error) => {
                        tracing::warn!("{error}");
                        sleep(PAUSE).await;
                    }
                }
            }
            if idle {
                sleep(POLL).await;
            }
        }
    }

    /// Finds the stream and its new shards.
    ///
    /// # Errors
    /// [`StoreError`] when the service fails, or the table has no stream.
    async fn discover(&mut self) -> Result<(), StoreError> {
        let arn = self.arn().await?;
        let mut from = None;
        loop {
            let page = self
                .client
                .describe_stream()
                .stream_arn(&arn)
                .set_exclusive_start_shard_id(from)
                .send()
                .await
                .map_err(|error| stream_error(&error))?;
            let stream = page.stream_description;
            for shard in stream.iter().flat_map(|stream| stream.shards()) {
                if let Some(id) = shard.shard_id() {
                    self.shards.entry(id.to_owned()).or_default();
                }
            }
            from = stream.and_then(|stream| stream.last_evaluated_shard_id);
            if from.is_none() {
                return Ok(());
            }
        }
    }

    async fn arn(&mut self) -> Result<String, StoreError> {
        if let Some(arn) = &self.arn {
            return Ok(arn.clone());
        }
        let response = self.client.list_streams().table_name(&self.table).send();
        let response = response.await.map_err(|error| stream_error(&error))?;
        // After a table was deleted and created again, its old streams are listed too.
        let newest = response
            .streams()
            .iter()
            .max_by(|a, b| a.stream_label().cmp(&b.stream_label()));
        let arn = newest.and_then(|stream| stream.stream_arn());
        let arn = arn.ok_or_else(|| {
            StoreError::Refused(format!("the table `{}` has no stream", self.table))
        })?;
        self.arn = Some(arn.to_owned());
        Ok(arn.to_owned())
    }
}

impl Shard {
    /// Reads the next records, and hands them to `take`. Whether there were none.
    ///
    /// # Errors
    /// [`StoreError`] when the service fails, or the records are not taken.
    async fn read(
        &mut self,
        client: &Client,
        arn: Option<&str>,
        id: &str,
        take: &impl AsyncFn(&[Record]) -> bool,
    ) -> Result<bool, StoreError> {
        // An iterator expires after minutes. After a failure the next read gets a new one.
        let iterator = match self.iterator.take() {
            Some(iterator) => iterator,
            None => self.first_iterator(client, arn, id).await?,
        };
        let request = client.get_records().shard_iterator(iterator).send();
        let output = request.await.map_err(|error| stream_error(&error))?;
        let batch = output.records.unwrap_or_default();
        if !take(&batch).await {
            let text = "the records of the stream are not taken".to_owned();
            return Err(StoreError::Unavailable(text));
        }
        self.is_over = output.next_shard_iterator.is_none();
        self.iterator = output.next_shard_iterator;
        let last = batch.last().and_then(|record| record.dynamodb());
        if let Some(number) = last.and_then(|change| change.sequence_number()) {
            self.last = Some(number.to_owned());
        }
        Ok(batch.is_empty())
    }

    /// An iterator behind the last record that is done, or at the beginning.
    async fn first_iterator(
        &self,
        client: &Client,
        arn: Option<&str>,
        id: &str,
    ) -> Result<String, StoreError> {
        let kind = match self.last {
            Some(_) => ShardIteratorType::AfterSequenceNumber,
            None => ShardIteratorType::TrimHorizon,
        };
        let response = client
            .get_shard_iterator()
            .set_stream_arn(arn.map(str::to_owned))
            .shard_id(id)
            .shard_iterator_type(kind)
            .set_sequence_number(self.last.clone())
            .send()
            .await
            .map_err(|error| stream_error(&error))?;
        response.shard_iterator.ok_or_else(|| {
            StoreError::Unavailable(format!("the shard `{id}` of the stream has no iterator"))
        })
    }
}

/// The task commit of a record; `None` if the record is about something else.
fn image(record: &Record) -> Result<Option<TaskImage>, StoreError> {
    let Some(image) = record.dynamodb().and_then(|change| change.new_image()) else {
        return Ok(None);
    };
    task_image(&|name| plain(image.get(name)?))
}

fn plain(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        _ => None,
    }
}

fn stream_error<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreError {
    let code = error.code().unwrap_or("no answer");
    StoreError::Unavailable(format!("failed to read the stream: {code}"))
}
