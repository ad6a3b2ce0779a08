//! Rates and streams of a tenant, at the edge.

use a2a_lambda::engine::{CallRate, LimitPolicy, SharedStreams};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Live, Reply, Request, World};
use serde_json::{Value, json};
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_call_above_the_rate_is_refused_until_its_retry_after
    a_send_above_the_rate_of_its_skill_creates_nothing
}

const ANN: &str = "acme:ann";
const BOB: &str = "other:bob";

fn world(change: impl FnOnce(&mut LimitPolicy)) -> World {
    World::with(|settings| change(&mut settings.policy.limits)).unwrap()
}

fn calls(per_minute: u32) -> impl FnOnce(&mut LimitPolicy) {
    move |limits| limits.rates.calls = Some(CallRate::per_minute(per_minute))
}

/// Checks the error of a call above a rate.
pub(super) fn limited(dialect: Dialect, reply: &Reply, seconds: &str) {
    let text = reply.text();
    assert_eq!(reply.status, 429, "{dialect:?} {text}");
    assert_eq!(reply.header("retry-after"), seconds, "{dialect:?}");
    assert!(text.contains(r#""reason":"RATE_LIMITED""#), "{text}");
    let data = format!(r#""retryAfter":"{seconds}""#);
    assert!(text.contains(&data), "{text}");
    let code = match dialect {
        Dialect::Rpc01 | Dialect::Path01 => "-32010",
        Dialect::Rest10 => "429",
        _ => "-32029",
    };
    assert!(text.contains(&format!(r#""code":{code}"#)), "{text}");
}

async fn a_call_above_the_rate_is_refused_until_its_retry_after(dialect: Dialect) {
    let world = world(calls(2));
    let send = dialect.send(&Say::to("echo", "hi")).from(ANN);
    let get = dialect.get("no-such-task", 5).from(ANN);
    assert_eq!(world.call(&send).await.status, 200);
    let absent = world.call(&get).await;
    assert!(
        absent.text().contains("TASK_NOT_FOUND"),
        "{}",
        absent.text()
    );
    limited(dialect, &world.call(&send).await, "30");
    assert_eq!(world.call(&get).await.status, 429);
    let other = dialect.send(&Say::to("echo", "hi")).from(BOB);
    assert_eq!(world.call(&other).await.status, 200);
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(world.call(&send).await.status, 200);
    limited(dialect, &world.call(&send).await, "30");
}

#[tokio::test(start_paused = true)]
async fn each_tier_has_its_own_rate_and_bucket() {
    let world = world(|limits| {
        calls(1)(limits);
        let gold = ("gold".to_owned(), CallRate::per_minute(3));
        limits.rates.tiers.extend([gold]);
    });
    for (caller, admitted) in [(ANN, 1), ("acme:ann:gold", 3), ("acme:ann:unnamed", 1)] {
        for number in 0..admitted + 1 {
            let call = Dialect::Rest10.get("no-such-task", 5).from(caller);
            let status = if number < admitted { 404 } else { 429 };
            assert_eq!(world.call(&call).await.status, status, "{caller} {number}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_wrong_version_or_parameter_costs_one_too() {
    let world = world(calls(2));
    let get = || Dialect::Rest10.get("no-such-task", 5).from(ANN);
    let wrong = get().header("a2a-version", "9.9");
    assert_eq!(world.call(&wrong).await.status, 400);
    let wrong = Request::new("GET", "/tasks/x?historyLength=no");
    let wrong = Dialect::Rest10.versioned(wrong).from(ANN);
    assert_eq!(world.call(&wrong).await.status, 400);
    assert_eq!(world.call(&get()).await.status, 429);
    // The error of a caller without an identity shows no rate, and costs none.
    let unknown = get().header("authorization", "Bearer x").from("");
    assert_eq!(world.call(&unknown).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn the_public_card_costs_nothing() {
    let world = world(calls(1));
    let card = Request::new("GET", "/.well-known/agent-card.json");
    for _ in 0..3 {
        assert_eq!(world.call(&card).await.status, 200);
    }
    let get = Dialect::Rest10.get("no-such-task", 5);
    assert_eq!(world.call(&get).await.status, 404);
    assert_eq!(world.call(&get).await.status, 429);
    assert_eq!(world.call(&card).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn each_entry_of_a_batch_is_charged_and_answered_for_itself() {
    let world = world(calls(2));
    let dialect = Dialect::Rpc10;
    let entries: Vec<Value> = (0..4)
        .map(|id| {
            let mut entry = dialect.envelope(Op::Send, &dialect.say(&Say::to("echo", "hi")));
            entry["id"] = json!(id);
            entry
        })
        .collect();
    let batch = Request::post("/", &json!(entries)).header("a2a-version", "1.0");
    let reply = world.call(&batch).await;
    assert_eq!(reply.status, 200);
    let slots = reply.json();
    let slots = slots.as_array().unwrap();
    assert_eq!(slots.len(), 4);
    for slot in &slots[..2] {
        assert!(slot["result"]["task"]["id"].is_string(), "{slot}");
    }
    for slot in &slots[2..] {
        assert_eq!(slot["error"]["code"], -32029);
        assert_eq!(slot["error"]["data"][0]["metadata"]["retryAfter"], "30");
    }
}

/// How many tasks ANN has.
async fn tasks(world: &World) -> usize {
    let list = Request::new("GET", "/tasks").header("a2a-version", "1.0");
    let page = world.call(&list.from(ANN)).await.json();
    page["tasks"].as_array().unwrap().len()
}

async fn a_send_above_the_rate_of_its_skill_creates_nothing(dialect: Dialect) {
    let world = world(|limits| {
        let rates = [("echo", 1), ("#test", 3)];
        let rates = rates.map(|(name, calls)| (name.to_owned(), CallRate::per_minute(calls)));
        limits.rates.skills.extend(rates);
    });
    // A client of 0.1 makes the ids of its tasks, and a repeated id is not a new task.
    let send = |skill, id| dialect.send(&Say::to(skill, "hi").under(id)).from(ANN);
    assert_eq!(world.call(&send("echo", "t:1")).await.status, 200);
    for _ in 0..5 {
        limited(dialect, &world.call(&send("echo", "t:2")).await, "60");
    }
    assert_eq!(tasks(&world).await, 1);
    // The refused sends took nothing of the rate that the skills share by their tag.
    let asked = dialect.task(&world.call(&send("ask", "t:3")).await);
    assert_eq!(dialect.state(&asked), "input-required");
    let id = asked["id"].as_str().unwrap();
    let answer = || dialect.send(&Say::in_task(id, "blue")).from(ANN);
    assert_eq!(world.call(&answer()).await.status, 200);
    // A continuation is charged like a send.
    limited(dialect, &world.call(&send("ask", "t:4")).await, "20");
    assert_eq!(tasks(&world).await, 2);
    world.clock.advance(Duration::from_secs(20));
    assert_eq!(world.call(&send("ask", "t:5")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_tag_costs_nothing_of_the_skill() {
    let world = world(|limits| {
        let rate = |per_minute, burst| CallRate { per_minute, burst };
        let rates = [("echo", rate(1, 4)), ("#test", rate(60, 1))];
        let rates = rates.map(|(name, rate)| (name.to_owned(), rate));
        limits.rates.skills.extend(rates);
    });
    let send = Dialect::Rest10.send(&Say::to("echo", "hi")).from(ANN);
    for _ in 0..3 {
        assert_eq!(world.call(&send).await.status, 200);
        for _ in 0..5 {
            limited(Dialect::Rest10, &world.call(&send).await, "1");
        }
        world.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(tasks(&world).await, 3);
}

async fn asking(world: &World, dialect: Dialect, caller: &'static str) -> String {
    let asks = dialect.send(&Say::to("ask", "hi")).from(caller);
    let task = dialect.task(&world.call(&asks).await);
    task["id"].as_str().unwrap().to_owned()
}

/// Opens `count` subscriptions of one task. Returns those that were accepted, and the last
/// refusal.
async fn subscribed(world: &World, id: &str, count: usize) -> (Vec<Live>, Option<Reply>) {
    let (mut open, mut refused) = (Vec::new(), None);
    for _ in 0..count {
        let subscribe = Dialect::Rest10.of_task(Op::Subscribe, id).from(ANN);
        let mut live = world.open(&subscribe).await;
        if live.status == 200 {
            live.next().await.unwrap().unwrap();
            open.push(live);
        } else {
            refused = Some(live.finish().await);
        }
    }
    (open, refused)
}

#[tokio::test(start_paused = true)]
async fn idle_subscriptions_of_one_tenant_take_nothing_of_another() {
    let world = world(|limits| limits.streams_per_tenant = Some(20));
    let dialect = Dialect::Rest10;
    let id = asking(&world, dialect, ANN).await;
    let (open, refused) = subscribed(&world, &id, 200).await;
    assert_eq!(open.len(), 20);
    limited(dialect, &refused.unwrap(), "30");
    // The same tenant still sends and reads; another one streams as well.
    assert_eq!(world.call(&dialect.get(&id, 5).from(ANN)).await.status, 200);
    for request in [
        dialect.send(&Say::to("echo", "hi")),
        dialect.stream(&Say::to("chunks", "hi")),
    ] {
        assert_eq!(world.call(&request.from(BOB)).await.status, 200);
    }
    // A client that disconnects frees its slot.
    drop(open);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(subscribed(&world, &id, 21).await.0.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_stream_keeps_its_slot_while_it_runs() {
    let world = world(|limits| limits.streams_per_tenant = Some(1));
    let dialect = Dialect::Rest10;
    let id = asking(&world, dialect, ANN).await;
    let (mut open, _) = subscribed(&world, &id, 1).await;
    assert!(open[0].is_silent_for(Duration::from_secs(200)).await);
    assert_eq!(subscribed(&world, &id, 1).await.0.len(), 0);
    // A stream that ends frees its slot.
    let answer = dialect.send(&Say::in_task(&id, "blue")).from(ANN);
    let (_, answered) = tokio::join!(open.remove(0).finish(), world.call(&answer));
    assert_eq!(dialect.state(&dialect.task(&answered)), "completed");
    let stream = dialect.stream(&Say::to("chunks", "hi")).from(ANN);
    for _ in 0..2 {
        assert_eq!(world.call(&stream).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_slot_creates_no_task() {
    let world = world(|limits| limits.streams_per_tenant = Some(1));
    let id = asking(&world, Dialect::Rest10, ANN).await;
    let (_open, _) = subscribed(&world, &id, 1).await;
    for dialect in [
        Dialect::Rpc10,
        Dialect::Rest10,
        Dialect::Rest03,
        Dialect::Rpc01,
        Dialect::Path01,
    ] {
        let stream = dialect.stream(&Say::to("chunks", "hi")).from(ANN);
        limited(dialect, &world.call(&stream).await, "30");
    }
    assert_eq!(tasks(&world).await, 1);
}

#[tokio::test(start_paused = true)]
async fn all_tenants_together_hold_the_slots_of_the_shared_pool() {
    let world = world(|limits| {
        let pool = "streams".to_owned();
        limits.shared_streams = Some(SharedStreams { pool, cap: 5 });
    });
    let id = asking(&world, Dialect::Rest10, ANN).await;
    let (open, refused) = subscribed(&world, &id, 7).await;
    assert_eq!(open.len(), 5);
    limited(Dialect::Rest10, &refused.unwrap(), "30");
    let stream = Dialect::Rest10.stream(&Say::to("chunks", "hi")).from(BOB);
    limited(Dialect::Rest10, &world.call(&stream).await, "30");
    drop(open);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.call(&stream).await.status, 200);
}
