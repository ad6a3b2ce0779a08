//! Defines what a push delivery contains, how it can fail, and the trait that sends it.

use crate::outbound::{OutboundUrl, UrlError};
use crate::task::{EventId, Frame, Generation, Owner, Secret, TaskId, Timestamp, WriteId};
use crate::telemetry::TraceContext;
use async_trait::async_trait;

/// One push delivery before it is encoded.
#[derive(Debug, Clone)]
pub struct PushDelivery {
    /// The URL of the webhook.
    pub url: OutboundUrl,
    /// The protocol generation that encodes the body.
    pub generation: Generation,
    /// The owner of the task.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The incarnation of the task.
    pub incarnation: WriteId,
    /// The id of the event, unique within its task.
    pub id: EventId,
    /// When this attempt is made.
    pub at: Timestamp,
    /// The scheme of the `Authorization` header.
    pub scheme: Option<String>,
    /// The credentials of the `Authorization` header.
    pub credentials: Option<Secret>,
    /// The token of the push config, sent as `X-A2A-Notification-Token` unless it signs.
    pub token: Option<Secret>,
    /// Whether the delivery is signed under the token, which it then does not contain.
    pub signs: bool,
    /// The trace of the call that registered the push config, in a span of this delivery.
    pub trace: Option<TraceContext>,
    /// The body: an event in 1.0, the task in 0.3 and 0.1.
    pub frame: Frame,
}

/// Why a push delivery failed. Its text does not reach a client.
#[derive(Debug, thiserror::Error)]
pub enum PushDeliveryError {
    /// The webhook answered with a status that is not success.
    #[error("the webhook answered status {0}")]
    Status(u16),
    /// The host of the webhook could not be connected to.
    #[error("no connection to the host of the webhook: {0}")]
    Unconnected(String),
    /// The host refuses other deliveries of the tenant, so the webhook was not called.
    #[error("the host of the webhook refuses other deliveries")]
    Paused,
    /// The webhook did not answer.
    #[error("the webhook did not answer: {0}")]
    NoResponse(String),
    /// The URL may not be called.
    #[error("the webhook may not be called: its URL {0}")]
    Forbidden(#[from] UrlError),
    /// The stored secrets cannot be opened.
    #[error("the secrets of the webhook were sealed under a key that is not known")]
    Sealed,
    /// The secret keys cannot be read.
    #[error("failed to read the secret keys: {0}")]
    NoKeys(String),
}

impl PushDeliveryError {
    /// Whether the host has refused a request or could not be asked.
    pub(super) const fn is_of_host(&self) -> bool {
        match self {
            Self::Status(_) | Self::Unconnected(_) | Self::NoResponse(_) => true,
            Self::Paused | Self::Forbidden(_) | Self::Sealed | Self::NoKeys(_) => false,
        }
    }
}

/// Sends push deliveries.
#[async_trait]
pub trait SendPush: Send + Sync {
    /// Sends one delivery; `Ok` means that the webhook has accepted it.
    ///
    /// # Errors
    /// [`PushDeliveryError`] when the webhook has not accepted it, or may not have.
    async fn post(&self, delivery: &PushDelivery) -> Result<(), PushDeliveryError>;
}
