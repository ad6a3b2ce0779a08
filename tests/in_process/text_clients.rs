//! Clients that read text alone get data as text wherever they read it later: in their webhook,
//! in a resumed stream, in an open subscription, and after a worker has taken the turn over.

use crate::push_fair::outgoing;
use a2a_lambda::engine::{
    Clock as _, Policy, PushDelivery, PushDeliveryError, PushDispatcher, SendPush, relay,
    relay_pushes,
};
use a2a_lambda::prelude::*;
use a2a_lambda::store::queue::{Ack, PushItem, TaskImage, WorkItem};
use a2a_lambda::task::{Owner, Subject, TaskRecord, TenantId};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Request, World};
use a2a_lambda_wire::push_payload;
use a2a_local::queue::LocalQueue;
use async_trait::async_trait;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    webhook_of_a_text_client_gets_data_as_text
    resumed_stream_of_a_text_client_shows_data_as_text
    subscription_of_a_text_client_shows_data_as_text_after_a_hand_over
}

const SECOND: Duration = Duration::from_secs(1);

/// Gives a list for each step, and a list in its last word. It takes longer than a call may.
#[skill(id = "sums", tags = ["test"])]
async fn sums(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<OnRequestResult<Vec<u32>>> {
    for number in 1..=3 {
        let step = async {
            tokio::time::sleep(20 * SECOND).await;
            Ok(())
        };
        cx.step("sum", step).await?;
        let sum = Artifact::from_json(format!("sum-{number}"), &[number])?;
        cx.send_partial_artifact(sum).await?;
    }
    Ok(OnRequestResult::Completed {
        message: Some(Content::from_data(&[6])?),
        output: vec![4, 5],
        artifacts: Vec::new(),
    })
}

fn world() -> World {
    let agent = |_: Gate| {
        let agent = Agent::builder("sums").skill(sums);
        agent.description("Gives numbers.").version("1").build()
    };
    World::serving(agent, |_| {}).unwrap()
}

/// A send of a client that reads text alone, or of one that reads all.
fn sent(dialect: Dialect, op: Op, is_text: bool) -> Request {
    let mut params = dialect.say(&Say::to("sums", "go"));
    let modes = if is_text {
        json!(["text/plain"])
    } else {
        json!([])
    };
    params["configuration"] = json!({ "acceptedOutputModes": modes });
    let hook = json!({"url": "https://hook.example/"});
    match dialect {
        Dialect::Rpc03 => params["configuration"]["pushNotificationConfig"] = hook,
        Dialect::Rest03 => params["configuration"]["pushNotification"] = hook,
        _ => params["configuration"]["taskPushNotificationConfig"] = hook,
    }
    if !dialect.is_v10() {
        params["configuration"]["blocking"] = json!(true);
    }
    dialect.request(op, "", &params)
}

/// Checks that `shown` has each of these lists, all as text or all as data.
fn check(shown: &str, lists: &[&str], is_text: bool, place: &str) {
    for list in lists {
        let (text, data) = (format!("\"text\":\"{list}\""), format!(":{list}"));
        assert_eq!(shown.contains(&text), is_text, "{place} {list}: {shown}");
        assert_eq!(shown.contains(&data), !is_text, "{place} {list}: {shown}");
    }
}

/// The task of the newest commit.
pub(crate) async fn record(world: &World) -> TaskRecord {
    let owner = Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    };
    let id = world.store.commits().last().unwrap().task.clone();
    let found = world
        .store
        .memory()
        .records
        .load(&owner, &id, world.clock.now())
        .await;
    found.unwrap().unwrap()
}

/// Runs the turn that was handed over, once.
pub(crate) async fn works(world: &World) {
    let queue = LocalQueue::<WorkItem>::new(world.clock.clone(), 60 * SECOND);
    let image = TaskImage::of(&record(world).await);
    let unsent = relay(&queue, &[image], world.clock.now()).await;
    assert_eq!((unsent, queue.len()), (Vec::new(), 1), "it was handed over");
    let delivery = queue.receive().await;
    let engine = world.engine();
    let ack = engine
        .turns
        .work(&delivery.item, &delivery.receipt, None)
        .await;
    assert_eq!(ack, Ack::Delete);
}

/// A webhook that keeps the bodies that it gets.
#[derive(Default)]
struct Hook(Mutex<Vec<String>>);

#[async_trait]
impl SendPush for Hook {
    async fn post(&self, notice: &PushDelivery) -> Result<(), PushDeliveryError> {
        let (_, body) = push_payload(notice.generation, &notice.frame).unwrap();
        self.0
            .lock()
            .unwrap()
            .push(String::from_utf8(body).unwrap());
        Ok(())
    }
}

async fn webhook_of_a_text_client_gets_data_as_text(dialect: Dialect) {
    for is_text in [true, false] {
        let world = world();
        world.call(&sent(dialect, Op::Send, is_text)).await;
        works(&world).await;
        let queue = LocalQueue::<PushItem>::new(world.clock.clone(), 90 * SECOND);
        let hook = Arc::new(Hook::default());
        let services = outgoing(&world, &queue, hook.clone());
        let image = TaskImage::of(&record(&world).await);
        assert_eq!(relay_pushes(&queue, &[image]).await, 0);
        let item = queue.receive().await.item;
        let dispatcher = PushDispatcher::new(services, Policy::default());
        assert_eq!(dispatcher.deliver(&item, None).await, Ack::Delete);
        let bodies = hook.0.lock().unwrap().join("\n");
        check(&bodies, &["[1]", "[3]", "[4,5]", "[6]"], is_text, "webhook");
    }
}

async fn resumed_stream_of_a_text_client_shows_data_as_text(dialect: Dialect) {
    for is_text in [true, false] {
        let world = world();
        let whole = world.call(&sent(dialect, Op::Stream, is_text)).await;
        check(&whole.text(), &["[1]", "[4,5]", "[6]"], is_text, "stream");
        let whole = frames(&whole).unwrap();
        let id = record(&world).await.id.to_string();
        for (seen, lists) in [
            (0, &["[1]", "[4,5]", "[6]"][..]),
            (whole.len() - 1, &["[6]"]),
        ] {
            let resume = dialect.of_task(Op::Subscribe, &id);
            let resume = resume.header("last-event-id", whole[seen].id.as_ref().unwrap());
            let resumed = world.call(&resume).await;
            check(&resumed.text(), lists, is_text, "resumed");
        }
    }
}

async fn subscription_of_a_text_client_shows_data_as_text_after_a_hand_over(dialect: Dialect) {
    for is_text in [true, false] {
        let world = world();
        let send = sent(dialect, Op::Send, is_text);
        let followed = async {
            tokio::time::sleep(SECOND).await;
            let id = record(&world).await.id.to_string();
            world.call(&dialect.of_task(Op::Subscribe, &id)).await
        };
        let turn = async {
            let reply = world.call(&send).await;
            assert_eq!(dialect.state(&dialect.task(&reply)), "working");
            check(&reply.text(), &["[1]"], is_text, "send");
            works(&world).await;
        };
        let (followed, ()) = tokio::join!(followed, turn);
        let lists = ["[1]", "[2]", "[3]", "[4,5]", "[6]"];
        check(&followed.text(), &lists, is_text, "subscription");
        let id = record(&world).await.id.to_string();
        let got = world.call(&dialect.of_task(Op::Get, &id)).await;
        check(&got.text(), &lists, is_text, "get");
    }
}
