//! Webhooks: what a client registers, and what is kept of it.
//!
//! Token and credentials are write-only: they come in as [`Secret`], are kept
//! [`Sealed`], and are in no answer and no log.

use super::{Generation, Owner, PushId, TaskId, Timestamp, WriteId};
use std::fmt;
use std::time::Duration;

/// Configurations one task may have.
pub const MAX_PUSH_CONFIGS: usize = 10;
/// Bytes of a webhook's URL.
pub const MAX_PUSH_URL: usize = 2048;
/// Bytes of a token.
pub const MAX_PUSH_TOKEN: usize = 256;
/// Bytes of an authentication scheme.
pub const MAX_PUSH_SCHEME: usize = 64;
/// Bytes of credentials.
pub const MAX_PUSH_CREDENTIALS: usize = 2048;

/// A text that no log and no answer shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that came from a client.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for sealing it and for the header it is meant for.
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

/// An encrypted and authenticated text, in a form of printable characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(String);

impl Sealed {
    /// What was sealed, or read back from a store.
    #[must_use]
    pub fn stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A webhook as a client registers it, alone or inside a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOffer {
    /// Where it stands in the request, for the fields of a refusal; empty: its
    /// members are the parameters themselves.
    pub at: String,
    /// Its id, unless the server gives it one.
    pub id: Option<PushId>,
    /// Where the client wants the events.
    pub url: String,
    /// Comes back with each delivery.
    pub token: Option<Secret>,
    /// How the deliveries prove who they are; the first one is used.
    pub schemes: Vec<String>,
    /// The proof.
    pub credentials: Option<Secret>,
    /// The generation it was registered in, whose words the deliveries use.
    pub generation: Generation,
}

impl PushOffer {
    /// The path of member `name` of it.
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        if self.at.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.at)
        }
    }
}

/// A registration of a webhook for a task that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePush {
    /// Which task.
    pub task: TaskId,
    /// The webhook.
    pub offer: PushOffer,
}

/// Which configuration is read or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushQuery {
    /// Of which task.
    pub task: TaskId,
    /// Which one; `None`: the task's oldest (0.3 lets clients leave it out).
    pub id: Option<PushId>,
}

/// Which configurations are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushListQuery {
    /// Of which task.
    pub task: TaskId,
    /// At most this many; `None`: all.
    pub page_size: Option<usize>,
    /// Where the last page ended.
    pub page_token: Option<String>,
}

/// A configuration as answers show it: without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// The task.
    pub task: TaskId,
    /// Its id.
    pub id: PushId,
    /// Where the events go.
    pub url: String,
    /// How the deliveries prove who they are.
    pub schemes: Vec<String>,
}

/// Configurations of a task, by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushPage {
    /// The configurations.
    pub configs: Vec<PushConfig>,
    /// Where the next page starts; empty at the end.
    pub next_page_token: String,
}

/// What is kept of a webhook beside where its deliveries stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its id.
    pub id: PushId,
    /// The generation whose words the deliveries use.
    pub generation: Generation,
    /// Where the events go.
    pub url: String,
    /// How the deliveries prove who they are.
    pub schemes: Vec<String>,
    /// Comes back with each delivery.
    pub token: Option<Sealed>,
    /// The proof.
    pub credentials: Option<Sealed>,
}

/// A stored webhook of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRecord {
    /// Whose the task is.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// Which task under this id: one of another incarnation is not there.
    pub incarnation: WriteId,
    /// The webhook.
    pub listener: Listener,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When the store may clean it up.
    pub clean_at: Timestamp,
    /// How far its deliveries are.
    pub delivery: Delivery,
}

/// Where the deliveries of a webhook stand. It is kept apart from what the
/// client registered: each delivery writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    /// The number of the last event which it has got, or which came before it.
    pub cursor: u64,
    /// Calls of the webhook since the last one that succeeded.
    pub attempts: u32,
    /// Nobody calls the webhook before.
    pub retry_at: Timestamp,
    /// How long the webhook took for the last call that succeeded.
    pub took: Duration,
    /// Who delivers.
    pub lease: Option<PushLease>,
}

/// The right to call a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushLease {
    /// Who has it: a fresh id each time.
    pub holder: WriteId,
    /// Until when.
    pub until: Timestamp,
}

impl Delivery {
    /// Nothing delivered yet; the events up to number `cursor` are not its.
    #[must_use]
    pub fn after(cursor: u64) -> Self {
        Self {
            cursor,
            ..Self::default()
        }
    }

    /// Whether somebody delivers, or nobody may call the webhook yet.
    #[must_use]
    pub fn is_busy(&self, now: Timestamp) -> bool {
        let leased = |lease: &PushLease| lease.until > now;
        self.retry_at > now || self.lease.as_ref().is_some_and(leased)
    }
}

impl PushRecord {
    /// What answers show of it.
    #[must_use]
    pub fn config(&self) -> PushConfig {
        PushConfig {
            task: self.task.clone(),
            id: self.listener.id.clone(),
            url: self.listener.url.clone(),
            schemes: self.listener.schemes.clone(),
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
        };
        let shown = format!("{offer:?}");
        assert!(shown.contains("hook.example"));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
