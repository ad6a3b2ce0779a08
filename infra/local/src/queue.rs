//! The queue of turns inside this process, with the promises of SQS: a message
//! comes at least once, is hidden while somebody has it, comes again unless it
//! is deleted, and is deleted by the receipt it was last received with.
//!
//! It forgets everything at the end. The table does not: a start reads its
//! stream from the beginning and sweeps.

use a2a_lambda::engine::Clock;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{Receipt, WorkItem, WorkQueue};
use a2a_lambda::task::Timestamp;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A message that was received this often is given up, as the queue of a
/// deployment does. The sweep finds its task.
const RECEIVES: u32 = 100;

/// The queue. Clones are the same queue.
#[derive(Clone)]
pub struct LocalQueue {
    clock: Arc<dyn Clock>,
    visibility: Duration,
    messages: Arc<Mutex<Messages>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Messages {
    /// By number, so the oldest is first.
    waiting: BTreeMap<u64, Message>,
    /// Numbers given so far, to messages and receipts.
    numbers: u64,
}

#[derive(Debug)]
struct Message {
    item: WorkItem,
    visible_at: Timestamp,
    /// The receipt of the last receive.
    receipt: u64,
    receives: u32,
}

/// A received message.
#[derive(Debug)]
pub struct Delivery {
    /// The turn.
    pub item: WorkItem,
    /// What the message is hidden and deleted by.
    pub receipt: LocalReceipt,
}

/// The receipt of one receive. It is worth nothing once the message has been
/// received again.
#[derive(Debug, Clone)]
pub struct LocalReceipt {
    queue: LocalQueue,
    message: u64,
    receipt: u64,
}

impl LocalQueue {
    /// An empty queue which hides a received message for `visibility`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, visibility: Duration) -> Self {
        Self {
            clock,
            visibility,
            messages: Arc::default(),
            changed: Arc::default(),
        }
    }

    /// The oldest message that is not hidden, once there is one.
    pub async fn receive(&self) -> Delivery {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            match self.take() {
                Next::Message(delivery) => return *delivery,
                Next::At(time) => {
                    tokio::select! {
                        () = changed => {}
                        () = self.clock.sleep_until(time) => {}
                    }
                }
                Next::Nothing => changed.await,
            }
        }
    }

    /// How many messages there are, hidden or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether there is no message, not even a hidden one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self) -> Next {
        let now = self.clock.now();
        let mut messages = self.lock();
        messages.give_up(now);
        let receipt = messages.number();
        let visible = messages.waiting.iter_mut();
        let Some((number, message)) = visible
            .filter(|(_, message)| message.visible_at <= now)
            .next()
        else {
            let next = messages.waiting.values().map(|m| m.visible_at).min();
            return next.map_or(Next::Nothing, Next::At);
        };
        message.visible_at = now.plus(self.visibility);
        message.receipt = receipt;
        message.receives += 1;
        Next::Message(Box::new(Delivery {
            item: message.item.clone(),
            receipt: LocalReceipt {
                queue: self.clone(),
                message: *number,
                receipt,
            },
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        // Nothing panics while it holds the lock with a message half changed.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a look at the queue gives.
enum Next {
    Message(Box<Delivery>),
    /// All are hidden, the first of them until then.
    At(Timestamp),
    Nothing,
}

impl Messages {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn give_up(&mut self, now: Timestamp) {
        self.waiting.retain(|_, message| {
            let dead = message.visible_at <= now && message.receives >= RECEIVES;
            if dead {
                let task = &message.item.task;
                tracing::error!(task.id = %task, "gave up a message of task `{task}`");
            }
            !dead
        });
    }
}

#[async_trait]
impl WorkQueue for LocalQueue {
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError> {
        let visible_at = self.clock.now();
        let mut messages = self.lock();
        for item in items {
            let number = messages.number();
            let message = Message {
                item: item.clone(),
                visible_at,
                receipt: 0,
                receives: 0,
            };
            messages.waiting.insert(number, message);
        }
        drop(messages);
        self.changed.notify_waiters();
        Ok(vec![true; items.len()])
    }
}

impl LocalReceipt {
    /// Deletes the message; `false` if it has been received again, or is gone.
    pub fn delete(&self) -> bool {
        let mut messages = self.queue.lock();
        let mine = messages
            .waiting
            .get(&self.message)
            .is_some_and(|message| message.receipt == self.receipt);
        if mine {
            messages.waiting.remove(&self.message);
        }
        mine
    }
}

#[async_trait]
impl Receipt for LocalReceipt {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        let until = self.queue.clock.now().plus(time);
        {
            let mut messages = self.queue.lock();
            let message = messages.waiting.get_mut(&self.message);
            let Some(message) = message.filter(|message| message.receipt == self.receipt) else {
                return Err(StoreError::Refused(
                    "the message has been received again".to_owned(),
                ));
            };
            message.visible_at = until;
        }
        self.queue.changed.notify_waiters();
        Ok(())
    }
}

impl std::fmt::Debug for LocalQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalQueue")
            .field("visibility", &self.visibility)
            .field("messages", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
