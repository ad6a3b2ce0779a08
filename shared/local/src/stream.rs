//! Reads the stream of a table, from its beginning.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::task_image;
use a2a_lambda::store::queue::TaskImage;
use async_trait::async_trait;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// How long a reader waits after a read without records.
const POLL: Duration = Duration::from_millis(100);
/// How long a reader waits after a failure.
const REST: Duration = Duration::from_secs(1);
/// A reader looks for new shards once in this many rounds.
const DISCOVER: u32 = 100;

/// The position in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ShardPosition {
    /// The records from this iterator on are not read yet.
    At(String),
    /// The records after this sequence number are not read yet; `None` means all.
    After(Option<String>),
    /// The shard is closed and read to its end.
    End,
}

/// The records of one read.
#[derive(Debug)]
pub(crate) struct Batch {
    /// All of them, oldest first.
    pub(crate) records: Vec<Record>,
    shard: String,
    /// The sequence number of the last record; `None` if there was no record.
    last: Option<String>,
    next: ShardPosition,
}

impl Batch {
    /// Whether there was no new record.
    pub(crate) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The task commits among the records. A corrupt record is logged and left out.
    pub(crate) fn images(&self) -> Vec<TaskImage> {
        let mut images = Vec::new();
        for record in &self.records {
            match image(record) {
                Ok(image) => images.extend(image),
                // Skipped: a retry would not help, and would block the shard.
                Err(error) => tracing::error!("failed to read a record of the stream: {error}"),
            }
        }
        images
    }
}

/// Takes the records of a stream.
#[async_trait]
pub(crate) trait TakeRecords: Send + Sync {
    /// Takes a batch; `false` if it has to be delivered again.
    async fn take(&self, batch: &Batch) -> bool;
}

/// The stream of one table, and how far it has been read.
#[derive(Debug)]
pub(crate) struct Stream {
    client: Client,
    table: String,
    arn: Option<String>,
    shards: BTreeMap<String, Shard>,
}

#[derive(Debug)]
struct Shard {
    place: ShardPosition,
    /// The sequence number of the last record that is done.
    last: Option<String>,
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

    /// Reads all shards for ever. A batch that `records` does not take comes again.
    pub(crate) async fn follow(mut self, records: &dyn TakeRecords) {
        let mut rounds: u32 = 0;
        loop {
            if rounds.is_multiple_of(DISCOVER)
                && let Err(error) = self.discover().await
            {
                tracing::warn!("{error}");
                sleep(REST).await;
                continue;
            }
            rounds = rounds.wrapping_add(1);
            let mut idle = true;
            for shard in self.open() {
                match self.read(&shard).await {
                    Ok(Some(batch)) => {
                        idle &= batch.is_empty();
                        // Without `done`, the next read returns the same records again.
                        if records.take(&batch).await {
                            self.done(batch);
                        } else {
                            sleep(REST).await;
                        }
                    }
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!("{error}");
                        sleep(REST).await;
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
    pub(crate) async fn discover(&mut self) -> Result<(), StoreError> {
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
                .map_err(|error| failed(&error))?;
            let stream = page.stream_description;
            for shard in stream.iter().flat_map(|stream| stream.shards()) {
                if let Some(id) = shard.shard_id() {
                    self.shards.entry(id.to_owned()).or_insert(Shard {
                        place: ShardPosition::After(None),
                        last: None,
                    });
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
        let response = response.await.map_err(|error| failed(&error))?;
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

    /// The ids of the shards that may have more records.
    pub(crate) fn open(&self) -> Vec<String> {
        let open = self.shards.iter();
        open.filter(|(_, shard)| shard.place != ShardPosition::End)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Reads the next records of one shard; `None` if it is unknown or at its end. A read
    /// returns the same records until [`done`](Self::done) is called with the batch.
    ///
    /// # Errors
    /// [`StoreError`] when the service fails.
    pub(crate) async fn read(&mut self, id: &str) -> Result<Option<Batch>, StoreError> {
        let Some(iterator) = self.iterator(id).await? else {
            return Ok(None);
        };
        let request = self.client.get_records().shard_iterator(iterator).send();
        let read = match request.await {
            Ok(read) => read,
            Err(error) => {
                // An iterator expires after minutes: the next read gets a new one after the
                // last record that is done.
                if let Some(shard) = self.shards.get_mut(id) {
                    shard.place = ShardPosition::After(shard.last.clone());
                }
                return Err(failed(&error));
            }
        };
        let records = read.records.unwrap_or_default();
        Ok(Some(Batch {
            last: records.last().and_then(number),
            records,
            shard: id.to_owned(),
            next: read
                .next_shard_iterator
                .map_or(ShardPosition::End, ShardPosition::At),
        }))
    }

    /// Marks a batch as done: the next read continues after it.
    pub(crate) fn done(&mut self, batch: Batch) {
        if let Some(shard) = self.shards.get_mut(&batch.shard) {
            shard.place = batch.next;
            shard.last = batch.last.or_else(|| shard.last.take());
        }
    }

    async fn iterator(&mut self, id: &str) -> Result<Option<String>, StoreError> {
        let Some(shard) = self.shards.get_mut(id) else {
            return Ok(None);
        };
        let after = match &shard.place {
            ShardPosition::At(iterator) => return Ok(Some(iterator.clone())),
            ShardPosition::End => return Ok(None),
            ShardPosition::After(after) => after.clone(),
        };
        let kind = match after {
            Some(_) => ShardIteratorType::AfterSequenceNumber,
            None => ShardIteratorType::TrimHorizon,
        };
        let response = self
            .client
            .get_shard_iterator()
            .set_stream_arn(self.arn.clone())
            .shard_id(id)
            .shard_iterator_type(kind)
            .set_sequence_number(after)
            .send()
            .await
            .map_err(|error| failed(&error))?;
        Ok(response.shard_iterator)
    }
}

fn number(record: &Record) -> Option<String> {
    record.dynamodb()?.sequence_number().map(str::to_owned)
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

fn failed<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreError {
    let code = error.code().unwrap_or("no answer");
    StoreError::Unavailable(format!("failed to read the stream: {code}"))
}
