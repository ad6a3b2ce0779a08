//! Maps each error to its codes, HTTP status and reason, and writes its body.
//!
//! The table is the function `row`. It has the codes and statuses of 1.0 (A2A 1.0.1 §5.4) and
//! the codes of 0.3 (A2A 0.3 §8.2); A2A 0.1 gives -32006 to -32011 other meanings.
//! `docs/operations.md` says what an operator does; the conformance suite compares each row, in
//! each dialect, with `tests/conformance/vectors/errors.json`. JSON-RPC errors are HTTP 200,
//! except those in the function `json_rpc_status`.
//!
//! The reasons that A2A defines, from `TASK_NOT_FOUND` to
//! `VERSION_NOT_SUPPORTED` without `TASK_BUSY`, are in the domain
//! `a2a-protocol.org`, the others in `a2a-lambda`.
//! `VersionNotSupported` keeps -32009 in 0.1 too: a client that sends the header
//! `A2A-Version` knows the code of the generation that defines the header.

use super::{Binding, Dialect};
use a2a_lambda_model::task::{A2aError, Generation};
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// The domain of the errors that A2A defines (A2A 1.0 §10.6, §11.6).
const A2A: &str = "a2a-protocol.org";
/// The domain of the errors that this project defines.
const OURS: &str = "a2a-lambda";
/// The most characters of one text of an error. A text may end with a value of the
/// client, which is cut.
const MAX_TEXT: usize = 1000;

/// How an error appears in one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRow {
    /// The JSON-RPC code.
    pub code: i32,
    /// The HTTP status of the REST bindings.
    pub status: u16,
    /// The HTTP status of JSON-RPC.
    pub json_rpc_status: u16,
    /// The name of the `google.rpc` code.
    pub rpc_status: &'static str,
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The domain that defines the reason.
    pub domain: &'static str,
}

impl ErrorRow {
    /// The row of `error` in `generation`.
    #[must_use]
    pub const fn of(error: &A2aError, generation: Generation) -> Self {
        let mut row = row(error);
        let is_media = matches!(error, A2aError::UnsupportedMediaType);
        // 0.3 and 0.1 define no status of REST.
        if is_media && !matches!(generation, Generation::V10) {
            row.status = 415;
        }
        if matches!(generation, Generation::V01) {
            row.code = code_in_v01(error, row.code);
        }
        row
    }

    /// The HTTP status in a binding.
    #[must_use]
    pub const fn http_status(&self, binding: Binding) -> u16 {
        match binding {
            Binding::Rest => self.status,
            Binding::JsonRpc => self.json_rpc_status,
        }
    }
}

/// The HTTP status of a JSON-RPC error: 200, except where gateways and clients act on the
/// status itself. `status` is that of REST.
const fn json_rpc_status(error: &A2aError, status: u16) -> u16 {
    match (error, status) {
        // RFC 9110 §15.5.16: the server did not read the body. A2A 1.0.1 §5.4 sets the status of
        // REST only (docs/decisions/0015).
        (A2aError::UnsupportedMediaType, _) => 415,
        (_, 401 | 403 | 413 | 429 | 503) => status,
        _ => 200,
    }
}

const fn row(error: &A2aError) -> ErrorRow {
    use A2aError as R;
    const FAILED: &str = "FAILED_PRECONDITION";
    const ARGUMENT: &str = "INVALID_ARGUMENT";
    // A2A 1.0.1 §5.4: codes and statuses of the A2A errors. A2A 1.0 §9.5: those of
    // JSON-RPC.
    let (code, status, rpc_status, reason, domain) = match error {
        R::TaskNotFound | R::ForeignTenant => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND", A2A),
        R::TaskNotCancelable { .. } => (-32002, 400, FAILED, "TASK_NOT_CANCELABLE", A2A),
        R::PushNotSupported => (-32003, 400, FAILED, "PUSH_NOTIFICATION_NOT_SUPPORTED", A2A),
        R::UnsupportedOperation { .. } | R::TaskFinished { .. } => {
            (-32004, 400, FAILED, "UNSUPPORTED_OPERATION", A2A)
        }
        R::TaskBusy => (-32004, 400, FAILED, "TASK_BUSY", OURS),
        R::ContentTypeNotSupported { .. } | R::UnsupportedMediaType => {
            (-32005, 400, ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", A2A)
        }
        R::InvalidAgentResponse => (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE", A2A),
        R::ExtendedCardNotConfigured => (
            -32007,
            400,
            FAILED,
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            A2A,
        ),
        R::ExtensionSupportRequired { .. } => {
            (-32008, 400, FAILED, "EXTENSION_SUPPORT_REQUIRED", A2A)
        }
        R::VersionNotSupported { .. } => (-32009, 400, FAILED, "VERSION_NOT_SUPPORTED", A2A),
        R::Parse | R::LoneSurrogate => (-32700, 400, ARGUMENT, "PARSE_ERROR", OURS),
        R::InvalidRequest { .. } => (-32600, 400, ARGUMENT, "INVALID_REQUEST", OURS),
        R::MethodNotFound => (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND", OURS),
        R::InvalidParams { .. } => (-32602, 400, ARGUMENT, "INVALID_PARAMS", OURS),
        R::Internal => (-32603, 500, "INTERNAL", "INTERNAL_ERROR", OURS),
        R::PayloadTooLarge { .. } => (-32600, 413, ARGUMENT, "PAYLOAD_TOO_LARGE", OURS),
        R::RateLimited { .. } => (-32029, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED", OURS),
        R::Unauthenticated => (-32030, 401, "UNAUTHENTICATED", "UNAUTHENTICATED", OURS),
        R::Forbidden => (-32031, 403, "PERMISSION_DENIED", "PERMISSION_DENIED", OURS),
        R::ContextExpired => (-32602, 400, FAILED, "CONTEXT_EXPIRED", OURS),
        R::StateTooLarge { .. } => (-32602, 413, FAILED, "STATE_TOO_LARGE", OURS),
        R::IdempotencyKeyReused => (-32602, 409, "ABORTED", "IDEMPOTENCY_KEY_REUSED", OURS),
        R::UnknownStoredForm => (-32032, 503, "UNAVAILABLE", "UNKNOWN_STORED_FORM", OURS),
        R::Unavailable { .. } | R::Unfinished { .. } => {
            (-32603, 503, "UNAVAILABLE", "UNAVAILABLE", OURS)
        }
    };
    ErrorRow {
        code,
        status,
        json_rpc_status: json_rpc_status(error, status),
        rpc_status,
        reason,
        domain,
    }
}

/// The code in 0.1; `code` is the one of the later generations.
const fn code_in_v01(error: &A2aError, code: i32) -> i32 {
    use A2aError as R;
    match error {
        R::TaskFinished { .. } | R::TaskBusy => -32009,
        R::InvalidAgentResponse => -32603,
        R::ExtendedCardNotConfigured | R::ExtensionSupportRequired { .. } => -32004,
        R::Unauthenticated => -32007,
        R::Forbidden => -32008,
        R::RateLimited { .. } => -32010,
        R::Unavailable { .. } | R::Unfinished { .. } | R::UnknownStoredForm => -32011,
        R::TaskNotFound
        | R::ForeignTenant
        | R::TaskNotCancelable { .. }
        | R::PushNotSupported
        | R::UnsupportedOperation { .. }
        | R::ContentTypeNotSupported { .. }
        | R::UnsupportedMediaType
        | R::VersionNotSupported { .. }
        | R::Parse
        | R::LoneSurrogate
        | R::InvalidRequest { .. }
        | R::MethodNotFound
        | R::InvalidParams { .. }
        | R::Internal
        | R::PayloadTooLarge { .. }
        | R::ContextExpired
        | R::StateTooLarge { .. }
        | R::IdempotencyKeyReused => code,
    }
}

/// The error in a dialect: the `error` member of a JSON-RPC response, or the whole
/// body of a REST response.
pub(super) fn body(error: &A2aError, dialect: Dialect) -> Value {
    let row = ErrorRow::of(error, dialect.generation);
    let details = details(error, &row);
    let message = short(&error.to_string());
    match (dialect.binding, dialect.generation) {
        // A2A 1.0 §11.6: the JSON form of `google.rpc.Status`.
        (Binding::Rest, Generation::V10) => json!({"error": {
            "code": row.status,
            "status": row.rpc_status,
            "message": message,
            "details": details,
        }}),
        // A2A 1.0 §9.5; A2A 0.3 §6.12: a JSON-RPC error. 0.3 clients read the same
        // members in a REST body.
        (Binding::JsonRpc, _) | (Binding::Rest, Generation::V03 | Generation::V01) => {
            json!({"code": row.code, "message": message, "data": details})
        }
    }
}

/// The text, cut after [`MAX_TEXT`] characters.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The header that an error needs beside its status.
pub(super) fn header(error: &A2aError) -> Option<(&'static str, String)> {
    // RFC 9110 §10.2.3: `Retry-After`. RFC 9110 §15.5.2: a 401 names a challenge.
    match error {
        A2aError::RateLimited { retry_after }
        | A2aError::Unavailable { retry_after }
        | A2aError::Unfinished { retry_after } => Some(("retry-after", retry_after.to_string())),
        A2aError::Unauthenticated => Some(("www-authenticate", "Bearer".to_owned())),
        _ => None,
    }
}

/// The details of an error: its field first, then the reason. The older
/// generations leave the form of `data` open, so they get the array of 1.0.
fn details(error: &A2aError, row: &ErrorRow) -> Value {
    // A2A 1.0 §9.5, §11.6: each object of the array has a `@type`.
    let mut details = Vec::new();
    if let A2aError::InvalidParams { field, description } = error {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": short(field), "description": short(description)}],
        }));
    }
    let mut info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": row.reason,
        "domain": row.domain,
    });
    let metadata = metadata(error);
    if let (Value::Object(info), false) = (&mut info, metadata.is_empty()) {
        info.insert("metadata".to_owned(), metadata.into());
    }
    details.push(info);
    Value::Array(details)
}

/// The values of an error as text: `ErrorInfo.metadata` maps strings to strings.
fn metadata(error: &A2aError) -> Map<String, Value> {
    let facts: &[(&str, &dyn Display)] = match error {
        A2aError::TaskNotCancelable { state } | A2aError::TaskFinished { state } => {
            &[("state", state)]
        }
        A2aError::StateTooLarge { current, limit } => &[("current", current), ("allowed", limit)],
        A2aError::PayloadTooLarge { limit } => &[("allowed", limit)],
        A2aError::RateLimited { retry_after }
        | A2aError::Unavailable { retry_after }
        | A2aError::Unfinished { retry_after } => &[("retryAfter", retry_after)],
        A2aError::VersionNotSupported { version, .. } => &[("version", version)],
        A2aError::ExtensionSupportRequired { uri } => &[("uri", uri)],
        _ => &[],
    };
    let texts = facts
        .iter()
        .map(|(name, fact)| ((*name).to_owned(), fact.to_string().into()));
    texts.collect()
}

#[cfg(test)]
mod tests;
