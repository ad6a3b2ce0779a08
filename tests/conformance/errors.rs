//! The table of errors, and the comparison of responses with it.

use crate::pattern::{Names, compare};
use crate::vector::ErrorRow;
use a2a_lambda::task::{A2aError, FieldViolation, TaskState};
use a2a_lambda_tests::dialect::{Dialect, at};
use a2a_lambda_tests::world::Reply;
use serde_json::{Value, json};

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// The name of the row for an error.
pub(crate) const fn name(refusal: &A2aError) -> &'static str {
    use A2aError as R;
    match refusal {
        R::TaskNotFound => "TaskNotFound",
        R::TaskNotCancelable { .. } => "TaskNotCancelable",
        R::PushNotSupported => "PushNotSupported",
        R::UnsupportedOperation { .. } => "UnsupportedOperation",
        R::TaskFinished { .. } => "TaskFinished",
        R::TaskBusy => "TaskBusy",
        R::ContentTypeNotSupported { .. } => "ContentTypeNotSupported",
        R::UnsupportedMediaType => "UnsupportedMediaType",
        R::InvalidAgentResponse => "InvalidAgentResponse",
        R::ExtendedCardNotConfigured => "ExtendedCardNotConfigured",
        R::ExtensionSupportRequired { .. } => "ExtensionSupportRequired",
        R::VersionNotSupported { .. } => "VersionNotSupported",
        R::Parse => "Parse",
        R::InvalidRequest { .. } => "InvalidRequest",
        R::MethodNotFound => "MethodNotFound",
        R::InvalidParams { .. } => "InvalidParams",
        R::Internal => "Internal",
        R::PayloadTooLarge { .. } => "PayloadTooLarge",
        R::RateLimited { .. } => "RateLimited",
        R::Unauthenticated => "Unauthenticated",
        R::Forbidden => "Forbidden",
        R::ContextExpired => "ContextExpired",
        R::StateTooLarge { .. } => "StateTooLarge",
        R::IdempotencyKeyReused => "IdempotencyKeyReused",
        R::Unavailable { .. } => "Unavailable",
        R::Unfinished { .. } => "Unfinished",
    }
}

/// One value of each error.
pub(crate) fn all() -> Vec<A2aError> {
    use A2aError as R;
    let state = TaskState::Completed;
    vec![
        R::TaskNotFound,
        R::TaskNotCancelable { state },
        R::PushNotSupported,
        R::UnsupportedOperation { why: "not offered" },
        R::TaskFinished { state },
        R::TaskBusy,
        R::ContentTypeNotSupported {
            detail: "`image/png` is not taken".to_owned(),
        },
        R::UnsupportedMediaType,
        R::InvalidAgentResponse,
        R::ExtendedCardNotConfigured,
        R::ExtensionSupportRequired {
            uri: "urn:example:1".to_owned(),
        },
        R::VersionNotSupported {
            version: "9.9".to_owned(),
            supported: "1.0 is served",
        },
        R::Parse,
        R::InvalidRequest {
            why: "no request".to_owned(),
        },
        R::MethodNotFound,
        R::InvalidParams {
            violations: vec![FieldViolation::new("message.messageId", "is required")],
        },
        R::Internal,
        R::PayloadTooLarge { allowed: 1000 },
        R::RateLimited { retry_after: 7 },
        R::Unauthenticated,
        R::Forbidden,
        R::ContextExpired,
        R::StateTooLarge {
            current: 1_048_577,
            allowed: 1_048_576,
        },
        R::IdempotencyKeyReused,
        R::Unavailable { retry_after: 7 },
        R::Unfinished { retry_after: 7 },
    ]
}

/// Compares a response with its row.
///
/// # Errors
/// The first difference.
pub(crate) fn check(
    row: &ErrorRow,
    dialect: Dialect,
    id: &Value,
    reply: &Reply,
) -> Result<(), String> {
    let body = reply.json();
    let http = if dialect.is_rpc() {
        row.http_rpc.unwrap_or(200)
    } else {
        row.http
    };
    same("HTTP status", &json!(reply.status), &json!(http))?;
    for (header, value) in &row.headers {
        let found = reply.headers.contains_key(header);
        let found = found.then(|| json!(reply.header(header)));
        compare(header, value, found.as_ref(), &Names::new())?;
    }
    let code = match row.code_01 {
        Some(code) if dialect.is_v01() => code,
        _ => row.code,
    };
    let error = match dialect {
        Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => {
            same(
                "members",
                &members(&body),
                &json!(["error", "id", "jsonrpc"]),
            )?;
            same("id", at(&body, "/id"), id)?;
            at(&body, "/error")
        }
        Dialect::Rest10 => {
            same("members", &members(&body), &json!(["error"]))?;
            at(&body, "/error")
        }
        Dialect::Rest03 | Dialect::Path01 => &body,
    };
    let details = if dialect == Dialect::Rest10 {
        same("code", at(error, "/code"), &json!(row.http))?;
        same("status", at(error, "/status"), &json!(row.status))?;
        at(error, "/details")
    } else {
        same(
            "members",
            &members(error),
            &json!(["code", "data", "message"]),
        )?;
        same("code", at(error, "/code"), &json!(code))?;
        at(error, "/data")
    };
    compare(
        "message",
        &json!("$string"),
        error.get("message"),
        &Names::new(),
    )?;
    detailed(row, details)
}

fn detailed(row: &ErrorRow, details: &Value) -> Result<(), String> {
    let info = of(details, ERROR_INFO);
    let domain = match row.domain.as_str() {
        "a2a" => "a2a-protocol.org",
        _ => "a2a-lambda",
    };
    same("reason", at(info, "/reason"), &json!(row.reason))?;
    same("domain", at(info, "/domain"), &json!(domain))?;
    let facts = Value::Object(row.metadata.clone());
    if !row.metadata.is_empty() {
        compare("metadata", &facts, info.get("metadata"), &Names::new())?;
    }
    let named = !fields(details).is_empty();
    same(
        "whether fields are named",
        &json!(named),
        &json!(row.refusal == "InvalidParams"),
    )
}

/// The element of `details` with this type.
fn of<'v>(details: &'v Value, kind: &str) -> &'v Value {
    let found = details
        .as_array()
        .and_then(|list| list.iter().find(|one| at(one, "/@type") == kind));
    found.unwrap_or(&Value::Null)
}

/// The fields that an error body names, in any dialect.
pub(crate) fn fields(details: &Value) -> Vec<&str> {
    let list = at(of(details, BAD_REQUEST), "/fieldViolations").as_array();
    let fields = list
        .into_iter()
        .flatten()
        .map(|one| at(one, "/field").as_str());
    fields.flatten().collect()
}

/// The JSON pointer to the details of an error.
pub(crate) const fn details_at(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => "/error/data",
        Dialect::Rest10 => "/error/details",
        Dialect::Rest03 | Dialect::Path01 => "/data",
    }
}

fn members(value: &Value) -> Value {
    let members = value.as_object();
    members
        .into_iter()
        .flat_map(|members| members.keys().map(String::as_str))
        .collect()
}

fn same(what: &str, found: &Value, wanted: &Value) -> Result<(), String> {
    compare(what, wanted, Some(found), &Names::new())
}
