//! Streams end with the credentials of their caller, turns do not.

use a2a_lambda::auth::Identity;
use a2a_lambda::engine::Clock as _;
use a2a_lambda::http::Function;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Live, Request, World, behind_a_gateway, send};
use serde_json::json;
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_subscription_ends_with_the_credentials_of_its_caller
    a_stream_shows_nothing_after_the_credentials_end_and_its_turn_goes_on
}

/// The caller, whose credentials end after `seconds`.
fn caller(world: &World, seconds: i64) -> Identity {
    let now = world.clock.now().as_millis() / 1000;
    let context = json!({
        "tenant": "acme", "subject": "ann", "expires_at": (now + seconds).to_string(),
    });
    Identity {
        authorizer: context.as_object().cloned(),
        authorization: None,
    }
}

async fn open(world: &World, request: &Request, seconds: i64) -> Live {
    let edge = world.edge(Function::of(request.method, request.path()));
    send(&edge, request, caller(world, seconds)).await
}

async fn a_subscription_ends_with_the_credentials_of_its_caller(dialect: Dialect) {
    let world = World::with(behind_a_gateway).unwrap();
    let asked = open(&world, &dialect.send(&Say::to("ask", "hi")), 600).await;
    let task = dialect.task(&asked.finish().await);
    let id = task["id"].as_str().unwrap();
    let before = world.clock.now();
    let live = open(&world, &dialect.of_task(Op::Subscribe, id), 30).await;
    let text = live.finish().await.text();
    let lasted = world.clock.now().since(before);
    let expected = Duration::from_secs(29)..=Duration::from_secs(31);
    assert!(expected.contains(&lasted), "{dialect:?}: {lasted:?}");
    assert!(text.contains("retry:"), "{dialect:?}: {text}");
}

async fn a_stream_shows_nothing_after_the_credentials_end_and_its_turn_goes_on(dialect: Dialect) {
    let world = World::with(behind_a_gateway).unwrap();
    let mut live = open(&world, &dialect.stream(&Say::to("slow", "hi")), 30).await;
    assert!(live.next().await.unwrap().is_some());
    world.clock.advance(Duration::from_secs(31));
    world.gate.open();
    let rest = live.finish().await;
    assert!(
        frames(&rest).unwrap_or_default().is_empty(),
        "{dialect:?}: {}",
        rest.text()
    );
    assert!(
        rest.text().contains("retry:"),
        "{dialect:?}: {}",
        rest.text()
    );
    let id = world.store.commits()[0].task.to_string();
    let read = open(&world, &dialect.of_task(Op::Get, &id), 600).await;
    let task = dialect.task(&read.finish().await);
    assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_after_the_end_of_the_credentials_is_refused() {
    let world = World::with(behind_a_gateway).unwrap();
    let request = Dialect::Rest10.send(&Say::to("echo", "hi"));
    assert_eq!(open(&world, &request, 1).await.status, 200);
    for seconds in [0, -1, -1_000] {
        assert_eq!(open(&world, &request, seconds).await.status, 401);
    }
}
