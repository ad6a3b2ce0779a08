//! The provider against a service on loopback. The frames of its streams are written by the
//! SDK's own crate; `tests/models` reads such frames by boto3.

use super::BedrockModel;
use crate::model_stub::{ModelStub, StubAnswer};
use a2a_lambda_skill::model::{
    Delta, Model as _, ModelContent, ModelFile, ModelMessage, ModelPart, ModelReply, ModelRequest,
    ModelTool, OutputSchema, StopReason, ToolChoice, ToolResult, Usage,
};
use a2a_lambda_skill::{AgentError, AgentResult, ErrorCode};
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use futures::StreamExt as _;
use serde_json::{Value, json};

const ID: &str = "anthropic.small-1:0";

fn model(stub: &ModelStub) -> BedrockModel {
    BedrockModel::new(ID).endpoint(stub.url.trim_end_matches("/v1"))
}

fn ask(text: &str) -> ModelRequest {
    ModelRequest {
        messages: vec![ModelMessage::from_text(text)],
        ..ModelRequest::default()
    }
}

fn tool(name: &str) -> ModelTool {
    ModelTool {
        name: name.to_owned(),
        description: format!("the {name}"),
        input_schema: json!({"type": "object"}),
    }
}

fn used(id: &str, input: Value) -> ModelContent {
    ModelContent::ToolUse {
        id: id.to_owned(),
        name: "stock".to_owned(),
        input,
    }
}

fn answered(content: &Value, stop: &str) -> Value {
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12},
        "metrics": {"latencyMs": 1},
    })
}

async fn replied(content: &Value, stop: &str) -> AgentResult<ModelReply> {
    let answer = StubAnswer::json(200, &answered(content, stop).to_string());
    model(&ModelStub::start([answer]).await)
        .converse(ask("Hi"))
        .await
}

/// The body of a request, as it was sent.
async fn sent(model: impl Fn(&ModelStub) -> BedrockModel, request: ModelRequest) -> Value {
    let answer = answered(&json!([{"text": "x"}]), "end_turn").to_string();
    let stub = ModelStub::start([StubAnswer::json(200, &answer)]).await;
    model(&stub).converse(request).await.unwrap();
    stub.body(0)
}

#[tokio::test]
async fn request_is_signed_and_has_the_members_of_converse() {
    let answer = answered(&json!([{"text": "Hello"}]), "end_turn").to_string();
    let stub = ModelStub::start([StubAnswer::json(200, &answer)]).await;
    let request = ModelRequest {
        system: "Be brief.".to_owned(),
        tools: vec![tool("stock")],
        tool_choice: ToolChoice::Tool("stock".to_owned()),
        max_tokens: Some(300),
        options: json!({"top_k": 3}).as_object().unwrap().clone(),
        ..ask("Hi")
    };
    let options = json!({"top_k": 9, "thinking": {"type": "off"}});
    let model = model(&stub).options(options.as_object().unwrap().clone());
    let reply = model.converse(request).await.unwrap();
    assert_eq!(reply.content, [ModelContent::Text("Hello".to_owned())]);
    assert_eq!(reply.stop, StopReason::EndTurn);
    let tokens = Usage {
        input_tokens: 7,
        output_tokens: 5,
        cached_tokens: 0,
    };
    assert_eq!(reply.usage, tokens);
    let head = &stub.requests()[0].head;
    assert!(
        head.starts_with("post /model/anthropic.small-1%3a0/converse "),
        "{head}"
    );
    assert!(
        head.contains("\nauthorization: aws4-hmac-sha256 credential="),
        "{head}"
    );
    let expected = json!({
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "inferenceConfig": {"maxTokens": 300},
        "toolConfig": {
            "tools": [{"toolSpec": {
                "name": "stock", "description": "the stock",
                "inputSchema": {"json": {"type": "object"}},
            }}],
            "toolChoice": {"tool": {"name": "stock"}},
        },
        "additionalModelRequestFields": {"top_k": 3, "thinking": {"type": "off"}},
    });
    assert_eq!(stub.body(0), expected);
}

#[tokio::test]
async fn request_without_options_has_no_sampling_parameters() {
    let body = sent(model, ask("Hi")).await;
    let expected = json!({"messages": [{"role": "user", "content": [{"text": "Hi"}]}]});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn model_that_cannot_be_forced_decides_itself() {
    let request = || ModelRequest {
        tools: vec![tool("stock")],
        tool_choice: ToolChoice::Tool("stock".to_owned()),
        ..ask("Hi")
    };
    let of = |id: &'static str| {
        move |stub: &ModelStub| BedrockModel::new(id).endpoint(stub.url.trim_end_matches("/v1"))
    };
    let choice = |body: Value| body["toolConfig"]["toolChoice"].clone();
    let llama = sent(of("us.meta.llama-9"), request()).await;
    assert_eq!(choice(llama), json!({"auto": {}}));
    let mistral = sent(of("mistral.large-9"), request()).await;
    assert_eq!(choice(mistral), json!({"any": {}}));
}

#[tokio::test]
async fn native_output_is_a_schema_as_text() {
    let request = ModelRequest {
        output: Some(OutputSchema {
            name: "answer".to_owned(),
            schema: json!({"type": "object"}),
        }),
        ..ask("Hi")
    };
    let body = sent(model, request).await;
    let schema = json!({"jsonSchema": {"name": "answer", "schema": "{\"type\":\"object\"}"}});
    let format = json!({"type": "json_schema", "structure": schema});
    assert_eq!(body["outputConfig"]["textFormat"], format);
}

#[tokio::test]
async fn calls_their_results_and_reasoning_return_to_the_model_unchanged() {
    let said = json!([
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "AAEC"}},
        {"text": "I look."},
        {"toolUse": {"toolUseId": "1", "name": "stock", "input": {"sku": "A-1", "n": [1, -2, 2.5, null]}}},
        {"toolUse": {"toolUseId": "2", "name": "stock", "input": {}}},
    ]);
    let reply = replied(&said, "tool_use").await.unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
    let input = json!({"sku": "A-1", "n": [1, -2, 2.5, null]});
    assert_eq!(reply.content[3..], [used("1", input), used("2", json!({}))]);
    // As a worker stores it.
    let stored = serde_json::to_string(&ModelMessage::Model(reply.content)).unwrap();
    let mut request = ask("Hi");
    request
        .messages
        .push(serde_json::from_str(&stored).unwrap());
    let result = |id: &str, result| ToolResult {
        id: id.to_owned(),
        result,
    };
    let failed = Err("INVALID_INPUT: no".to_owned());
    let results = vec![result("1", Ok(json!({"left": 7}))), result("2", failed)];
    request.messages.push(ModelMessage::ToolResults(results));
    request.messages.push(ModelMessage::from_text("And?"));
    let body = sent(model, request).await;
    assert_eq!(
        body["messages"][1],
        json!({"role": "assistant", "content": said})
    );
    let results = json!([
        {"toolResult": {"toolUseId": "1", "status": "success", "content": [{"json": {"left": 7}}]}},
        {"toolResult": {"toolUseId": "2", "status": "error", "content": [{"text": "INVALID_INPUT: no"}]}},
        {"text": "And?"},
    ]);
    assert_eq!(
        body["messages"][2],
        json!({"role": "user", "content": results})
    );
}

#[tokio::test]
async fn blocks_of_another_api_and_broken_arguments_are_no_reason_to_refuse() {
    let other = ModelContent::Provider(json!({"chatMessage": {"reasoning": "x"}}));
    let mut request = ask("Hi");
    let broken = used("1", json!("{bro"));
    request
        .messages
        .push(ModelMessage::Model(vec![other, broken]));
    let body = sent(model, request).await;
    let call = json!({"toolUseId": "1", "name": "stock", "input": {"invalid_arguments": "{bro"}});
    assert_eq!(body["messages"][1]["content"], json!([{"toolUse": call}]));
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    let text = json!([{"text": "x"}]);
    for (sent, stop) in [
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("guardrail_intervened", StopReason::Filtered),
        ("content_filtered", StopReason::Filtered),
        ("something_new", StopReason::Other),
    ] {
        assert_eq!(replied(&text, sent).await.unwrap().stop, stop, "{sent}");
    }
    let long = replied(&text, "model_context_window_exceeded").await;
    assert_eq!(long.unwrap_err().code(), ErrorCode::ContextLengthExceeded);
}

async fn refused(status: u16, exception: &str, message: &str) -> AgentError {
    let body = json!({ "message": message }).to_string();
    let answer = format!(
        "HTTP/1.1 {status} X\r\nx-amzn-errortype: {exception}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let stub = ModelStub::start([StubAnswer::raw(&answer)]).await;
    let error = model(&stub).converse(ask("Hi")).await.unwrap_err();
    assert_eq!(stub.requests().len(), 1, "a request is sent once");
    error
}

#[tokio::test]
async fn refusals_become_errors_without_the_words_of_the_service() {
    use ErrorCode as Code;
    for (status, exception, message, code) in [
        (429, "ThrottlingException", "secret", Code::ModelRateLimited),
        (403, "AccessDeniedException", "secret", Code::ModelAuth),
        (403, "ExpiredTokenException", "secret", Code::ModelAuth),
        (
            400,
            "ValidationException",
            "Input is too long for secret",
            Code::ContextLengthExceeded,
        ),
        (400, "ValidationException", "secret", Code::ModelProvider),
        (424, "ModelErrorException", "secret", Code::ModelProvider),
        (
            503,
            "ServiceUnavailableException",
            "secret",
            Code::ModelProvider,
        ),
    ] {
        let error = refused(status, exception, message).await;
        assert_eq!(error.code(), code, "{exception}: {message}");
        assert!(!error.text().contains("secret"), "{}", error.text());
        assert!(
            error.cause().unwrap().contains("secret"),
            "{:?}",
            error.cause()
        );
    }
}

#[tokio::test]
async fn service_that_is_out_of_order_may_be_asked_again() {
    let transient = async |status, exception| {
        let error = refused(status, exception, "secret").await;
        assert!(!error.text().contains("secret"), "{}", error.text());
        error.is_transient()
    };
    for (status, exception) in [
        (429, "ThrottlingException"),
        (429, "ModelNotReadyException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
        (502, ""),
    ] {
        assert!(transient(status, exception).await, "{status} {exception}");
    }
    for (status, exception) in [
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
        (424, "ModelErrorException"),
    ] {
        assert!(!transient(status, exception).await, "{status} {exception}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_service_is_not_waited_for_without_end() {
    let stub = ModelStub::start([StubAnswer::silence(), StubAnswer::silence()]).await;
    let error = model(&stub).converse(ask("Hi")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelProvider);
    let streamed = model(&stub).converse_stream(ask("Hi")).await.map(drop);
    assert_eq!(streamed.unwrap_err().code(), ErrorCode::ModelProvider);
}

/// A frame of a stream.
fn frame(kind: (&str, &str, &str), payload: &Value) -> Vec<u8> {
    let (message_type, name, value) = kind;
    let text = |text: &str| HeaderValue::String(text.to_owned().into());
    let message = Message::new(payload.to_string())
        .add_header(Header::new(":message-type", text(message_type)))
        .add_header(Header::new(name.to_owned(), text(value)))
        .add_header(Header::new(":content-type", text("application/json")));
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).unwrap();
    bytes
}

fn event(name: &str, payload: &Value) -> Vec<u8> {
    frame(("event", ":event-type", name), payload)
}

fn delta(index: u32, delta: &Value) -> Vec<u8> {
    let payload = json!({"contentBlockIndex": index, "delta": delta});
    event("contentBlockDelta", &payload)
}

fn block_stop(index: u32) -> Vec<u8> {
    event("contentBlockStop", &json!({ "contentBlockIndex": index }))
}

/// A stream with reasoning, a text, and two calls.
fn frames() -> Vec<Vec<u8>> {
    let start = |index: u32, id: &str| {
        let start = json!({"toolUse": {"toolUseId": id, "name": "stock"}});
        event(
            "contentBlockStart",
            &json!({"contentBlockIndex": index, "start": start}),
        )
    };
    let usage = json!({"inputTokens": 7, "outputTokens": 5, "totalTokens": 12});
    vec![
        event("messageStart", &json!({"role": "assistant"})),
        delta(0, &json!({"reasoningContent": {"text": "h"}})),
        delta(0, &json!({"reasoningContent": {"text": "m"}})),
        delta(0, &json!({"reasoningContent": {"signature": "c2ln"}})),
        block_stop(0),
        delta(1, &json!({"text": "I "})),
        delta(1, &json!({"text": "look."})),
        block_stop(1),
        start(2, "1"),
        delta(2, &json!({"toolUse": {"input": "{\"sku\":"}})),
        delta(2, &json!({"toolUse": {"input": "7}"}})),
        block_stop(2),
        start(3, "2"),
        block_stop(3),
        event("messageStop", &json!({"stopReason": "tool_use"})),
        event(
            "metadata",
            &json!({"usage": usage, "metrics": {"latencyMs": 1}}),
        ),
    ]
}

fn deltas() -> Vec<Delta> {
    let text = |text: &str| Delta::Text(text.to_owned());
    let input = |text: &str| Delta::ToolInput(text.to_owned());
    let call = |id: &str| Delta::ToolUse {
        id: id.to_owned(),
        name: "stock".to_owned(),
    };
    vec![
        Delta::Provider(json!({"bedrockReasoning": {"text": "hm", "signature": "c2ln"}})),
        text("I "),
        text("look."),
        call("1"),
        input("{\"sku\":"),
        input("7}"),
        call("2"),
        Delta::Stop {
            stop: StopReason::ToolUse,
            usage: Usage {
                input_tokens: 7,
                output_tokens: 5,
                cached_tokens: 0,
            },
        },
    ]
}

/// The deltas and the error of a stream.
async fn streamed(answer: StubAnswer) -> (Vec<Delta>, Option<AgentError>) {
    let stub = ModelStub::start([answer]).await;
    let model = model(&stub);
    let mut stream = match model.converse_stream(ask("Hi")).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        match delta {
            Ok(delta) => deltas.push(delta),
            Err(error) => return (deltas, Some(error)),
        }
    }
    (deltas, None)
}

fn stream(pieces: &[Vec<u8>]) -> StubAnswer {
    StubAnswer::stream(pieces.iter().map(Vec::as_slice))
}

#[tokio::test]
async fn stream_gives_the_answer_in_pieces() {
    let (given, error) = streamed(stream(&frames())).await;
    assert_eq!((given, error), (deltas(), None));
}

#[tokio::test]
async fn cut_between_bytes_changes_nothing() {
    let whole = frames().concat();
    for size in [1, 7, 100] {
        let pieces = whole.chunks(size);
        let (given, error) = streamed(StubAnswer::stream(pieces)).await;
        assert_eq!((given, error), (deltas(), None), "pieces of {size} bytes");
    }
}

#[tokio::test]
async fn stream_that_ends_early_is_an_error_after_its_deltas() {
    let whole = frames().concat();
    let terminal: usize = frames().iter().take(15).map(Vec::len).sum();
    // Each place in the middle of a frame, and each end of one.
    let ends = frames().into_iter().scan(0, |at, frame| {
        *at += frame.len();
        Some(*at)
    });
    let places: Vec<usize> = ends.flat_map(|end| [end - 5, end]).collect();
    for place in places {
        let (sent, _) = whole.split_at(place);
        for answer in [StubAnswer::stream([sent]), StubAnswer::cut_stream([sent])] {
            let (given, error) = streamed(answer).await;
            let before = &given[..given.len().saturating_sub(1)];
            assert!(deltas().starts_with(before), "cut at {place}: {given:?}");
            match error {
                Some(error) => assert_eq!(error.code(), ErrorCode::ModelProvider),
                None => assert!(place >= terminal, "a silent end at {place}"),
            }
        }
    }
}

#[tokio::test]
async fn frame_with_a_wrong_checksum_is_an_error() {
    let mut frames = frames();
    let last = frames[6].len() - 1;
    frames[6][last] ^= 1;
    let (given, error) = streamed(stream(&frames)).await;
    assert_eq!(given, deltas()[..2]);
    assert_eq!(error.unwrap().code(), ErrorCode::ModelProvider);
}

#[tokio::test]
async fn exception_in_a_stream_is_its_error() {
    for (exception, code) in [
        ("throttlingException", ErrorCode::ModelRateLimited),
        ("modelStreamErrorException", ErrorCode::ModelProvider),
        ("internalServerException", ErrorCode::ModelProvider),
    ] {
        let mut frames = frames();
        let payload = json!({"message": "secret"});
        frames.insert(
            6,
            frame(("exception", ":exception-type", exception), &payload),
        );
        let (given, error) = streamed(stream(&frames)).await;
        assert_eq!(given, deltas()[..2], "{exception}");
        let error = error.unwrap();
        assert_eq!(error.code(), code, "{exception}");
        let is_throttle = code == ErrorCode::ModelRateLimited;
        assert_eq!(error.is_transient(), is_throttle, "{exception}");
        assert!(!error.text().contains("secret"), "{}", error.text());
    }
}

#[tokio::test]
async fn a_picture_and_a_document_are_blocks_with_a_text_beside_them() {
    let file = |name: &str, media_type, bytes: &'static [u8]| {
        ModelPart::File(ModelFile::new(Some(name.to_owned()), media_type, bytes))
    };
    let request = |parts| ModelRequest {
        messages: vec![ModelMessage::User(parts)],
        ..ModelRequest::default()
    };
    let parts = vec![
        file("a.png", "image/png", b"picture"),
        file("my cv.pdf", "application/pdf", b"resume"),
    ];
    let stub = ModelStub::start([StubAnswer::json(500, "{}")]).await;
    model(&stub).converse(request(parts)).await.unwrap_err();
    assert_eq!(
        stub.body(0)["messages"],
        json!([{"role": "user", "content": [
            {"image": {"format": "png", "source": {"bytes": "cGljdHVyZQ=="}}},
            {"document": {
                "format": "pdf",
                "name": "my-cv-pdf",
                "source": {"bytes": "cmVzdW1l"},
            }},
            {"text": "The user has sent this."},
        ]}])
    );
    let large = vec![file("b.png", "image/png", &[0; 3_750_001])];
    let error = model(&stub).converse(request(large)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelInput);
    assert!(error.text().contains("up to 3750000 bytes"), "{error:?}");
}

/// The blocks of a request in the order in which a service reads them, each with whether it is a
/// cache point.
fn blocks(body: &Value) -> Vec<(String, bool)> {
    let messages = body["messages"].as_array().unwrap().iter();
    let content = messages.flat_map(|message| message["content"].as_array().unwrap());
    let tools = body["toolConfig"]["tools"].as_array().unwrap().iter();
    let all = tools
        .chain(body["system"].as_array().unwrap())
        .chain(content);
    all.map(|block| (block.to_string(), block.get("cachePoint").is_some()))
        .collect()
}

/// The bytes that requests send, and those of them that a service had cached: what is equal up to
/// a cache point of the request before.
fn cached_bytes(bodies: &[Value]) -> (usize, usize) {
    let (mut all, mut cached, mut before) = (0, 0, Vec::new());
    for body in bodies {
        let blocks = blocks(body);
        let texts = |blocks: &[(String, bool)]| {
            let texts = blocks.iter().filter(|(_, is_point)| !is_point);
            texts.map(|(text, _)| text.clone()).collect::<Vec<_>>()
        };
        let sent = texts(&blocks);
        all += sent.iter().map(String::len).sum::<usize>();
        let known: Vec<String> = before;
        if sent.starts_with(&known) {
            cached += known.iter().map(String::len).sum::<usize>();
        }
        let last = blocks.iter().rposition(|(_, is_point)| *is_point);
        before = texts(&blocks[..last.unwrap_or(0)]);
    }
    (all, cached)
}

#[tokio::test]
async fn cache_points_let_a_service_keep_most_of_a_conversation_of_twenty_turns() {
    let answer = answered(
        &json!([{"text": "It is on stock. ".repeat(10)}]),
        "end_turn",
    );
    for caches in [false, true] {
        let answers = (0..20).map(|_| StubAnswer::json(200, &answer.to_string()));
        let stub = ModelStub::start(answers).await;
        let mut bedrock = model(&stub);
        if caches {
            bedrock = bedrock.cache_points();
        }
        let mut request = ModelRequest {
            system: "You are a shop assistant. ".repeat(40),
            tools: vec![tool("stock"), tool("price")],
            ..ModelRequest::default()
        };
        for number in 0..20 {
            let text = format!("What about article {number}? {}", "Please. ".repeat(20));
            request.messages.push(ModelMessage::from_text(text));
            let reply = bedrock.converse(request.clone()).await.unwrap();
            request.messages.push(ModelMessage::Model(reply.content));
        }
        let bodies: Vec<_> = (0..20).map(|number| stub.body(number)).collect();
        let (all, cached) = cached_bytes(&bodies);
        println!("cache points {caches}: {all} bytes sent, {cached} of them cached");
        assert_eq!(cached * 10 > all * 8, caches, "{cached} of {all}");
    }
}
