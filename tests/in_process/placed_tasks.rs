//! A context knows its tasks: pointer and thread are stored before the task.

use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{CONTEXT_EXPIRED, Fault, UNAVAILABLE};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World};
use serde_json::{Value, json};
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_send_is_refused_if_its_context_cannot_learn_of_it
    a_refused_first_message_begins_no_context
    a_skill_that_only_replies_leaves_nothing_in_its_context
}

const CONTEXT: &str = "mine:c";

async fn contexts(world: &World) -> Vec<Value> {
    let list = Request::new("GET", "/a2a-lambda/contexts");
    let page = world.call(&list).await.json();
    page["contexts"].as_array().cloned().unwrap_or_default()
}

async fn tasks(world: &World, query: &str) -> usize {
    let list = Request::new("GET", format!("/tasks?{query}"));
    let page = world.call(&Dialect::Rest10.versioned(list)).await.json();
    page["tasks"].as_array().map_or(0, Vec::len)
}

/// A send whose client does not wait; 0.1 has none.
fn queued(dialect: Dialect, say: &Say<'_>) -> Request {
    let mut params = dialect.say(say);
    let (name, value) = match dialect.is_v10() {
        true => ("returnImmediately", true),
        false => ("blocking", false),
    };
    params["configuration"] = json!({ name: value });
    dialect.request(Op::Send, "", &params)
}

async fn a_send_is_refused_if_its_context_cannot_learn_of_it(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = Say::to("echo", "hi").in_context(CONTEXT);
    world
        .call(&dialect.send(&say.clone().under("order:0")))
        .await;
    let before = world.store.commits().len();
    world.store.refuse_threads(true);
    let mut requests = vec![dialect.send(&say), dialect.stream(&say)];
    if !dialect.is_v01() {
        requests.push(queued(dialect, &say));
    }
    for (refused, request) in (1..).zip(&requests) {
        let reply = world.call(request).await;
        Fault::new(dialect, UNAVAILABLE).check(&reply).unwrap();
        assert_eq!(world.store.commits().len(), before, "{request:?}");
        assert_eq!(world.store.pointers(), 1 + refused);
    }
    assert_eq!(tasks(&world, "pageSize=9").await, 1);
    world.store.refuse_threads(false);
    for request in &requests {
        assert_eq!(world.call(request).await.status, 200);
    }
    // In 0.1 all of them have the id of the client.
    let made = if dialect.is_v01() { 2 } else { 4 };
    assert_eq!(tasks(&world, &format!("contextId={CONTEXT}")).await, made);
}

async fn a_refused_first_message_begins_no_context(dialect: Dialect) {
    for threads in [true, false] {
        let world = World::new().unwrap();
        let say = Say::to("echo", "hi").in_context(CONTEXT);
        world.store.refuse_threads(threads);
        // The thread is stored, and the task is not.
        world.store.refuse_commits(!threads);
        let reply = world.call(&dialect.send(&say)).await;
        Fault::new(dialect, UNAVAILABLE).check(&reply).unwrap();
        world.store.refuse_threads(false);
        world.store.refuse_commits(false);
        assert_eq!(contexts(&world).await, [Value::Null; 0], "{threads}");
        assert_eq!(tasks(&world, "pageSize=9").await, 0);
        let gone = Request::new("DELETE", format!("/a2a-lambda/contexts/{CONTEXT}"));
        let gone = world.call(&Dialect::Rest10.versioned(gone)).await;
        Fault::new(Dialect::Rest10, CONTEXT_EXPIRED)
            .check(&gone)
            .unwrap();
        // The same message begins the context.
        assert_eq!(world.call(&dialect.send(&say)).await.status, 200);
        assert_eq!(contexts(&world).await.len(), 1);
    }
}

async fn a_skill_that_only_replies_leaves_nothing_in_its_context(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = Say::to("greet", "hi").in_context(CONTEXT);
    assert_eq!(world.call(&dialect.send(&say)).await.status, 200);
    // The client of 0.1 has made the id of the task, so there is one.
    let made = usize::from(dialect.is_v01());
    assert_eq!(contexts(&world).await.len(), made);
    assert_eq!(
        (world.store.pointers(), world.store.thread_writes()),
        (made, made)
    );
}

#[tokio::test(start_paused = true)]
async fn the_context_learns_of_a_task_while_its_skill_runs() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let send = dialect.send(&Say::to("slow", "now").in_context(CONTEXT));
    let watch = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let placed = (world.store.pointers(), world.store.thread_writes());
        assert_eq!(placed, (1, 1), "before the first write is due");
        assert_eq!(world.store.commits(), []);
        assert_eq!(contexts(&world).await, [Value::Null; 0]);
        world.gate.open();
    };
    let (reply, ()) = tokio::join!(world.call(&send), watch);
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
    assert_eq!(world.store.commits().len(), 1);
    assert_eq!(
        (world.store.pointers(), contexts(&world).await.len()),
        (1, 1)
    );
}
