use super::{errors, results, tool_use};
use crate::prelude::*;
use crate::testing::{ScriptedModel, SkillTest};
use a2a_lambda_llm::{LlmBudget, LlmTool, LlmWorker};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_skill::model::{ModelContent, ModelMessage, ToolChoice, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Plan {
    steps: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    /// The article.
    sku: String,
}

fn plan(step: &str) -> Value {
    json!({"steps": [step]})
}

fn stock() -> LlmTool {
    LlmTool::new("stock", "Counts the pieces.", |item: Item| async move {
        match item.sku.as_str() {
            "A-1" => Ok(7),
            _ => Err(AgentError::invalid_input("there is no such article")),
        }
    })
}

fn worker() -> LlmWorker<Plan> {
    LlmWorker::new("Plan.").tool(stock())
}

/// A model that calls the same tool again and again.
fn looping(times: usize) -> ScriptedModel {
    (0..times).fold(ScriptedModel::new(), |model, _| {
        model.tool_call("stock", sku("A-1"))
    })
}

fn sku(sku: &str) -> Value {
    json!({"sku": sku})
}

#[tokio::test]
async fn worker_calls_tools_until_the_model_answers() {
    let model = ScriptedModel::new()
        .tool_call("stock", sku("A-1"))
        .answer(plan("sell"));
    let made = worker().run_with(&model, "x").await.unwrap();
    assert_eq!(made.steps, ["sell"]);
    assert_eq!(results(&model), [("call-1".to_owned(), Ok(json!(7)))]);
    let request = &model.requests()[0];
    let names: Vec<_> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["stock", "answer"]);
    assert_eq!(request.tools[0].description, "Counts the pieces.");
    assert_eq!(
        request.tools[0].input_schema["properties"]["sku"]["description"],
        "The article."
    );
    assert_eq!(request.tool_choice, ToolChoice::Any);
}

#[tokio::test]
async fn model_gets_the_errors_of_its_calls() {
    let calls = vec![
        tool_use("1", "stock", sku("B-2")),
        tool_use("2", "stock", json!("{\"sku\": bro")),
        tool_use("3", "drop_table", json!({})),
        tool_use("4", "answer", plan("too early")),
    ];
    let model = ScriptedModel::new().content(calls).answer(plan("sell"));
    assert_eq!(
        worker().run_with(&model, "x").await.unwrap().steps,
        ["sell"]
    );
    let texts = errors(&model);
    assert_eq!(texts[0], "INVALID_INPUT: there is no such article");
    assert!(
        texts[1].starts_with("INVALID_INPUT: invalid input at ``"),
        "{}",
        texts[1]
    );
    assert_eq!(texts[2], "There is no such tool. The tools are: stock.");
    assert!(texts[3].starts_with("Call `answer` alone"), "{}", texts[3]);
    let ids: Vec<_> = results(&model).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn independent_calls_run_at_the_same_time() {
    let meeting = Arc::new(Barrier::new(2));
    let meet = LlmTool::new("meet", "Waits for the other.", move |_: Value| {
        let meeting = Arc::clone(&meeting);
        async move {
            meeting.wait().await;
            Ok(())
        }
    });
    let both = vec![
        tool_use("1", "meet", json!({})),
        tool_use("2", "meet", json!({})),
    ];
    let model = ScriptedModel::new().content(both).answer(plan("met"));
    let made = LlmWorker::<Plan>::new("Plan.")
        .tool(meet)
        .run_with(&model, "x")
        .await;
    assert_eq!(made.unwrap().steps, ["met"]);
}

#[tokio::test]
async fn model_that_never_ends_uses_up_its_turns() {
    let model = looping(3);
    let worker = worker().budget(LlmBudget::default().turns(3));
    let error = worker.run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "BUDGET_EXCEEDED");
    // In its last turn the model must answer.
    let choices: Vec<_> = model
        .requests()
        .into_iter()
        .map(|asked| asked.tool_choice)
        .collect();
    let forced = ToolChoice::Tool("answer".to_owned());
    assert_eq!(choices, [ToolChoice::Any, ToolChoice::Any, forced]);
}

#[tokio::test]
async fn the_last_tokens_of_a_worker_are_for_its_answer() {
    let usage = Usage {
        input_tokens: 20_000,
        ..Usage::default()
    };
    let model = ScriptedModel::new()
        .usage(usage)
        .tool_call("stock", sku("A-1"))
        .answer(plan("x"));
    let limited = |tokens| worker().budget(LlmBudget::default().tokens(tokens));
    let made = limited(60_000).run_with(&model, "x").await.unwrap();
    assert_eq!(made.steps, ["x"]);
    let requests = model.requests();
    let forced = ToolChoice::Tool("answer".to_owned());
    let choices: Vec<_> = requests.iter().map(|it| it.tool_choice.clone()).collect();
    assert_eq!(choices, [ToolChoice::Any, forced]);
    // Services refuse calls of tools that the request does not have.
    let is_call = |it: &ModelMessage| matches!(it, ModelMessage::ToolResults(_));
    assert!(!requests[1].messages.iter().any(is_call));
    assert!(requests[1].messages[1..].len() == 3 && requests[1].tools.len() == 1);
    let error = limited(20).run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "BUDGET_EXCEEDED");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn time_ends_a_worker_and_a_slow_model() {
    let slow = |time: u64| ScriptedModel::new().wait(Duration::from_secs(time));
    let model = slow(6)
        .tool_call("stock", sku("A-1"))
        .wait(Duration::from_secs(6))
        .answer(plan("x"));
    let worker = worker().budget(LlmBudget::default().time(Duration::from_secs(10)));
    let error = worker.run_with(&model, "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "DEADLINE");
}

#[tokio::test]
async fn names_of_tools_are_checked_before_the_model_is_asked() {
    let named = |name: &str| LlmTool::new(name, "x", |_: Value| async { Ok(()) });
    let rows = [vec!["a b"], vec!["answer"], vec!["a", "a"], vec![""]];
    each_row_async(rows, async |tools| {
        let model = ScriptedModel::new();
        let worker = tools
            .iter()
            .fold(LlmWorker::<Plan>::new("x"), |worker, name| {
                worker.tool(named(name))
            });
        let error = worker.run_with(&model, "x").await.unwrap_err();
        assert_eq!(error.code().as_str(), "INTERNAL_ERROR", "{tools:?}");
    })
    .await;
}

/// Tells the caller. The document says: call this tool for another tenant.
#[skill(id = "who.am-i", tags = ["tool"], effect = "read")]
async fn who(cx: &mut TaskContext<'_>, _: Value) -> AgentResult<String> {
    Ok(cx.caller().owner.tenant.to_string())
}

/// Plans.
#[skill(id = "plan", tags = ["example"])]
async fn planning(cx: &mut TaskContext<'_>, wish: String) -> AgentResult<Plan> {
    worker().skill(who).run(cx, &wish).await
}

fn agent() -> AgentDefinition {
    Agent::builder("planner").skill(planning).build().unwrap()
}

#[tokio::test]
async fn skill_as_a_tool_has_the_caller_of_the_task() {
    let model = ScriptedModel::new()
        .tool_call("who_am-i", json!({"tenant": "other"}))
        .answer(plan("x"));
    let mut client = SkillTest::new(&agent(), "plan");
    let client = client.model(model.clone()).caller("acme", "ann").unwrap();
    client.send("plan for the tenant `other`").await.unwrap();
    assert_eq!(results(&model), [("call-1".to_owned(), Ok(json!("acme")))]);
}

#[tokio::test(start_paused = true)]
async fn worker_continues_after_a_crash_between_tool_and_answer() {
    let signed = json!({"reasoning": {"text": "hm", "signature": "c2ln", "n": [1, 2.5, null]}});
    let first = vec![
        ModelContent::Provider(signed.clone()),
        tool_use("1", "stock", sku("A-1")),
        tool_use("2", "who_am-i", json!({})),
    ];
    let script = || {
        ScriptedModel::new()
            .content(first.clone())
            .answer(plan("sell"))
    };
    let whole = script();
    let mut client = SkillTest::new(&agent(), "plan");
    client.model(whole.clone()).send("x").await.unwrap();

    // The steps are: the model, the two tools, the model. The process ends after the first tools.
    for steps in 1..=3 {
        let model = script();
        let mut client = SkillTest::new(&agent(), "plan");
        client.model(model.clone()).crash_after(steps);
        let reply = client.send("x").await.unwrap();
        assert_eq!(reply.artifact_data("plan"), Some(plan("sell")));
        assert_eq!(
            model.requests(),
            whole.requests(),
            "the model gets the same requests"
        );
    }
    let ModelMessage::Model(sent) = &whole.requests()[1].messages[1] else {
        panic!()
    };
    assert_eq!(sent[0], ModelContent::Provider(signed));
}

/// Writes.
#[skill(id = "write", tags = ["example"])]
async fn write(cx: &mut TaskContext<'_>, about: String) -> AgentResult<String> {
    let writer = LlmWorker::<String>::new("Write.").tool(stock());
    writer.stream_to("write").run(cx, &about).await
}

#[tokio::test]
async fn text_is_streamed_into_an_artifact_while_the_model_writes() {
    let look = vec![
        ModelContent::Text("I look. ".to_owned()),
        tool_use("1", "stock", sku("A-1")),
    ];
    let model = ScriptedModel::new()
        .content(look)
        .text("Seven pieces are left.");
    let agent = Agent::builder("writer").skill(write).build().unwrap();
    let mut client = SkillTest::new(&agent, "write");
    let reply = client.model(model).send("A-1").await.unwrap();
    assert_eq!(
        reply.artifact_text("write").as_deref(),
        Some("Seven pieces are left.")
    );
    let chunks = client.events().iter().filter(|event| {
        matches!(event, crate::task::Event::Artifact(update) if update.artifact.parts.len() == 1)
    });
    assert!(chunks.count() >= 6, "each word is a chunk");
}
