//! Follows the stream of a table from its beginning.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::task_image;
use a2a_lambda::store::queue::TaskImage;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};
use std::collections::BTreeMap;

/// The place in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// The records from this iterator on are unread.
    At(String),
    /// The records after this number are unread; `None`: all are.
    After(Option<String>),
    /// The shard is closed, and read to its end.
    End,
}

/// What was read at once, and where it came from.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The commits of tasks, oldest first.
    pub(crate) images: Vec<TaskImage>,
    shard: String,
    /// The number of the last record of it.
    last: Option<String>,
    next: Place,
}

impl Batch {
    /// Whether there was nothing new.
    pub(crate) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }
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
    place: Place,
    /// The number of the last record that was dealt with.
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

    /// Looks for the stream and for shards that are new.
    ///
    /// # Errors
    /// [`StoreError`] when the service does not answer, or there is no stream.
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
                        place: Place::After(None),
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
        let found = self.client.list_streams().table_name(&self.table).send();
        let found = found.await.map_err(|error| failed(&error))?;
        // A table that was made again has the streams of its forerunners too.
        let newest = found
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

    /// The names of the shards that may have more.
    pub(crate) fn open(&self) -> Vec<String> {
        let open = self.shards.iter();
        open.filter(|(_, shard)| shard.place != Place::End)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Reads on in one shard. The same records come again until the batch is
    /// [`done`](Self::done).
    ///
    /// # Errors
    /// [`StoreError`] when the service does not answer, or an image is corrupt.
    pub(crate) async fn read(&mut self, id: &str) -> Result<Option<Batch>, StoreError> {
        let Some(iterator) = self.iterator(id).await? else {
            return Ok(None);
        };
        let sent = self.client.get_records().shard_iterator(iterator).send();
        let read = match sent.await {
            Ok(read) => read,
            Err(error) => {
                // An iterator lives for minutes only; the place outlives it.
                if let Some(shard) = self.shards.get_mut(id) {
                    shard.place = Place::After(shard.last.clone());
                }
                return Err(failed(&error));
            }
        };
        let mut images = Vec::new();
        for record in read.records() {
            match image(record) {
                Ok(found) => images.extend(found),
                // It would come again for ever, and hold up what follows.
                Err(error) => tracing::error!("failed to read a record of the stream: {error}"),
            }
        }
        Ok(Some(Batch {
            images,
            last: read.records().last().and_then(number),
            shard: id.to_owned(),
            next: read.next_shard_iterator.map_or(Place::End, Place::At),
        }))
    }

    /// Goes on behind a batch.
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
            Place::At(iterator) => return Ok(Some(iterator.clone())),
            Place::End => return Ok(None),
            Place::After(after) => after.clone(),
        };
        let kind = match after {
            Some(_) => ShardIteratorType::AfterSequenceNumber,
            None => ShardIteratorType::TrimHorizon,
        };
        let found = self
            .client
            .get_shard_iterator()
            .set_stream_arn(self.arn.clone())
            .shard_id(id)
            .shard_iterator_type(kind)
            .set_sequence_number(after)
            .send()
            .await
            .map_err(|error| failed(&error))?;
        Ok(found.shard_iterator)
    }
}

fn number(record: &Record) -> Option<String> {
    record.dynamodb()?.sequence_number().map(str::to_owned)
}

/// The task of a record; `None` if it is of something else.
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
