use super::{results, tool_use};
use crate::prelude::*;
use crate::testing::{ScriptedModel, SkillTest};
use a2a_lambda_llm::{Confirming, LlmOutcome, LlmSlot, LlmTool, LlmWorker};
use a2a_lambda_skill::model::ModelContent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Serialize, Deserialize)]
struct Waiting(LlmSlot);

impl SkillSlot for Waiting {}

/// Removes files.
#[skill(id = "clean", tags = ["example"])]
struct Clean(Arc<AtomicU32>);

impl Clean {
    fn worker(&self) -> LlmWorker<String, Confirming> {
        let removed = Arc::clone(&self.0);
        let remove = LlmTool::new("remove", "Removes a file.", move |_: Value| {
            removed.fetch_add(1, Ordering::SeqCst);
            async { Ok("removed") }
        });
        let list = LlmTool::new("list", "Lists.", |_: Value| async { Ok(["a", "b"]) });
        LlmWorker::new("Clean up.").tool(list).confirm_tool(remove)
    }

    fn result(outcome: LlmOutcome<String>) -> AgentResult<OnInputResult<String, Waiting>> {
        match outcome {
            LlmOutcome::Answer(answer) => OnInputResult::done(answer),
            LlmOutcome::Confirm(ask) => OnInputResult::ask(ask.question, Waiting(ask.slot)),
        }
    }
}

impl SkillHandler<Waiting> for Clean {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        wish: String,
    ) -> AgentResult<OnRequestResult<String, Waiting>> {
        let outcome = self.worker().run(cx, &wish).await?;
        Ok(Self::result(outcome)?.into())
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        Waiting(slot): Waiting,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, Waiting>> {
        Self::result(self.worker().resume(cx, slot, &answer).await?)
    }
}

fn calls() -> [ModelContent; 2] {
    [
        tool_use("1", "list", json!({})),
        tool_use("2", "remove", json!({"file": "a"})),
    ]
}

/// A model that wants to remove a file `times` times.
fn cleaning(times: usize) -> ScriptedModel {
    let model = (0..times).fold(ScriptedModel::new(), |model, _| model.content(calls()));
    model.text("It is clean.")
}

fn listed() -> (String, Result<Value, String>) {
    ("1".to_owned(), Ok(json!(["a", "b"])))
}

fn client(model: &ScriptedModel) -> (SkillTest, Arc<AtomicU32>) {
    let removed = Arc::new(AtomicU32::new(0));
    let agent = Agent::builder("cleaner").skill(Clean(removed.clone()));
    let mut client = SkillTest::new(&agent.build().unwrap(), "clean");
    client.model(model.clone());
    (client, removed)
}

#[tokio::test]
async fn tool_to_confirm_runs_after_the_user_said_yes() {
    let model = cleaning(1);
    let (mut client, removed) = client(&model);
    let asked = client.send("clean").await.unwrap();
    let question = asked.text();
    assert!(question.contains("remove {\"file\":\"a\"}"), "{question}");
    assert!(!question.contains("list"), "{question}");
    assert_eq!(removed.load(Ordering::SeqCst), 0);
    let reply = client.send("Yes.").await.unwrap();
    assert_eq!(
        reply.artifact_text("clean").as_deref(),
        Some("It is clean.")
    );
    assert_eq!(removed.load(Ordering::SeqCst), 1);
    let removed = ("2".to_owned(), Ok(json!("removed")));
    assert_eq!(results(&model), [listed(), removed]);
}

#[tokio::test]
async fn model_learns_that_the_user_refused() {
    let model = cleaning(1);
    let (mut client, removed) = client(&model);
    client.send("clean").await.unwrap();
    client.send("no, keep it").await.unwrap();
    assert_eq!(removed.load(Ordering::SeqCst), 0);
    let refused = "the user refused: no, keep it".to_owned();
    assert_eq!(results(&model), [listed(), ("2".to_owned(), Err(refused))]);
}

#[tokio::test(start_paused = true)]
async fn confirmed_worker_continues_after_a_crash() {
    let model = cleaning(1);
    let (mut client, removed) = client(&model);
    client.send("clean").await.unwrap();
    client.crash_after(2);
    let reply = client.send("yes").await.unwrap();
    assert_eq!(
        reply.artifact_text("clean").as_deref(),
        Some("It is clean.")
    );
    assert_eq!(removed.load(Ordering::SeqCst), 1);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn second_question_is_asked_too() {
    let model = cleaning(2);
    let (mut client, removed) = client(&model);
    client.send("clean").await.unwrap();
    client.send("yes").await.unwrap();
    client.send("yes").await.unwrap();
    assert_eq!(removed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn steps_of_a_task_are_the_answers_of_the_model_and_the_tools_it_waits_for() {
    let model = ScriptedModel::new()
        .tool_call("list", json!({}))
        .content(calls());
    let (mut client, _) = client(&model);
    client.send("clean").await.unwrap();
    let steps = [
        "string/call/1.1#1>list#1",
        "string/model#1",
        "string/model#2",
    ];
    assert_eq!(client.steps().await, steps);
}
