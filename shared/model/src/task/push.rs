//! Push configs: what a client registers, and what the store keeps of it.
//!
//! Token and credentials are write-only: they arrive as [`Secret`], are stored as
//! [`Sealed`], and appear in no response and no log.

use super::{Generation, Owner, PushId, TaskId, Timestamp, WriteId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The most push configs one task can have.
pub const MAX_PUSH_CONFIGS: usize = 10;
/// The longest URL of a webhook in bytes.
pub const MAX_PUSH_URL: usize = 2048;
/// The longest token in bytes.
pub const MAX_PUSH_TOKEN: usize = 256;
/// The longest authentication scheme in bytes.
pub const MAX_PUSH_SCHEME: usize = 64;
/// The longest credentials in bytes.
pub const MAX_PUSH_CREDENTIALS: usize = 2048;

/// A text that no log and no response shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text that a client sent.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for sealing it and for the header it belongs in.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// An encrypted and authenticated text of printable characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed(String);

impl Sealed {
    /// A text that was sealed, or read from a store.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message that stays out of the history: an answer that may hold credentials, or the input of a
/// skill that keeps none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedAnswer {
    /// The answer.
    pub content: Sealed,
    /// A keyed hash of the answer, which recognises it when it is sent again.
    pub fingerprint: String,
}

/// A push config as a client registers it, alone or in a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOffer {
    /// Its path in the request, for the field names of an error; empty if its members
    /// are the parameters themselves.
    pub at: String,
    /// Its id; `None` if the server makes one.
    pub id: Option<PushId>,
    /// The webhook's URL.
    pub url: String,
    /// The token that each delivery sends back.
    pub token: Option<Secret>,
    /// The authentication schemes of the deliveries; the first one is used.
    pub schemes: Vec<String>,
    /// The credentials for that scheme.
    pub credentials: Option<Secret>,
    /// The generation it was registered in; deliveries use its wire format.
    pub generation: Generation,
    /// Whether deliveries are signed under the token, which they then do not contain.
    pub signs: bool,
}

impl PushOffer {
    /// The path of the member `name` in the request.
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        if self.at.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.at)
        }
    }
}

/// A request to register a push config for an existing task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePush {
    /// The id of the task.
    pub task: TaskId,
    /// The push config.
    pub offer: PushOffer,
}

/// A request to read or delete a push config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushQuery {
    /// The id of the task.
    pub task: TaskId,
    /// The id of the config; `None`: the task's oldest (A2A 0.3 makes it optional).
    pub id: Option<PushId>,
}

/// A request to list push configs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushListQuery {
    /// The id of the task.
    pub task: TaskId,
    /// At most this many; `None` for all.
    pub page_size: Option<usize>,
    /// The token of the page.
    pub page_token: Option<String>,
}

/// A push config as responses show it: without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// The task.
    pub task: TaskId,
    /// Its id.
    pub id: PushId,
    /// The webhook's URL.
    pub url: String,
    /// The authentication schemes of the deliveries.
    pub schemes: Vec<String>,
}

/// A page of the push configs of a task, ordered by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushPage {
    /// The configurations.
    pub configs: Vec<PushConfig>,
    /// Where the next page starts; empty at the end.
    pub next_page_token: String,
}

/// The stored registration of a push config, without the progress of its deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushRegistration {
    /// Its id.
    pub id: PushId,
    /// The generation whose wire format the deliveries use.
    pub generation: Generation,
    /// The webhook's URL.
    pub url: String,
    /// The authentication schemes of the deliveries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<String>,
    /// The token that each delivery sends back, or that signs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Sealed>,
    /// Whether the token signs deliveries, which then do not contain it.
    pub signs: bool,
    /// The credentials for the first scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Sealed>,
    /// The trace of the call that registered it (W3C Trace Context `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
}

/// A stored push config of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushRecord {
    /// The owner of the task.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The incarnation of the task; a config of another incarnation counts as absent.
    pub incarnation: WriteId,
    /// The registration.
    pub registration: PushRegistration,
    /// When it was registered.
    pub created_at: Timestamp,
    /// The progress of its deliveries.
    #[serde(skip)]
    pub delivery: Delivery,
}

/// The progress of the deliveries to a webhook. It is stored apart from the
/// registration, because each delivery writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    /// The number of the last delivered event, or of the last one before the
    /// registration.
    pub cursor: u64,
    /// Failed calls of the webhook since the last successful one, and waits for a host that has
    /// refused others for long.
    pub attempts: u32,
    /// When the webhook may be called again.
    pub retry_at: Timestamp,
    /// How long the last successful call took.
    pub took: Duration,
    /// The lease of the worker that delivers.
    pub lease: Option<PushLease>,
}

/// The exclusive right to call a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushLease {
    /// The id of the holder, fresh for each lease.
    pub holder: WriteId,
    /// When the lease expires.
    pub until: Timestamp,
}

impl Delivery {
    /// No delivery yet; the events up to number `cursor` are not delivered.
    #[must_use]
    pub fn after(cursor: u64) -> Self {
        Self {
            cursor,
            ..Self::default()
        }
    }

    /// Whether a worker holds the lease, or the webhook must not be called yet.
    #[must_use]
    pub fn is_busy(&self, now: Timestamp) -> bool {
        let is_live = |lease: &PushLease| lease.until > now;
        self.retry_at > now || self.lease.as_ref().is_some_and(is_live)
    }
}

impl PushRecord {
    /// The config as responses show it.
    #[must_use]
    pub fn config(&self) -> PushConfig {
        PushConfig {
            task: self.task.clone(),
            id: self.registration.id.clone(),
            url: self.registration.url.clone(),
            schemes: self.registration.schemes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_in_no_debug_output() {
        let offer = PushOffer {
            at: String::new(),
            id: None,
            url: "https://hook.example".to_owned(),
            token: Some(Secret::new("canary-token")),
            schemes: vec!["Bearer".to_owned()],
            credentials: Some(Secret::new("canary-credentials")),
            generation: Generation::V10,
            signs: false,
        };
        let shown = format!("{offer:?}");
        assert!(shown.contains("hook.example"));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
