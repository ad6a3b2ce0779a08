//! Provides the test doubles of several modules: a paused clock and a queue.

use super::Clock;
use crate::store::StoreError;
use crate::store::queue::{PushItem, PushQueue, Receipt, WorkItem, WorkQueue};
use crate::task::Timestamp;
use async_trait::async_trait;
use futures::future::BoxFuture;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Tokio's clock, which the test runtime pauses.
pub(super) struct PausedClock(Instant);

impl PausedClock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.0.elapsed())
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// A queue and the receipt of each message in it. `items` are its messages, `waits` the
/// delays of push queue messages, and `hidden` the times for which messages were hidden.
pub(super) struct FakeQueue<I> {
    pub(super) items: Mutex<Vec<I>>,
    pub(super) waits: Mutex<Vec<Duration>>,
    pub(super) hidden: Mutex<Vec<Duration>>,
}

impl<I> Default for FakeQueue<I> {
    fn default() -> Self {
        Self {
            items: Mutex::default(),
            waits: Mutex::default(),
            hidden: Mutex::default(),
        }
    }
}

impl<I: Clone> FakeQueue<I> {
    fn take(&self, items: &[I]) -> Vec<bool> {
        self.items.lock().unwrap().extend_from_slice(items);
        vec![true; items.len()]
    }
}

#[async_trait]
impl WorkQueue for FakeQueue<WorkItem> {
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError> {
        Ok(self.take(items))
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl PushQueue for FakeQueue<PushItem> {
    async fn ring(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError> {
        self.waits.lock().unwrap().push(wait);
        Ok(self.take(items))
    }
}

#[async_trait]
impl<I: Send> Receipt for FakeQueue<I> {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        self.hidden.lock().unwrap().push(time);
        Ok(())
    }
}
