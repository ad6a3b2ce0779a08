//! What an operator has braked does not begin, waits without a loss, and goes on after the lift.

use crate::push_fair::outgoing;
use crate::text_clients::{record, works};
use a2a_lambda::engine::{
    Clock as _, Leases, Policy, PushDelivery, PushDeliveryError, PushDispatcher, SendPush,
    relay_pushes,
};
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::RuntimeBuilder;
use a2a_lambda::skill::model::{Delta, Model, ModelReply, ModelRequest, StopReason, Usage};
use a2a_lambda::store::brake::{BrakeTarget, Brakes};
use a2a_lambda::store::queue::{Ack, PushItem, TaskImage, WorkItem};
use a2a_lambda::task::{SkillId, TenantId, Timestamp};
use a2a_lambda::testing::{ScriptedModel, TestClock};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Reply, World};
use a2a_local::queue::LocalQueue;
use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_braked_tenant_is_refused_though_nothing_is_limited
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    a_braked_skill_starts_nothing_and_its_tasks_are_read
}

const ANN: &str = "acme:ann";
const BOB: &str = "other:bob";
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn tenant(name: &str) -> BrakeTarget {
    BrakeTarget::Tenant(TenantId::parse(name).unwrap())
}

fn skill(name: &str) -> BrakeTarget {
    BrakeTarget::Skill(SkillId::parse(name).unwrap())
}

/// Sets or lifts a brake, and waits until each process has read it.
async fn brake(world: &World, target: &BrakeTarget, is_set: bool) {
    let brakes = Brakes::new(world.store.table.clone());
    let change = brakes.change(target, is_set, world.clock.now());
    change.await.unwrap();
    tokio::time::sleep(5 * SECOND).await;
}

fn unavailable(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert_eq!(reply.header("retry-after"), "60");
}

async fn a_braked_tenant_is_refused_though_nothing_is_limited(dialect: Dialect) {
    let world = World::new().unwrap();
    let send = || dialect.send(&Say::to("echo", "hi")).from(ANN);
    let task = dialect.task(&world.call(&send()).await);
    let id = task["id"].as_str().unwrap();
    let get = || dialect.get(id, 5).from(ANN);
    brake(&world, &tenant("acme"), true).await;
    for request in [send(), get()] {
        let refused = world.call(&request).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
        assert!(refused.text().contains("PERMISSION_DENIED"));
    }
    let other = dialect.send(&Say::to("echo", "hi")).from(BOB);
    assert_eq!(world.call(&other).await.status, 200);
    brake(&world, &tenant("acme"), false).await;
    for request in [send(), get()] {
        assert_eq!(world.call(&request).await.status, 200);
    }
}

async fn a_braked_skill_starts_nothing_and_its_tasks_are_read(dialect: Dialect) {
    let world = World::new().unwrap();
    let asks = dialect.send(&Say::to("ask", "hi")).from(ANN);
    let task = dialect.task(&world.call(&asks).await);
    let id = task["id"].as_str().unwrap().to_owned();
    let echo = dialect.send(&Say::to("echo", "hi")).from(ANN);
    let answer = dialect.send(&Say::in_task(&id, "blue")).from(ANN);
    let commits = world.store.commits().len();
    for (target, is_echo_refused) in [(skill("ask"), false), (BrakeTarget::Everything, true)] {
        brake(&world, &target, true).await;
        for request in [&asks, &answer] {
            unavailable(&world.call(request).await);
        }
        if is_echo_refused {
            unavailable(&world.call(&echo).await);
            assert_eq!(world.store.commits().len(), commits);
        }
        assert_eq!(world.call(&dialect.get(&id, 5).from(ANN)).await.status, 200);
    }
    let cancel = dialect.of_task(Op::Cancel, &id).from(ANN);
    assert_eq!(world.call(&cancel).await.status, 200);
    for target in [skill("ask"), BrakeTarget::Everything] {
        brake(&world, &target, false).await;
    }
    for request in [&asks, &echo] {
        assert_eq!(world.call(request).await.status, 200);
    }
}

/// Sends a message that a worker handles; returns the id of the task.
async fn queued(world: &World, skill: &str) -> String {
    let dialect = Dialect::Rest10;
    let mut params = dialect.say(&Say::to(skill, "go"));
    params["configuration"] = json!({"returnImmediately": true});
    let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
    let task = dialect.task(&reply);
    task["id"].as_str().unwrap().to_owned()
}

/// How many turns one sweep sends to the queue, after it has run those.
pub(crate) async fn swept(world: &World) -> usize {
    let queue = LocalQueue::<WorkItem>::new(world.clock.clone(), 60 * SECOND);
    let sweep = world.engine().sweeper.sweep(&queue, Leases::Respect);
    assert_eq!(sweep.await.unwrap().failed, 0);
    let count = queue.len();
    for _ in 0..count {
        let turn = queue.receive().await;
        let work = world.engine().turns.work(&turn.item, &turn.receipt, None);
        assert_eq!(work.await, Ack::Delete);
    }
    count
}

async fn state(world: &World) -> String {
    record(world).await.state().as_str().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_queued_turn_waits_three_days_for_the_lift_and_runs() {
    for target in [tenant("local"), skill("echo"), BrakeTarget::Everything] {
        let world = World::new().unwrap();
        queued(&world, "echo").await;
        brake(&world, &target, true).await;
        works(&world).await;
        assert_eq!(state(&world).await, "submitted", "{target}");
        for _ in 0..3 {
            world.clock.advance(DAY);
            assert_eq!(swept(&world).await, 0, "{target}");
        }
        brake(&world, &target, false).await;
        assert_eq!(swept(&world).await, 1, "{target}");
        assert_eq!(state(&world).await, "completed", "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_progress_for_a_day_beside_the_brake_fails() {
    let world = World::new().unwrap();
    queued(&world, "echo").await;
    brake(&world, &skill("echo"), true).await;
    world.clock.advance(3 * DAY);
    brake(&world, &skill("echo"), false).await;
    world.clock.advance(DAY);
    let queue = LocalQueue::<WorkItem>::new(world.clock.clone(), 60 * SECOND);
    let sweep = world.engine().sweeper.sweep(&queue, Leases::Respect);
    assert_eq!(sweep.await.unwrap().failed, 1);
}

/// Three steps of twenty seconds, each with an effect, and then a call of a model that never ends.
#[skill(id = "steps", tags = ["test"])]
struct Steps(Arc<AtomicU32>, bool);

impl SkillHandler for Steps {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        for number in 0..3 {
            let work = async {
                tokio::time::sleep(20 * SECOND).await;
                self.0.fetch_add(1, Ordering::SeqCst);
                Ok(number)
            };
            cx.step("work", work).await?;
        }
        if self.1 {
            // The author calls it, without a function or a worker.
            let call = async { cx.model()?.converse(ModelRequest::default()).await };
            cx.step("model", call).await?;
        }
        OnRequestResult::done("all".to_owned())
    }
}

fn steps(count: &Arc<AtomicU32>, calls: bool) -> World {
    let skill = Steps(Arc::clone(count), calls);
    let agent = |_: Gate| {
        let agent = Agent::builder("steps").description("Steps.");
        agent.version("1").skill(skill).build()
    };
    let model = ScriptedModel::new().wait(14 * 60 * SECOND).text("late");
    World::thinking(agent, &model, &ScriptedModel::never()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_ends_behind_its_step_and_each_step_runs_once() {
    for target in [tenant("local"), skill("steps"), BrakeTarget::Everything] {
        let count = Arc::new(AtomicU32::new(0));
        let world = steps(&count, false);
        queued(&world, "steps").await;
        let start = world.clock.now();
        let operator = async {
            tokio::time::sleep(25 * SECOND).await;
            brake(&world, &target, true).await;
        };
        tokio::join!(works(&world), operator);
        let took = world.clock.now().since(start);
        assert!(took < 41 * SECOND, "{target}: released after {took:?}");
        let done = || count.load(Ordering::SeqCst);
        assert_eq!((done(), state(&world).await.as_str()), (2, "working"));
        // The release has sent a message, which waits for nothing.
        works(&world).await;
        world.clock.advance(DAY);
        assert_eq!((swept(&world).await, done()), (0, 2), "{target}");
        brake(&world, &target, false).await;
        assert_eq!((swept(&world).await, done()), (1, 3), "{target}");
        assert_eq!(state(&world).await, "completed", "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_model_is_dropped_within_seconds() {
    let count = Arc::new(AtomicU32::new(0));
    let world = steps(&count, true);
    queued(&world, "steps").await;
    let start = world.clock.now();
    let operator = async {
        tokio::time::sleep(70 * SECOND).await;
        brake(&world, &BrakeTarget::Everything, true).await;
    };
    tokio::join!(works(&world), operator);
    let took = world.clock.now().since(start);
    assert!(took < 76 * SECOND, "released after {took:?}");
    assert_eq!(state(&world).await, "working");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_braked_tenant_shows_no_further_frame() {
    let world = World::new().unwrap();
    let stream = Dialect::Rest10.stream(&Say::to("slow", "hi")).from(ANN);
    let mut live = world.open(&stream).await;
    live.next().await.unwrap().unwrap();
    brake(&world, &tenant("acme"), true).await;
    tokio::time::sleep(SECOND).await;
    world.gate.open();
    let rest = live.finish().await;
    let rest = frames(&rest).unwrap();
    let last = rest.last().unwrap().data.to_string();
    assert!(last.contains("PERMISSION_DENIED"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_skill_is_braked_is_refused_and_the_turn_goes_on() {
    let model = ScriptedModel::new()
        .tool_call("memory_search", json!({"query": "tea"}))
        .text("I cannot look.");
    let agent = |_: Gate| reference_agent::agent();
    let world = World::thinking(agent, &model, &ScriptedModel::never()).unwrap();
    brake(&world, &skill("memory_search"), true).await;
    let dialect = Dialect::Rest10;
    let send = dialect.send(&Say::to("assist", "What do I drink?"));
    let task = dialect.task(&world.call(&send).await);
    assert_eq!(dialect.state(&task), "completed", "{task}");
    let result = format!("{:?}", model.requests()[1].messages.last());
    assert!(result.contains("UNAVAILABLE"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_has_waited_for_seconds_is_sent_by_the_next_sweep() {
    let world = World::new().unwrap();
    queued(&world, "echo").await;
    brake(&world, &skill("echo"), true).await;
    works(&world).await;
    brake(&world, &skill("echo"), false).await;
    assert_eq!(swept(&world).await, 1);
    assert_eq!(state(&world).await, "completed");
}

/// A long step, and beside it six short ones, which are counted.
#[skill(id = "beside", tags = ["test"])]
struct Beside(Arc<AtomicU32>);

impl SkillHandler for Beside {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let cx = &*cx;
        let long = cx.step("long", async {
            tokio::time::sleep(31 * SECOND).await;
            Ok(0)
        });
        let short = async {
            for number in 0..6 {
                let work = async {
                    self.0.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(4 * SECOND).await;
                    Ok(number)
                };
                cx.step("short", work).await?;
            }
            Ok(0)
        };
        let (long, short) = futures::join!(cx.scope("a", long), cx.scope("b", short));
        OnRequestResult::done(format!("{}", long? + short?))
    }
}

#[tokio::test(start_paused = true)]
async fn no_step_begins_while_another_one_ends() {
    let count = Arc::new(AtomicU32::new(0));
    let skill = Beside(Arc::clone(&count));
    let agent = |_: Gate| {
        let agent = Agent::builder("beside").description("Steps.");
        agent.version("1").skill(skill).build()
    };
    let world = World::serving(agent, |_| ()).unwrap();
    queued(&world, "beside").await;
    let start = world.clock.now();
    let operator = async {
        tokio::time::sleep(9 * SECOND).await;
        brake(&world, &BrakeTarget::Everything, true).await;
    };
    tokio::join!(works(&world), operator);
    let took = world.clock.now().since(start);
    assert!(took > 30 * SECOND && took < 32 * SECOND, "{took:?}");
    assert_eq!(count.load(Ordering::SeqCst), 3);
    brake(&world, &BrakeTarget::Everything, false).await;
    assert_eq!(swept(&world).await, 1);
    assert_eq!(state(&world).await, "completed");
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

/// When something last began or was shown, by what it is.
#[derive(Default)]
struct LastTimes {
    clock: Arc<TestClock>,
    times: Mutex<BTreeMap<&'static str, Timestamp>>,
}

impl LastTimes {
    fn note(&self, what: &'static str) {
        self.times.lock().unwrap().insert(what, self.clock.now());
    }
}

impl Model for LastTimes {
    fn id(&self) -> &str {
        "last"
    }

    fn converse(&self, _: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        self.note("model call");
        async {
            tokio::time::sleep(SECOND).await;
            Ok(ModelReply {
                content: Vec::new(),
                stop: StopReason::EndTurn,
                usage: Usage::default(),
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

#[async_trait]
impl SendPush for LastTimes {
    async fn post(&self, _: &PushDelivery) -> Result<(), PushDeliveryError> {
        self.note("delivery");
        Ok(())
    }
}

/// Does something each second for two minutes.
#[skill(id = "busy", tags = ["test"])]
struct Busy(Arc<LastTimes>);

impl SkillHandler for Busy {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        for number in 0..60 {
            let step = async {
                self.0.note("step");
                tokio::time::sleep(SECOND).await;
                Ok(number)
            };
            cx.step("step", step).await?;
            let call = async { Ok(cx.model()?.converse(ModelRequest::default()).await?.usage) };
            cx.step("call", call).await?;
            cx.send_intermediate_update(format!("{number}")).await?;
        }
        OnRequestResult::done("all".to_owned())
    }
}

/// Delivers each second what is new.
async fn deliver(world: &World, last: &Arc<LastTimes>) {
    let queue = LocalQueue::<PushItem>::new(world.clock.clone(), 90 * SECOND);
    let services = outgoing(world, &queue, last.clone());
    let dispatcher = PushDispatcher::new(services, Policy::default());
    loop {
        tokio::time::sleep(SECOND).await;
        if world.store.commits().is_empty() {
            continue;
        }
        let image = TaskImage::of(&record(world).await);
        relay_pushes(&queue, &[image]).await;
        while !queue.is_empty() {
            let delivery = queue.receive().await;
            dispatcher.deliver(&delivery.item, None).await;
            delivery.receipt.delete();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn seconds_after_the_brake_nothing_begins_and_nothing_is_shown() {
    for target in [tenant("local"), skill("busy"), BrakeTarget::Everything] {
        let clock = Arc::<TestClock>::default();
        let last = Arc::new(LastTimes {
            clock: clock.clone(),
            ..LastTimes::default()
        });
        let agent = |_: Gate| {
            let agent = Agent::builder("busy").description("Works.").version("1");
            agent.skill(Busy(Arc::clone(&last))).build()
        };
        let model = |runtime: RuntimeBuilder| runtime.model(Arc::clone(&last));
        let world = World::over(Arc::default(), clock, agent, |_| (), model).unwrap();
        let dialect = Dialect::Rest10;
        let mut params = dialect.say(&Say::to("busy", "go"));
        let hook = json!({"url": "https://hook.example/"});
        params["configuration"] = json!({"taskPushNotificationConfig": hook});
        let mut live = world.open(&dialect.request(Op::Stream, "", &params)).await;
        let shows = async {
            while let Ok(Some(_)) = live.next().await {
                last.note("stream event");
            }
            tokio::time::sleep(60 * SECOND).await;
        };
        let operator = async {
            tokio::time::sleep(Duration::from_millis(20_500)).await;
            let brakes = Brakes::new(world.store.table.clone());
            let change = brakes.change(&target, true, world.clock.now());
            change.await.unwrap();
            world.clock.now()
        };
        let all = async { tokio::join!(shows, operator).1 };
        let since = tokio::select! {
            since = all => since,
            () = deliver(&world, &last) => unreachable!("it delivers without an end"),
        };
        let times = last.times.lock().unwrap();
        for what in ["model call", "step", "delivery", "stream event"] {
            let after = times[what].as_millis() - since.as_millis();
            println!("{target}: the last {what} is {after} ms after the brake");
            // 5 s until the process asks, and what runs a second then.
            assert!((-2_000..=7_000).contains(&after), "{target} {what} {after}");
        }
    }
}
