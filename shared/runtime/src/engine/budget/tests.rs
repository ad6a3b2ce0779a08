use super::*;
use crate::engine::doubles::services;
use crate::engine::{Policy, Reader};
use crate::store::memory::MemoryStore;
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn a_call_waits_from_its_start() {
    let memory = Arc::new(MemoryStore::new());
    let parts = services(&memory);
    let policy = Policy::default();
    let blocking = policy.blocking_budget;
    let reader = Reader::new(
        parts.records.reader().clone(),
        parts.blobs,
        parts.clock,
        policy,
    );
    let began = reader.clock.now();
    let budget = reader.call_budget(None);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(reader.waits_until(&budget), began.plus(blocking));
}

/// The last 2 s of an invocation are for the response.
#[tokio::test(start_paused = true)]
async fn no_wait_ends_after_the_invocation() {
    let memory = Arc::new(MemoryStore::new());
    let parts = services(&memory);
    let policy = Policy::default();
    let reader = Reader::new(
        parts.records.reader().clone(),
        parts.blobs,
        parts.clock,
        policy,
    );
    let end = reader.clock.now().plus(Duration::from_secs(10));
    let budget = reader.call_budget(Some(end));
    let last = end.minus(Duration::from_secs(2));
    assert_eq!(reader.waits_until(&budget), last);
    assert_eq!(reader.stream_ends(&budget), last);
}
