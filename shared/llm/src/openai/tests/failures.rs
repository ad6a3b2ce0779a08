use super::*;
use crate::openai::transport::CallLimits;

const BOTH: [OpenAiApi; 2] = [OpenAiApi::ChatCompletions, OpenAiApi::Responses];

/// The error of a call with and without a stream. Nothing of the service is public.
async fn errors(api: OpenAiApi, answer: impl Fn() -> StubAnswer) -> [AgentError; 2] {
    let stub = ModelStub::start([answer(), answer()]).await;
    let model = OpenAiModel::builder(&stub.url, "m")
        .api(api)
        .limits(CallLimits {
            total: SHORT * 100,
            bytes: 100_000,
            ..CallLimits::default()
        })
        .build()
        .unwrap();
    let whole = model.converse(ask("hello")).await.unwrap_err();
    let streamed = match model.converse_stream(ask("hello")).await {
        Ok(deltas) => collect(deltas).await.1.unwrap(),
        Err(error) => error,
    };
    for error in [&whole, &streamed] {
        assert!(!error.text().contains("private"), "{error}");
        assert!(error.details().is_empty(), "{:?}", error.details());
    }
    [whole, streamed]
}

#[tokio::test]
async fn refusals_of_the_service_become_errors() {
    let body = |code: &str| json!({"error": {"message": "private text", "code": code}});
    let cases = [
        (401, body("invalid_api_key"), ErrorCode::ModelAuth),
        (403, body("x"), ErrorCode::ModelAuth),
        (429, body("x"), ErrorCode::ModelRateLimited),
        (
            400,
            body("context_length_exceeded"),
            ErrorCode::ContextLengthExceeded,
        ),
        (400, body("content_filter"), ErrorCode::ContentFiltered),
        (400, body("x"), ErrorCode::ModelProvider),
        (500, body("server_error"), ErrorCode::ModelProvider),
        (302, body("x"), ErrorCode::ModelProvider),
    ];
    for api in BOTH {
        for (status, body, expected) in &cases {
            let answer = || StubAnswer::json(*status, &body.to_string());
            for error in errors(api, answer).await {
                assert_eq!(error.code(), *expected, "{status} {body}");
                let cause = error.cause().unwrap();
                assert!(
                    cause.contains("private text") && cause.contains(&status.to_string()),
                    "{cause}"
                );
            }
        }
    }
}

#[tokio::test]
async fn status_counts_when_its_body_is_no_json_or_breaks_off() {
    for error in errors(BOTH[0], || StubAnswer::json(503, "<html>private</html>")).await {
        assert_eq!(error.code(), ErrorCode::ModelProvider);
        assert_eq!(error.cause(), Some("status 503: [] "));
    }
    let cut = "HTTP/1.1 429 X\r\ncontent-length: 99\r\n\r\n{\"error\"";
    for error in errors(BOTH[0], || StubAnswer::raw(cut)).await {
        assert_eq!(error.code(), ErrorCode::ModelRateLimited);
    }
}

#[tokio::test]
async fn answer_that_is_no_json_is_an_error_without_its_content() {
    for api in BOTH {
        for body in [
            "private",
            "{\"choices\": [\"private",
            "[]",
            "{}",
            "null",
            "",
        ] {
            let [whole, streamed] = errors(api, || StubAnswer::json(200, body)).await;
            assert_eq!(whole.code(), ErrorCode::ModelProvider, "{body}");
            assert_eq!(streamed.code(), ErrorCode::ModelProvider, "{body}");
            let cause = whole.cause().unwrap();
            assert!(!cause.contains("private"), "{cause}");
        }
    }
}

#[tokio::test]
async fn answer_beyond_the_limit_of_bytes_is_refused() {
    let huge = json!({"choices": [], "padding": "x".repeat(200_000)}).to_string();
    let line = "data: ".to_owned() + &"x".repeat(200_000);
    for api in BOTH {
        let [whole, _] = errors(api, || StubAnswer::json(200, &huge)).await;
        let [_, streamed] = errors(api, || StubAnswer::stream([line.as_bytes()])).await;
        for error in [whole, streamed] {
            assert_eq!(error.code(), ErrorCode::ModelOutput);
            assert_eq!(
                error.cause(),
                Some("the answer is longer than 100000 bytes")
            );
        }
    }
}

#[tokio::test]
async fn connection_that_breaks_is_an_error() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"choices\"";
    for api in BOTH {
        for bytes in [cut, "", "HTTP/1.1 2", "private nonsense\r\n\r\n"] {
            for error in errors(api, || StubAnswer::raw(bytes)).await {
                assert_eq!(error.code(), ErrorCode::ModelProvider, "{bytes}");
            }
        }
    }
}

#[tokio::test]
async fn stream_that_breaks_or_ends_early_is_an_error() {
    let part = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n".as_slice();
    let cut = StubAnswer::cut_stream([part]);
    let ended = StubAnswer::stream([part]);
    let stub = ModelStub::start([cut, ended]).await;
    let model = model(&stub, BOTH[0]);
    for expected in ["", "the answer ended before it was complete"] {
        let deltas = model.converse_stream(ask("hello")).await.unwrap();
        let (deltas, error) = collect(deltas).await;
        assert_eq!(deltas, [Delta::Text("a".to_owned())]);
        let error = error.unwrap();
        assert_eq!(error.code(), ErrorCode::ModelProvider);
        assert!(error.cause().unwrap().contains(expected));
    }
}

#[tokio::test]
async fn service_that_cannot_be_reached_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let model = OpenAiModel::builder(url, "m").build().unwrap();
    let error = model.converse(ask("hello")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelProvider);
}

#[tokio::test]
async fn silence_ends_a_call_by_its_limits() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{";
    let refusal = "HTTP/1.1 500 X\r\ncontent-length: 99\r\n\r\n{";
    let answers = [
        StubAnswer::silence(),
        StubAnswer::raw(head).then_silence(),
        StubAnswer::raw(refusal).then_silence(),
    ];
    let stub = ModelStub::start(answers).await;
    let limits = CallLimits {
        idle: SHORT,
        ..CallLimits::default()
    };
    let limited = OpenAiModel::builder(&stub.url, "m").limits(limits);
    let limited = limited.build().unwrap();
    let slow = |error: AgentError| {
        assert_eq!(error.code(), ErrorCode::ModelProvider);
        assert_eq!(error.cause(), Some("no complete answer within 50ms"));
    };
    let first_byte = limited.converse_stream(ask("hello")).await;
    slow(first_byte.err().unwrap());
    slow(limited.converse(ask("hello")).await.unwrap_err());
    let refused = limited.converse(ask("hello")).await.unwrap_err();
    assert_eq!(refused.cause(), Some("status 500: [] "));
}

#[tokio::test]
async fn total_limit_ends_a_whole_answer() {
    let stub = ModelStub::start([StubAnswer::silence()]).await;
    let limits = CallLimits {
        total: SHORT,
        ..CallLimits::default()
    };
    let limited = OpenAiModel::builder(&stub.url, "m").limits(limits);
    let error = limited.build().unwrap().converse(ask("hello")).await;
    assert_eq!(
        error.unwrap_err().cause(),
        Some("no complete answer within 50ms")
    );
}

#[tokio::test]
async fn options_without_a_form_of_their_own_are_sent_as_they_are() {
    let options: Map<String, Value> =
        serde_json::from_str(r#"{"stream_options": 7, "text": [1], "top_p": 0.1}"#).unwrap();
    for api in BOTH {
        let stub = ModelStub::start([StubAnswer::stream([])]).await;
        let request = ModelRequest {
            options: options.clone(),
            ..ask("hello")
        };
        let model = model(&stub, api);
        let deltas = model.converse_stream(request).await.unwrap();
        assert!(collect(deltas).await.1.is_some());
        assert_eq!(stub.body(0)["top_p"], json!(0.1));
    }
}
