//! How long a turn retries lost races.

use super::*;
use crate::engine::doubles::clock;
use crate::engine::{Engine, Policy, Services};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use a2a_lambda_rows::each_row;
use std::sync::Arc;

const SECOND: Duration = Duration::from_secs(1);

/// Only completes the agent.
#[skill(id = "idle", tags = ["test"], input_modes = ["text/plain"])]
async fn idle(_: &mut TaskContext<'_>, said: String) -> AgentResult<OnRequestResult<String>> {
    OnRequestResult::done(said)
}

fn engine(lease: Duration) -> Engine {
    let store = Arc::new(MemoryStore::new());
    let services = Services {
        clock: Arc::new(clock()),
        ..Services::new(store.records.clone(), store.blobs.clone())
    };
    let agent = Agent::builder("race").skill(idle).build().unwrap();
    let policy = Policy {
        lease,
        ..Policy::default()
    };
    Engine::new(Arc::new(agent), services, policy)
}

#[tokio::test(start_paused = true)]
async fn retries_end_before_the_lease_and_the_callers_budget() {
    let long = 60 * SECOND;
    let rows = [
        // Without a time limit of the call.
        (long, None, 20 * SECOND),
        (15 * SECOND, None, 5 * SECOND),
        // The call responds 1 s after the last retry.
        (long, Some(3 * SECOND), 5 * SECOND),
        (15 * SECOND, Some(10 * SECOND), 5 * SECOND),
    ];
    each_row(rows, |(lease, stops_in, races_for)| {
        let engine = engine(lease);
        let now = engine.reader.clock.now();
        let races = engine
            .turns
            .commits
            .races(stops_in.map(|left| now.plus(left)));
        assert_eq!(races.end.since(now), races_for, "{lease:?} {stops_in:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn a_step_that_loses_races_is_decided_again_until_its_run_ends() {
    let engine = engine(60 * SECOND);
    let stop_at = engine.reader.clock.now().plus(600 * SECOND);
    for stop_at in [Some(stop_at), None] {
        let begin = engine.reader.clock.now();
        let mut races = engine.turns.commits.races_of_run(stop_at);
        while engine.reader.clock.now() < begin.plus(300 * SECOND) {
            assert!(engine.turns.commits.back_off(&mut races).await);
        }
    }
    let mut races = engine.turns.commits.races_of_run(Some(stop_at));
    while engine.turns.commits.back_off(&mut races).await {}
    let now = engine.reader.clock.now();
    assert!(now > stop_at && now < stop_at.plus(2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_time_left_retries_for_half_a_second() {
    let engine = engine(60 * SECOND);
    let stop_at = engine.reader.clock.now();
    tokio::time::advance(10 * SECOND).await;
    let now = engine.reader.clock.now();
    let mut races = engine.turns.commits.races(Some(stop_at));
    assert_eq!(races.end.since(now), SECOND / 2);
    let mut tries = 0;
    while engine.turns.commits.back_off(&mut races).await {
        tries += 1;
    }
    assert!(tries > 0);
    assert!(engine.reader.clock.now() < now.plus(SECOND / 2));
}
