//! The work queue and the push queue of the local agent, in memory.
//!
//! They behave like the queues on SQS. Each message is delivered at least once. A
//! received message is hidden for some time and then delivered again, unless it is
//! deleted with its newest receipt. As in a fair queue, tenants take turns, however
//! many messages one of them has.
//!
//! A restart loses their messages. That is safe: the next run reads the table's stream
//! from its beginning and sweeps, and the table keeps the cursor of each push config.

use a2a_lambda::engine::Clock;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{PushItem, PushQueue, Receipt, WorkItem, WorkMessage, WorkQueue};
use a2a_lambda::task::Timestamp;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The content of a message.
pub trait Queued: Clone + Debug + Send + Sync + 'static {
    /// The message group, which is a tenant, and for the log the task. Groups take turns.
    fn group_and_task(&self) -> (&str, &str);
}

impl Queued for WorkItem {
    fn group_and_task(&self) -> (&str, &str) {
        (self.owner.tenant.as_str(), self.task.as_str())
    }
}

impl Queued for PushItem {
    fn group_and_task(&self) -> (&str, &str) {
        (self.owner.tenant.as_str(), self.task.as_str())
    }
}

/// A queue. A clone is the same queue.
#[derive(Clone)]
pub struct LocalQueue<I: Queued> {
    clock: Arc<dyn Clock>,
    visibility: Duration,
    messages: Arc<Mutex<Messages<I>>>,
    notify: Arc<Notify>,
}

#[derive(Debug)]
struct Messages<I> {
    /// All messages by their numbers, oldest first.
    waiting: BTreeMap<u64, Message<I>>,
    /// The number of the last receive of each group.
    last_receives: BTreeMap<String, u64>,
    /// The last number that was given to a message or a receipt.
    numbers: u64,
}

#[derive(Debug)]
struct Message<I> {
    item: I,
    visible_at: Timestamp,
    /// The receipt of the last receive.
    receipt: u64,
    receives: u32,
}

/// A received message.
#[derive(Debug)]
pub struct Delivery<I: Queued> {
    /// The content of the message.
    pub item: I,
    /// Hides or deletes the message.
    pub receipt: LocalReceipt<I>,
}

/// The receipt of one receive. It has no effect once the message has been received
/// again.
#[derive(Debug, Clone)]
pub struct LocalReceipt<I: Queued> {
    queue: LocalQueue<I>,
    message: u64,
    receipt: u64,
    receives: u32,
}

impl<I: Queued> LocalQueue<I> {
    /// An empty queue that hides a received message for `visibility`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, visibility: Duration) -> Self {
        Self {
            clock,
            visibility,
            messages: Arc::new(Mutex::new(Messages {
                waiting: BTreeMap::new(),
                last_receives: BTreeMap::new(),
                numbers: 0,
            })),
            notify: Arc::default(),
        }
    }

    /// Waits for a message that is not hidden, and returns it.
    pub async fn receive(&self) -> Delivery<I> {
        loop {
            let wake = self.notify.notified();
            tokio::pin!(wake);
            // Enabled before the look at the queue, so that no change in between is missed.
            wake.as_mut().enable();
            match self.take() {
                Ok(delivery) => return delivery,
                Err(Some(time)) => {
                    tokio::select! {
                        () = wake => {}
                        () = self.clock.sleep_until(time) => {}
                    }
                }
                Err(None) => wake.await,
            }
        }
    }

    /// The number of messages, hidden ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether there is no message, not even a hidden one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// When the first hidden message will be visible; `None` if there is no message.
    fn take(&self) -> Result<Delivery<I>, Option<Timestamp>> {
        let now = self.clock.now();
        let mut messages = self.lock();
        let receipt = messages.number();
        let (number, first) = messages.next(now)?;
        first.visible_at = now.plus(self.visibility);
        first.receipt = receipt;
        first.receives += 1;
        let (item, receives) = (first.item.clone(), first.receives);
        let group = item.group_and_task().0.to_owned();
        messages.last_receives.insert(group, receipt);
        let receipt = LocalReceipt {
            queue: self.clone(),
            message: number,
            receipt,
            receives,
        };
        Ok(Delivery { item, receipt })
    }

    /// Adds all items, hidden for `wait`. It never refuses one.
    pub fn put(&self, items: &[I], wait: Duration) -> Vec<bool> {
        let visible_at = self.clock.now().plus(wait);
        let mut messages = self.lock();
        for item in items {
            let message = Message {
                item: item.clone(),
                visible_at,
                receipt: 0,
                receives: 0,
            };
            let number = messages.number();
            messages.waiting.insert(number, message);
        }
        drop(messages);
        self.notify.notify_waiters();
        vec![true; items.len()]
    }

    fn lock(&self) -> MutexGuard<'_, Messages<I>> {
        // A poisoned lock is safe to use: no code panics in the middle of a change.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Queued> Messages<I> {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The next message. It belongs to the tenant that was served longest ago, and is the
    /// one of that tenant that has been visible for longest.
    ///
    /// # Errors
    /// When the first hidden message will be visible; `None` if there is no message.
    fn next(&mut self, now: Timestamp) -> Result<(u64, &mut Message<I>), Option<Timestamp>> {
        let visible_at = self
            .waiting
            .values()
            .map(|message| message.visible_at)
            .min();
        let last_receives = &self.last_receives;
        let turn = |message: &Message<I>| {
            let (group, _) = message.item.group_and_task();
            last_receives.get(group).copied()
        };
        let visible = self.waiting.iter_mut();
        let visible = visible.filter(|(_, message)| message.visible_at <= now);
        let next =
            visible.min_by_key(|(number, message)| (turn(message), message.visible_at, **number));
        next.map(|(number, message)| (*number, message))
            .ok_or(visible_at)
    }

    /// The message of a receipt; `None` if it was received again, or is deleted.
    fn by_receipt(&mut self, receipt: &LocalReceipt<I>) -> Option<&mut Message<I>> {
        let message = self.waiting.get_mut(&receipt.message);
        message.filter(|message| message.receipt == receipt.receipt)
    }
}

#[async_trait]
impl WorkQueue for LocalQueue<WorkItem> {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        let entries = messages.iter();
        Ok(entries
            .flat_map(|it| self.put(std::slice::from_ref(&it.item), it.delay))
            .collect())
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let messages = self.lock();
        let visible = messages.waiting.values().filter(|it| it.visible_at <= now);
        Ok(visible.count())
    }
}

#[async_trait]
impl PushQueue for LocalQueue<PushItem> {
    async fn send(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError> {
        Ok(self.put(items, wait))
    }
}

impl<I: Queued> LocalReceipt<I> {
    /// Deletes the message. Returns `false` if it was received again, or is already
    /// deleted.
    pub fn delete(&self) -> bool {
        let mut messages = self.queue.lock();
        let mine = messages.by_receipt(self).is_some();
        if mine {
            messages.waiting.remove(&self.message);
        }
        mine
    }
}

#[async_trait]
impl<I: Queued> Receipt for LocalReceipt<I> {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        let until = self.queue.clock.now().plus(time);
        {
            let mut messages = self.queue.lock();
            let Some(message) = messages.by_receipt(self) else {
                return Err(StoreError::Refused(
                    "the message has been received again".to_owned(),
                ));
            };
            message.visible_at = until;
        }
        self.queue.notify.notify_waiters();
        Ok(())
    }

    fn receives(&self) -> u32 {
        self.receives
    }
}

impl<I: Queued> Debug for LocalQueue<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalQueue")
            .field("visibility", &self.visibility)
            .field("messages", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
