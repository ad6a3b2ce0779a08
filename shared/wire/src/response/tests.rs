use super::*;
use crate::{OpenedRequest, RawRequest, open};
use a2a_lambda_model::task::{ContextId, Message, Part, Status, TaskState, Timestamp};
use a2a_lambda_rows::each_row;
use serde_json::json;

fn task(generation: Generation) -> Task {
    Task {
        id: TaskId::parse("t1").unwrap(),
        context_id: ContextId::parse("c1").unwrap(),
        generation,
        status: Status {
            state: TaskState::Completed,
            message: None,
            timestamp: Timestamp::from_millis(0),
        },
        artifacts: None,
        history: Some(vec![Message::from_user("m1", vec![Part::text("hi")])]),
        metadata: Default::default(),
        transitions: Vec::new(),
        last_event: None,
    }
}

fn call(request: &RawRequest<'_>) -> Call {
    match open(request) {
        Ok(OpenedRequest::One(call)) => *call,
        other => panic!("{other:?}"),
    }
}

fn rpc(method: &str, params: &Value) -> Call {
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}).to_string();
    call(&RawRequest {
        method: "POST",
        path: "/",
        content_type: Some("application/json"),
        body: body.as_bytes(),
        ..RawRequest::default()
    })
}

fn get(path: &str) -> RawRequest<'_> {
    RawRequest {
        method: "GET",
        path,
        ..RawRequest::default()
    }
}

fn body(answer: &WireResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn reply(generation: Generation) -> MethodResult {
    MethodResult::Task(Box::new(task(generation)))
}

#[test]
fn a_json_rpc_response_repeats_the_id() {
    let answered = answer(
        &rpc("GetTask", &json!({"id": "t1"})),
        &reply(Generation::V10),
    );
    let value = body(&answered);
    assert_eq!(answered.status, 200);
    assert_eq!(value["jsonrpc"], "2.0");
    assert_eq!(value["id"], "r");
    assert_eq!(value["result"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn a_rest_response_is_the_object_itself() {
    let value = body(&answer(&call(&get("/tasks/t1")), &reply(Generation::V10)));
    assert_eq!(value["id"], "t1");
    assert_eq!(value.get("kind"), None);
    let value = body(&answer(
        &call(&get("/v1/tasks/t1")),
        &reply(Generation::V10),
    ));
    assert_eq!(value["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn a_shared_method_answers_in_the_generation_of_the_task() {
    for method in ["tasks/get", "tasks/cancel"] {
        let call = rpc(method, &json!({"id": "t1"}));
        for generation in [Generation::V03, Generation::V10] {
            let value = body(&answer(&call, &reply(generation)));
            assert_eq!(value["result"]["kind"], "task", "{method}");
            assert_eq!(value["result"]["contextId"], "c1");
        }
        let value = body(&answer(&call, &reply(Generation::V01)));
        assert_eq!(value["result"]["sessionId"], "c1", "{method}");
        assert_eq!(value["result"].get("kind"), None);
    }
}

#[test]
fn a_method_of_1_0_answers_in_1_0_for_any_task() {
    let value = body(&answer(
        &rpc("GetTask", &json!({"id": "t1"})),
        &reply(Generation::V01),
    ));
    assert_eq!(value["result"]["contextId"], "c1");
    assert_eq!(value["result"].get("sessionId"), None);
}

#[test]
fn a_task_of_0_1_shows_history_only_when_it_is_asked_for() {
    let history = |params: Value| {
        let value = body(&answer(&rpc("tasks/get", &params), &reply(Generation::V01)));
        value["result"].get("history").is_some()
    };
    assert!(!history(json!({"id": "t1"})));
    assert!(!history(json!({"id": "t1", "historyLength": null})));
    assert!(!history(json!({"id": "t1", "historyLength": 0})));
    assert!(history(json!({"id": "t1", "historyLength": 5})));
}

#[test]
fn a_send_is_answered_in_the_shape_of_its_generation() {
    let message = Message::from_agent("m2", vec![Part::text("hello")]);
    let params =
        json!({"id": "t1", "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}});
    let value = body(&answer(
        &rpc("tasks/send", &params),
        &MethodResult::Sent(SendResponse::Message(message.clone())),
    ));
    assert_eq!(value["result"]["id"], "t1");
    assert_eq!(value["result"]["status"]["state"], "completed");
    let value = body(&answer(
        &rpc("message/send", &json!({})),
        &MethodResult::Sent(SendResponse::Message(message.clone())),
    ));
    assert_eq!(value["result"]["kind"], "message");
    let value = body(&answer(
        &rpc("SendMessage", &json!({})),
        &MethodResult::Sent(SendResponse::Message(message)),
    ));
    assert_eq!(value["result"]["message"]["messageId"], "m2");
}

#[test]
fn a_rest_response_has_the_media_type_the_client_accepts() {
    let media = |request: &RawRequest<'_>| answer(&call(request), &reply(Generation::V10)).headers;
    let special = [("content-type", "application/a2a+json".to_owned())];
    let plain = [("content-type", "application/json".to_owned())];
    let accepting = |accept| RawRequest {
        accept: Some(accept),
        ..get("/tasks/t1")
    };
    let (json, any) = (accepting("application/json"), accepting("*/*"));
    assert_eq!(media(&any), special);
    assert_eq!(media(&get("/tasks/t1")), plain);
    assert_eq!(media(&get("/v1/tasks/t1")), plain);
    assert_eq!(media(&json), plain);
    let refusal = A2aError::TaskNotFound;
    assert_eq!(refuse(&call(&json), &refusal).headers, plain);
    assert_eq!(refuse(&call(&any), &refusal).headers, special);
}

#[test]
fn a_response_names_the_known_extensions_of_the_request() {
    let asked = RawRequest {
        extensions: Some("urn:other, urn:a2a-lambda:ext:skill-schemas:1"),
        ..get("/tasks/t1")
    };
    let headers = answer(&call(&asked), &reply(Generation::V10)).headers;
    let expected = ("a2a-extensions", EXTENSIONS[0].uri.to_owned());
    assert!(headers.contains(&expected), "{headers:?}");
    let headers = answer(
        &call(&RawRequest {
            path: "/v1/tasks/t1",
            ..asked
        }),
        &reply(Generation::V10),
    )
    .headers;
    assert!(headers.contains(&("x-a2a-extensions", EXTENSIONS[0].uri.to_owned())));
    let unknown = RawRequest {
        extensions: Some("urn:other"),
        ..get("/tasks/t1")
    };
    assert_eq!(
        answer(&call(&unknown), &reply(Generation::V10))
            .headers
            .len(),
        1
    );
}

#[test]
fn an_error_has_its_headers_and_status() {
    let limited = A2aError::RateLimited { retry_after: 7 };
    let answered = refuse(&rpc("GetTask", &json!({})), &limited);
    assert_eq!(answered.status, 429);
    assert!(answered.headers.contains(&("retry-after", "7".to_owned())));
    assert_eq!(body(&answered)["id"], "r");
    assert_eq!(
        refuse(&call(&get("/tasks/t1")), &A2aError::TaskNotFound).status,
        404
    );
}

#[test]
fn a_batch_joins_its_responses_and_is_always_200() {
    let call = rpc("GetTask", &json!({"id": "t1"}));
    let joined = batch(&[
        answer(&call, &reply(Generation::V10)),
        refuse(&call, &A2aError::RateLimited { retry_after: 7 }),
    ]);
    assert_eq!(joined.status, 200);
    let value = body(&joined);
    assert_eq!(value[0]["result"]["id"], "t1");
    assert_eq!(value[1]["error"]["code"], -32029);
    assert_eq!(value.as_array().unwrap().len(), 2);
}

/// The field that the caller of a send sees for a fault at `field`.
fn named(send: &Call, field: &str) -> Value {
    let refused = refuse(send, &A2aError::invalid(field, "is wrong"));
    let body = body(&refused);
    let data = body.pointer("/error/data").unwrap_or(&body["data"]);
    data[0]["fieldViolations"][0]["field"].clone()
}

#[test]
fn a_field_inside_wrapped_data_is_named_as_the_client_wrote_it() {
    let wrapped = json!({"value": [1]});
    let marked = json!({"data_part_compat": true});
    let part = json!({"kind": "data", "data": wrapped, "metadata": marked});
    let send = rpc("message/send", &json!({"message": {"parts": [part]}}));
    assert_eq!(
        named(&send, "message.parts[0].data[0]"),
        "message.parts[0].data.value[0]"
    );
    assert_eq!(
        named(&send, "message.parts[1].data.a"),
        "message.parts[1].data.a"
    );
    let parts = [
        (json!({"data": {"data": {"a": 1}}}), ".data.a"),
        (json!({"data": {"a": 1}}), ".a"),
        (
            json!({"data": {"data": wrapped}, "metadata": marked}),
            ".data.value.a",
        ),
    ];
    for (part, inside) in parts {
        let body = json!({"message": {"content": [part]}}).to_string();
        let send = call(&RawRequest {
            method: "POST",
            path: "/v1/message:send",
            content_type: Some("application/json"),
            body: body.as_bytes(),
            ..RawRequest::default()
        });
        assert_eq!(
            named(&send, "message.parts[0].data.a"),
            format!("message.content[0].data{inside}")
        );
    }
}

#[test]
fn a_client_that_reads_only_events_gets_errors_as_events() {
    let refused = |method: &str, accept, refusal: &A2aError| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "t1"}});
        let call = call(&RawRequest {
            method: "POST",
            path: "/",
            content_type: Some("application/json"),
            accept: Some(accept),
            body: body.to_string().as_bytes(),
            ..RawRequest::default()
        });
        refuse(&call, refusal)
    };
    let events = "text/event-stream";
    let header = ("content-type", events.to_owned());
    // As the official 0.3 client for Python sends it.
    let answer = refused(
        "message/stream",
        "*/*, text/event-stream",
        &A2aError::TaskNotFound,
    );
    assert!(answer.headers.contains(&header));
    for method in [
        "tasks/resubscribe",
        "SubscribeToTask",
        "SendStreamingMessage",
    ] {
        let answer = refused(method, events, &A2aError::TaskNotFound);
        assert!(answer.headers.contains(&header), "{method}");
        let text = String::from_utf8(answer.body).unwrap();
        let data = text.strip_prefix("data: ").unwrap();
        let value: Value = serde_json::from_str(data).unwrap();
        let error = (&value["id"], &value["error"]["code"]);
        assert_eq!(error, (&json!(1), &json!(-32001)), "{method}");
    }

    // A plain response: an error with its own HTTP status, a client that accepts other
    // types, a unary call, and a subscription of 1.0 to an ended task.
    let unavailable = A2aError::Unavailable { retry_after: 1 };
    let ended = A2aError::UnsupportedOperation { why: "ended" };
    let rows = [
        refused("SubscribeToTask", events, &unavailable),
        refused("tasks/resubscribe", "*/*", &A2aError::TaskNotFound),
        refused(
            "message/stream",
            "application/json, text/event-stream",
            &A2aError::TaskNotFound,
        ),
        refused("tasks/get", events, &A2aError::TaskNotFound),
        refused("SubscribeToTask", events, &ended),
    ];
    each_row(rows, |answer| {
        assert!(body(&answer)["error"]["code"].is_i64());
    });
}
