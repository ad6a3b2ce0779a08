//! Checks that any request leads to a call or to a well-formed error.

use super::*;
use crate::{methods, refuse};
use proptest::prelude::*;

/// Members a request may have, known and not.
const NAMES: [&str; 26] = [
    "message",
    "messageId",
    "message_id",
    "parts",
    "content",
    "role",
    "kind",
    "type",
    "text",
    "raw",
    "url",
    "data",
    "file",
    "bytes",
    "uri",
    "fileWithBytes",
    "filename",
    "mediaType",
    "metadata",
    "taskId",
    "contextId",
    "id",
    "configuration",
    "historyLength",
    "pageToken",
    "",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[A-Za-z0-9+/=_-]{0,9}".prop_map(Value::from),
        Just(json!("ROLE_USER")),
        Just(json!("user")),
        Just(json!("text")),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        let name = prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A message whose parts and metadata are arbitrary.
fn message() -> impl Strategy<Value = Value> {
    let parts = prop::collection::vec(any_json(), 0..4);
    (parts, any_json()).prop_map(|(parts, other)| {
        json!({
            "messageId": "m", "role": "user", "kind": "message", "parts": parts,
            "content": parts, "metadata": other,
        })
    })
}

/// Opens and decodes a request as the `http` edge does, and checks each error.
fn answered(request: &RawRequest<'_>) -> Result<(), TestCaseError> {
    let refusals = match open(request) {
        Err(rejected) => vec![rejected.answer()],
        Ok(OpenedRequest::One(call)) => refused(&call),
        Ok(OpenedRequest::Batch(entries)) => entries
            .iter()
            .flat_map(|entry| match entry {
                Ok(call) => refused(call),
                Err(rejected) => vec![rejected.answer()],
            })
            .collect(),
    };
    for WireResponse { status, body, .. } in refusals {
        prop_assert!([200, 400, 404, 413, 415].contains(&status), "{}", status);
        let body: Result<Value, _> = serde_json::from_slice(&body);
        prop_assert!(body.is_ok_and(|body| body.is_object()));
    }
    Ok(())
}

fn refused(call: &Call) -> Vec<WireResponse> {
    let read = call.check_version().and_then(|()| call.decode().map(drop));
    let Err(refusal) = read else {
        return Vec::new();
    };
    if let A2aError::InvalidParams { field, .. } = &refusal {
        assert!(!field.is_empty());
    }
    vec![refuse(call, &refusal)]
}

proptest! {
    #[test]
    fn any_parameters_of_any_method_are_read_or_refused(
        method in prop::sample::select(methods().collect::<Vec<_>>()),
        params in any_json(),
        message in message(),
        whole in any::<bool>(),
    ) {
        let params = if whole { json!({"id": "t", "message": message}) } else { params };
        let body = rpc(method, &params);
        answered(&RawRequest { version: Some("1.0"), ..post("/", &body) })?;
    }

    #[test]
    fn any_body_on_any_path_is_read_or_refused(
        path in prop::sample::select(vec![
            "/message:send", "/v1/message:send", "/v1/message:stream", "/tasks/send", "/tasks/get",
            "/tasks/t/pushNotificationConfigs", "/v1/tasks/t/pushNotificationConfigs",
            "/tasks/pushNotification/set", "/a2a-lambda/uploads", "/tasks/t:cancel", "/",
        ]),
        body in prop_oneof![
            any_json().prop_map(|body| body.to_string().into_bytes()),
            message().prop_map(|body| json!({"id": "t", "message": body}).to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..200),
        ],
    ) {
        let request = RawRequest { version: Some("1.0"), body: &body, ..post(path, "") };
        answered(&request)?;
    }

    #[test]
    fn any_path_query_or_header_is_read_or_refused(
        method in prop::sample::select(vec!["GET", "POST", "DELETE", "PUT", ""]),
        path in prop_oneof![
            "/[ -~]{0,40}",
            "/(v1/)?tasks/[a-z%0-9:/.]{0,20}(:cancel|:subscribe)?",
            "/a2a-lambda/(tasks|contexts)/[a-z%0-9:/.~]{0,20}",
        ],
        query in prop::option::of("([a-zA-Z%0-9+]{0,9}=?[ -~]{0,12}&?){0,4}"),
        event in prop::option::of(".{0,24}"),
        key in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        other in prop::option::of(".{0,24}"),
    ) {
        let request = RawRequest {
            method,
            path: &path,
            query: query.as_deref(),
            content_type: other.as_deref().or(JSON),
            accept: other.as_deref(),
            version: other.as_deref().or(Some("1.0")),
            extensions: other.as_deref(),
            last_event_id: event.as_deref(),
            idempotency_key: key.as_deref(),
            body: b"{}",
        };
        answered(&request)?;
    }

    #[test]
    fn only_event_ids_in_the_written_form_are_read(
        version: u64,
        n: u32,
        text in "[0-9.+ -]{0,24}",
    ) {
        let id = EventId { version: version % 1_000_000_000_000_000_000, n, mark: None };
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        let body = rpc("SubscribeToTask", &json!({"id": "t"}));
        let request = RawRequest {
            version: Some("1.0"),
            last_event_id: Some(&text),
            ..post("/", &body)
        };
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let parts: Vec<_> = text.trim().split('.').collect();
        let marked = parts.get(2).is_none_or(|mark| mark.len() == 8);
        let plain = (2..=3).contains(&parts.len()) && marked && parts.iter().all(|p| digits(p));
        match one(&request).decode() {
            Ok(_) => prop_assert!(plain || text.trim().is_empty(), "{:?} is read", text),
            Err(refusal) => {
                prop_assert_eq!(field_of(refusal), "Last-Event-ID");
            }
        }
    }

    #[test]
    fn a_query_has_no_more_pairs_than_ampersands_allow(query in ".{0,80}") {
        let pairs = crate::rest::query_pairs(Some(&query));
        prop_assert!(pairs.len() <= query.matches('&').count() + 1);
        prop_assert!(crate::rest::query_pairs(None).is_empty());
    }

    #[test]
    fn base64_reads_its_own_output_and_no_other_text(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        text in "[A-Za-z0-9+/=_ -]{0,16}",
    ) {
        use crate::params::base64;
        use ::base64::Engine as _;
        use ::base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
        for written in [
            STANDARD.encode(&bytes),
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            prop_assert_eq!(base64(&written).map(|read| read.to_vec()), Some(bytes.clone()));
        }
        if let Some(read) = base64(&text) {
            let bare = text.trim_end_matches('=');
            let forms = [STANDARD_NO_PAD.encode(&read), URL_SAFE_NO_PAD.encode(&read)];
            prop_assert!(forms.iter().any(|form| form == bare), "{:?} is read", text);
        }
    }
}
