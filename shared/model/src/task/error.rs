//! The public reasons for which a request is refused.
//!
//! The text of each variant is safe for clients; private causes stay elsewhere.
//! `a2a-lambda-wire` maps each variant to its code, HTTP status and reason in each
//! generation.

use super::TaskState;

/// Why a request is refused. Clients see this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum A2aError {
    /// No such task for this caller; a foreign task looks the same.
    #[error("task not found")]
    TaskNotFound,
    /// The request names another tenant than the caller's. It looks as if nothing were there.
    #[error("not found: leave out `tenant`, or name the tenant of the credentials")]
    ForeignTenant,
    /// The task is already terminal.
    #[error("the task is in a terminal state ({state}) and cannot be canceled")]
    TaskNotCancelable {
        /// The terminal state.
        state: TaskState,
    },
    /// Push notifications are off.
    #[error("push notifications are not supported")]
    PushNotSupported,
    /// The operation is known, but not available here or now.
    #[error("{why}")]
    UnsupportedOperation {
        /// A fixed text.
        why: &'static str,
    },
    /// A message to a terminal task.
    #[error("the task is in a terminal state ({state}) and accepts no message")]
    TaskFinished {
        /// The terminal state.
        state: TaskState,
    },
    /// A message to a task whose turn runs or waits to run.
    #[error("the task is busy: it accepts a message when it asks for one")]
    TaskBusy,
    /// A part or an accepted output mode does not fit the skill.
    #[error("content type not supported: {detail}")]
    ContentTypeNotSupported {
        /// Which type, and what is allowed.
        detail: String,
    },
    /// The request's `Content-Type` or `Content-Encoding` header.
    #[error("the request body must be `application/json` or `application/a2a+json`")]
    UnsupportedMediaType,
    /// The agent's response breaks the protocol.
    #[error("the agent gave an invalid response")]
    InvalidAgentResponse,
    /// There is no extended card.
    #[error("no extended agent card is configured")]
    ExtendedCardNotConfigured,
    /// A required extension that the client does not support.
    #[error("the extension `{uri}` must be supported by the client")]
    ExtensionSupportRequired {
        /// The extension.
        uri: String,
    },
    /// A protocol version that this operation does not support.
    #[error("protocol version `{version}` is not supported for this operation: {versions}")]
    VersionNotSupported {
        /// The version the client requested.
        version: String,
        /// The supported versions, as a sentence.
        versions: &'static str,
    },
    /// The body is not JSON.
    #[error("the request is not valid JSON")]
    Parse,
    /// A text of the body has half of a character.
    #[error(
        "a text of the request ends inside a character: half of a surrogate pair, such as `\\ud83d` alone"
    )]
    LoneSurrogate,
    /// The body is JSON, but not a request.
    #[error("invalid request: {why}")]
    InvalidRequest {
        /// What is wrong.
        why: String,
    },
    /// Unknown method or path.
    #[error("method not found")]
    MethodNotFound,
    /// An invalid field in the parameters: the first that is found.
    #[error("invalid parameters: `{field}`: {description}")]
    InvalidParams {
        /// Path of the field, for example `message.parts[0].text`.
        field: String,
        /// What is wrong, and what is allowed.
        description: String,
    },
    /// An internal failure of this program.
    #[error("internal error")]
    Internal,
    /// The body is too large.
    #[error("the request body is larger than {limit} bytes: send a large file as an upload")]
    PayloadTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Too many requests.
    #[error("rate limit exceeded")]
    RateLimited {
        /// Whole seconds until a request can succeed.
        retry_after: u64,
    },
    /// No valid credentials.
    #[error("authentication required")]
    Unauthenticated,
    /// The credentials are valid but lack the permission.
    #[error("permission denied")]
    Forbidden,
    /// The context has expired.
    #[error("the context has expired")]
    ContextExpired,
    /// The state of a thread or task would exceed its limit.
    #[error("the state would be {current} bytes; {limit} are allowed")]
    StateTooLarge {
        /// Bytes it would have.
        current: u64,
        /// Bytes it may have.
        limit: u64,
    },
    /// An idempotency key was used again with other content.
    #[error("the idempotency key was used with another content")]
    IdempotencyKeyReused,
    /// The store does not answer; the same request may succeed later.
    #[error("temporarily unavailable")]
    Unavailable {
        /// Whole seconds after which to try again.
        retry_after: u64,
    },
    /// What the request needs was stored by a release whose form this program does not read.
    #[error("what is stored for this request is of another release of the agent")]
    UnknownStoredForm,
    /// A context is deleted, but the time of the call ended before everything stored
    /// for it was removed.
    #[error("the conversation is deleted; call again to remove the rest of what is stored of it")]
    Unfinished {
        /// Whole seconds after which to call again.
        retry_after: u64,
    },
}

impl A2aError {
    /// Invalid parameters: `field` is wrong.
    #[must_use]
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::InvalidParams {
            field: field.into(),
            description: description.into(),
        }
    }
}
