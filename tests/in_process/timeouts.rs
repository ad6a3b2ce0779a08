//! Responses while the store hangs.

use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::error_rows::{Fault, UNAVAILABLE};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use tokio::time::Instant;

per_dialect! {
    paused ALL:
    a_hanging_store_is_reported_before_the_gateway_times_out
}

async fn a_hanging_store_is_reported_before_the_gateway_times_out(dialect: Dialect) {
    let world = World::new().unwrap();
    let send = dialect.send(&Say::to("echo", "hi"));
    world.store.hold();
    let begun = Instant::now();

    let reply = world.call(&send).await;

    Fault::new(dialect, UNAVAILABLE).check(&reply).unwrap();
    assert!(!reply.header("retry-after").is_empty());
    // API Gateway ends a response after 29 s.
    assert_eq!(begun.elapsed().as_secs(), 28, "{dialect:?}");
    world.store.release();
    let reply = world.call(&send).await;
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
}
