//! The queues in Amazon SQS: of turns in this module, of push deliveries in [`push`].
//!
//! A message carries ids only. Its message group is the tenant, so that a standard queue
//! shares its receivers fairly between tenants.

pub mod push;

use crate::outcome::{self, incomplete};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::health::HealthCheck;
use a2a_lambda_model::store::queue::{Ack, DELAY_MAX, Receipt, WorkItem, WorkMessage, WorkQueue};
use a2a_lambda_model::task::Owner;
use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use futures::stream::{self, StreamExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Messages of one request: the limit of SQS.
const BATCH: usize = 10;
/// Requests that run at the same time.
const AT_ONCE: usize = 10;
/// The longest time for which SQS can hide a message: 12 hours.
const HIDE_MAX: Duration = Duration::from_secs(12 * 3600);
/// The form of the message body.
const FORM: u32 = 1;

/// The queue under one URL.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// The queue at `url`.
    #[must_use]
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        Self {
            client,
            url: url.into(),
        }
    }

    /// The received message with this receipt handle.
    #[must_use]
    pub fn receipt(&self, handle: impl Into<String>) -> SqsReceipt {
        SqsReceipt {
            queue: self.clone(),
            handle: handle.into(),
            receives: 1,
        }
    }

    /// Sends a message that nobody can read to the dead letters at `url`, with the attribute
    /// `reason`.
    ///
    /// # Errors
    /// [`StoreError`] when that queue does not take it.
    pub async fn send_dead_letter(
        &self,
        url: &str,
        body: &str,
        reason: &str,
    ) -> Result<(), StoreError> {
        let value = MessageAttributeValue::builder().data_type("String");
        let value = value.string_value(reason).build().map_err(corrupt)?;
        let request = self.client.send_message().queue_url(url).message_body(body);
        let result = request.message_attributes("reason", value).send().await;
        result.map(|_| ()).map_err(|error| sqs_error(&error))
    }

    /// Sends `entries` in batches, of which at most `at_once` run at the same time; returns one
    /// flag for each. It is an error only if a batch failed and no message was sent.
    async fn send_all(
        &self,
        entries: Vec<SendMessageBatchRequestEntry>,
        at_once: usize,
    ) -> Result<Vec<bool>, StoreError> {
        let batches: Vec<_> = entries
            .chunks(BATCH)
            .map(|batch| async move { (batch.len(), self.send_batch(batch.to_vec()).await) })
            .collect();
        let mut batches = stream::iter(batches).buffered(at_once);
        let (mut flags, mut error) = (Vec::new(), None);
        while let Some((count, batch)) = batches.next().await {
            match batch {
                Ok(batch) => flags.extend(batch),
                Err(why) => {
                    flags.extend(std::iter::repeat_n(false, count));
                    error = Some(why);
                }
            }
        }
        match error {
            Some(error) if !flags.contains(&true) => Err(error),
            _ => Ok(flags),
        }
    }

    /// Sends at most [`BATCH`] entries with their positions as ids; returns one flag for each.
    async fn send_batch(
        &self,
        entries: Vec<SendMessageBatchRequestEntry>,
    ) -> Result<Vec<bool>, StoreError> {
        let count = entries.len();
        let output = self
            .client
            .send_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(entries))
            .send()
            .await
            .map_err(|error| sqs_error(&error))?;
        // A successful request can still contain messages that failed.
        for entry in output.failed() {
            let code = entry.code();
            tracing::warn!(queue.code = code, "the queue refused a message: {code}");
        }
        let is_sent = |index: usize| {
            let id = index.to_string();
            output.successful().iter().any(|entry| entry.id() == id)
        };
        Ok((0..count).map(is_sent).collect())
    }
}

/// A message of `owner`, with its position in its batch as id; `index` is that among all.
fn entry(
    index: usize,
    owner: &Owner,
    body: String,
    delay: Duration,
) -> Result<SendMessageBatchRequestEntry, StoreError> {
    SendMessageBatchRequestEntry::builder()
        .id((index % BATCH).to_string())
        .message_body(body)
        .message_group_id(owner.tenant.as_str())
        .delay_seconds(whole_seconds(delay.min(DELAY_MAX)))
        .build()
        .map_err(incomplete)
}

#[async_trait]
impl WorkQueue for SqsQueue {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        let messages = messages.iter().enumerate();
        let entries = messages.map(|(index, WorkMessage { item, delay })| {
            entry(index, &item.owner, encode(item), *delay)
        });
        let entries = entries.collect::<Result<_, _>>()?;
        self.send_all(entries, AT_ONCE).await
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let result = request.attribute_names(name.clone()).send().await;
        let output = result.map_err(|error| sqs_error(&error))?;
        let count = output.attributes().and_then(|all| all.get(&name));
        let count = count.and_then(|digits| digits.parse().ok());
        count.ok_or_else(|| corrupt("the queue returned no number of waiting messages"))
    }
}

/// A read of the number of waiting messages.
#[async_trait]
impl HealthCheck for SqsQueue {
    async fn check_health(&self) -> Result<(), StoreError> {
        self.waiting().await.map(|_| ())
    }
}

/// One received message of a queue.
#[derive(Debug, Clone)]
pub struct SqsReceipt {
    queue: SqsQueue,
    handle: String,
    receives: u32,
}

impl SqsReceipt {
    /// The same receipt of a message that has been received `receives` times.
    #[must_use]
    pub const fn with_receives(mut self, receives: u32) -> Self {
        self.receives = receives;
        self
    }
}

#[async_trait]
impl Receipt for SqsReceipt {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        let result = self
            .queue
            .client
            .change_message_visibility()
            .queue_url(&self.queue.url)
            .receipt_handle(&self.handle)
            .visibility_timeout(whole_seconds(time))
            .send()
            .await;
        result.map(|_| ()).map_err(|error| sqs_error(&error))
    }

    async fn postpone(&self, item: &WorkItem, time: Duration) -> Result<Ack, StoreError> {
        let (item, delay) = (item.clone(), time);
        let flags = self.queue.send(&[WorkMessage { item, delay }]).await?;
        // A message that the queue refused waits in place of another one.
        if flags != [true] {
            self.hide(time).await?;
            return Ok(Ack::Keep);
        }
        Ok(Ack::Delete)
    }

    fn receives(&self) -> u32 {
        self.receives
    }
}

/// Rounds up to whole seconds, so that a short time never shows the message immediately.
fn whole_seconds(time: Duration) -> i32 {
    let time = time.min(HIDE_MAX);
    let extra = u64::from(time.subsec_nanos() > 0);
    i32::try_from(time.as_secs() + extra).unwrap_or(i32::MAX)
}

/// The body of the message for `item`, with its members.
#[must_use]
pub fn encode(item: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct QueueBody<'a, T> {
        v: u32,
        #[serde(flatten)]
        item: &'a T,
    }
    // Plain values under fixed names can always be encoded as JSON.
    serde_json::to_string(&QueueBody { v: FORM, item }).unwrap_or_default()
}

/// Decodes the body of a message. Ignores members that a later release adds.
///
/// # Errors
/// [`StoreError::Form`] when it has a higher form; [`StoreError::Corrupt`] when nobody can read it.
pub fn decode(body: &str) -> Result<WorkItem, StoreError> {
    let item: WorkItem = read(body)?;
    if item.incarnation.as_str().is_empty() {
        return Err(corrupt("expected a non-empty `incarnation` in the message"));
    }
    Ok(item)
}

/// Reads a body of the form of this program. A higher form may have other members.
fn read<T: DeserializeOwned>(body: &str) -> Result<T, StoreError> {
    #[derive(Deserialize)]
    struct Form {
        v: u32,
    }
    match serde_json::from_str(body).map_err(corrupt)? {
        Form { v: FORM } => serde_json::from_str(body).map_err(corrupt),
        Form { v: 0 } => Err(corrupt("there is no form 0 of messages")),
        Form { v } => Err(StoreError::Form(v)),
    }
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

/// The error of a request that SQS did not carry out.
fn sqs_error<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreError {
    if matches!(error, SdkError::ConstructionFailure(_)) {
        return StoreError::Refused("failed to build the request to SQS".to_owned());
    }
    let is_reply = matches!(error, SdkError::ServiceError(_));
    let is_throttle = |code: &str| code.contains("Throttl") || code.contains("OverLimit");
    // 408 is a timeout; 429 and the throttling codes pass. The other 4xx fail again
    // when repeated.
    outcome::service_error("SQS", error, |status, code| {
        is_reply && !matches!(status, 408 | 429) && !is_throttle(code)
    })
}

#[cfg(test)]
mod tests;
