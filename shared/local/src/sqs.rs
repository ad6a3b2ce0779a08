//! Answers HTTP requests to the embedded SQS: the calls that the functions make.

use crate::aws_json::{RequestError, SignedRequest, error_body, response};
use crate::queue::{LocalQueue, TextMessage};
use a2a_lambda::store::aws::EmulatorKeys;
use a2a_lambda::store::queue::Receipt as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the header `X-Amz-Target` has before the name of the operation.
const SERVICE: &str = "AmazonSQS.";

/// The HTTP endpoint of queues. It answers programs on this machine that have the keys.
#[derive(Clone)]
pub(crate) struct QueueDoor {
    queues: Arc<BTreeMap<String, LocalQueue<TextMessage>>>,
    keys: Arc<EmulatorKeys>,
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
enum QueueError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the specified queue does not exist")]
    NoQueue,
    #[error("the receipt handle is not valid any more")]
    NoReceipt,
    #[error("the request is not valid: {0}")]
    Invalid(#[from] serde_json::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendBatch {
    queue_url: String,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    id: String,
    message_body: String,
    #[serde(default)]
    message_group_id: String,
    #[serde(default)]
    delay_seconds: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeVisibility {
    queue_url: String,
    receipt_handle: String,
    visibility_timeout: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetAttributes {
    queue_url: String,
}

impl QueueDoor {
    /// An endpoint of these queues. The URL of a queue ends with `/` and its name.
    pub(crate) fn new(
        queues: BTreeMap<String, LocalQueue<TextMessage>>,
        keys: Arc<EmulatorKeys>,
    ) -> Self {
        Self {
            queues: Arc::new(queues),
            keys,
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self.call(request).await {
            Ok(body) => response(StatusCode::OK, Bytes::from(body.to_string())),
            Err(error) => {
                let (status, body) = error.answer();
                response(status, body)
            }
        }
    }

    async fn call(&self, request: Request<Incoming>) -> Result<Value, QueueError> {
        let request = SignedRequest::read(request, &self.keys).await?;
        let operation = request.target.strip_prefix(SERVICE);
        match operation.unwrap_or_default() {
            "SendMessageBatch" => self.send(typed(&request.body)?),
            "ChangeMessageVisibility" => self.hide(typed(&request.body)?).await,
            "GetQueueAttributes" => {
                let asked: GetAttributes = typed(&request.body)?;
                let count = self.queue(&asked.queue_url)?.visible().to_string();
                Ok(json!({"Attributes": {"ApproximateNumberOfMessages": count}}))
            }
            _ => Err(RequestError::Call.into()),
        }
    }

    fn queue(&self, url: &str) -> Result<&LocalQueue<TextMessage>, QueueError> {
        let name = url.rsplit('/').next().unwrap_or_default();
        self.queues.get(name).ok_or(QueueError::NoQueue)
    }

    fn send(&self, batch: SendBatch) -> Result<Value, QueueError> {
        let queue = self.queue(&batch.queue_url)?;
        let mut sent = Vec::new();
        for entry in batch.entries {
            let message = TextMessage {
                group: entry.message_group_id,
                body: entry.message_body,
            };
            queue.put(&[message], Duration::from_secs(entry.delay_seconds.into()));
            // The AWS SDK for Rust does not compare the digest of the body.
            sent.push(json!({"Id": entry.id, "MessageId": entry.id, "MD5OfMessageBody": ""}));
        }
        Ok(json!({"Successful": sent, "Failed": []}))
    }

    async fn hide(&self, change: ChangeVisibility) -> Result<Value, QueueError> {
        let queue = self.queue(&change.queue_url)?;
        let receipt = queue.receipt(&change.receipt_handle);
        let receipt = receipt.ok_or(QueueError::NoReceipt)?;
        let time = Duration::from_secs(change.visibility_timeout.into());
        receipt
            .hide(time)
            .await
            .map_err(|_| QueueError::NoReceipt)?;
        Ok(json!({}))
    }
}

fn typed<T: DeserializeOwned>(body: &[u8]) -> Result<T, QueueError> {
    Ok(serde_json::from_slice(body)?)
}

impl QueueError {
    /// Status and body, in the form of the errors of SQS.
    fn answer(&self) -> (StatusCode, Bytes) {
        let name = match self {
            Self::Request(error) => return error.answer(),
            Self::NoQueue => "QueueDoesNotExist",
            Self::NoReceipt => "ReceiptHandleIsInvalid",
            Self::Invalid(_) => "SerializationException",
        };
        (StatusCode::BAD_REQUEST, error_body(name, &self.to_string()))
    }
}
