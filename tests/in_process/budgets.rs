//! What models may cost: the budget of a task, and the tokens of a tenant and day.

use crate::text_clients::{record, works};
use a2a_lambda::engine::{Clock as _, LimitPolicy};
use a2a_lambda::llm::{
    Confirming, LlmBudget, LlmFunction, LlmOutcome, LlmSlot, LlmTool, LlmWorker,
};
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::RuntimeBuilder;
use a2a_lambda::skill::model::{
    Delta, Model, ModelContent, ModelReply, ModelRequest, StopReason, Usage,
};
use a2a_lambda::store::limits::Limits;
use a2a_lambda::task::TenantId;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::world::{Reply, World};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const REST: Dialect = Dialect::Rest10;
const BOB: &str = "other:bob";
const SECOND: Duration = Duration::from_secs(1);

/// A model that counts a token for four bytes, and always calls its first tool if there is one.
#[derive(Default)]
struct Stub {
    /// Its tokens, also of calls that nobody awaited to the end.
    tokens: AtomicU64,
    requests: Mutex<Vec<ModelRequest>>,
    wait: Duration,
    /// Whether it says nothing of its tokens.
    is_silent: bool,
    /// Whether it also calls a tool that it does not have.
    is_stubborn: bool,
}

impl Model for Stub {
    fn id(&self) -> &str {
        "stub"
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        let input = serde_json::to_vec(&request).unwrap().len() as u64 / 4;
        self.tokens.fetch_add(input + 10, Ordering::SeqCst);
        let calls = self.is_stubborn || !request.tools.is_empty();
        self.requests.lock().unwrap().push(request);
        async move {
            tokio::time::sleep(self.wait).await;
            let call = ModelContent::ToolUse {
                id: "1".to_owned(),
                name: "look".to_owned(),
                input: json!({"at": "it"}),
            };
            let text = ModelContent::Text("All that I know.".to_owned());
            let (content, stop) = match calls {
                true => (call, StopReason::ToolUse),
                false => (text, StopReason::EndTurn),
            };
            let usage = Usage {
                input_tokens: input,
                output_tokens: 10,
                cached_tokens: 1,
            };
            Ok(ModelReply {
                content: vec![content],
                stop,
                usage: if self.is_silent {
                    Usage::default()
                } else {
                    usage
                },
            })
        }
        .boxed()
    }

    fn converse_stream(
        &self,
        _: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        panic!("no skill here streams")
    }
}

/// Where to look.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    #[expect(dead_code, reason = "the tool finds the same everywhere")]
    at: String,
}

/// Talks, and looks things up.
#[skill(id = "chat", tags = ["test"])]
async fn chat(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    let thread = cx.thread().await?;
    let look = |_: Look| async { Ok("nothing".repeat(4_000)) };
    let tool = LlmTool::new("look", "Looks.", look);
    LlmWorker::new("Talk.").tool(tool).chat(cx, &thread).await
}

/// Answers once.
#[skill(id = "once", tags = ["test"])]
async fn once(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    LlmFunction::new("Answer.").run(cx, &text).await
}

/// Looks things up in two branches.
#[skill(id = "twins", tags = ["test"])]
async fn twins(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let cx = &*cx;
    let twin = async |name: &str| {
        let look = |_: Look| async { Ok("nothing".repeat(40_000)) };
        let tool = LlmTool::new("look", "Looks.", look);
        let worker = LlmWorker::<String>::new("Talk.").tool(tool);
        Box::pin(cx.scope(name, worker.run(cx, &text))).await
    };
    let (one, two) = futures::join!(twin("one"), twin("two"));
    Ok(format!("{} {}", one?, two?))
}

/// A worker that waits for its user.
#[derive(serde::Serialize, serde::Deserialize)]
struct Waiting(LlmSlot);

impl SkillSlot for Waiting {}

/// Looks things up, and asks for more tokens.
#[skill(id = "dig", tags = ["test"])]
struct Dig;

impl Dig {
    fn worker() -> LlmWorker<String, Confirming> {
        let look = |_: Look| async { Ok("nothing".repeat(4_000)) };
        LlmWorker::new("Talk.")
            .tool(LlmTool::new("look", "Looks.", look))
            .budget(LlmBudget::default().tokens(60_000))
            .asking()
            .may_ask_for_more(150_000)
    }

    fn result(outcome: LlmOutcome<String>) -> AgentResult<OnInputResult<String, Waiting>> {
        match outcome {
            LlmOutcome::Answer(answer) => OnInputResult::done(answer),
            LlmOutcome::Confirm(ask) => OnInputResult::ask(ask.question, Waiting(ask.slot)),
        }
    }
}

impl SkillHandler<Waiting> for Dig {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        text: String,
    ) -> AgentResult<OnRequestResult<String, Waiting>> {
        Ok(Self::result(Self::worker().run(cx, &text).await?)?.into())
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        Waiting(slot): Waiting,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, Waiting>> {
        Self::result(Self::worker().resume(cx, slot, &answer).await?)
    }
}

/// Asks three times, and tells a step what was left after the first answer.
#[skill(id = "rest", tags = ["test"])]
async fn rest(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let ask = async || LlmFunction::<String>::new("Answer.").run(cx, &text).await;
    ask().await?;
    let left = cx.tokens_left();
    cx.step_of("note", &left, async { Ok(()) }).await?;
    ask().await?;
    ask().await?;
    Ok(format!("{left:?}"))
}

/// An agent over the store and clock of another one, or its own, whose model is `stub`.
fn beside(other: Option<&World>, stub: &Arc<Stub>, change: impl FnOnce(&mut LimitPolicy)) -> World {
    let (store, clock) =
        other.map_or_else(Default::default, |it| (it.store.clone(), it.clock.clone()));
    let agent = |_| {
        let agent = Agent::builder("budgets")
            .description("Budgets.")
            .version("1");
        agent
            .skill(chat)
            .skill(rest)
            .skill(Dig)
            .skill(twins)
            .fallback(once)
            .build()
    };
    let models = |runtime: RuntimeBuilder| runtime.model(Arc::clone(stub));
    let settings = |settings: &mut a2a_lambda::settings::Settings| {
        change(&mut settings.policy.limits);
    };
    World::over(store, clock, agent, settings, models).unwrap()
}

fn day(tokens: u64) -> impl FnOnce(&mut LimitPolicy) {
    move |limits| limits.tokens_per_day = Some(tokens)
}

/// Sends a text with this budget of its client.
async fn send_with_budget(world: &World, say: &Say<'_>, budget: &Value) -> Reply {
    let mut params = REST.say(say);
    if !budget.is_null() {
        params["message"]["metadata"]["a2a-lambda/budget"] = budget.clone();
    }
    world.call(&REST.request(Op::Send, "", &params)).await
}

/// The error of a failed task, or its state.
fn end(task: &Value) -> String {
    let status = &task["status"];
    let error = &status["message"]["metadata"]["a2a-lambda/errorCode"];
    error
        .as_str()
        .map_or_else(|| REST.state(task), str::to_owned)
}

/// The tokens of a day that began so many days after the test.
pub(crate) async fn used(world: &World, tenant: &str, later: i64) -> u64 {
    let limits = Limits::new(world.store.table.clone());
    let day = world.clock.now().day() + later;
    let tenant = TenantId::parse(tenant).unwrap();
    let uses = limits.day_uses(Some(&tenant), day..=day).await.unwrap();
    uses.iter().map(|it| it.tokens).sum()
}

#[tokio::test(start_paused = true)]
async fn a_long_thread_and_a_model_that_always_calls_a_tool_end_within_the_budget() {
    for is_silent in [false, true] {
        let stub = Arc::new(Stub {
            is_stubborn: true,
            is_silent,
            ..Stub::default()
        });
        let world = beside(None, &stub, |_| ());
        let long = "a ".repeat(450_000);
        let say = Say::to("chat", &long);
        let task = REST.task(&send_with_budget(&world, &say, &Value::Null).await);
        assert_eq!(end(&task), "BUDGET_EXCEEDED", "{}", task["status"]);
        let first = stub.tokens.swap(0, Ordering::SeqCst);
        let say = Say {
            id: "2",
            context: task["contextId"].as_str(),
            ..Say::to("chat", "hi")
        };
        let task = REST.task(&send_with_budget(&world, &say, &Value::Null).await);
        assert_eq!(end(&task), "BUDGET_EXCEEDED", "{}", task["status"]);
        let second = stub.tokens.load(Ordering::SeqCst);
        for tokens in [first, second] {
            assert!((200_000..1_000_000).contains(&tokens), "{tokens} tokens");
        }
        println!("two requests of 900 KB and 2 bytes: {first} and {second} tokens are billed");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_call_has_no_tools_and_its_result_is_partial() {
    let stub = Arc::new(Stub::default());
    let world = beside(None, &stub, |_| ());
    let task = REST.task(&send_with_budget(&world, &Say::to("chat", "hi"), &json!(60_000)).await);
    assert_eq!(end(&task), "completed", "{task}");
    assert_eq!(task["metadata"]["a2a-lambda/partial"], true, "{task}");
    let requests = stub.requests.lock().unwrap().clone();
    let tools: Vec<_> = requests.iter().map(|it| it.tools.len()).collect();
    assert_eq!(tools, [1, 0]);
    assert!(requests.iter().all(|it| it.max_tokens.is_some()));
    let usage = &task["metadata"]["a2a-lambda/usage"];
    assert_eq!((&usage["calls"], &usage["cached"]), (&json!(2), &json!(2)));
    let tokens = usage["in"].as_u64().unwrap() + usage["out"].as_u64().unwrap();
    assert_eq!(tokens, stub.tokens.load(Ordering::SeqCst));
    assert_eq!(used(&world, "local", 0).await, tokens);
}

#[tokio::test(start_paused = true)]
async fn each_of_two_branches_keeps_room_for_its_last_call() {
    for budget in [70_000, 90_000, 110_000, 130_000, 150_000] {
        let stub = Arc::new(Stub {
            wait: SECOND,
            ..Stub::default()
        });
        let world = beside(None, &stub, |_| ());
        let say = Say::to("twins", "hi");
        let task = REST.task(&send_with_budget(&world, &say, &json!(budget)).await);
        assert_eq!(end(&task), "completed", "{budget}: {}", task["status"]);
        let tokens = stub.tokens.load(Ordering::SeqCst);
        assert!(tokens <= budget, "{budget}: {tokens}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_asks_once_before_it_uses_more_tokens_than_its_budget() {
    for (answer, range) in [("yes", 20_000..150_000), ("no", 1_000..20_000)] {
        let stub = Arc::new(Stub::default());
        let world = beside(None, &stub, |_| ());
        let task = REST.task(&world.call(&REST.send(&Say::to("dig", "hi"))).await);
        assert_eq!(end(&task), "input-required", "{task}");
        let text = task["status"]["message"]["parts"][0]["text"].as_str();
        let text = text.unwrap();
        assert!(
            text.contains("use more tokens") && text.contains("150000"),
            "{text}"
        );
        assert!(stub.tokens.load(Ordering::SeqCst) < 60_000);
        let say = Say {
            id: "2",
            task: task["id"].as_str(),
            skill: None,
            ..Say::to("dig", answer)
        };
        let task = REST.task(&world.call(&REST.send(&say)).await);
        assert_eq!(end(&task), "completed", "{task}");
        assert_eq!(task["metadata"]["a2a-lambda/partial"], true, "{task}");
        let tokens = stub.tokens.load(Ordering::SeqCst);
        assert!(range.contains(&tokens), "{answer}: {tokens}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_a_client_is_a_whole_number() {
    let stub = Arc::new(Stub::default());
    let world = beside(None, &stub, |_| ());
    for budget in [json!(0), json!(-1), json!(1.5), json!("7"), json!([1])] {
        let reply = send_with_budget(&world, &Say::to("once", "hi"), &budget).await;
        assert_eq!(reply.status, 400, "{budget}");
        let field = "message.metadata.a2a-lambda/budget";
        assert!(reply.text().contains(field), "{}", reply.text());
    }
    let task = REST.task(&send_with_budget(&world, &Say::to("once", "hi"), &json!(100)).await);
    assert_eq!(end(&task), "BUDGET_EXCEEDED");
    assert_eq!(stub.tokens.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_report_counts_as_reserved_for_its_tenant_alone() {
    for (is_silent, last) in [(false, "completed"), (true, "BUDGET_EXCEEDED")] {
        let stub = Arc::new(Stub {
            is_silent,
            ..Stub::default()
        });
        let world = beside(None, &stub, day(40_000));
        for (id, expected) in [("1", "completed"), ("2", "completed"), ("3", last)] {
            let say = Say {
                id,
                ..Say::to("once", "hi")
            };
            let task = REST.task(&send_with_budget(&world, &say, &Value::Null).await);
            assert_eq!(end(&task), expected, "{id} {is_silent}");
            if expected == "BUDGET_EXCEEDED" {
                let text = task["status"]["message"].to_string();
                assert!(text.contains("2026-01-02T00:00:00.000Z"), "{text}");
            }
        }
        let other = REST.send(&Say::to("once", "hi")).from(BOB);
        assert_eq!(end(&REST.task(&world.call(&other).await)), "completed");
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_processes_spends_the_last_of_a_day() {
    let stub = Arc::new(Stub {
        wait: SECOND,
        ..Stub::default()
    });
    let one = beside(None, &stub, day(20_000));
    let two = beside(Some(&one), &stub, day(20_000));
    let (say, other) = (Say::to("once", "hi"), Say::to("once", "ho"));
    let (one, two) = tokio::join!(
        send_with_budget(&one, &say, &Value::Null),
        send_with_budget(&two, &other, &Value::Null)
    );
    let mut ends = [one, two].map(|reply| end(&REST.task(&reply)));
    ends.sort();
    assert_eq!(ends, ["BUDGET_EXCEEDED", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_over_midnight_counts_for_the_day_of_its_beginning() {
    let stub = Arc::new(Stub {
        wait: 600 * SECOND,
        ..Stub::default()
    });
    let world = beside(None, &stub, |_| ());
    world.clock.advance(Duration::from_secs(24 * 3600 - 60));
    let mut params = REST.say(&Say::to("once", "hi"));
    params["configuration"] = json!({"returnImmediately": true});
    world.call(&REST.request(Op::Send, "", &params)).await;
    works(&world).await;
    assert_eq!(record(&world).await.state().as_str(), "completed");
    let tokens = stub.tokens.load(Ordering::SeqCst);
    assert_eq!(used(&world, "local", -1).await, tokens);
    assert_eq!(used(&world, "local", 0).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_dies_stays_counted_and_none_is_longer_than_a_quarter_of_an_hour() {
    let stub = Arc::new(Stub {
        wait: 1_000 * SECOND,
        ..Stub::default()
    });
    let world = beside(None, &stub, |_| ());
    let say = Say::to("once", "hi");
    let call = send_with_budget(&world, &say, &Value::Null);
    assert!(tokio::time::timeout(SECOND, call).await.is_err());
    let reserved = used(&world, "local", 0).await;
    assert!(reserved > 16_384, "{reserved}");
    let mut params = REST.say(&Say::to("once", "ho"));
    params["configuration"] = json!({"returnImmediately": true});
    world.call(&REST.request(Op::Send, "", &params)).await;
    works(&world).await;
    let code = "a2a-lambda/errorCode";
    let record = record(&world).await;
    let message = record.status.message.as_ref().unwrap();
    assert_eq!(message.metadata[code], "DEADLINE");
    assert_eq!(used(&world, "local", 0).await, 2 * reserved);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_handed_over_reads_the_same_rest_of_its_budget() {
    let stub = Arc::new(Stub {
        wait: 10 * SECOND,
        ..Stub::default()
    });
    let world = beside(None, &stub, |_| ());
    send_with_budget(&world, &Say::to("rest", "hi"), &json!(500_000)).await;
    works(&world).await;
    let record = record(&world).await;
    assert_eq!(record.state().as_str(), "completed", "{record:?}");
}

#[tokio::test(start_paused = true)]
async fn the_router_asks_when_there_is_no_room_for_its_model() {
    let stub = Arc::new(Stub::default());
    let world = beside(None, &stub, day(1));
    let say = Say {
        skill: None,
        ..Say::to("once", "some words")
    };
    let task = REST.task(&send_with_budget(&world, &say, &Value::Null).await);
    assert_eq!(end(&task), "input-required", "{task}");
    assert_eq!(stub.tokens.load(Ordering::SeqCst), 0);
}

/// Writes a file.
#[skill(id = "write", tags = ["test"])]
async fn write(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    let file = Artifact::from_file("file", "text/plain", vec![b'a'; 50_000]);
    cx.send_partial_artifact(file).await?;
    Ok("written".to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_skill_count_for_the_stored_bytes_of_a_day() {
    let agent = |_| {
        let agent = Agent::builder("writes").description("Writes.").version("1");
        agent.skill(write).build()
    };
    let world = World::serving(agent, |settings| {
        settings.policy.limits.stored_bytes_per_day = Some(120_000);
    });
    let world = world.unwrap();
    for (id, expected) in [
        ("1", "completed"),
        ("2", "completed"),
        ("3", "RATE_LIMITED"),
    ] {
        let say = Say {
            id,
            ..Say::to("write", "hi")
        };
        let task = REST.task(&send_with_budget(&world, &say, &Value::Null).await);
        assert_eq!(end(&task), expected, "{id}");
    }
    let other = REST.send(&Say::to("write", "hi")).from(BOB);
    assert_eq!(end(&REST.task(&world.call(&other).await)), "completed");
}

#[tokio::test(start_paused = true)]
async fn the_picture_of_a_short_request_counts_for_the_stored_bytes_of_a_day() {
    let limit = |settings: &mut a2a_lambda::settings::Settings| {
        settings.policy.limits.stored_bytes_per_day = Some(30_000_000);
    };
    let world = World::serving(|_| reference_agent::agent(), limit).unwrap();
    let mut ends = Vec::new();
    for id in ["1", "2", "3"] {
        let say = Say {
            id,
            ..Say::to("fingerprint", "")
        };
        let mut params = REST.say(&say);
        params["message"]["parts"] = json!([{"raw": "R0lGODlh", "mediaType": "image/gif"}]);
        let request = REST.request(Op::Send, "", &params);
        assert!(request.body.len() < 250, "{}", request.body.len());
        ends.push(end(&REST.task(&world.call(&request).await)));
    }
    // 12,582,966 bytes each: 853 such requests fill the 10 GiB of a day.
    assert_eq!(ends, ["completed", "completed", "RATE_LIMITED"]);
}
