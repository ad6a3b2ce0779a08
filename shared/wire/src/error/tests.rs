use super::*;
use Generation::{V01, V03, V10};
use a2a_lambda_model::task::{FieldViolation, TaskState};

/// An error with its row: code, code in 0.1, REST status, JSON-RPC status,
/// `google.rpc` status, reason, and the domain of the reason.
type Row = (A2aError, &'static str);

fn rows_of_a2a() -> Vec<Row> {
    use A2aError as R;
    let state = TaskState::Completed;
    let (detail, uri, version) = (String::new(), String::new(), String::new());
    let supported = "";
    vec![
        (
            R::TaskNotFound,
            "-32001 -32001 404 200 NOT_FOUND TASK_NOT_FOUND a2a",
        ),
        (
            R::TaskNotCancelable { state },
            "-32002 -32002 400 200 FAILED_PRECONDITION TASK_NOT_CANCELABLE a2a",
        ),
        (
            R::PushNotSupported,
            "-32003 -32003 400 200 FAILED_PRECONDITION PUSH_NOTIFICATION_NOT_SUPPORTED a2a",
        ),
        (
            R::UnsupportedOperation { why: "" },
            "-32004 -32004 400 200 FAILED_PRECONDITION UNSUPPORTED_OPERATION a2a",
        ),
        (
            R::TaskFinished { state },
            "-32004 -32009 400 200 FAILED_PRECONDITION UNSUPPORTED_OPERATION a2a",
        ),
        (
            R::ContentTypeNotSupported { detail },
            "-32005 -32005 400 200 INVALID_ARGUMENT CONTENT_TYPE_NOT_SUPPORTED a2a",
        ),
        (
            R::UnsupportedMediaType,
            "-32005 -32005 415 415 INVALID_ARGUMENT CONTENT_TYPE_NOT_SUPPORTED a2a",
        ),
        (
            R::InvalidAgentResponse,
            "-32006 -32603 500 200 INTERNAL INVALID_AGENT_RESPONSE a2a",
        ),
        (
            R::ExtendedCardNotConfigured,
            "-32007 -32004 400 200 FAILED_PRECONDITION EXTENDED_AGENT_CARD_NOT_CONFIGURED a2a",
        ),
        (
            R::ExtensionSupportRequired { uri },
            "-32008 -32004 400 200 FAILED_PRECONDITION EXTENSION_SUPPORT_REQUIRED a2a",
        ),
        (
            R::VersionNotSupported { version, supported },
            "-32009 -32009 400 200 FAILED_PRECONDITION VERSION_NOT_SUPPORTED a2a",
        ),
    ]
}

fn rows_of_ours() -> Vec<Row> {
    use A2aError as R;
    let (why, allowed, current, retry_after) = (String::new(), 1, 2, 7);
    vec![
        (
            R::TaskBusy,
            "-32004 -32009 400 200 FAILED_PRECONDITION TASK_BUSY ours",
        ),
        (
            R::Parse,
            "-32700 -32700 400 200 INVALID_ARGUMENT PARSE_ERROR ours",
        ),
        (
            R::InvalidRequest { why },
            "-32600 -32600 400 200 INVALID_ARGUMENT INVALID_REQUEST ours",
        ),
        (
            R::MethodNotFound,
            "-32601 -32601 404 200 NOT_FOUND METHOD_NOT_FOUND ours",
        ),
        (
            R::invalid("a", "b"),
            "-32602 -32602 400 200 INVALID_ARGUMENT INVALID_PARAMS ours",
        ),
        (
            R::Internal,
            "-32603 -32603 500 200 INTERNAL INTERNAL_ERROR ours",
        ),
        (
            R::PayloadTooLarge { allowed },
            "-32600 -32600 413 413 INVALID_ARGUMENT PAYLOAD_TOO_LARGE ours",
        ),
        (
            R::RateLimited { retry_after },
            "-32029 -32010 429 429 RESOURCE_EXHAUSTED RATE_LIMITED ours",
        ),
        (
            R::Unauthenticated,
            "-32030 -32007 401 401 UNAUTHENTICATED UNAUTHENTICATED ours",
        ),
        (
            R::Forbidden,
            "-32031 -32008 403 403 PERMISSION_DENIED PERMISSION_DENIED ours",
        ),
        (
            R::ContextExpired,
            "-32602 -32602 400 200 FAILED_PRECONDITION CONTEXT_EXPIRED ours",
        ),
        (
            R::StateTooLarge { current, allowed },
            "-32602 -32602 413 413 FAILED_PRECONDITION STATE_TOO_LARGE ours",
        ),
        (
            R::IdempotencyKeyReused,
            "-32602 -32602 409 200 ABORTED IDEMPOTENCY_KEY_REUSED ours",
        ),
    ]
}

fn rows_of_another_try() -> Vec<Row> {
    let retry_after = 7;
    let row = "-32603 -32011 503 503 UNAVAILABLE UNAVAILABLE ours";
    vec![
        (A2aError::Unavailable { retry_after }, row),
        (A2aError::Unfinished { retry_after }, row),
    ]
}

fn rows() -> Vec<Row> {
    [rows_of_a2a(), rows_of_ours(), rows_of_another_try()].concat()
}

#[test]
fn every_error_has_its_codes_statuses_reason_and_domain() {
    for (refusal, expected) in rows() {
        let row = ErrorRow::of(&refusal, V10);
        assert_eq!(ErrorRow::of(&refusal, V03), row, "{refusal:?}");
        let defined_by = match row.domain {
            "a2a-protocol.org" => "a2a",
            "a2a-lambda" => "ours",
            other => other,
        };
        let found = [
            row.code.to_string(),
            ErrorRow::of(&refusal, V01).code.to_string(),
            row.http_status(Binding::Rest).to_string(),
            row.http_status(Binding::JsonRpc).to_string(),
            row.rpc_status.to_owned(),
            row.reason.to_owned(),
            defined_by.to_owned(),
        ];
        assert_eq!(found.join(" "), expected, "{refusal:?}");
    }
}

#[test]
fn the_documented_table_equals_the_code() {
    let source = include_str!("../error.rs");
    for (refusal, _) in rows() {
        let row = ErrorRow::of(&refusal, V10);
        let name = format!("{refusal:?}");
        let name = name.split([' ', '(']).next().unwrap().to_owned();
        let codes = match (row.code, ErrorRow::of(&refusal, V01).code) {
            (code, same) if code == same => code.to_string(),
            (code, code_v01) => format!("{code} ({code_v01})"),
        };
        let ErrorRow {
            status,
            rpc_status,
            reason,
            ..
        } = row;
        let line = format!("//! | `{name}` | {codes} | {status} | `{rpc_status}` | `{reason}` |");
        assert!(source.contains(&line), "{line}");
    }
}

#[test]
fn codes_keep_their_0_1_meaning_in_0_1() {
    for (refusal, ..) in rows() {
        let expected = match ErrorRow::of(&refusal, V01).code {
            -32007 => matches!(refusal, A2aError::Unauthenticated),
            -32008 => matches!(refusal, A2aError::Forbidden),
            -32009 => matches!(
                refusal,
                A2aError::TaskBusy
                    | A2aError::TaskFinished { .. }
                    | A2aError::VersionNotSupported { .. }
            ),
            -32010 => matches!(refusal, A2aError::RateLimited { .. }),
            code => code != -32006,
        };
        assert!(expected, "{refusal:?}");
    }
}

fn violations() -> A2aError {
    A2aError::InvalidParams {
        violations: vec![
            FieldViolation::new("message.parts", "must not be empty"),
            FieldViolation::new("message.role", "is required"),
        ],
    }
}

#[test]
fn a_json_rpc_error_of_1_0_carries_its_details_as_data() {
    assert_eq!(
        body(&A2aError::TaskNotFound, Dialect::json_rpc(V10)),
        json!({"code": -32001, "message": "task not found", "data": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
        }]})
    );
}

#[test]
fn a_rest_error_of_1_0_is_a_google_rpc_status() {
    let refusal = A2aError::StateTooLarge {
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
        // The SDKs show the message and drop the details.
        let message = body
            .get("message")
            .or_else(|| body.pointer("/error/message"));
        assert_eq!(
            message.unwrap(),
            "invalid parameters: `message.parts`: must not be empty",
            "{dialect:?}"
        );
    }
}

#[test]
fn an_older_rest_error_is_the_whole_body() {
    for generation in [V03, V01] {
        let body = body(&A2aError::TaskNotFound, Dialect::rest(generation));
        assert_eq!(body["code"], -32001);
        assert_eq!(body["message"], "task not found");
        assert_eq!(body.get("error"), None);
    }
}

#[test]
fn headers_name_the_retry_time_and_the_authentication_scheme() {
    assert_eq!(
        header(&A2aError::RateLimited { retry_after: 7 }),
        Some(("retry-after", "7".to_owned()))
    );
    assert_eq!(
        header(&A2aError::Unavailable { retry_after: 3 }),
        Some(("retry-after", "3".to_owned()))
    );
    assert_eq!(
        header(&A2aError::Unauthenticated),
        Some(("www-authenticate", "Bearer".to_owned()))
    );
    assert_eq!(header(&A2aError::Internal), None);
}

#[test]
fn a_long_value_of_a_client_is_not_sent_back() {
    let long = "ö".repeat(100_000);
    for refusal in [
        A2aError::invalid(long.as_str(), format!("not `{long}`")),
        A2aError::ContentTypeNotSupported { detail: long },
    ] {
        for dialect in [Dialect::json_rpc(V10), Dialect::rest(V10)] {
            let text = body(&refusal, dialect).to_string();
            assert!(text.contains("ööö"), "{text}");
            assert!(text.len() < 8000, "{} bytes", text.len());
        }
    }
}
