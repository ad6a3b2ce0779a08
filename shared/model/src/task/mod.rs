//! The types of a task and the rules of its life.
//!
//! Everything here is a value: no I/O, no clock, no async, no AWS type and no name of
//! a wire format. Time ([`Timestamp`]) and ids are arguments.
//!
//! - `caller`: who sends a request
//! - `id`: ids and names: tenant, subject, task, context, skill
//! - `idempotency`: idempotency keys
//! - `metadata_keys`: the names this runtime uses in metadata
//! - `part`, `message`, `artifact`, `event`: the content of a task
//! - `state`: the state machine, one pure function
//! - `step`: the result of a step
//! - `store_key`: the addresses of threads and subjects in a store
//! - `push`: push configs
//! - `record`: the stored task and the one way to change it
//! - `route`: why a task has its skill
//! - `change`: what one commit can change
//! - `used`: the running time and hand-overs of a task
//! - `command`: the requests of a client
//! - `error`: the public reasons of errors, without any wire code

mod artifact;
mod caller;
mod change;
mod child_layout;
mod command;
#[cfg(any(test, feature = "contract-tests"))]
pub mod distinct;
mod error;
mod event;
mod id;
mod idempotency;
mod message;
pub mod metadata_keys;
mod part;
mod push;
mod record;
mod route;
mod state;
mod step;
mod store_key;
mod timestamp;
mod used;

use serde::{Deserialize, Serialize};

pub use artifact::Artifact;
pub use caller::Caller;
pub use change::Change;
pub use child_layout::{Layout, MovedContent, MovedParts, MovedValues, StoredValue};
pub use command::{
    CancelCommand, Context, ContextPage, ContextQuery, Frame, GetQuery, ListQuery, Page,
    SendCommand, SendMode, SendResponse, SubscribeCommand, UploadGrant, UploadOrder,
};
pub use error::A2aError;
pub use event::{
    ArtifactUpdate, Event, EventId, EventIdError, EventMark, LoggedEvent, Status, StatusUpdate,
};
pub use id::{
    BuildId, ContextId, IdError, KeyHash, Owner, PushId, SkillId, Subject, TaskId, TenantId,
    WriteId,
};
pub use idempotency::IdempotencyKey;
pub use message::{Message, Role};
pub use part::{Blob, Part, PartContent, media_types_meet};
pub use push::{
    CreatePush, Delivery, MAX_PUSH_CONFIGS, MAX_PUSH_CREDENTIALS, MAX_PUSH_SCHEME, MAX_PUSH_TOKEN,
    MAX_PUSH_URL, PushConfig, PushLease, PushListQuery, PushOffer, PushPage, PushQuery, PushRecord,
    PushRegistration, Sealed, SealedAnswer, Secret,
};
pub use record::{
    Base, Consents, Saved, SavedSlot, Task, TaskContent, TaskFields, TaskRecord, Transition,
    TurnRequest,
};
pub(crate) use record::{StatusBody, first_attempt};
pub use route::{InputWriter, SkillRoute};
pub use state::{TaskEvent, TaskState, TransitionError};
pub use step::{
    OutputCounts, PATH_SEPARATOR, SavePlace, SessionRead, SessionReads, StepError, StepOutcome,
    StepResult, StepTries, ThreadOperation, is_below,
};
pub use store_key::{SubjectKey, TaskKey, ThreadKey};
pub use timestamp::Timestamp;
pub use used::{TokenUse, Used};

/// Free-form members of a message, part, artifact or task.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// Whether a stored form leaves the member out.
pub(crate) fn is_default<T: Default + PartialEq>(member: &T) -> bool {
    *member == T::default()
}

/// The protocol generation a caller speaks (protocol versions 0.1, 0.3, 1.0).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub enum Generation {
    /// A2A 0.1: the `tasks/send` family.
    #[serde(rename = "0.1")]
    V01,
    /// A2A 0.3 (and 0.2): `message/send`.
    #[serde(rename = "0.3")]
    V03,
    /// A2A 1.0: `SendMessage`.
    #[default]
    #[serde(rename = "1.0")]
    V10,
}

impl Generation {
    /// The protocol version: `0.1`, `0.3` or `1.0`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V01 => "0.1",
            Self::V03 => "0.3",
            Self::V10 => "1.0",
        }
    }
}
