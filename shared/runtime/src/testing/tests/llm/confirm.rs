use super::{results, tool_use};
use crate::prelude::*;
use crate::skill::Tool;
use crate::task::{Part, TaskState};
use crate::testing::{Reply, ScriptedModel, SkillTest};
use a2a_lambda_llm::{Confirming, LlmOutcome, LlmSlot, LlmTool, LlmWorker};
use a2a_lambda_skill::FilePart;
use a2a_lambda_skill::model::ModelContent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Serialize, Deserialize)]
struct Waiting(LlmSlot);

impl SkillSlot for Waiting {}

/// Removes files.
#[skill(id = "clean", tags = ["example"], input_modes = ["text/plain", "image/png"])]
struct Clean(Arc<AtomicU32>);

const RULES: &[u8] = b"\x89PNG rules";

impl Clean {
    fn worker(&self) -> LlmWorker<String, Confirming> {
        let removed = Arc::clone(&self.0);
        let remove = LlmTool::new("remove", "Removes a file.", move |_: Value| {
            removed.fetch_add(1, Ordering::SeqCst);
            async { Ok("removed") }
        });
        let list = LlmTool::new("list", "Lists.", |_: Value| async { Ok(["a", "b"]) });
        let rules = Content::from_file("rules.png", "image/png", RULES).into_parts();
        let rules = FilePart::of(&rules[0]).unwrap();
        let worker = LlmWorker::new("Clean up.").file(rules);
        worker.tool(list).confirm_tool(remove)
    }

    fn result(outcome: LlmOutcome<String>) -> AgentResult<OnInputResult<String, Waiting>> {
        match outcome {
            LlmOutcome::Answer(answer) => OnInputResult::done(answer),
            LlmOutcome::Confirm(ask) => OnInputResult::ask(ask.question, Waiting(ask.slot)),
        }
    }
}

impl SkillHandler<Waiting> for Clean {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        wish: Content,
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
    assert!(
        question.ends_with("\n- remove\n  file: \"a\"\nAnswer `yes` or `no`."),
        "{question}"
    );
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
async fn model_still_sees_the_files_after_its_user_was_asked() {
    let model = cleaning(1);
    let (mut client, _) = client(&model);
    let wish = Content::from_text("Clean up what you see");
    let picture = Content::from_file("a.png", "image/png", &b"\x89PNG a picture"[..]);
    let wish = wish.with(picture.into_parts().remove(0));
    client.send(wish).await.unwrap();
    client.send("yes").await.unwrap();
    for request in &*model.requests() {
        let bytes: Vec<_> = request.files().map(|file| file.bytes.clone()).collect();
        // One of the message, and one that the skill names.
        assert_eq!(bytes, [&b"\x89PNG a picture"[..], RULES]);
    }
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn model_learns_that_the_user_refused() {
    let model = cleaning(1);
    let (mut client, removed) = client(&model);
    client.send("clean").await.unwrap();
    client.send("No.").await.unwrap();
    assert_eq!(removed.load(Ordering::SeqCst), 0);
    let refused = "the user refused".to_owned();
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
async fn second_question_of_a_task_needs_its_code() {
    let model = cleaning(2);
    let (mut client, removed) = client(&model);
    client.send("clean").await.unwrap();
    let second = client.send("yes").await.unwrap();
    let again = client.send("yes").await.unwrap();
    assert_eq!(again.text(), second.text());
    assert_eq!(removed.load(Ordering::SeqCst), 1);
    let code = second.text().rsplit('`').nth(3).unwrap().to_owned();
    assert!(code.starts_with("yes "), "{code}");
    client.send(code.to_uppercase()).await.unwrap();
    assert_eq!(removed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn anything_but_yes_and_no_gets_the_same_question_again() {
    let model = cleaning(1);
    let (mut client, removed) = client(&model);
    let asked = client.send("clean").await.unwrap();
    for answer in [
        "ok",
        "y",
        "true",
        "yes please do",
        "yes zaza",
        "no, keep it",
    ] {
        let again = client.send(answer).await.unwrap();
        assert_eq!(again.state(), Some(TaskState::InputRequired), "{answer}");
        assert_eq!(digest_of(&again), digest_of(&asked), "{answer}");
    }
    let data = Content::from_data(&json!({"confirm": true})).unwrap();
    let again = client.send(data).await.unwrap();
    assert_eq!(digest_of(&again), digest_of(&asked));
    assert_eq!(removed.load(Ordering::SeqCst), 0);
    assert_eq!(model.requests().len(), 1);
    // It was asked once.
    client.send("yes").await.unwrap();
    assert_eq!(removed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn steps_of_a_task_are_the_answers_of_the_model_and_the_tools_it_waits_for() {
    let model = ScriptedModel::new()
        .tool_call("list", json!({}))
        .content(calls());
    let (mut client, _) = client(&model);
    client.send("clean").await.unwrap();
    let steps = ["clean/call/1.1#1>list#1", "clean/model#1", "clean/model#2"];
    assert_eq!(client.steps().await, steps);
}

/// The question about a call of `remove` with this input.
async fn question_about(input: Value) -> String {
    let model = ScriptedModel::new().content([tool_use("1", "remove", input.clone())]);
    let (mut client, _) = client(&model);
    let asked = client.send("clean").await.unwrap();
    let parts = &asked.message().unwrap().parts;
    let data = json!({"calls": [{"skill": "remove", "input": input}]});
    assert_eq!(parts[1], Part::data(data));
    let text = asked.text().strip_suffix("\nAnswer `yes` or `no`.");
    text.unwrap().to_owned()
}

#[tokio::test]
async fn short_member_is_shown_beside_a_long_one() {
    let note = format!("begin{}end", "x".repeat(10_240));
    let input =
        json!({"account": 7, "note": note, "to": {"name": "attacker", "list": ["b", 2, []]}});
    let question = question_about(input).await;
    let lines: Vec<&str> = question.lines().collect();
    let [hidden, _, tool, account, long, rest @ ..] = &*lines else {
        panic!("{question}")
    };
    let note = "9224 characters are not shown here; the data has them all.";
    assert_eq!(*hidden, note);
    assert_eq!([*tool, *account], ["- remove", "  account: 7"]);
    assert!(long.starts_with("  note: \"beginxxx"), "{long}");
    assert!(long.ends_with("xxxend\" (10248 characters)"), "{long}");
    assert!(long.len() < 1_100, "{}", long.len());
    let expected = [
        "  to",
        "    list",
        "      [1]: \"b\"",
        "      [2]: 2",
        "      [3]: []",
        "    name: \"attacker\"",
    ];
    assert_eq!(rest, expected);
}

#[tokio::test]
async fn what_nobody_can_see_is_escaped_in_a_question() {
    let hidden =
        "\u{202e}\u{200b}\u{2066}\u{feff}\u{ad}\u{7}\u{85}\u{2028}\u{e0041}\u{fe0f}\u{3164}";
    let escaped = "\\u{202e}\\u{200b}\\u{2066}\\u{feff}\\u{ad}\\u{7}\\u{85}\\u{2028}\\u{e0041}\\u{fe0f}\\u{3164}";
    let value = format!("a{hidden}\n- pay\r\\u{{200b}}\"é");
    let input = json!({ format!("to{hidden}\n  to: \"b\""): value, "": null });
    let question = question_about(input).await;
    let shown = format!("a{escaped}\\n- pay\\u{{d}}\\\\u{{200b}}\\\"é");
    let member = format!("  \"to{escaped}\\n  to: \\\"b\\\"\": \"{shown}\"");
    let lines: Vec<&str> = question.lines().skip(1).collect();
    assert_eq!(lines, ["- remove", "  \"\": null", &member]);
}

/// The digest of the question that a reply asks.
fn digest_of(reply: &Reply) -> Value {
    let parts = reply.message().unwrap().parts.iter();
    let digests = parts.filter_map(|part| part.metadata.get("a2a-lambda/confirm"));
    let digests: Vec<_> = digests.cloned().collect();
    assert_eq!(digests.len(), 1, "one digest");
    digests[0].clone()
}

fn yes_to(digest: &Value) -> Content {
    let mut part = Part::text("yes");
    let key = "a2a-lambda/confirm".to_owned();
    part.metadata.insert(key, digest.clone());
    Content::from_parts(vec![part])
}

#[tokio::test]
async fn wrong_digest_confirms_nothing_and_the_right_one_does() {
    let model = cleaning(1);
    let (mut client, removed) = client(&model);
    let asked = client.send("clean").await.unwrap();
    let digest = digest_of(&asked);
    for wrong in [json!("0".repeat(64)), json!(7), Value::Null] {
        let again = client.send(yes_to(&wrong)).await.unwrap();
        assert_eq!(again.state(), Some(TaskState::InputRequired), "{wrong}");
        let lines = |reply: &Reply| reply.text().lines().count();
        assert_eq!(lines(&again), lines(&asked));
        assert_eq!(digest_of(&again), digest);
    }
    assert_eq!(removed.load(Ordering::SeqCst), 0);
    assert_eq!(model.requests().len(), 1);
    client.send(yes_to(&digest)).await.unwrap();
    assert_eq!(removed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn another_call_has_another_digest() {
    let model = cleaning(1).content([tool_use("2", "remove", json!({"file": "b"}))]);
    let (mut client, _) = client(&model);
    let first = digest_of(&client.send("clean").await.unwrap());
    client.send("yes").await.unwrap();
    let second = digest_of(&client.send("clean").await.unwrap());
    assert_ne!(first, second);
}

/// Sells.
#[skill(id = "sell", tags = ["tool"])]
async fn sell(_: Value) -> AgentResult<&'static str> {
    Ok("sold")
}

/// Counts.
#[skill(id = "count", tags = ["tool"], effect = "read")]
async fn count(_: Value) -> AgentResult<u8> {
    Ok(7)
}

/// Lets a model sell and count.
#[skill(id = "shop", tags = ["example"])]
struct Shop(Vec<Tool>, bool);

impl SkillHandler<Waiting> for Shop {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        wish: Content,
    ) -> AgentResult<OnRequestResult<String, Waiting>> {
        let worker = LlmWorker::<String>::new("Sell.").skills(self.0.clone());
        if self.1 {
            return Ok(Clean::result(worker.asking().run(cx, &wish).await?)?.into());
        }
        OnRequestResult::done(worker.run(cx, &wish).await?)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Waiting,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Waiting>> {
        OnInputResult::done("answered".to_owned())
    }
}

/// What becomes of a call of `name` with these tools.
async fn shops(tools: Vec<Tool>, asks: bool, name: &str) -> Reply {
    let model = ScriptedModel::new()
        .tool_call(name, json!({}))
        .text("Done.");
    let agent = Agent::builder("shop").skill(Shop(tools, asks));
    let mut client = SkillTest::new(&agent.build().unwrap(), "shop");
    client.model(model).send("x").await.unwrap()
}

#[tokio::test]
async fn skill_that_does_not_say_that_it_reads_needs_a_confirmation() {
    let (writes, reads) = (|| Tool::new(sell), || Tool::new(count));
    let asked = shops(vec![writes(), reads()], true, "sell").await;
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    assert!(asked.text().contains("- sell"), "{}", asked.text());
    let done = shops(vec![writes(), reads()], true, "count").await;
    assert_eq!(done.state(), Some(TaskState::Completed));
    let trusted = shops(vec![writes().trusted()], false, "sell").await;
    assert_eq!(trusted.state(), Some(TaskState::Completed));
    let alone = shops(vec![reads()], false, "count").await;
    assert_eq!(alone.state(), Some(TaskState::Completed));
    // A worker that cannot ask has no such tool.
    let refused = shops(vec![writes()], false, "sell").await;
    assert_eq!(refused.error_code(), Some("INTERNAL_ERROR"));
}
