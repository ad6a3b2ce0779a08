//! The model that answers from a script.

use super::*;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_skill::model::{
    Delta, ModelContent, ModelMessage, ModelReply, ModelRequest, ModelTool, StopReason, ToolChoice,
    Usage,
};
use a2a_lambda_skill::{AgentResult, ErrorCode};
use futures::StreamExt as _;
use serde_json::{Value, json};

fn request(system: &str) -> ModelRequest {
    ModelRequest {
        system: system.to_owned(),
        ..ModelRequest::default()
    }
}

fn offering(tools: &[&str], tool_choice: ToolChoice) -> ModelRequest {
    let tools = tools.iter().map(|name| ModelTool {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: json!({}),
    });
    ModelRequest {
        tools: tools.collect(),
        tool_choice,
        ..ModelRequest::default()
    }
}

fn call(id: &str, name: &str, input: Value) -> ModelContent {
    let (id, name) = (id.to_owned(), name.to_owned());
    ModelContent::ToolUse { id, name, input }
}

fn text(text: &str) -> ModelContent {
    ModelContent::Text(text.to_owned())
}

async fn content(model: &ScriptedModel, request: ModelRequest) -> Vec<ModelContent> {
    model.converse(request).await.unwrap().content
}

async fn deltas(model: &ScriptedModel) -> Vec<Delta> {
    let stream = model.converse_stream(request("stream")).await.unwrap();
    let deltas: Vec<AgentResult<Delta>> = stream.collect().await;
    deltas.into_iter().collect::<Result<_, _>>().unwrap()
}

/// The reply whose pieces these are.
fn joined(deltas: Vec<Delta>) -> ModelReply {
    let mut content: Vec<ModelContent> = Vec::new();
    let mut input = String::new();
    for delta in deltas {
        match delta {
            Delta::Text(more) => match content.last_mut() {
                Some(ModelContent::Text(text)) => text.push_str(&more),
                _ => content.push(ModelContent::Text(more)),
            },
            Delta::ToolUse { id, name } => {
                input.clear();
                content.push(call(&id, &name, Value::Null));
            }
            Delta::ToolInput(more) => {
                input.push_str(&more);
                let Some(ModelContent::ToolUse { input: value, .. }) = content.last_mut() else {
                    panic!("arguments without a call");
                };
                let read = serde_json::from_str(&input);
                *value = read.unwrap_or_else(|_| Value::from(input.as_str()));
            }
            Delta::Provider(block) => content.push(ModelContent::Provider(block)),
            Delta::Stop { stop, usage } => {
                return ModelReply {
                    content,
                    stop,
                    usage,
                };
            }
        }
    }
    panic!("no stop");
}

/// Asks the model twice, and hides that it failed.
#[skill(id = "stubborn", tags = ["test"])]
async fn stubborn(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let ask = |system: &str| ModelRequest {
        messages: vec![ModelMessage::from_text(text.clone())],
        ..request(system)
    };
    let (one, two) = (ask("one"), ask("two"));
    let one = cx.model()?.converse(one).await;
    let two = cx.model()?.converse(two).await;
    Ok(format!("{}, {}", one.is_ok(), two.is_ok()))
}

async fn stubborn_with(model: &ScriptedModel) -> Reply {
    let agent = Agent::builder("agent").skill(stubborn).build().unwrap();
    let mut client = SkillTest::new(&agent, "stubborn");
    client.model(Arc::new(model.clone()));
    client.send("hello").await.unwrap()
}

#[tokio::test]
async fn a_script_answers_a_skill_in_order_and_keeps_its_requests() {
    let model = ScriptedModel::new().text("1").text("2").text("3");
    let reply = stubborn_with(&model).await;
    assert_eq!(
        reply.artifact_text("stubborn").as_deref(),
        Some("true, true")
    );
    let asked = model.requests();
    assert_eq!(asked.len(), 2);
    assert_eq!((&*asked[0].system, &*asked[1].system), ("one", "two"));
    assert_eq!(asked[0].messages, [ModelMessage::from_text("hello")]);
    assert_eq!(content(&model, request("")).await, [text("3")]);
}

#[tokio::test]
async fn answers_that_no_request_asked_for_are_reported() {
    let model = ScriptedModel::new().text("1").text("2").text("3");
    stubborn_with(&model).await;
    assert_eq!(model.left(), 1);
    assert_eq!(model.finish(), Err(ScriptError { left: 1, beyond: 0 }));
    model.converse(request("")).await.unwrap();
    assert_eq!(model.finish(), Ok(()));
}

#[tokio::test]
async fn a_request_after_the_script_is_reported_though_the_skill_hides_it() {
    let model = ScriptedModel::new().text("1");
    let reply = stubborn_with(&model).await;
    assert_eq!(
        reply.artifact_text("stubborn").as_deref(),
        Some("true, false")
    );
    assert_eq!(model.finish(), Err(ScriptError { left: 0, beyond: 1 }));
    let error = model.converse(request("")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelProvider);
    let cause = "request 3 of a scripted model with 1 answers";
    assert_eq!(error.cause(), Some(cause));
}

#[tokio::test]
async fn a_model_that_must_not_be_asked_reports_each_request() {
    let model = ScriptedModel::never();
    assert_eq!(model.finish(), Ok(()));
    stubborn_with(&model).await;
    assert_eq!(model.finish(), Err(ScriptError { left: 0, beyond: 2 }));
}

#[tokio::test]
async fn an_answer_has_the_form_that_its_request_forces() {
    let value = || json!({"n": 1});
    let model = (0..5).fold(ScriptedModel::new(), |model, _| model.answer(value()));
    let forced = offering(&["answer", "stock"], ToolChoice::Tool("stock".to_owned()));
    let any = offering(&["stock"], ToolChoice::Any);
    let offered = offering(&["stock", "answer"], ToolChoice::Auto);
    let other = offering(&["stock"], ToolChoice::Auto);
    let expected = [
        (forced, call("call-1", "stock", value())),
        (any, call("call-2", "stock", value())),
        (offered, call("call-3", "answer", value())),
        (other, text(r#"{"n":1}"#)),
        (request("no tools"), text(r#"{"n":1}"#)),
    ];
    each_row_async(expected, async |(request, expected)| {
        assert_eq!(content(&model, request).await, [expected]);
    })
    .await;
}

#[tokio::test]
async fn tool_calls_have_ids_of_their_own_and_stop_for_their_results() {
    let model = ScriptedModel::new()
        .tool_call("stock", json!({"of": "tea"}))
        .tool_calls([("stock", json!(1)), ("price", json!(2))]);
    let reply = model.converse(request("")).await.unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(
        reply.content,
        [call("call-1", "stock", json!({"of": "tea"}))]
    );
    let expected = [
        call("call-2", "stock", json!(1)),
        call("call-3", "price", json!(2)),
    ];
    assert_eq!(content(&model, request("")).await, expected);
}

#[tokio::test]
async fn a_stream_gives_the_same_reply_in_pieces() {
    let reply = ModelReply {
        content: vec![
            text("Größe und 大小 of the tea"),
            ModelContent::Provider(json!({"signature": "x"})),
            call("a", "stock", json!({"of": "tea", "text": "\"quoted\""})),
            call("b", "stock", json!("{\"cut\":")),
            call("c", "stock", json!("{}")),
        ],
        stop: StopReason::MaxTokens,
        usage: Usage::default(),
    };
    let model = ScriptedModel::new().reply(reply.clone());
    let deltas = deltas(&model).await;
    let texts = deltas.iter().filter(|it| matches!(it, Delta::Text(_)));
    assert!(texts.count() > 1, "{deltas:?}");
    // A JSON string that holds JSON is written as a JSON string.
    assert_eq!(joined(deltas), reply);
}

#[tokio::test]
async fn a_scripted_error_fails_a_call_and_a_stream() {
    let limited = || AgentError::model_rate_limited("slow down");
    let model = ScriptedModel::new().error(limited()).error(limited());
    assert_eq!(model.converse(request("")).await, Err(limited()));
    let streamed = model.converse_stream(request("")).await;
    assert_eq!(streamed.err(), Some(limited()));
    assert_eq!(model.finish(), Ok(()));
}

#[tokio::test]
async fn usage_is_that_of_the_answers_after_it() {
    let usage = Usage {
        input_tokens: 7,
        output_tokens: 8,
        cached_tokens: 0,
    };
    let model = ScriptedModel::new().text("one").usage(usage).text("two");
    let before = model.converse(request("")).await.unwrap().usage;
    assert_eq!((before.input_tokens, before.output_tokens), (10, 5));
    assert_eq!(model.converse(request("")).await.unwrap().usage, usage);
}
