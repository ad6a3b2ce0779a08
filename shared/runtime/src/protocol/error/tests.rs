use super::*;
use crate::task::{FieldViolation, TaskState};
use Generation::{V01, V03, V10};

/// One refusal of each kind with its row: code, code in 0.1, REST status,
/// JSON-RPC status, `google.rpc` status, reason, whether A2A defines it.
type Row = (
    Refusal,
    i32,
    i32,
    u16,
    u16,
    &'static str,
    &'static str,
    bool,
);

fn rows() -> Vec<Row> {
    use Refusal as R;
    let state = TaskState::Completed;
    let failed = "FAILED_PRECONDITION";
    let argument = "INVALID_ARGUMENT";
    vec![
        (
            R::TaskNotFound,
            -32001,
            -32001,
            404,
            200,
            "NOT_FOUND",
            "TASK_NOT_FOUND",
            true,
        ),
        (
            R::TaskNotCancelable { state },
            -32002,
            -32002,
            400,
            200,
            failed,
            "TASK_NOT_CANCELABLE",
            true,
        ),
        (
            R::PushNotSupported,
            -32003,
            -32003,
            400,
            200,
            failed,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
            true,
        ),
        (
            R::UnsupportedOperation { why: "x" },
            -32004,
            -32004,
            400,
            200,
            failed,
            "UNSUPPORTED_OPERATION",
            true,
        ),
        (
            R::TaskFinished { state },
            -32004,
            -32009,
            400,
            200,
            failed,
            "UNSUPPORTED_OPERATION",
            true,
        ),
        (
            R::TaskBusy,
            -32004,
            -32009,
            400,
            200,
            failed,
            "TASK_BUSY",
            false,
        ),
        (
            R::ContentTypeNotSupported { detail: "x".into() },
            -32005,
            -32005,
            400,
            200,
            argument,
            "CONTENT_TYPE_NOT_SUPPORTED",
            true,
        ),
        (
            R::UnsupportedMediaType,
            -32005,
            -32005,
            415,
            415,
            argument,
            "CONTENT_TYPE_NOT_SUPPORTED",
            true,
        ),
        (
            R::InvalidAgentResponse,
            -32006,
            -32603,
            500,
            200,
            "INTERNAL",
            "INVALID_AGENT_RESPONSE",
            true,
        ),
        (
            R::ExtendedCardNotConfigured,
            -32007,
            -32004,
            400,
            200,
            failed,
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            true,
        ),
        (
            R::ExtensionSupportRequired { uri: "x".into() },
            -32008,
            -32004,
            400,
            200,
            failed,
            "EXTENSION_SUPPORT_REQUIRED",
            true,
        ),
        (
            R::VersionNotSupported {
                version: "9.0".into(),
                supported: "x",
            },
            -32009,
            -32009,
            400,
            200,
            failed,
            "VERSION_NOT_SUPPORTED",
            true,
        ),
        (
            R::Parse,
            -32700,
            -32700,
            400,
            200,
            argument,
            "PARSE_ERROR",
            false,
        ),
        (
            R::InvalidRequest { why: "x".into() },
            -32600,
            -32600,
            400,
            200,
            argument,
            "INVALID_REQUEST",
            false,
        ),
        (
            R::MethodNotFound,
            -32601,
            -32601,
            404,
            200,
            "NOT_FOUND",
            "METHOD_NOT_FOUND",
            false,
        ),
        (
            R::invalid("a", "b"),
            -32602,
            -32602,
            400,
            200,
            argument,
            "INVALID_PARAMS",
            false,
        ),
        (
            R::Internal,
            -32603,
            -32603,
            500,
            200,
            "INTERNAL",
            "INTERNAL_ERROR",
            false,
        ),
        (
            R::PayloadTooLarge { allowed: 1 },
            -32600,
            -32600,
            413,
            413,
            argument,
            "PAYLOAD_TOO_LARGE",
            false,
        ),
        (
            R::RateLimited { retry_after: 7 },
            -32029,
            -32010,
            429,
            429,
            "RESOURCE_EXHAUSTED",
            "RATE_LIMITED",
            false,
        ),
        (
            R::Unauthenticated,
            -32030,
            -32007,
            401,
            401,
            "UNAUTHENTICATED",
            "UNAUTHENTICATED",
            false,
        ),
        (
            R::Forbidden,
            -32031,
            -32008,
            403,
            403,
            "PERMISSION_DENIED",
            "PERMISSION_DENIED",
            false,
        ),
        (
            R::ContextExpired,
            -32602,
            -32602,
            400,
            200,
            failed,
            "CONTEXT_EXPIRED",
            false,
        ),
        (
            R::StateTooLarge {
                current: 2,
                allowed: 1,
            },
            -32602,
            -32602,
            413,
            413,
            failed,
            "STATE_TOO_LARGE",
            false,
        ),
        (
            R::IdempotencyKeyReused,
            -32602,
            -32602,
            409,
            200,
            "ABORTED",
            "IDEMPOTENCY_KEY_REUSED",
            false,
        ),
        (
            R::Unavailable { retry_after: 3 },
            -32603,
            -32011,
            503,
            503,
            "UNAVAILABLE",
            "UNAVAILABLE",
            false,
        ),
    ]
}

#[test]
fn every_row_of_the_table_is_as_the_wire_reference_says() {
    for (refusal, code, code_v01, rest, rpc, status, reason, defined) in rows() {
        let row = ErrorRow::of(&refusal, V10);
        assert_eq!(row.code, code, "{refusal:?}");
        assert_eq!(ErrorRow::of(&refusal, V03), row, "{refusal:?}");
        assert_eq!(ErrorRow::of(&refusal, V01).code, code_v01, "{refusal:?}");
        assert_eq!(row.http_status(Binding::Rest), rest, "{refusal:?}");
        assert_eq!(row.http_status(Binding::JsonRpc), rpc, "{refusal:?}");
        assert_eq!(row.rpc_status, status, "{refusal:?}");
        assert_eq!(row.reason, reason, "{refusal:?}");
        let domain = if defined {
            "a2a-protocol.org"
        } else {
            "a2a-lambda"
        };
        assert_eq!(row.domain, domain, "{refusal:?}");
    }
}

#[test]
fn the_documented_table_is_the_function() {
    let source = include_str!("../error.rs");
    for (refusal, code, code_v01, rest, _, status, reason, _) in rows() {
        let name = format!("{refusal:?}");
        let name = name.split([' ', '(']).next().unwrap().to_owned();
        let codes = if code == code_v01 {
            code.to_string()
        } else {
            format!("{code} ({code_v01})")
        };
        let line = format!("//! | `{name}` | {codes} | {rest} | `{status}` | `{reason}` |");
        assert!(source.contains(&line), "{line}");
    }
}

#[test]
fn numbers_which_0_1_uses_otherwise_mean_there_what_0_1_says() {
    for (refusal, ..) in rows() {
        let expected = match ErrorRow::of(&refusal, V01).code {
            -32007 => matches!(refusal, Refusal::Unauthenticated),
            -32008 => matches!(refusal, Refusal::Forbidden),
            -32009 => matches!(
                refusal,
                Refusal::TaskBusy
                    | Refusal::TaskFinished { .. }
                    | Refusal::VersionNotSupported { .. }
            ),
            -32010 => matches!(refusal, Refusal::RateLimited { .. }),
            code => code != -32006,
        };
        assert!(expected, "{refusal:?}");
    }
}

fn violations() -> Refusal {
    Refusal::InvalidParams {
        violations: vec![
            FieldViolation::new("message.parts", "must not be empty"),
            FieldViolation::new("message.role", "is required"),
        ],
    }
}

#[test]
fn a_json_rpc_error_of_1_0_carries_its_details_as_data() {
    assert_eq!(
        body(&Refusal::TaskNotFound, Dialect::json_rpc(V10)),
        json!({"code": -32001, "message": "task not found", "data": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
        }]})
    );
}

#[test]
fn a_rest_error_of_1_0_is_a_google_rpc_status() {
    let refusal = Refusal::StateTooLarge {
        current: 1_048_577,
        allowed: 1_048_576,
    };
    assert_eq!(
        body(&refusal, Dialect::rest(V10)),
        json!({"error": {
            "code": 413,
            "status": "FAILED_PRECONDITION",
            "message": "the state would be 1048577 bytes; 1048576 are allowed",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "STATE_TOO_LARGE",
                "domain": "a2a-lambda",
                "metadata": {"current": "1048577", "allowed": "1048576"},
            }],
        }})
    );
}

#[test]
fn every_dialect_names_invalid_fields_by_path() {
    for dialect in [
        Dialect::json_rpc(V10),
        Dialect::json_rpc(V03),
        Dialect::json_rpc(V01),
        Dialect::rest(V10),
        Dialect::rest(V03),
        Dialect::rest(V01),
    ] {
        let body = body(&violations(), dialect);
        let details = body.get("data").or_else(|| body.pointer("/error/details"));
        let found = &details.unwrap()[0];
        assert_eq!(found["@type"], "type.googleapis.com/google.rpc.BadRequest");
        assert_eq!(
            found["fieldViolations"],
            json!([
                {"field": "message.parts", "description": "must not be empty"},
                {"field": "message.role", "description": "is required"},
            ]),
            "{dialect:?}"
        );
    }
}

#[test]
fn the_older_rest_errors_stand_at_the_top() {
    for generation in [V03, V01] {
        let body = body(&Refusal::TaskNotFound, Dialect::rest(generation));
        assert_eq!(body["code"], -32001);
        assert_eq!(body["message"], "task not found");
        assert_eq!(body.get("error"), None);
    }
}

#[test]
fn a_client_is_told_when_to_come_back_and_how_to_authenticate() {
    assert_eq!(
        header(&Refusal::RateLimited { retry_after: 7 }),
        Some(("retry-after", "7".to_owned()))
    );
    assert_eq!(
        header(&Refusal::Unavailable { retry_after: 3 }),
        Some(("retry-after", "3".to_owned()))
    );
    assert_eq!(
        header(&Refusal::Unauthenticated),
        Some(("www-authenticate", "Bearer".to_owned()))
    );
    assert_eq!(header(&Refusal::Internal), None);
}
