//! Routed turns that a worker runs, also after a crash and of the next release.

use super::*;
use crate::text_clients::works;
use a2a_lambda::engine::Leases;
use a2a_lambda::store::queue::WorkItem;
use a2a_local::queue::LocalQueue;
use schemars::JsonSchema;
use serde::Deserialize;

/// A flight.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flight {
    to: String,
    on: String,
}

/// Says what it was told.
#[skill(id = "book-flight", tags = ["test"])]
async fn tells(flight: Flight) -> AgentResult<OnRequestResult<Value>> {
    let told = json!({"to": flight.to, "on": flight.on});
    Ok(OnRequestResult::Completed {
        message: None,
        output: told,
        artifacts: Vec::new(),
    })
}

/// Declares the text that another skill declared before.
#[skill(id = "travel", tags = ["test"], text = ["book a flight to {to} on {on}"])]
async fn travel(_: TextOr<Flight>) -> AgentResult<bool> {
    Ok(false)
}

/// Says what it was told. It has the id of the adder.
#[skill(id = "add", tags = ["test"])]
async fn quotes(input: Content) -> AgentResult<OnRequestResult<Value>> {
    Ok(OnRequestResult::Completed {
        message: None,
        output: json!({"told": input.text()?}),
        artifacts: Vec::new(),
    })
}

/// The next release over the same store, which routes otherwise.
fn next_release(world: &World) -> World {
    let agent = |_| {
        let agent = Agent::builder("reference").skill(travel).skill(tells);
        agent
            .skill(quotes)
            .description("Next.")
            .version("2")
            .build()
    };
    world.redeployed(agent, |_| ()).unwrap()
}

const FLIGHT: &str = "book a flight to São Paulo on 3 March";

/// A world with a queued turn, whose message a pattern routed.
async fn queued_by_a_pattern() -> World {
    let world = world();
    let task = REST.task(&sent(&world, REST, &at_once(&text(FLIGHT))).await);
    is_queued(&task);
    world
}

/// A world with a queued turn, whose message went where a number sent it.
async fn queued_by_a_number() -> World {
    let world = world();
    let asked = says(&world, &text("hm: 19 and 23")).await;
    let number = number(&offer(&asked), "add");
    let say = Say::in_task(id(&asked), &number).with_id("m-2");
    let task = REST.task(&sent(&world, REST, &at_once(&say)).await);
    is_queued(&task);
    world
}

/// What the task of a world has now.
async fn result(world: &World) -> Value {
    let id = record(world).await.id.to_string();
    let task = REST.task(&world.call(&REST.of_task(Op::Get, &id)).await);
    assert_eq!(REST.state(&task), "completed", "{task}");
    at(&task, "/artifacts/0/parts/0/data").clone()
}

/// A worker that claims the turn and dies before it can store anything else.
async fn crashes(world: &World) {
    world.store.take(Duration::from_millis(10));
    let claimed = async {
        while record(world).await.attempt == 0 || record(world).await.lease_until.is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = works(world) => panic!("the turn ended"),
        () = claimed => {}
    }
    world.store.take(Duration::ZERO);
    assert!(!record(world).await.state().is_at_rest());
}

/// The sweep finds the turn of the dead worker, and another worker runs it.
async fn runs_again(world: &World) {
    tokio::time::sleep(Duration::from_secs(600)).await;
    let queue = LocalQueue::<WorkItem>::new(world.clock.clone(), Duration::from_secs(60));
    let swept = world.engine().sweeper.sweep(&queue, Leases::Respect).await;
    assert_eq!(swept.unwrap().redispatched, 1);
    works(world).await;
}

#[tokio::test(start_paused = true)]
async fn turn_of_a_worker_has_the_result_of_a_turn_in_the_call() {
    let now = world();
    let task = says(&now, &text(FLIGHT)).await;
    let flight = at(&task, "/artifacts/0/parts/0/data").clone();
    assert_eq!(flight, json!({"to": "São Paulo", "on": "3 March"}));
    for (world, expected) in [
        (queued_by_a_pattern().await, flight),
        (queued_by_a_number().await, json!({"sum": 42})),
    ] {
        works(&world).await;
        assert_eq!(result(&world).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn turn_that_runs_again_after_a_crash_has_the_same_result() {
    for (world, expected) in [
        (
            queued_by_a_pattern().await,
            json!({"to": "São Paulo", "on": "3 March"}),
        ),
        (queued_by_a_number().await, json!({"sum": 42})),
    ] {
        crashes(&world).await;
        runs_again(&world).await;
        assert_eq!(result(&world).await, expected);
        assert_eq!(record(&world).await.attempt, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn worker_of_the_next_release_keeps_the_skill_and_its_input() {
    for (world, expected) in [
        (
            queued_by_a_pattern().await,
            json!({"to": "São Paulo", "on": "3 March"}),
        ),
        (queued_by_a_number().await, json!({"told": "hm: 19 and 23"})),
    ] {
        let next = next_release(&world);
        works(&next).await;
        assert_eq!(result(&next).await, expected);
    }
}
