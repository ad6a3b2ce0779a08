use super::*;
use a2a_lambda_skill::model::{OutputSchema, ToolChoice, ToolResult};

const RESPONSES: OpenAiApi = OpenAiApi::Responses;

fn answer(output: &Value) -> Value {
    json!({
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": null,
        "incomplete_details": null,
        "output": output,
        "usage": {"input_tokens": 11, "output_tokens": 7, "output_tokens_details": {}},
    })
}

fn message(content: &str) -> Value {
    let part = json!({"type": "output_text", "text": content, "annotations": []});
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]})
}

fn function_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "arguments": arguments, "status": "completed",
    })
}

fn reasoning() -> Value {
    json!({
        "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA==",
        "new_member": {"b": [1, 2.50, null], "a": 18446744073709551615_u64},
    })
}

#[tokio::test]
async fn text_is_answered_with_text_and_usage() {
    let answer = answer(&json!([message("Grüße 🦀")]));
    let stub = ModelStub::start([StubAnswer::json(200, &answer.to_string())]).await;
    let schema = json!({
        "type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false,
    });
    let options = json!({
        "store": true, "input": "x", "include": ["reasoning.encrypted_content"],
        "text": {"verbosity": "low"},
    });
    let request = ModelRequest {
        system: "Be brief.".to_owned(),
        output: Some(OutputSchema {
            name: "order".to_owned(),
            schema: schema.clone(),
        }),
        max_tokens: Some(300),
        options: options.as_object().unwrap().clone(),
        ..ask("hello")
    };
    let reply = model(&stub, RESPONSES).converse(request).await.unwrap();
    assert_eq!(reply.content, [text("Grüße 🦀")]);
    assert_eq!(reply.stop, StopReason::EndTurn);
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (11, 7)
    );
    let format = json!({"type": "json_schema", "name": "order", "schema": schema, "strict": true});
    let expected = json!({
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": "hello"}],
        "include": ["reasoning.encrypted_content"],
        "text": {"verbosity": "low", "format": format},
        "max_output_tokens": 300,
        "store": false,
    });
    assert_eq!(stub.body(0), expected);
    assert!(
        stub.requests()[0]
            .head
            .starts_with("post /v1/responses http/1.1\r\n")
    );
}

#[tokio::test]
async fn reasoning_calls_and_results_return_to_the_model() {
    let output = json!([
        reasoning(),
        function_call("a", "stock", "{\"item\":\"x\"}"),
        function_call("b", "price", "{\"item\": "),
        {"type": "reasoning", "id": "rs_2", "summary": []},
    ]);
    let answers = [answer(&output), answer(&json!([message("done")]))];
    let answers = answers.map(|answer| StubAnswer::json(200, &answer.to_string()));
    let stub = ModelStub::start(answers).await;
    let model = model(&stub, RESPONSES);
    let mut request = with_tools(&["stock", "price"]);
    request.tool_choice = ToolChoice::Tool("stock".to_owned());
    let reply = model.converse(request.clone()).await.unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
    let calls = [
        call("a", "stock", json!({"item": "x"})),
        call("b", "price", json!("{\"item\": ")),
    ];
    assert_eq!(reply.content[1..3], calls);
    let tool = json!({
        "type": "function", "name": "stock", "description": "the stock",
        "parameters": {"type": "object"}, "strict": false,
    });
    assert_eq!(stub.body(0)["tools"][0], tool);
    let forced = json!({"type": "function", "name": "stock"});
    assert_eq!(stub.body(0)["tool_choice"], forced);

    // The content survives a store.
    let stored = serde_json::to_string(&ModelMessage::Model(reply.content)).unwrap();
    request
        .messages
        .push(serde_json::from_str(&stored).unwrap());
    let result = |id: &str, result| ToolResult {
        id: id.to_owned(),
        result,
    };
    let results = vec![
        result("a", Ok(json!([1]))),
        result("b", Err("bad".to_owned())),
    ];
    request.messages.push(ModelMessage::ToolResults(results));
    request.tool_choice = ToolChoice::Any;
    model.converse(request).await.unwrap();
    let called = |id, name, arguments| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let result =
        |id, output| json!({"type": "function_call_output", "call_id": id, "output": output});
    // The service does not know reasoning without its content.
    let expected = json!([
        {"type": "message", "role": "user", "content": "how many?"},
        reasoning(),
        called("a", "stock", r#"{"item":"x"}"#),
        called("b", "price", r#"{"invalid_arguments":"{\"item\": "}"#),
        result("a", "[1]"),
        result("b", "error: bad"),
    ]);
    assert_eq!(stub.body(1)["input"], expected);
    assert_eq!(stub.body(1)["tool_choice"], "required");
}

#[tokio::test]
async fn status_of_an_answer_becomes_its_stop_reason() {
    let with = |status: &str, reason: Value| {
        let mut answer = answer(&json!([message("a")]));
        answer["status"] = json!(status);
        answer["incomplete_details"] = json!({"reason": reason});
        answer
    };
    let cases = [
        (
            with("incomplete", json!("max_output_tokens")),
            StopReason::MaxTokens,
        ),
        (
            with("incomplete", json!("content_filter")),
            StopReason::Filtered,
        ),
        (with("incomplete", Value::Null), StopReason::Other),
    ];
    for (answer, expected) in cases {
        assert_eq!(reply(RESPONSES, &answer).await.unwrap().stop, expected);
    }
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]);
    let refused = reply(RESPONSES, &answer(&refusal)).await.unwrap();
    assert_eq!(
        (refused.stop, refused.content),
        (StopReason::Filtered, vec![text("no")])
    );
    let mut failed = with("failed", Value::Null);
    failed["error"] = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    let cases = [
        (failed, ErrorCode::ModelRateLimited),
        (with("in_progress", Value::Null), ErrorCode::ModelProvider),
        (json!({}), ErrorCode::ModelProvider),
    ];
    for (answer, expected) in cases {
        let error = reply(RESPONSES, &answer).await.unwrap_err();
        assert_eq!(error.code(), expected, "{answer}");
    }
}

fn events(events: &[Value]) -> String {
    let event = |data: &Value| {
        let name = data["type"].as_str().unwrap();
        format!("event: {name}\ndata: {data}\n\n")
    };
    events.iter().map(event).collect()
}

/// A stream with reasoning, text beyond ASCII and two calls.
fn whole_stream() -> String {
    let item = |kind: &str, index: u8, item: Value| json!({"type": kind, "output_index": index, "item": item});
    let (added, done) = ("response.output_item.added", "response.output_item.done");
    let text = |delta: &str| json!({"type": "response.output_text.delta", "output_index": 1, "delta": delta});
    let arguments = |index: u8, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta});
    let completed = json!({"type": "response.completed", "response": answer(&json!([]))});
    events(&[
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        item(added, 0, json!({"type": "reasoning", "id": "rs_1"})),
        item(done, 0, reasoning()),
        item(added, 1, json!({"type": "message", "content": []})),
        text("Grüße "),
        text("🦀 漢"),
        item(done, 1, message("Grüße 🦀 漢")),
        item(added, 2, function_call("a", "stock", "")),
        arguments(2, "{\"item\":"),
        arguments(2, "\"ö\"}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"item\":\"ö\"}"}),
        item(done, 2, function_call("a", "stock", "{\"item\":\"ö\"}")),
        item(done, 3, function_call("b", "price", "{\"all\":true}")),
        item(done, 4, message("unstreamed")),
        completed,
    ])
}

#[test]
fn cut_of_a_stream_at_any_byte_is_harmless_or_an_error() {
    let whole = whole_stream();
    let start = |id: &str, name: &str| Delta::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    let input = |text: &str| Delta::ToolInput(text.to_owned());
    let expected = vec![
        Delta::Provider(json!({"responsesItem": reasoning()})),
        Delta::Text("Grüße ".to_owned()),
        Delta::Text("🦀 漢".to_owned()),
        start("a", "stock"),
        input("{\"item\":"),
        input("\"ö\"}"),
        start("b", "price"),
        input("{\"all\":true}"),
        Delta::Text("unstreamed".to_owned()),
        stop(StopReason::ToolUse, 11, 7),
    ];
    assert_eq!(decoded(RESPONSES, &[whole.as_bytes()]), (expected, None));
    check_every_cut(
        RESPONSES,
        &whole,
        end_of(&whole, "event: response.completed"),
    );
}

#[tokio::test]
async fn stream_is_read_over_the_wire() {
    let whole = whole_stream();
    let stub = ModelStub::start([StubAnswer::stream(whole.as_bytes().chunks(11))]).await;
    let model = model(&stub, RESPONSES);
    let deltas = model.converse_stream(ask("hello")).await.unwrap();
    assert_eq!(
        collect(deltas).await,
        decoded(RESPONSES, &[whole.as_bytes()])
    );
    assert_eq!(stub.body(0)["stream"], true);
    assert_eq!(stub.body(0).get("stream_options"), None);
}

#[test]
fn last_events_of_a_stream_decide_its_end() {
    let text = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "a"});
    let refusal = json!({"type": "response.refusal.delta", "output_index": 0, "delta": "a"});
    let ended = |kind: &str, change: fn(&mut Value)| {
        let mut response = answer(&json!([]));
        change(&mut response);
        json!({"type": kind, "response": response})
    };
    let incomplete = ended("response.incomplete", |response| {
        response["status"] = json!("incomplete");
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    });
    let failed = ended("response.failed", |response| {
        response["status"] = json!("failed");
        response["error"] = json!({"code": "context_length_exceeded", "message": "m"});
    });
    let nested = json!({"type": "error", "error": {"code": "invalid_api_key"}});
    let plain =
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "m", "param": null});
    let completed = ended("response.completed", |_| {});
    let cases = [
        (text.clone(), incomplete, Ok(StopReason::MaxTokens)),
        (refusal, completed, Ok(StopReason::Filtered)),
        (text.clone(), failed, Err(ErrorCode::ContextLengthExceeded)),
        (text.clone(), nested, Err(ErrorCode::ModelAuth)),
        (text, plain, Err(ErrorCode::ModelRateLimited)),
    ];
    for (first, last, expected) in cases {
        let whole = events(&[first, last]) + "data: [DONE]\n\n";
        let (deltas, error) = decoded(RESPONSES, &[whole.as_bytes()]);
        assert_eq!(deltas[0], Delta::Text("a".to_owned()));
        let found = match deltas.get(1) {
            Some(Delta::Stop { stop, .. }) => Ok(*stop),
            _ => Err(error.unwrap().code().clone()),
        };
        assert_eq!(found, expected, "{whole}");
    }
}
