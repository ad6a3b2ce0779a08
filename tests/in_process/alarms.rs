//! What an alarm counts is in the log, also with `LogLevel=error`: the patterns of `infra/alarms.yaml`
//! match the lines that are written.

use crate::push_fair::outgoing;
use a2a_lambda::engine::{
    Clock as _, Policy, PushDelivery, PushDeliveryError, PushDispatcher, SendPush, SweepPlaces,
    relay, relay_pushes,
};
use a2a_lambda::llm::LlmFunction;
use a2a_lambda::llm::openai::OpenAiModel;
use a2a_lambda::prelude::*;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{PushItem, PushQueue, TaskImage, WorkItem};
use a2a_lambda::task::{Owner, Subject, TaskId, TenantId};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::log_lines::LogLines;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Request, World};
use a2a_local::queue::LocalQueue;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const ALARMS: &str = include_str!("../../infra/alarms.yaml");
const MINUTE: Duration = Duration::from_secs(60);

/// The pattern of a metric filter.
fn pattern(name: &str) -> &'static str {
    let (_, resource) = ALARMS.split_once(&format!("  {name}:\n")).unwrap();
    let (_, pattern) = resource.split_once("FilterPattern: '").unwrap();
    pattern.split_once('\'').unwrap().0
}

/// Whether a pattern of CloudWatch Logs matches a line: `{…}` of fields, else of texts.
fn matches(pattern: &str, line: &str) -> bool {
    let Some(fields) = pattern
        .strip_prefix('{')
        .and_then(|it| it.strip_suffix('}'))
    else {
        let mut texts = pattern.split("\" ");
        return texts.all(|text| line.contains(text.trim_matches('"')));
    };
    let line: Value = serde_json::from_str(line).unwrap();
    any(fields, &line)
}

/// The parts of a condition between `separator`, outside of parentheses.
fn parts<'p>(condition: &'p str, separator: &str) -> Vec<&'p str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, letter) in condition.char_indices() {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        let rest = condition.get(at..).unwrap_or_default();
        if depth == 0 && rest.starts_with(separator) {
            parts.push(condition.get(from..at).unwrap_or_default());
            from = at + separator.len();
        }
    }
    parts.push(condition.get(from..).unwrap_or_default());
    parts
}

fn any(condition: &str, line: &Value) -> bool {
    let all = |part: &str| parts(part, " && ").into_iter().all(|it| is_true(it, line));
    parts(condition, " || ").into_iter().any(all)
}

fn is_true(condition: &str, line: &Value) -> bool {
    let condition = condition.trim();
    if let Some(inner) = condition.strip_prefix('(') {
        return any(inner.strip_suffix(')').unwrap(), line);
    }
    let (field, value) = condition.split_once(" = ").unwrap();
    line[field.strip_prefix("$.").unwrap()] == value.trim_matches('"')
}

/// How many lines a metric filter counts.
fn count(lines: &LogLines, name: &str) -> usize {
    let text = lines.text();
    let counts = text.lines().filter(|line| matches(pattern(name), line));
    counts.count()
}

/// What the four shares count: failed calls and others, failed turns and others.
fn shares(lines: &LogLines) -> [usize; 4] {
    ["FailedCalls", "OtherCalls", "FailedTurns", "OtherTurns"].map(|name| count(lines, name))
}

/// Fails as its message says.
#[skill(id = "fails", tags = ["test"])]
async fn fails(code: String) -> AgentResult<String> {
    Err(match code.as_str() {
        "tool" => AgentError::network("the service is down"),
        "input" => AgentError::invalid_input("no such city"),
        "budget" => AgentError::budget_exceeded("no tokens are left"),
        "author" => AgentError::domain("TOOL_DOWN", "the till is closed"),
        _ => AgentError::internal("a defect"),
    })
}

/// Says what it gets.
#[skill(id = "echo", tags = ["test"])]
async fn echo(text: String) -> AgentResult<String> {
    Ok(text)
}

/// Asks a model.
#[skill(id = "asks", tags = ["test"])]
async fn asks(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    LlmFunction::new("Answer.").run(cx, &text).await
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    let agent = Agent::builder("alarms").description("Fails.").version("1");
    agent.skill(fails).skill(echo).skill(asks).build()
}

/// An agent whose model is behind a closed port, and what it writes with `LogLevel=error`.
fn world() -> (World, LogLines) {
    let model = OpenAiModel::builder("http://127.0.0.1:9/v1", "m")
        .build()
        .unwrap();
    let with_model = |runtime: a2a_lambda::runtime::RuntimeBuilder| runtime.model(model);
    let world = World::over(Arc::default(), Arc::default(), agent, |_| (), with_model);
    (world.unwrap(), LogLines::default())
}

fn send(skill: &str, text: &str) -> Request {
    Dialect::Rpc10.send(&Say::to(skill, text)).from("acme:ann")
}

/// The same, without waiting for its task.
fn behind(skill: &str, text: &str) -> Request {
    let mut params = Dialect::Rpc10.say(&Say::to(skill, text));
    params["configuration"] = json!({"returnImmediately": true,
        "taskPushNotificationConfig": {"url": "https://hook.example/hook"}});
    Dialect::Rpc10
        .request(Op::Send, "", &params)
        .from("acme:ann")
}

#[tokio::test(start_paused = true)]
async fn ten_failed_turns_among_a_thousand_polls_are_all_that_counts() {
    let (world, lines) = world();
    let _guard = lines.capture_at("error");
    for _ in 0..10 {
        world.call(&send("fails", "defect")).await;
    }
    assert_eq!(shares(&lines), [0, 10, 10, 0], "{}", lines.text());
    let task = lines.with_message("call")[0]["a2a.task"]
        .as_str()
        .unwrap()
        .to_owned();
    let before = lines.text().len();
    for _ in 0..1_000 {
        let poll = Dialect::Rpc10.of_task(Op::Get, &task).from("acme:ann");
        assert_eq!(world.call(&poll).await.status, 200);
    }
    assert_eq!(
        lines.text().len(),
        before,
        "polls are no lines at this level"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_counts_by_who_has_to_act() {
    let rows = [
        ("fails", "defect", "ours", [0, 1, 1, 0]),
        ("fails", "tool", "tool", [0, 1, 1, 0]),
        ("fails", "author", "tool", [0, 1, 1, 0]),
        ("fails", "input", "caller", [0, 1, 0, 1]),
        ("fails", "budget", "caller", [0, 1, 0, 1]),
        ("echo", "hi", "ok", [0, 1, 0, 1]),
    ];
    each_row_async(rows, async |(skill, text, class, counts)| {
        let (world, lines) = world();
        let _guard = lines.capture_at("error");
        let reply = world.call(&send(skill, text)).await;
        assert_eq!(reply.status, 200, "JSON-RPC tells a failure in its body");
        let line = &lines.with_message("call")[0];
        assert_eq!(
            (&line["class"], &line["turn_class"]),
            (&json!("ok"), &json!(class)),
            "{line}"
        );
        assert_eq!(shares(&lines), counts, "{line}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_away_fails_calls_and_each_is_counted() {
    let (world, lines) = world();
    let _guard = lines.capture_at("error");
    world.store.refuse_commits(true);
    for _ in 0..30 {
        world.call(&send("echo", "hi")).await;
    }
    // More than ten refusals of callers have no line.
    assert_eq!(shares(&lines)[..2], [30, 0], "{}", lines.text());
    let line = &lines.with_message("refused")[0];
    assert_eq!(
        (&line["class"], &line["a2a.error"]),
        (&json!("store"), &json!("UNAVAILABLE"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_callers_do_wrong_rings_nothing() {
    let (world, lines) = world();
    let _guard = lines.capture_at("error");
    for number in 0..50 {
        let unknown = format!("no-such-task-{number}");
        world
            .call(&Dialect::Rpc10.of_task(Op::Get, &unknown).from("acme:ann"))
            .await;
        world.call(&send("no-such-skill", "hi")).await;
        world
            .call(&Request::post("/", &json!({"jsonrpc": "2.0"})))
            .await;
    }
    assert!(!lines.with_message("refused").is_empty());
    assert_eq!(shares(&lines), [0; 4], "{}", lines.text());
}

#[tokio::test(start_paused = true)]
async fn a_model_on_a_closed_port_fails_turns_and_each_is_counted() {
    let (world, lines) = world();
    let _guard = lines.capture_at("error");
    let turns = LocalQueue::<WorkItem>::new(world.clock.clone(), MINUTE);
    for _ in 0..3 {
        // The call ends before the last try, which a worker makes.
        let reply = world.call(&send("asks", "hi")).await;
        let task = Dialect::Rpc10.task(&reply)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let image = image(&world, &task).await;
        relay(&turns, &[image], world.clock.now()).await;
        let delivery = turns.receive().await;
        world
            .engine()
            .turns
            .work(&delivery.item, &delivery.receipt, None)
            .await;
        delivery.receipt.delete();
    }
    let [line, ..] = &lines.with_message("turn")[..] else {
        panic!("{}", lines.text())
    };
    assert_eq!(
        (&line["class"], &line["a2a.error"]),
        (&json!("model"), &json!("MODEL_PROVIDER"))
    );
    assert_eq!(shares(&lines), [0, 3, 3, 0], "{}", lines.text());
}

/// A push queue or a webhook that refuses.
struct Refuses;

#[async_trait]
impl PushQueue for Refuses {
    async fn send(&self, items: &[PushItem], _: Duration) -> Result<Vec<bool>, StoreError> {
        Ok(vec![false; items.len()])
    }
}

#[async_trait]
impl SendPush for Refuses {
    async fn post(&self, _: &PushDelivery) -> Result<(), PushDeliveryError> {
        Err(PushDeliveryError::Status(500))
    }
}

/// The task that a line names, as the relay reads it.
async fn image(world: &World, task: &str) -> TaskImage {
    let owner = Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    };
    let (records, id) = (&world.store.memory().records, TaskId::parse(task).unwrap());
    let record = records.load(&owner, &id, world.clock.now()).await;
    TaskImage::of(&record.unwrap().unwrap())
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_or_is_lost_is_counted_with_log_level_error() {
    let (world, lines) = world();
    let _guard = lines.capture_at("error");
    let reply = world.call(&behind("fails", "tool")).await;
    let task = Dialect::Rpc10.task(&reply)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(shares(&lines), [0, 1, 0, 0], "its turn has not ended");

    // No relay: the sweep sends the turn, once it has waited.
    let turns = LocalQueue::<WorkItem>::new(world.clock.clone(), MINUTE);
    let sweep = async || {
        let mut places = SweepPlaces::default();
        world
            .engine()
            .sweeper
            .sweep_round(&turns, &mut places, None)
            .await;
    };
    sweep().await;
    assert_eq!(count(&lines, "TurnsResent"), 0, "{}", lines.text());
    tokio::time::sleep(6 * MINUTE).await;
    sweep().await;
    assert_eq!(count(&lines, "TurnsResent"), 1, "{}", lines.text());

    let delivery = turns.receive().await;
    world
        .engine()
        .turns
        .work(&delivery.item, &delivery.receipt, None)
        .await;
    assert_eq!(
        shares(&lines),
        [0, 1, 1, 0],
        "the worker has a line of its own"
    );

    // A push queue that refuses, and a webhook that fails until its delivery is given up.
    let image = image(&world, &task).await;
    assert!(
        relay(&turns, std::slice::from_ref(&image), world.clock.now())
            .await
            .is_empty()
    );
    assert_eq!(
        relay_pushes(&Refuses, std::slice::from_ref(&image)).await,
        1
    );
    assert_eq!(count(&lines, "PushesLeft"), 1, "{}", lines.text());
    let pushes = LocalQueue::<PushItem>::new(world.clock.clone(), 2 * MINUTE);
    assert_eq!(relay_pushes(&pushes, &[image]).await, 0);
    let dispatcher = PushDispatcher::new(
        outgoing(&world, &pushes, Arc::new(Refuses)),
        Policy::default(),
    );
    while count(&lines, "PushesGivenUp") == 0 {
        let delivery = pushes.receive().await;
        dispatcher.deliver(&delivery.item, None).await;
        delivery.receipt.delete();
    }
    assert!(lines.text().contains("gave up push config"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_counts_as_a_failed_call() {
    let (world, lines) = world();
    let _guard = lines.capture_at("error");
    let request = Dialect::Rpc10
        .stream(&Say::to("asks", "hi"))
        .from("acme:ann");
    let live = world.open(&request).await;
    world.store.refuse_commits(true);
    let _reply = live.finish().await;
    let [failed, others, ..] = shares(&lines);
    assert_eq!((failed, others), (1, 0), "{}", lines.text());
}
