//! The durations and sizes that the engine uses.

use super::limit_policy::LimitPolicy;
use super::secret_keys::SecretKeys;
use crate::outbound::{AddressPolicy, UrlError};
use std::time::Duration;

/// Durations and sizes that the engine uses; `settings` reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How long a task is kept, counted from its last rest.
    pub task_ttl: Duration,
    /// How long a thread lives after its last activity.
    pub thread_ttl: Duration,
    /// How long the state of a thread is kept after its last activity.
    pub state_ttl: Duration,
    /// How long the tombstone of an expired client-made context id is kept.
    pub thread_tombstone: Duration,
    /// How long after its last heartbeat a running turn cannot be taken over.
    pub lease: Duration,
    /// How long a blocking call may wait for its turn.
    pub blocking_budget: Duration,
    /// How many attempts a turn has before its task fails. A run that an outage ended is
    /// no attempt.
    pub max_attempts: u32,
    /// How long a turn may take without stored progress.
    pub task_run_max: Duration,
    /// How often the turns of a task may be handed over together.
    pub task_hand_overs_max: u32,
    /// How long the first write of a short send may wait while the skill runs.
    pub deferral: Duration,
    /// How long an event may wait for others before its commit.
    pub flush_interval: Duration,
    /// How long a stream may stay open that follows a turn of another invocation.
    pub stream_max_age: Duration,
    /// Parts above this many bytes are kept in the blob store.
    pub inline_max: usize,
    /// The most bytes of a response; a file that does not fit is returned as a URL.
    pub response_max: usize,
    /// The most bytes of an uploaded file.
    pub upload_max: usize,
    /// The most bytes that slot, steps and saved data of a task have together, and the
    /// most bytes of the thread state of a context.
    pub state_max_bytes: usize,
    /// A list counts at most this many tasks for its total.
    pub list_count_max: usize,
    /// Whether the message id is the idempotency key when the client gives none.
    pub idempotent_message_id: bool,
    /// Which addresses requests to URLs of clients may reach.
    pub reach: AddressPolicy,
    /// Whether the operator may allow webhooks in private networks: the program is no deployed
    /// function.
    pub may_reach_private: bool,
    /// What the callers of one tenant may use.
    pub limits: LimitPolicy,
    /// Authenticate page tokens, and seal secrets at rest.
    pub secrets: SecretKeys,
}

impl Policy {
    /// The sentence for a webhook that is refused. It names the way out if there is one.
    pub(crate) fn why_refused(&self, fault: UrlError) -> String {
        let is_private = matches!(fault, UrlError::Scheme | UrlError::NotPublic);
        match is_private && self.may_reach_private {
            true => format!("{fault}, unless the agent runs with `A2A_PUSH_ALLOW_PRIVATE=on`"),
            false => fault.to_string(),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            task_ttl: Duration::from_secs(30 * 24 * 3600),
            thread_ttl: Duration::from_secs(24 * 3600),
            state_ttl: Duration::from_secs(3600),
            thread_tombstone: Duration::from_secs(7 * 24 * 3600),
            lease: Duration::from_secs(60),
            blocking_budget: Duration::from_secs(25),
            max_attempts: 5,
            task_run_max: Duration::from_secs(24 * 3600),
            task_hand_overs_max: 1000,
            deferral: Duration::from_millis(250),
            flush_interval: Duration::from_millis(275),
            stream_max_age: Duration::from_secs(300),
            inline_max: 32 * 1024,
            response_max: 4_500_000,
            upload_max: 100 * 1024 * 1024,
            state_max_bytes: 1024 * 1024,
            list_count_max: 1000,
            reach: AddressPolicy::Public,
            may_reach_private: false,
            idempotent_message_id: false,
            limits: LimitPolicy::default(),
            secrets: SecretKeys::default(),
        }
    }
}
