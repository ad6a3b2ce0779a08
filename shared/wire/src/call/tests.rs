use super::*;
use crate::{CardForm, MethodCall, StreamCall, UnaryCall, WireResponse};
use crate::{RoutedRequest, open};
use a2a_lambda_model::task::{ContextId, ContextQuery, EventId, TaskId};
use a2a_lambda_rows::each_row;
use serde_json::json;

mod noise;
mod push;

const JSON: Option<&str> = Some("application/json");

fn post<'a>(path: &'a str, body: &'a str) -> RawRequest<'a> {
    RawRequest {
        method: "POST",
        path,
        content_type: JSON,
        body: body.as_bytes(),
        ..RawRequest::default()
    }
}

fn get(path: &str) -> RawRequest<'_> {
    RawRequest {
        method: "GET",
        path,
        ..RawRequest::default()
    }
}

fn one(request: &RawRequest<'_>) -> Call {
    match open(request) {
        Ok(OpenedRequest::One(call)) => *call,
        other => panic!("{other:?}"),
    }
}

fn rpc(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

fn rpc_call(method: &str, params: &Value) -> Call {
    one(&post("/", &rpc(method, params)))
}

fn field_of(refusal: A2aError) -> String {
    match refusal {
        A2aError::InvalidParams { field, .. } => field,
        other => panic!("{other:?}"),
    }
}

fn body(answer: &WireResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn v10_send() -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}})
}

#[test]
fn every_method_can_be_opened_and_read() {
    let v03 = json!({"message": {"kind": "message", "messageId": "m", "role": "user",
        "parts": [{"kind": "text", "text": "hi"}]}});
    let v01 =
        json!({"id": "t", "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}});
    let id = json!({"id": "t"});
    let rows = [
        ("SendMessage", &v10_send(), Generation::V10),
        ("SendStreamingMessage", &v10_send(), Generation::V10),
        ("GetTask", &id, Generation::V10),
        ("CancelTask", &id, Generation::V10),
        ("SubscribeToTask", &id, Generation::V10),
        ("ListTasks", &json!({}), Generation::V10),
        ("message/send", &v03, Generation::V03),
        ("message/stream", &v03, Generation::V03),
        ("tasks/get", &id, Generation::V03),
        ("tasks/cancel", &id, Generation::V03),
        ("tasks/resubscribe", &id, Generation::V03),
        ("tasks/send", &v01, Generation::V01),
        ("tasks/sendSubscribe", &v01, Generation::V01),
    ];
    each_row(rows, |(method, params, generation)| {
        let call = rpc_call(method, params);
        assert_eq!(call.dialect, Dialect::json_rpc(generation), "{method}");
        let ask = call.decode().unwrap();
        let expected = match call.operation {
            Operation::Send => matches!(ask, MethodCall::Unary(UnaryCall::Send(_))),
            Operation::Stream => matches!(ask, MethodCall::Stream(StreamCall::Send(_))),
            Operation::Get => matches!(ask, MethodCall::Unary(UnaryCall::Get(_))),
            Operation::List => matches!(ask, MethodCall::Unary(UnaryCall::List(_))),
            Operation::Cancel => matches!(ask, MethodCall::Unary(UnaryCall::Cancel(_))),
            Operation::Subscribe => matches!(ask, MethodCall::Stream(StreamCall::Subscribe(_))),
            _ => false,
        };
        assert!(expected, "{method}");
        assert_eq!(call.streams(), call.operation.streams());
    });
}

#[test]
fn the_same_operations_are_read_over_rest() {
    let v10 = v10_send().to_string();
    let v03 =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}})
            .to_string();
    let rows = [
        (post("/message:send", &v10), Generation::V10),
        (post("/message:stream", &v10), Generation::V10),
        (get("/tasks"), Generation::V10),
        (get("/tasks/t"), Generation::V10),
        (post("/tasks/t:cancel", ""), Generation::V10),
        (post("/tasks/t:cancel", "{}"), Generation::V10),
        (post("/tasks/t:subscribe", ""), Generation::V10),
        (get("/tasks/t:subscribe"), Generation::V10),
        (post("/v1/message:send", &v03), Generation::V03),
        (get("/v1/tasks"), Generation::V03),
        (get("/v1/tasks/t"), Generation::V03),
        (post("/v1/tasks/t:cancel", ""), Generation::V03),
        (post("/v1/tasks/t:subscribe", ""), Generation::V03),
        (get("/tasks/t/get"), Generation::V01),
    ];
    each_row(rows, |(request, generation)| {
        let call = one(&request);
        assert_eq!(call.dialect, Dialect::rest(generation), "{request:?}");
        let ask = call.decode().unwrap();
        let id = match ask {
            MethodCall::Unary(UnaryCall::Get(query)) => Some(query.id),
            MethodCall::Unary(UnaryCall::Cancel(command)) => Some(command.id),
            MethodCall::Stream(StreamCall::Subscribe(command)) => Some(command.id),
            _ => None,
        };
        assert_eq!(id.is_some(), call.params.contains_key("id"), "{request:?}");
        assert!(id.is_none_or(|id| id.as_str() == "t"), "{request:?}");
    });
}

#[test]
fn a_cancel_or_subscribe_without_a_body_needs_no_content_type() {
    let request = RawRequest {
        content_type: None,
        ..post("/tasks/t:cancel", "")
    };
    assert!(open(&request).is_ok());
}

#[test]
fn a_content_type_is_refused_before_the_body_is_read() {
    // A2A 1.0.1 §5.4 sets 400 for REST; JSON-RPC and the older generations keep 415.
    let rows = [
        ("/", 415),
        ("/message:send", 400),
        ("/v1/message:send", 415),
        ("/tasks/send", 415),
    ];
    each_row(rows, |(path, status)| {
        for content_type in [None, Some("text/plain")] {
            let request = RawRequest {
                content_type,
                ..post(path, "not json")
            };
            let refused = open(&request).unwrap_err();
            assert_eq!(refused.error, A2aError::UnsupportedMediaType, "{path}");
            assert_eq!(refused.answer().status, status, "{path}");
        }
    });
    let answer = open(&RawRequest {
        content_type: Some("text/plain"),
        ..post("/", "x")
    })
    .unwrap_err()
    .answer();
    assert_eq!(body(&answer)["id"], Value::Null);
    assert_eq!(body(&answer)["error"]["code"], -32005);
}

#[test]
fn a_malformed_body_gets_the_error_format_of_its_path() {
    let answer = open(&post("/", "{")).unwrap_err().answer();
    assert_eq!(
        (answer.status, &body(&answer)["error"]["code"]),
        (200, &json!(-32700))
    );
    let answer = open(&post("/message:send", "{")).unwrap_err().answer();
    assert_eq!(
        (answer.status, &body(&answer)["error"]["code"]),
        (400, &json!(400))
    );
    let answer = open(&post("/v1/message:send", "{")).unwrap_err().answer();
    assert_eq!(
        (answer.status, &body(&answer)["code"]),
        (400, &json!(-32700))
    );
    let answer = open(&post("/tasks/send", "{")).unwrap_err().answer();
    assert_eq!(
        (answer.status, &body(&answer)["code"]),
        (400, &json!(-32700))
    );
}

#[test]
fn the_error_for_an_unknown_method_repeats_the_id() {
    let rows = ["Sendmessage", "tasks/list", "tasks/sendNow", ""];
    each_row(rows, |method| {
        let refused = open(&post("/", &rpc(method, &json!({})))).unwrap_err();
        assert_eq!(refused.error, A2aError::MethodNotFound);
        assert_eq!(body(&refused.answer())["id"], 7, "{method}");
    });
}

#[test]
fn an_unknown_path_is_not_found() {
    let answer = open(&get("/nothing")).unwrap_err().answer();
    assert_eq!(answer.status, 404);
    assert_eq!(body(&answer)["error"]["status"], "NOT_FOUND");
    let answer = open(&get("/v1/nothing")).unwrap_err().answer();
    assert_eq!(body(&answer)["code"], -32601);
}

#[test]
fn parameters_of_a_wrong_type_are_invalid_params_not_invalid_request() {
    let rows = [
        "SendMessage",
        "message/send",
        "tasks/send",
        "GetTask",
        "tasks/get",
    ];
    each_row(rows, |method| {
        let cases = [json!([]), json!("x"), json!(1), json!({"": 1})];
        each_row(cases, |params| {
            let call = rpc_call(method, &params);
            assert!(
                !field_of(call.decode().unwrap_err()).is_empty(),
                "{method} {params}"
            );
        });
        let bare = json!({"jsonrpc": "2.0", "id": 7, "method": method}).to_string();
        let call = one(&post("/", &bare));
        assert!(!field_of(call.decode().unwrap_err()).is_empty(), "{method}");
    });
}

#[test]
fn a_duplicate_in_the_parameters_is_found_at_decoding_with_its_path() {
    let text = r#"{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":
        {"message":{"messageId":"m","role":"ROLE_USER","role":"ROLE_USER","parts":[{"text":""}]}}}"#;
    let call = one(&post("/", text));
    assert_eq!(field_of(call.decode().unwrap_err()), "message.role");
    let text = r#"{"message":{"messageId":"m","messageId":"n"}}"#;
    let call = one(&post("/message:send", text));
    assert_eq!(field_of(call.decode().unwrap_err()), "message.messageId");
    let call = one(&post("/tasks/send", r#"{"id":"a","id":"b"}"#));
    assert_eq!(field_of(call.decode().unwrap_err()), "id");
}

#[test]
fn the_version_is_checked_by_generation() {
    let send = rpc("SendMessage", &v10_send());
    let versioned = |version| RawRequest {
        version,
        ..post("/", &send)
    };
    assert_eq!(one(&versioned(Some("1.0"))).check_version(), Ok(()));
    let refused = one(&versioned(None)).check_version().unwrap_err();
    assert!(
        matches!(refused, A2aError::VersionNotSupported { ref version, .. } if version == "0.3")
    );
    let by_query = RawRequest {
        query: Some("A2A-Version=1.0"),
        ..post("/", &send)
    };
    assert_eq!(one(&by_query).check_version(), Ok(()));
    let repeated = one(&RawRequest {
        query: Some("A2A-Version=1.0&a2a-version=1.0"),
        ..get("/tasks/t")
    });
    assert_eq!(repeated.check_version(), Ok(()));
    assert!(repeated.decode().is_ok(), "it belongs to no operation");
    assert!(one(&get("/tasks/t")).check_version().is_err());
    assert_eq!(one(&get("/v1/tasks/t")).check_version(), Ok(()));
    assert_eq!(
        one(&get("/.well-known/agent-card.json")).check_version(),
        Ok(())
    );
}

#[test]
fn a_newer_version_is_returned_for_the_log() {
    let send = rpc("SendMessage", &v10_send());
    let request = RawRequest {
        version: Some("2.0"),
        ..post("/", &send)
    };
    assert_eq!(one(&request).newer_version(), Some("2.0"));
    let old = RawRequest {
        version: Some("0.9"),
        ..request
    };
    assert_eq!(one(&old).newer_version(), None);
}

#[test]
fn a_tenant_is_taken_from_the_path_the_parameters_or_the_query() {
    assert_eq!(
        one(&get("/acme/tasks")).routing_tenant.as_deref(),
        Some("acme")
    );
    let mut params = v10_send();
    params["tenant"] = json!("acme");
    assert_eq!(
        rpc_call("SendMessage", &params).routing_tenant.as_deref(),
        Some("acme")
    );
    let query = RawRequest {
        query: Some("tenant=acme"),
        ..get("/tasks")
    };
    assert_eq!(one(&query).routing_tenant.as_deref(), Some("acme"));
    assert_eq!(rpc_call("SendMessage", &v10_send()).routing_tenant, None);
}

#[test]
fn two_tenants_in_one_request_are_refused() {
    let mut params = v10_send();
    params["tenant"] = json!("other");
    let text = params.to_string();
    let call = one(&post("/acme/message:send", &text));
    assert_eq!(field_of(call.decode().unwrap_err()), "tenant");
}

#[test]
fn the_id_in_the_path_replaces_the_one_in_the_body() {
    let call = one(&post(
        "/tasks/t:cancel",
        r#"{"id":"other","metadata":{"a":1}}"#,
    ));
    match call.decode().unwrap() {
        MethodCall::Unary(UnaryCall::Cancel(command)) => {
            assert_eq!(command.id.as_str(), "t");
            assert_eq!(command.metadata["a"], 1);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_malformed_id_in_a_path_is_refused_as_the_field_id() {
    for path in ["/tasks/a%2Fb", "/v1/tasks/a%20b", "/tasks/a%20b/get"] {
        assert_eq!(
            field_of(one(&get(path)).decode().unwrap_err()),
            "id",
            "{path}"
        );
    }
}

#[test]
fn a_subscription_resumes_after_the_last_event_id() {
    let subscribe = |last_event_id| {
        let call = one(&RawRequest {
            last_event_id,
            ..get("/tasks/t:subscribe")
        });
        call.decode()
    };
    match subscribe(Some("4.2")).unwrap() {
        MethodCall::Stream(StreamCall::Subscribe(command)) => {
            assert_eq!(
                command.last_event,
                Some(EventId {
                    version: 4,
                    n: 2,
                    mark: None
                })
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(subscribe(Some("")), Ok(MethodCall::Stream(StreamCall::Subscribe(command))) if command.last_event.is_none())
    );
    assert_eq!(field_of(subscribe(Some("x")).unwrap_err()), "Last-Event-ID");
}

#[test]
fn a_batch_keeps_a_slot_for_every_entry() {
    let text = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}},
        {"jsonrpc": "2.0", "id": 2, "method": "SendStreamingMessage", "params": v10_send()},
        7,
        {"jsonrpc": "2.0", "id": 3, "method": "nothing"},
    ])
    .to_string();
    let Ok(OpenedRequest::Batch(slots)) = open(&post("/", &text)) else {
        panic!("expected a batch")
    };
    let codes: Vec<Value> = slots
        .iter()
        .map(|slot| match slot {
            Ok(call) => json!(call.operation == Operation::Get),
            Err(refused) => {
                let body = body(&refused.answer());
                json!([body["id"], body["error"]["code"]])
            }
        })
        .collect();
    assert_eq!(
        json!(codes),
        json!([true, [2, -32600], [null, -32600], [3, -32601]])
    );
}

#[test]
fn a_duplicate_in_a_batch_stays_in_its_slot() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a","id":"b"}},
        {"jsonrpc":"2.0","id":2,"method":"GetTask","method":"GetTask"},
        {"jsonrpc":"2.0","id":3,"method":"GetTask","params":{"id":"a"}}]"#;
    let Ok(OpenedRequest::Batch(slots)) = open(&post("/", text)) else {
        panic!("expected a batch")
    };
    assert_eq!(
        field_of(slots[0].as_ref().unwrap().decode().unwrap_err()),
        "id"
    );
    assert_eq!(
        slots[1].as_ref().unwrap_err().rpc_id,
        RpcId::Number(2.into())
    );
    assert!(slots[2].as_ref().unwrap().decode().is_ok());
}

#[test]
fn an_empty_or_oversized_batch_is_one_invalid_request() {
    let entry = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}"#;
    let batch = |entries: usize| format!("[{}]", vec![entry; entries].join(","));
    assert!(open(&post("/", &batch(16))).is_ok());
    for text in [batch(0), batch(17), batch(3_000)] {
        let refused = open(&post("/", &text)).unwrap_err();
        assert!(matches!(refused.error, A2aError::InvalidRequest { .. }));
        assert_eq!(body(&refused.answer())["id"], Value::Null);
    }
}

#[test]
fn a_path_of_0_1_takes_an_envelope_or_the_bare_parameters() {
    let params =
        json!({"id": "t", "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}});
    let bare = params.to_string();
    assert_eq!(
        one(&post("/tasks/send", &bare)).dialect,
        Dialect::rest(Generation::V01)
    );
    let envelope = rpc("tasks/send", &params);
    let call = one(&post("/tasks/send", &envelope));
    assert_eq!(call.dialect, Dialect::json_rpc(Generation::V01));
    assert_eq!(call.rpc_id, RpcId::Number(7.into()));
    assert!(call.decode().is_ok());
    let aliased = rpc("tasks/sendSubscribe", &params);
    assert!(one(&post("/tasks/stream", &aliased)).streams());
}

#[test]
fn a_path_of_0_1_is_always_0_1() {
    let call = one(&post("/tasks/get", &rpc("tasks/get", &json!({"id": "t"}))));
    assert_eq!(call.rule, GenerationRule::Named(Generation::V01));
    let call = one(&post("/tasks/cancel", r#"{"id":"t"}"#));
    assert_eq!(call.dialect.generation, Generation::V01);
}

#[test]
fn an_envelope_for_another_path_is_refused() {
    let rows = ["tasks/get", "message/send", "SendMessage", "nothing"];
    each_row(rows, |method| {
        let refused = open(&post("/tasks/send", &rpc(method, &json!({})))).unwrap_err();
        assert!(
            matches!(refused.error, A2aError::InvalidRequest { .. }),
            "{method}"
        );
        assert_eq!(body(&refused.answer())["error"]["code"], -32600);
        assert_eq!(refused.answer().status, 200);
    });
}

#[test]
fn the_paths_of_the_extensions_are_read() {
    assert_eq!(
        one(&get("/a2a-lambda/skills")).decode(),
        Ok(MethodCall::Unary(UnaryCall::Skills))
    );
    let listed = RawRequest {
        query: Some("pageSize=7"),
        ..get("/a2a-lambda/contexts")
    };
    let listed = one(&listed).decode();
    let query = ContextQuery {
        page_size: 7,
        page_token: None,
    };
    assert_eq!(
        listed,
        Ok(MethodCall::Unary(UnaryCall::ListContexts(query)))
    );
    assert_eq!(
        one(&get("/extendedAgentCard")).decode(),
        Ok(MethodCall::Unary(UnaryCall::ExtendedCard))
    );
    let delete = |path| {
        let request = RawRequest {
            method: "DELETE",
            ..get(path)
        };
        one(&request).decode()
    };
    let context = ContextId::parse("c").unwrap();
    assert_eq!(
        delete("/a2a-lambda/contexts/c"),
        Ok(MethodCall::Unary(UnaryCall::DeleteContext(context)))
    );
    let task = TaskId::parse("t").unwrap();
    assert_eq!(
        delete("/a2a-lambda/tasks/t"),
        Ok(MethodCall::Unary(UnaryCall::DeleteTask(task)))
    );
    let fault = delete("/a2a-lambda/tasks/a%20b").unwrap_err();
    assert_eq!(field_of(fault), "id");
}

#[test]
fn the_three_card_paths_serve_two_forms() {
    let form = |path| one(&get(path)).decode();
    assert_eq!(
        form("/.well-known/agent-card.json"),
        Ok(MethodCall::Card(CardForm::AgentCard))
    );
    for path in ["/.well-known/agent.json", "/agent.json"] {
        assert_eq!(form(path), Ok(MethodCall::Card(CardForm::LegacyAgentJson)));
    }
}

#[test]
fn a_request_refused_unopened_gets_the_error_format_of_its_path() {
    let too_large = |path| {
        RoutedRequest::of(post(path, ""))
            .reject(A2aError::PayloadTooLarge { limit: 9 })
            .answer()
    };
    assert_eq!(body(&too_large("/"))["error"]["code"], -32600);
    assert_eq!(body(&too_large("/message:send"))["error"]["code"], 413);
    assert_eq!(body(&too_large("/v1/message:send"))["code"], -32600);
    assert_eq!(too_large("/").status, 413);
}
