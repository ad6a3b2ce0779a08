use super::*;
use crate::openai::OpenAiQuirks;
use a2a_lambda_model::task::Secret;
use a2a_lambda_skill::model::{OutputSchema, ToolChoice, ToolResult};

const CHAT: OpenAiApi = OpenAiApi::ChatCompletions;

/// An answer with this message.
fn answer(message: &Value, finish: &str) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "service_tier": "default",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "x": {"y": 1}},
    })
}

fn plain(content: &str) -> Value {
    answer(
        &json!({"role": "assistant", "content": content, "refusal": null}),
        "stop",
    )
}

#[tokio::test]
async fn text_is_answered_with_text_and_usage() {
    let stub = ModelStub::start([StubAnswer::json(200, &plain("Grüße 🦀").to_string())]).await;
    let model = OpenAiModel::builder(format!("{}/", stub.url), "m");
    let model = model.key(Secret::new("sk-1")).build().unwrap();
    let request = ModelRequest {
        system: "Be brief.".to_owned(),
        ..ask("hello")
    };
    let reply = model.converse(request).await.unwrap();
    assert_eq!(reply.content, [text("Grüße 🦀")]);
    assert_eq!(reply.stop, StopReason::EndTurn);
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (11, 7)
    );
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]);
    assert_eq!(stub.body(0), json!({"model": "m", "messages": messages}));
    let head = &stub.requests()[0].head;
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nauthorization: bearer sk-1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\ncontent-type: application/json\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn parallel_calls_and_their_results_return_to_the_model() {
    let asked = json!({
        "role": "assistant",
        "content": null,
        "reasoning_content": "Look it up.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "stock", "arguments": "{\"item\":\"x\"}"}},
            {"id": "b", "type": "function", "function": {"name": "price", "arguments": ""}},
        ],
    });
    let answers = [answer(&asked, "tool_calls"), plain("done")];
    let answers = answers.map(|answer| StubAnswer::json(200, &answer.to_string()));
    let stub = ModelStub::start(answers).await;
    let model = model(&stub, CHAT);
    let mut request = with_tools(&["stock", "price"]);
    let reply = model.converse(request.clone()).await.unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
    let calls = [
        call("a", "stock", json!({"item": "x"})),
        call("b", "price", json!({})),
    ];
    assert!(matches!(reply.content[0], ModelContent::Provider(_)));
    assert_eq!(reply.content[1..], calls);
    let first = stub.body(0);
    let function =
        json!({"name": "stock", "description": "the stock", "parameters": {"type": "object"}});
    assert_eq!(
        first["tools"][0],
        json!({"type": "function", "function": function})
    );
    assert_eq!(first.get("tool_choice"), None);

    request.messages.push(ModelMessage::Model(reply.content));
    let result = |id: &str, result| ToolResult {
        id: id.to_owned(),
        result,
    };
    let results = vec![
        result("a", Ok(json!({"count": 3}))),
        result("b", Err("no such item".to_owned())),
        result("c", Ok(json!("plain"))),
    ];
    request.messages.push(ModelMessage::ToolResults(results));
    model.converse(request).await.unwrap();
    let tool = |id, content| json!({"role": "tool", "tool_call_id": id, "content": content});
    // The message of the model returns as it came, with the empty arguments as JSON.
    let mut returned = asked.clone();
    returned["tool_calls"][1]["function"]["arguments"] = json!("{}");
    let expected = json!([
        {"role": "user", "content": "how many?"},
        returned,
        tool("a", r#"{"count":3}"#),
        tool("b", "error: no such item"),
        tool("c", "plain"),
    ]);
    assert_eq!(stub.body(1)["messages"], expected);
}

#[tokio::test]
async fn forced_tool_is_a_call_although_the_answer_ends_with_stop() {
    let function = json!({"name": "stock", "arguments": "{}"});
    let message = json!({"tool_calls": [{"id": "", "type": "function", "function": function}]});
    let one = || StubAnswer::json(200, &answer(&message, "stop").to_string());
    let stub = ModelStub::start([one(), one(), one()]).await;
    let mut request = with_tools(&["stock"]);
    request.tool_choice = ToolChoice::Tool("stock".to_owned());
    let reply = model(&stub, CHAT).converse(request.clone()).await.unwrap();
    assert_eq!(reply.content, [call("call_0", "stock", json!({}))]);
    assert_eq!(reply.stop, StopReason::ToolUse);
    request.tool_choice = ToolChoice::Any;
    model(&stub, CHAT).converse(request.clone()).await.unwrap();
    let quirks = OpenAiQuirks {
        forced_tools: false,
        ..OpenAiQuirks::default()
    };
    let model = OpenAiModel::builder(&stub.url, "m").quirks(quirks).build();
    model.unwrap().converse(request).await.unwrap();
    let forced = json!({"type": "function", "function": {"name": "stock"}});
    assert_eq!(stub.body(0)["tool_choice"], forced);
    assert_eq!(stub.body(1)["tool_choice"], "required");
    assert_eq!(stub.body(2).get("tool_choice"), None);
}

#[tokio::test]
async fn arguments_that_are_no_json_are_a_text() {
    let function = json!({"name": "stock", "arguments": "{\"item\": "});
    let message = json!({"tool_calls": [{"id": "a", "function": function}]});
    let reply = reply(CHAT, &answer(&message, "tool_calls")).await.unwrap();
    assert_eq!(reply.content, [call("a", "stock", json!("{\"item\": "))]);
    let nameless = json!({"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]});
    let error = super::reply(CHAT, &answer(&nameless, "stop"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelProvider);
}

#[tokio::test]
async fn a_whole_answer_is_its_message_and_not_a_delta_beside_it() {
    let mut whole = plain("42");
    whole["choices"][0]["delta"] = json!({"role": "assistant", "content": ""});
    assert_eq!(reply(CHAT, &whole).await.unwrap().content, [text("42")]);
    whole["choices"][0]["message"] = Value::Null;
    let error = reply(CHAT, &whole).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelProvider);
}

#[tokio::test]
async fn a_call_without_arguments_does_not_get_those_of_the_next_one() {
    let called = |id, text| json!({"id": id, "function": {"name": "stock", "arguments": text}});
    let message = json!({"tool_calls": [called("a", "null"), called("b", "{\"x\": 1}")]});
    let reply = reply(CHAT, &answer(&message, "tool_calls")).await.unwrap();
    let expected = [("a", json!({})), ("b", json!({"x": 1}))];
    assert_eq!(
        reply.content,
        expected.map(|(id, input)| call(id, "stock", input))
    );
}

#[tokio::test]
async fn calls_of_a_whole_message_differ_by_their_places() {
    let called = |name| json!({"id": "", "index": 0, "function": {"name": name, "arguments": {}}});
    let message = json!({"tool_calls": [called("stock"), called("price")]});
    let reply = reply(CHAT, &answer(&message, "stop")).await.unwrap();
    let expected = [("call_0", "stock"), ("call_1", "price")];
    assert_eq!(
        reply.content,
        expected.map(|(id, name)| call(id, name, json!({})))
    );
}

#[tokio::test]
async fn options_and_schema_are_members_of_the_request() {
    let stub = ModelStub::start([StubAnswer::json(200, &plain("{}").to_string())]).await;
    let options = |value: Value| value.as_object().unwrap().clone();
    let quirks = OpenAiQuirks {
        token_limit: "max_completion_tokens".to_owned(),
        ..OpenAiQuirks::default()
    };
    let model = OpenAiModel::builder(&stub.url, "m")
        .options(options(
            json!({"temperature": 1, "seed": 4, "model": "other"}),
        ))
        .quirks(quirks)
        .build();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let request = ModelRequest {
        output: Some(OutputSchema {
            name: "order".to_owned(),
            schema: schema.clone(),
        }),
        max_tokens: Some(300),
        options: options(json!({"temperature": 0, "stream": true, "tools": 1, "messages": []})),
        ..ask("hello")
    };
    model.unwrap().converse(request).await.unwrap();
    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "order", "schema": schema, "strict": false},
        },
        "max_completion_tokens": 300,
        "temperature": 0,
        "seed": 4,
    });
    assert_eq!(stub.body(0), expected);
}

#[tokio::test]
async fn finish_reasons_become_stop_reasons() {
    let cases = [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Filtered),
        // There is no call.
        ("tool_calls", StopReason::EndTurn),
        ("something new", StopReason::Other),
    ];
    for (finish, expected) in cases {
        let answer = answer(&json!({"content": "a"}), finish);
        assert_eq!(
            reply(CHAT, &answer).await.unwrap().stop,
            expected,
            "{finish}"
        );
    }
    let refused = answer(&json!({"content": null, "refusal": "I cannot."}), "stop");
    let refused = reply(CHAT, &refused).await.unwrap();
    assert_eq!(refused.stop, StopReason::Filtered);
    assert_eq!(refused.content, [text("I cannot.")]);
}

#[tokio::test]
async fn parts_that_are_not_text_return_in_their_place() {
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
    let parts = json!([thinking, {"type": "text", "text": "4"}]);
    let message = json!({"role": "assistant", "content": parts});
    let answers = [answer(&message, "stop"), plain("done")];
    let answers = answers.map(|answer| StubAnswer::json(200, &answer.to_string()));
    let stub = ModelStub::start(answers).await;
    let model = model(&stub, CHAT);
    let mut request = ask("2 + 2?");
    let reply = model.converse(request.clone()).await.unwrap();
    assert_eq!(reply.content[1], text("4"));
    request.messages.push(ModelMessage::Model(reply.content));
    request.messages.push(ModelMessage::from_text("again"));
    model.converse(request).await.unwrap();
    assert_eq!(stub.body(1)["messages"][1], message);
}

#[tokio::test]
async fn blocks_of_other_providers_are_left_out() {
    let stub = ModelStub::start([StubAnswer::json(200, &plain("done").to_string())]).await;
    let foreign = json!({"reasoningContent": {"text": "hm"}, "role": "system"});
    let other_api = json!({"responsesItem": {"type": "reasoning", "id": "rs_1"}});
    let content = vec![
        ModelContent::Provider(foreign),
        ModelContent::Provider(other_api),
        text("yes"),
    ];
    let request = ModelRequest {
        messages: vec![ModelMessage::Model(content)],
        ..ModelRequest::default()
    };
    model(&stub, CHAT).converse(request).await.unwrap();
    let expected = json!([{"role": "assistant", "content": "yes"}]);
    assert_eq!(stub.body(0)["messages"], expected);
}

/// A stream with reasoning, text beyond ASCII, two calls and usage.
fn whole_stream() -> String {
    let chunk = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice], "usage": null})
    };
    let tool = |index: u8, function: Value| json!({"tool_calls": [{"index": index, "function": function}]});
    let named = |index: u8, id: &str, name: &str| {
        let function = json!({"name": name, "arguments": ""});
        json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
    };
    let chunks = [
        json!({"choices": [], "prompt_filter_results": []}),
        chunk(json!({"role": "assistant", "content": ""})),
        chunk(json!({"reasoning_content": "hm, "})),
        chunk(json!({"reasoning_content": "漢字"})),
        chunk(json!({"content": "Grüße "})),
        chunk(json!({"content": "🦀 漢"})),
        chunk(named(0, "a", "stock")),
        chunk(tool(0, json!({"arguments": "{\"item\":"}))),
        chunk(named(1, "b", "price")),
        chunk(tool(0, json!({"arguments": "\"ö\"}"}))),
        chunk(tool(1, json!({"arguments": "{}"}))),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}),
    ];
    let events = chunks.map(|chunk| format!("data: {chunk}\n\n"));
    format!(": keep-alive\n\n{}data: [DONE]\n\n", events.concat())
}

fn whole_deltas() -> Vec<Delta> {
    let start = |id: &str, name: &str| Delta::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    let input = |text: &str| Delta::ToolInput(text.to_owned());
    vec![
        Delta::Provider(json!({"chatMessage": {"reasoning_content": "hm, 漢字"}})),
        Delta::Text("Grüße ".to_owned()),
        Delta::Text("🦀 漢".to_owned()),
        start("a", "stock"),
        input("{\"item\":"),
        input("\"ö\"}"),
        start("b", "price"),
        input("{}"),
        stop(StopReason::ToolUse, 11, 7),
    ]
}

#[tokio::test]
async fn stream_is_read_in_any_chunks() {
    let whole = whole_stream();
    let answers = [1000, 7, 1].map(|length| StubAnswer::stream(whole.as_bytes().chunks(length)));
    let stub = ModelStub::start(answers).await;
    let model = model(&stub, CHAT);
    for _ in 0..3 {
        let deltas = model.converse_stream(ask("hello")).await.unwrap();
        assert_eq!(collect(deltas).await, (whole_deltas(), None));
    }
    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(stub.body(0), expected);
    assert!(
        stub.requests()[0]
            .head
            .contains("\r\naccept: text/event-stream\r\n")
    );
}

#[test]
fn cut_of_a_stream_at_any_byte_is_harmless_or_an_error() {
    let whole = whole_stream();
    assert_eq!(decoded(CHAT, &[whole.as_bytes()]).0, whole_deltas());
    check_every_cut(
        CHAT,
        &whole,
        end_of(&whole, "\"finish_reason\":\"tool_calls\""),
    );
    let crlf = whole.replace('\n', "\r\n");
    assert_eq!(decoded(CHAT, &[crlf.as_bytes()]).0, whole_deltas());
}

#[test]
fn error_in_a_stream_follows_the_deltas_before_it() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let cases = [
        (
            "{\"error\":{\"message\":\"m\",\"code\":502}}",
            ErrorCode::ModelProvider,
        ),
        (
            "{\"error\":{\"type\":\"rate_limit_error\"}}",
            ErrorCode::ModelRateLimited,
        ),
        ("{\"choices\": oops", ErrorCode::ModelProvider),
        ("[DONE]", ErrorCode::ModelProvider),
    ];
    for (data, code) in cases {
        let whole = format!("{text}data: {data}\n\n");
        let (deltas, error) = decoded(CHAT, &[whole.as_bytes()]);
        assert_eq!(deltas, [Delta::Text("a".to_owned())], "{data}");
        assert_eq!(error.unwrap().code(), code, "{data}");
    }
}

#[test]
fn refusal_in_a_stream_is_text_that_a_filter_stopped() {
    let whole =
        "data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n";
    let expected = vec![
        Delta::Text("no".to_owned()),
        stop(StopReason::Filtered, 0, 0),
    ];
    assert_eq!(decoded(CHAT, &[whole.as_bytes()]), (expected, None));
}
