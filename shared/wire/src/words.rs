//! The words of the older generations for what 1.0 names otherwise.
//!
//! Requests are read, and answers written, under the names of 1.0. A table names the members
//! that a dialect calls otherwise; those that it does not name are the same in all.
//!
//! 0.1 and 0.3 cannot express every internal value. This table says what they get
//! instead:
//!
//! | Internal | 0.3 | 0.1 |
//! |---|---|---|
//! | `rejected` | same | `failed`, the reason stays in the status message |
//! | `auth-required` | same | `input-required` |
//! | data that is not an object | `{"value": ..}`, marked in the part's metadata | same; an array stays |
//! | bytes, URL | `file.bytes`, `file.uri` | same |
//! | artifact id | same | `index`, the id in the artifact's metadata |
//! | context id, message id | same | `sessionId`, none |

use super::{Binding, Dialect};
use a2a_lambda_model::task::{Generation, TaskState};

/// Names of 1.0, each with the words of a dialect: a client uses any of them, and an error names
/// the first if it used none. A name without words is of no member in this dialect.
pub(crate) type WordTable = &'static [(&'static str, &'static [&'static str])];

/// The key in a part's metadata that marks wrapped data. The official SDKs use the
/// same key.
pub(crate) const WRAPPED: &str = "data_part_compat";
/// The member that holds wrapped data.
pub(crate) const VALUE: &str = "value";

/// The three kinds of content before 1.0; each is also the name of the member that holds it.
pub(crate) const KINDS: [(&str, &str); 3] = [("text", "text"), ("file", "file"), ("data", "data")];

const PUSH: &str = "taskPushNotificationConfig";

/// The words for the members of a request, and for the role of the client (A2A 1.0 §4.1.5).
pub(crate) const fn words(dialect: Dialect) -> WordTable {
    match (dialect.generation, dialect.binding) {
        // Clients use the second name, too.
        (Generation::V10, _) => &[(PUSH, &[PUSH, "pushNotificationConfig"])],
        // A2A 0.3 §6.4, §7.1.1.
        (Generation::V03, Binding::JsonRpc) => &[
            ("ROLE_USER", &["user"]),
            (PUSH, &["pushNotificationConfig"]),
        ],
        // Those of its proto, then those of its prose (A2A 0.3 §3.2.3).
        (Generation::V03, Binding::Rest) => &[
            ("ROLE_USER", &["ROLE_USER", "user"]),
            ("message", &["message", "request"]),
            ("parts", &["content", "parts"]),
            (PUSH, &["pushNotification", "pushNotificationConfig"]),
        ],
        // A2A 0.1 §6.4, §7.1.1.
        (Generation::V01, _) => &[
            ("ROLE_USER", &["user"]),
            ("acceptedOutputModes", &[]),
            ("configuration", &[]),
            ("contextId", &["sessionId"]),
            ("extensions", &[]),
            ("kind", &["type"]),
            ("referenceTaskIds", &[]),
            ("taskId", &[]),
            (PUSH, &["pushNotification"]),
        ],
    }
}

/// The words for the members of a part of 1.0 that are in its `file` before (A2A 0.3 §6.6; A2A
/// 0.1 §6.6). Over REST, 0.3 has those of its proto, then those of its prose.
pub(crate) const fn words_of_file(dialect: Dialect) -> WordTable {
    match (dialect.generation, dialect.binding) {
        (Generation::V10, _) => &[],
        (Generation::V03, Binding::Rest) => &[
            ("filename", &["name"]),
            ("mediaType", &["mimeType"]),
            ("raw", &["fileWithBytes", "bytes"]),
            ("url", &["fileWithUri", "uri"]),
        ],
        (Generation::V03 | Generation::V01, _) => &[
            ("filename", &["name"]),
            ("mediaType", &["mimeType"]),
            ("raw", &["bytes"]),
            ("url", &["uri"]),
        ],
    }
}

/// The name of `state` in a dialect.
pub(crate) const fn state_name(state: TaskState, dialect: Dialect) -> &'static str {
    match (dialect.generation, dialect.binding, state) {
        (Generation::V10, _, _) => proto(state),
        // The proto of 0.3 spells it with two `L`.
        (Generation::V03, Binding::Rest, TaskState::Canceled) => "TASK_STATE_CANCELLED",
        (Generation::V03, Binding::Rest, _) => proto(state),
        // A2A 0.1 §6.3: it has neither `auth-required` nor `rejected`.
        (Generation::V01, _, TaskState::AuthRequired) => TaskState::InputRequired.as_str(),
        (Generation::V01, _, TaskState::Rejected) => TaskState::Failed.as_str(),
        (Generation::V03 | Generation::V01, _, _) => state.as_str(),
    }
}

/// The names that the filter of a list accepts. In 0.3 these are those of both bindings, and
/// `CANCELED` with one `L` as in 1.0.
pub(crate) fn state_filter(generation: Generation) -> Vec<(&'static str, TaskState)> {
    let of = |dialect: Dialect| {
        let names = move |state| (state_name(state, dialect), state);
        TaskState::ALL.into_iter().map(names)
    };
    let of_v10 = of(Dialect::rest(Generation::V10));
    if generation == Generation::V10 {
        return of_v10.collect();
    }
    let canceled_names = of_v10.filter(|(_, state)| *state == TaskState::Canceled);
    let of_v03 = of(Dialect::rest(Generation::V03)).chain(canceled_names);
    of_v03
        .chain(of(Dialect::json_rpc(Generation::V03)))
        .collect()
}

const fn proto(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
    }
}
