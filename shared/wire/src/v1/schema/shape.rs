//! The known members of each request and object of 1.0, as tables.

use a2a_lambda_model::task::{MAX_PUSH_CREDENTIALS, MAX_PUSH_TOKEN, MAX_PUSH_URL};

/// The type that a member must have.
pub(super) enum MemberKind {
    /// Text that is not empty; empty text counts as absent, as in proto3.
    Text,
    /// Text that may be empty.
    Content,
    /// Bytes in base64.
    Raw,
    /// Any JSON value, `null` included.
    Any,
    /// An object with any members.
    Free,
    /// A list of strings.
    Texts,
    /// `true` or `false`.
    Switch,
    /// A whole number of at least 0, clamped to [`MAX_HISTORY`](crate::params::MAX_HISTORY).
    History,
    /// A whole number from 1 to 100.
    PageSize,
    /// An RFC 3339 time.
    Time,
    /// The name of a task state.
    State,
    /// The role of a client's message.
    UserRole,
    /// The id of a task.
    TaskId,
    /// The id of a context.
    ContextId,
    /// The id of a push config.
    PushId,
    /// Printable ASCII characters, at most this many.
    Printable(usize),
    /// The name of an HTTP authentication scheme.
    Scheme,
    /// An object.
    Object(&'static Shape),
    /// The parts of a message.
    Parts,
}

/// A known member of an object.
pub(super) struct Member {
    pub(super) name: &'static str,
    /// A second name that clients use.
    pub(super) alias: Option<&'static str>,
    pub(super) kind: MemberKind,
    pub(super) required: bool,
}

const fn optional(name: &'static str, kind: MemberKind) -> Member {
    Member {
        name,
        alias: None,
        kind,
        required: false,
    }
}

const fn required(name: &'static str, kind: MemberKind) -> Member {
    Member {
        required: true,
        ..optional(name, kind)
    }
}

/// The known members of an object.
pub(in crate::v1) struct Shape(pub(super) &'static [Member]);

// A2A 1.0 §4.1.6: the members of a part.
pub(super) static PART: Shape = Shape(&[
    optional("text", MemberKind::Content),
    optional("raw", MemberKind::Raw),
    optional("url", MemberKind::Text),
    optional("data", MemberKind::Any),
    optional("filename", MemberKind::Text),
    optional("mediaType", MemberKind::Text),
    optional("metadata", MemberKind::Free),
]);

// A2A 1.0 §4.1.4: the members of a message.
static MESSAGE: Shape = Shape(&[
    required("messageId", MemberKind::Text),
    optional("contextId", MemberKind::ContextId),
    optional("taskId", MemberKind::TaskId),
    required("role", MemberKind::UserRole),
    required("parts", MemberKind::Parts),
    optional("metadata", MemberKind::Free),
    optional("extensions", MemberKind::Texts),
    optional("referenceTaskIds", MemberKind::Texts),
]);

// A2A 1.0 §4.3.2: the authentication of a push config.
static AUTHENTICATION: Shape = Shape(&[
    required("scheme", MemberKind::Scheme),
    optional("credentials", MemberKind::Printable(MAX_PUSH_CREDENTIALS)),
]);

/// The members of a `TaskPushNotificationConfig` (A2A 1.0 §4.3.1). `task` is required
/// on its own and optional inside a send.
const fn push_config(task: Member) -> [Member; 6] {
    [
        required("url", MemberKind::Printable(MAX_PUSH_URL)),
        optional("id", MemberKind::PushId),
        task,
        optional("token", MemberKind::Printable(MAX_PUSH_TOKEN)),
        optional("authentication", MemberKind::Object(&AUTHENTICATION)),
        optional("tenant", MemberKind::Text),
    ]
}

static PUSH_CONFIG: Shape = Shape(&push_config(optional("taskId", MemberKind::TaskId)));

/// `TaskPushNotificationConfig`, as a client creates it (A2A 1.0 §3.1.7).
pub(in crate::v1) static CREATE_PUSH: Shape =
    Shape(&push_config(required("taskId", MemberKind::TaskId)));

/// `GetTaskPushNotificationConfigRequest` and `DeleteTaskPushNotificationConfigRequest`.
pub(in crate::v1) static ONE_PUSH: Shape = Shape(&[
    required("taskId", MemberKind::TaskId),
    required("id", MemberKind::PushId),
    optional("tenant", MemberKind::Text),
]);

/// `ListTaskPushNotificationConfigsRequest`.
pub(in crate::v1) static LIST_PUSHES: Shape = Shape(&[
    required("taskId", MemberKind::TaskId),
    optional("pageSize", MemberKind::PageSize),
    optional("pageToken", MemberKind::Text),
    optional("tenant", MemberKind::Text),
]);

// A2A 1.0 §3.2.2: the options of a send.
static CONFIGURATION: Shape = Shape(&[
    optional("acceptedOutputModes", MemberKind::Texts),
    Member {
        alias: Some("pushNotificationConfig"),
        ..optional(
            "taskPushNotificationConfig",
            MemberKind::Object(&PUSH_CONFIG),
        )
    },
    optional("historyLength", MemberKind::History),
    optional("returnImmediately", MemberKind::Switch),
]);

/// `SendMessageRequest` (A2A 1.0 §3.2.1).
pub(in crate::v1) static SEND: Shape = Shape(&[
    required("message", MemberKind::Object(&MESSAGE)),
    optional("configuration", MemberKind::Object(&CONFIGURATION)),
    optional("metadata", MemberKind::Free),
    optional("tenant", MemberKind::Text),
]);

/// `GetTaskRequest` (A2A 1.0 §3.1.3).
pub(in crate::v1) static GET: Shape = Shape(&[
    required("id", MemberKind::TaskId),
    optional("historyLength", MemberKind::History),
    optional("tenant", MemberKind::Text),
]);

/// `CancelTaskRequest` (A2A 1.0 §3.1.5).
pub(in crate::v1) static CANCEL: Shape = Shape(&[
    required("id", MemberKind::TaskId),
    optional("metadata", MemberKind::Free),
    optional("tenant", MemberKind::Text),
]);

/// `SubscribeToTaskRequest` (A2A 1.0 §3.1.6).
pub(in crate::v1) static SUBSCRIBE: Shape = Shape(&[
    required("id", MemberKind::TaskId),
    optional("tenant", MemberKind::Text),
]);

/// `ListTasksRequest` (A2A 1.0 §3.1.4).
pub(in crate::v1) static LIST: Shape = Shape(&[
    optional("contextId", MemberKind::ContextId),
    optional("status", MemberKind::State),
    optional("pageSize", MemberKind::PageSize),
    optional("pageToken", MemberKind::Text),
    optional("historyLength", MemberKind::History),
    optional("statusTimestampAfter", MemberKind::Time),
    optional("includeArtifacts", MemberKind::Switch),
    optional("tenant", MemberKind::Text),
]);
