use super::*;
use Generation::{V01, V03, V10};
use a2a_lambda_rows::each_row;

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
        limit: 1_048_576,
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
fn every_dialect_names_the_invalid_field_by_path() {
    let rows = [
        Dialect::json_rpc(V10),
        Dialect::json_rpc(V03),
        Dialect::json_rpc(V01),
        Dialect::rest(V10),
        Dialect::rest(V03),
        Dialect::rest(V01),
    ];
    let error = A2aError::invalid("message.parts", "must not be empty");
    each_row(rows, |dialect| {
        let body = body(&error, dialect);
        let details = body.get("data").or_else(|| body.pointer("/error/details"));
        let found = &details.unwrap()[0];
        assert_eq!(found["@type"], "type.googleapis.com/google.rpc.BadRequest");
        assert_eq!(
            found["fieldViolations"],
            json!([{"field": "message.parts", "description": "must not be empty"}]),
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
    });
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
