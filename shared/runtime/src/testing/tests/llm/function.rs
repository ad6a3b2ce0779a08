use super::{errors, last_message, order};
use crate::prelude::*;
use crate::task::{Message, Part, Role};
use crate::testing::{ScriptedModel, SkillTest};
use a2a_lambda_llm::LlmFunction;
use a2a_lambda_skill::model::{Delta, Model, ModelMessage, ModelReply, ModelRequest, ToolChoice};
use futures::future::{self, BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Order {
    /// The number of the article.
    article: String,
    pieces: u32,
}

fn a1(pieces: u32) -> Order {
    Order {
        article: "A-1".to_owned(),
        pieces,
    }
}

fn busy() -> AgentError {
    AgentError::model_rate_limited("429")
}

fn function() -> LlmFunction<Order> {
    LlmFunction::new("Extract the order.")
}

#[tokio::test]
async fn function_returns_the_value_that_the_model_gives_to_the_forced_tool() {
    let model = ScriptedModel::new().answer(order(3));
    let read = function().run_with(&model, "three of A-1").await.unwrap();
    assert_eq!(read, a1(3));
    let [request] = &*model.requests() else {
        panic!()
    };
    assert_eq!(request.system, "Extract the order.");
    assert_eq!(request.messages, [ModelMessage::from_text("three of A-1")]);
    assert_eq!(request.tool_choice, ToolChoice::Tool("answer".to_owned()));
    let schema = &request.tools[0].input_schema;
    assert_eq!(
        schema["properties"]["article"]["description"],
        "The number of the article."
    );
    assert!(request.options.is_empty(), "no sampling parameters");
}

#[tokio::test]
async fn several_inputs_are_sent_as_json() {
    let model = ScriptedModel::new().answer(order(3));
    let input = (a1(1), ["note"]);
    function().run_with(&model, input).await.unwrap();
    let sent = r#"[{"article":"A-1","pieces":1},["note"]]"#;
    assert_eq!(last_message(&model), ModelMessage::from_text(sent));
}

#[tokio::test]
async fn wrong_answer_returns_to_the_model_once_with_its_error() {
    let model = ScriptedModel::new()
        .answer(json!({"article": "A-1"}))
        .answer(order(2));
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(2));
    let [error] = &*errors(&model) else { panic!() };
    assert!(error.contains("missing field `pieces`"), "{error}");
}

#[tokio::test]
async fn second_wrong_answer_is_an_error_without_the_words_of_the_model() {
    let wrong = json!({"article": "A-1", "pieces": "secret"});
    let model = ScriptedModel::new().answer(wrong.clone()).answer(wrong);
    let error = function().run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "MODEL_OUTPUT");
    assert!(!error.text().contains("secret"), "{}", error.text());
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn model_that_writes_instead_of_calling_is_corrected_or_understood() {
    let model = ScriptedModel::new().text("Sure!").answer(order(2));
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(2));
    let wanted = "Call the tool `answer` with your answer.";
    assert_eq!(last_message(&model), ModelMessage::from_text(wanted));
    // Small models write the JSON as text.
    let model = ScriptedModel::new().text(order(4).to_string());
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(4));
}

#[tokio::test]
async fn tool_that_was_not_offered_is_refused() {
    let model = ScriptedModel::new()
        .tool_call("delete_all", json!({}))
        .answer(order(2));
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(2));
    assert_eq!(errors(&model).len(), 1);
}

#[tokio::test]
async fn answer_that_is_a_text_needs_no_tool() {
    let model = ScriptedModel::new().text("Dear Ann,");
    let letter = LlmFunction::<String>::new("Write a letter.");
    assert_eq!(
        letter.run_with(&model, "to Ann").await.unwrap(),
        "Dear Ann,"
    );
    assert!(model.requests()[0].tools.is_empty());
}

#[tokio::test]
async fn answer_that_is_a_list_is_wrapped_for_the_service() {
    let model = ScriptedModel::new().answer(json!({"value": [order(1)]}));
    let orders = LlmFunction::<Vec<Order>>::new("Extract the orders.");
    assert_eq!(orders.run_with(&model, "x").await.unwrap(), [a1(1)]);
    assert_eq!(model.requests()[0].tools[0].input_schema["type"], "object");
}

#[tokio::test]
async fn native_answer_is_json_of_the_schema() {
    let model = ScriptedModel::new()
        .text("{broken")
        .text(order(9).to_string());
    let read = function().native().run_with(&model, "x").await.unwrap();
    assert_eq!(read, a1(9));
    let request = &model.requests()[0];
    assert!(request.tools.is_empty());
    assert_eq!(
        request.output.as_ref().unwrap().schema["required"],
        json!(["article", "pieces"])
    );
}

#[tokio::test(start_paused = true)]
async fn busy_service_is_asked_again() {
    let model = ScriptedModel::new()
        .error(busy())
        .error(busy())
        .answer(order(1));
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(1));
    let model = ScriptedModel::new()
        .error(busy())
        .error(busy())
        .error(busy())
        .error(busy())
        .error(busy());
    let error = function().run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "MODEL_RATE_LIMITED");
}

#[tokio::test(start_paused = true)]
async fn service_out_of_order_is_asked_again() {
    let down = || AgentError::model_provider("503").transient();
    let model = ScriptedModel::new()
        .error(down())
        .error(busy())
        .answer(order(1));
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(1));
    let model = ScriptedModel::new()
        .error(down())
        .error(down())
        .error(down())
        .error(down())
        .error(down());
    let error = function().run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "MODEL_PROVIDER");
    let model = ScriptedModel::new().error(AgentError::model_provider("a broken answer"));
    function().run_with(&model, "x").await.unwrap_err();
    assert_eq!(model.requests().len(), 1);
}

/// A model whose streams fail after one delta. It counts the calls.
#[derive(Clone)]
struct Failing(Delta, Arc<AtomicU32>);

impl Model for Failing {
    fn converse(&self, _: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        future::ready(Err(AgentError::internal("only streams"))).boxed()
    }

    fn converse_stream(
        &self,
        _: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let deltas = [Ok(self.0.clone()), Err(busy())];
        future::ready(Ok(stream::iter(deltas).boxed())).boxed()
    }
}

/// Shows what the model writes.
#[skill(id = "write", tags = ["letters"])]
async fn write(cx: &mut TaskContext<'_>, letter: String) -> AgentResult<String> {
    let writer = LlmFunction::<String>::new("Write.").stream_to("write");
    writer.run(cx, &letter).await
}

#[tokio::test(start_paused = true)]
async fn answer_that_has_begun_is_not_asked_for_again() {
    let (id, name) = ("1".to_owned(), "stock".to_owned());
    for delta in [Delta::Text("Dear".to_owned()), Delta::ToolUse { id, name }] {
        let model = Failing(delta, Arc::default());
        let agent = Agent::builder("letters").skill(write).build().unwrap();
        let mut client = SkillTest::new(&agent, "write");
        client.model(model.clone());
        let reply = client.send("to Ann").await.unwrap();
        assert_eq!(reply.error_code(), Some("MODEL_RATE_LIMITED"));
        assert_eq!(model.1.load(Ordering::SeqCst), 1, "{:?}", model.0);
    }
}

#[tokio::test]
async fn answer_in_a_markdown_fence_is_read() {
    let fenced = format!("```json\n{}\n```", order(4));
    let model = ScriptedModel::new().text(fenced.clone());
    assert_eq!(function().run_with(&model, "x").await.unwrap(), a1(4));
    let model = ScriptedModel::new().text(fenced.clone());
    let native = function().native().run_with(&model, "x").await;
    assert_eq!(native.unwrap(), a1(4));
    // A text is the author's, with its fence.
    let model = ScriptedModel::new().text(fenced.clone());
    let text = LlmFunction::<String>::new("Write JSON.");
    assert_eq!(text.run_with(&model, "x").await.unwrap(), fenced);
}

#[tokio::test]
async fn second_empty_text_of_a_model_is_a_wrong_answer() {
    let model = ScriptedModel::new().text("").text(" \n");
    let text = LlmFunction::<String>::new("Write.");
    let error = text.run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "MODEL_OUTPUT");
}

#[tokio::test]
async fn conversation_that_the_caller_holds_is_the_input() {
    let model = ScriptedModel::new().text("Rome.");
    let said = |role, text: &str| Message {
        role,
        ..Message::from_user("m", vec![Part::text(text)])
    };
    let thread = Thread::new()
        .add_event(said(Role::Agent, "Hello!"))
        .add_event(said(Role::User, "Where is the Pantheon?"))
        .add_event(said(Role::User, "The city, please."));
    let chat = LlmFunction::<String>::new("Answer.");
    assert_eq!(chat.chat_with(&model, &thread).await.unwrap(), "Rome.");
    let [sent] = &*model.requests()[0].messages else {
        panic!()
    };
    assert_eq!(
        sent.user_text(),
        "Where is the Pantheon?\n\nThe city, please."
    );
}

/// Reads an order, then does something else.
#[skill(id = "read-order", tags = ["orders"])]
async fn read_order(cx: &mut TaskContext<'_>, letter: String) -> AgentResult<Order> {
    let order = function().run(cx, &letter).await?;
    cx.step("note", async { Ok(()) }).await?;
    Ok(order)
}

fn agent() -> AgentDefinition {
    let agent = Agent::builder("orders").instructions("You sell nails.");
    agent.skill(read_order).build().unwrap()
}

#[tokio::test]
async fn instructions_of_the_agent_come_first() {
    let model = ScriptedModel::new().answer(order(1));
    let agent = agent();
    let mut client = SkillTest::new(&agent, "read-order");
    client.model(model.clone()).send("one A-1").await.unwrap();
    assert_eq!(
        model.requests()[0].system,
        "You sell nails.\n\nExtract the order."
    );
    let published = serde_json::to_value(agent.manifest()).unwrap();
    assert_eq!(published["instructions"], "You sell nails.");
}

#[tokio::test(start_paused = true)]
async fn turn_that_runs_again_does_not_ask_again() {
    let model = ScriptedModel::new().answer(order(1));
    let mut client = SkillTest::new(&agent(), "read-order");
    client.model(model.clone()).crash_after(1);
    let reply = client.send("one A-1").await.unwrap();
    assert_eq!(reply.artifact_data("read-order"), Some(order(1)));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn agent_without_a_model_says_so() {
    let mut client = SkillTest::new(&agent(), "read-order");
    let reply = client.send("one A-1").await.unwrap();
    assert_eq!(reply.error_code(), Some("MODEL_UNAVAILABLE"));
}
