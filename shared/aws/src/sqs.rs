//! The queues in Amazon SQS: of turns in this module, of push deliveries in [`push`].
//!
//! A message carries ids only. Its message group is the tenant, so that a standard queue
//! shares its receivers fairly between tenants.

pub mod push;

use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::health::HealthCheck;
use a2a_lambda_model::store::queue::{Ack, DELAY_MAX, Receipt, WorkItem, WorkMessage, WorkQueue};
use a2a_lambda_model::task::{Owner, Subject, TaskId, TenantId, WriteId};
use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry,
};
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
        result.map(|_| ()).map_err(|error| failed(&error))
    }

    /// Sends at most [`BATCH`] messages; returns one flag for each.
    async fn send_batch(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        let entries: Result<Vec<_>, _> = messages
            .iter()
            .enumerate()
            .map(|(index, WorkMessage { item, delay })| {
                SendMessageBatchRequestEntry::builder()
                    .id(index.to_string())
                    .message_body(encode(item))
                    .message_group_id(item.owner.tenant.as_str())
                    .delay_seconds(whole_seconds((*delay).min(DELAY_MAX)))
                    .build()
            })
            .collect();
        self.send_entries(entries.map_err(|error| StoreError::Refused(error.to_string()))?)
            .await
    }

    /// Sends entries with their positions as ids; returns one flag for each.
    async fn send_entries(
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
            .map_err(|error| failed(&error))?;
        // A successful request can still contain messages that failed.
        for entry in output.failed() {
            report(entry);
        }
        let is_sent = |index: usize| {
            let id = index.to_string();
            output.successful().iter().any(|entry| entry.id() == id)
        };
        Ok((0..count).map(is_sent).collect())
    }
}

fn report(entry: &BatchResultErrorEntry) {
    tracing::warn!(
        queue.code = entry.code(),
        "the queue refused a message: {}",
        entry.code()
    );
}

#[async_trait]
impl WorkQueue for SqsQueue {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        let batches: Vec<_> = messages
            .chunks(BATCH)
            .map(|batch| async move { (batch.len(), self.send_batch(batch).await) })
            .collect();
        let mut batches = stream::iter(batches).buffered(AT_ONCE);
        let mut result = BatchResult::default();
        while let Some((count, batch)) = batches.next().await {
            result.note(count, batch);
        }
        result.flags()
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let result = request.attribute_names(name.clone()).send().await;
        let output = result.map_err(|error| failed(&error))?;
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

/// The results of several batches.
#[derive(Default)]
struct BatchResult {
    flags: Vec<bool>,
    error: Option<StoreError>,
}

impl BatchResult {
    fn note(&mut self, count: usize, batch: Result<Vec<bool>, StoreError>) {
        match batch {
            Ok(flags) => self.flags.extend(flags),
            Err(error) => {
                self.flags.extend(std::iter::repeat_n(false, count));
                self.error = Some(error);
            }
        }
    }

    fn flags(self) -> Result<Vec<bool>, StoreError> {
        match self.error {
            Some(error) if !self.flags.contains(&true) => Err(error),
            _ => Ok(self.flags),
        }
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
    pub const fn received(mut self, receives: u32) -> Self {
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
        result.map(|_| ()).map_err(|error| failed(&error))
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

/// The body of a message.
#[derive(Serialize, Deserialize)]
struct WorkBody {
    v: u32,
    tenant: String,
    subject: String,
    task: String,
    incarnation: String,
    turn: u32,
    dispatch: u64,
}

/// The body of the message for `item`.
#[must_use]
pub fn encode(item: &WorkItem) -> String {
    let body = WorkBody {
        v: FORM,
        tenant: item.owner.tenant.to_string(),
        subject: item.owner.subject.to_string(),
        task: item.task.to_string(),
        incarnation: item.incarnation.to_string(),
        turn: item.turn,
        dispatch: item.dispatch,
    };
    // Plain values under fixed names can always be encoded as JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

/// Decodes the body of a message. Ignores members that a later release adds.
///
/// # Errors
/// [`StoreError::Form`] when it has a higher form; [`StoreError::Corrupt`] when nobody can read it.
pub fn decode(body: &str) -> Result<WorkItem, StoreError> {
    let body: WorkBody = read(body)?;
    if body.incarnation.is_empty() {
        return Err(corrupt("expected a non-empty `incarnation` in the message"));
    }
    Ok(WorkItem {
        owner: Owner {
            tenant: TenantId::parse(body.tenant).map_err(corrupt)?,
            subject: Subject::parse(body.subject).map_err(corrupt)?,
        },
        task: TaskId::parse(body.task).map_err(corrupt)?,
        incarnation: WriteId::stored(body.incarnation),
        turn: body.turn,
        dispatch: body.dispatch,
    })
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
fn failed<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreError {
    let status = error
        .raw_response()
        .map(|response| response.status().as_u16());
    let code = error.code().unwrap_or("no code");
    match (error, status) {
        (SdkError::ConstructionFailure(_), _) => {
            StoreError::Refused("failed to build the request to SQS".to_owned())
        }
        // 408 is a timeout; 429 and the throttling codes pass. The other 4xx fail again
        // when repeated.
        (SdkError::ServiceError(_), Some(status @ 400..=499))
            if !matches!(status, 408 | 429) && !is_throttle(code) =>
        {
            StoreError::Refused(format!("SQS answered {status}: {code}"))
        }
        (_, Some(status)) => StoreError::Unavailable(format!("SQS answered {status}: {code}")),
        (_, None) => StoreError::Unavailable("SQS did not answer".to_owned()),
    }
}

fn is_throttle(code: &str) -> bool {
    code.contains("Throttl") || code.contains("OverLimit")
}

#[cfg(test)]
mod tests;
