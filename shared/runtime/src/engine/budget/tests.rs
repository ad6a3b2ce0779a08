use super::*;
use crate::engine::doubles::services;
use crate::engine::{Policy, Reader};
use crate::store::memory::MemoryStore;
use std::sync::Arc;

/// A turn may take longer than a call waits, and its stream then waits for the reply.
#[tokio::test(start_paused = true)]
async fn stream_waits_for_a_reply_from_the_end_of_its_turn() {
    let memory = Arc::new(MemoryStore::new());
    let parts = services(memory.clone(), &memory);
    let policy = Policy::default();
    let blocking = policy.blocking_budget;
    let reader = Reader::new(memory.clone(), memory.clone(), memory, parts.clock, policy);
    let began = reader.clock.now();
    let budget = reader.call_budget(None);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(reader.waits_until(&budget), began.plus(blocking));
    let later = began.plus(Duration::from_secs(60));
    assert_eq!(reader.reply_ends(&budget), later.plus(blocking));
}

/// The last 2 s of an invocation are for the response.
#[tokio::test(start_paused = true)]
async fn no_wait_ends_after_the_invocation() {
    let memory = Arc::new(MemoryStore::new());
    let parts = services(memory.clone(), &memory);
    let policy = Policy::default();
    let reader = Reader::new(memory.clone(), memory.clone(), memory, parts.clock, policy);
    let end = reader.clock.now().plus(Duration::from_secs(10));
    let budget = reader.call_budget(Some(end));
    let last = end.minus(Duration::from_secs(2));
    assert_eq!(reader.waits_until(&budget), last);
    assert_eq!(reader.reply_ends(&budget), last);
    assert_eq!(reader.stream_ends(&budget), last);
}
