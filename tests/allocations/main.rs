//! Counts the allocations of a request, from the HTTP edge to the store in memory.
//!
//! Unlike a time, the count does not depend on the machine, so a change that makes each request
//! dearer fails here. After a change that is worth its price, write the new number.
//!
//! A send includes 65 allocations of the layer that watches the table for the suites.
#![cfg(test)]

use a2a_lambda::telemetry::{self, LogFormat};
use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::world::{Request, World};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CALLS: usize = 50;
/// How much more than the known number passes: maps grow at slightly different sizes.
const SLACK: usize = 5;

/// The mean number of allocations of a warm call.
async fn allocations(world: &World, request: impl Fn(usize) -> Request) -> usize {
    let requests: Vec<Request> = (0..2 * CALLS).map(request).collect();
    let (warm, counted) = requests.split_at(CALLS);
    for request in warm {
        assert_eq!(world.call(request).await.status, 200);
    }
    let region = Region::new(ALLOCATOR);
    for request in counted {
        world.call(request).await;
    }
    let counted = region.change();
    (counted.allocations + counted.reallocations) / CALLS
}

#[tokio::test(start_paused = true)]
async fn a_request_allocates_no_more_than_it_did() -> Result<(), String> {
    let world = World::new().unwrap();
    let rest = Dialect::Rest10;
    let send = |_| {
        let message = rest.say(&Say::to("echo", "hello"));
        rest.versioned(Request::post("/message:send", &message))
    };
    let sent = world.call(&send(0)).await.json();
    let id = sent["task"]["id"].as_str().unwrap().to_owned();
    let rpc = |method: &str, params: serde_json::Value| {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        Dialect::Rpc10.versioned(Request::post("/", &body))
    };
    let get = |_| rest.versioned(Request::new("GET", format!("/tasks/{id}")));
    let send_rpc = |_| rpc("SendMessage", Dialect::Rpc10.say(&Say::to("echo", "hello")));
    let get_rpc = |_| rpc("GetTask", json!({ "id": id }));
    let mut counts = vec![
        ("send", 521, allocations(&world, send).await),
        ("get", 161, allocations(&world, get).await),
        (
            "send over JSON-RPC",
            526,
            allocations(&world, send_rpc).await,
        ),
        ("get over JSON-RPC", 164, allocations(&world, get_rpc).await),
    ];
    // Last, because a subscriber allocates for each span of every call.
    let _metrics = telemetry::start(LogFormat::Json, Some("error"));
    let counted = allocations(&world, send).await;
    counts.push(("send, with metrics and spans", 571, counted));
    let most = |known: usize| known + known * SLACK / 100;
    let dearer = counts
        .iter()
        .filter(|(_, known, counted)| *counted > most(*known));
    let dearer: Vec<_> = dearer.collect();
    if dearer.is_empty() {
        return Ok(());
    }
    // Not a panic: after the start of the telemetry its text is hidden.
    Err(format!("call, known, counted: {dearer:?}"))
}
