//! What the work of a step sends to other services.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

tokio::task_local! {
    static CURRENT: Arc<StepRequests>;
}

/// The requests of one try of a step, for the client that sends them.
#[derive(Debug)]
pub struct StepRequests {
    key: String,
    writes: AtomicU32,
    has_post: AtomicBool,
}

impl StepRequests {
    pub(crate) fn new(key: String) -> Arc<Self> {
        Arc::new(Self {
            key,
            writes: AtomicU32::new(0),
            has_post: AtomicBool::new(false),
        })
    }

    /// Those of the innermost step that runs; `None` outside of steps.
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Clone::clone).ok()
    }

    pub(crate) fn run<F: Future>(self: Arc<Self>, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// The idempotency key of the next write: that of the step, from the second write on with
    /// its number.
    #[must_use]
    pub fn next_key(&self) -> String {
        match self.writes.fetch_add(1, Ordering::Relaxed) {
            0 => self.key.clone(),
            before => format!("{}-{}", self.key, before.saturating_add(1)),
        }
    }

    /// Notes a `POST` that the other service may have done. The step is not tried again, since it
    /// would be done twice.
    pub fn note_post(&self) {
        self.has_post.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_post(&self) -> bool {
        self.has_post.load(Ordering::Relaxed)
    }
}
