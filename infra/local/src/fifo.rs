//! The queue of deliveries inside this process, with the promises of a FIFO
//! queue of SQS: the messages of a group come one at a time and in order, a
//! message comes again unless it is deleted, and the same item sent again
//! within five minutes comes once.
//!
//! It forgets everything at the end. The table does not: a start reads its
//! stream from the beginning, and each webhook has its cursor.

use a2a_lambda::engine::Clock;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{PushItem, PushQueue, Receipt};
use a2a_lambda::task::{Owner, PushId, TaskId, Timestamp};
use async_trait::async_trait;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// For how long an item is known again.
const KNOWN: Duration = Duration::from_secs(300);
/// Items after which those are forgotten that would not be known any more.
const KNOWN_ITEMS: usize = 10_000;
/// A message that was received this often is given up, as the queue of a
/// deployment does. The sweep finds its task.
const RECEIVES: u32 = 100;

/// The queue. Clones are the same queue.
#[derive(Clone)]
pub struct LocalPushQueue {
    clock: Arc<dyn Clock>,
    visibility: Duration,
    messages: Arc<Mutex<Messages>>,
    changed: Arc<Notify>,
}

/// One webhook of one task.
type Group = (Owner, TaskId, PushId);

#[derive(Debug, Default)]
struct Messages {
    groups: BTreeMap<Group, VecDeque<Message>>,
    /// Items sent lately, and until when they are known again.
    known: BTreeMap<PushItem, Timestamp>,
    /// Numbers given so far to receipts.
    receipts: u64,
}

#[derive(Debug)]
struct Message {
    item: PushItem,
    visible_at: Timestamp,
    /// The receipt of the last receive.
    receipt: u64,
    receives: u32,
}

/// A received message.
#[derive(Debug)]
pub struct PushDelivery {
    /// What is to be delivered.
    pub item: PushItem,
    /// What the message is hidden and deleted by.
    pub receipt: PushReceipt,
}

/// The receipt of one receive. It is worth nothing once the message has been
/// received again.
#[derive(Debug, Clone)]
pub struct PushReceipt {
    queue: LocalPushQueue,
    group: Group,
    receipt: u64,
}

fn group(item: &PushItem) -> Group {
    (item.owner.clone(), item.task.clone(), item.config.clone())
}

impl LocalPushQueue {
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

    /// The first message of a group that is not hidden, once there is one.
    pub async fn receive(&self) -> PushDelivery {
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
        self.lock().groups.values().map(VecDeque::len).sum()
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
        messages.receipts += 1;
        let receipt = messages.receipts;
        let mut next: Option<Timestamp> = None;
        // Whoever was hidden longest is first, so that no group starves.
        let mut found: Option<(Timestamp, &Group)> = None;
        for (group, waiting) in &messages.groups {
            let Some(first) = waiting.front() else {
                continue;
            };
            let at = first.visible_at;
            if at > now {
                next = Some(next.map_or(at, |next| next.min(at)));
            } else if found.is_none_or(|(earlier, _)| at < earlier) {
                found = Some((at, group));
            }
        }
        let Some(group) = found.map(|(_, group)| group.clone()) else {
            return next.map_or(Next::Nothing, Next::At);
        };
        let first = messages.groups.get_mut(&group);
        let Some(first) = first.and_then(VecDeque::front_mut) else {
            return Next::Nothing;
        };
        first.visible_at = now.plus(self.visibility);
        first.receipt = receipt;
        first.receives += 1;
        Next::Message(Box::new(PushDelivery {
            item: first.item.clone(),
            receipt: PushReceipt {
                queue: self.clone(),
                group,
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
    Message(Box<PushDelivery>),
    /// All are hidden, the first of them until then.
    At(Timestamp),
    Nothing,
}

impl Messages {
    fn give_up(&mut self, now: Timestamp) {
        for waiting in self.groups.values_mut() {
            waiting.retain(|message| {
                let dead = message.visible_at <= now && message.receives >= RECEIVES;
                if dead {
                    let task = &message.item.task;
                    tracing::error!(task.id = %task, "gave up a delivery of task `{task}`");
                }
                !dead
            });
        }
        self.groups.retain(|_, waiting| !waiting.is_empty());
    }

    /// Whether the item is new; it is known from now on.
    fn is_new(&mut self, item: &PushItem, now: Timestamp) -> bool {
        if self.known.get(item).is_some_and(|until| *until > now) {
            return false;
        }
        if self.known.len() >= KNOWN_ITEMS {
            self.known.retain(|_, until| *until > now);
        }
        self.known.insert(item.clone(), now.plus(KNOWN));
        true
    }

    /// The message of a receipt that is still worth something.
    fn received(&mut self, receipt: &PushReceipt) -> Option<&mut Message> {
        let first = self.groups.get_mut(&receipt.group)?.front_mut()?;
        (first.receipt == receipt.receipt).then_some(first)
    }
}

#[async_trait]
impl PushQueue for LocalPushQueue {
    async fn send_pushes(&self, items: &[PushItem]) -> Result<Vec<bool>, StoreError> {
        let now = self.clock.now();
        let mut messages = self.lock();
        for item in items {
            if messages.is_new(item, now) {
                let message = Message {
                    item: item.clone(),
                    visible_at: now,
                    receipt: 0,
                    receives: 0,
                };
                let waiting = messages.groups.entry(group(item)).or_default();
                waiting.push_back(message);
            }
        }
        drop(messages);
        self.changed.notify_waiters();
        Ok(vec![true; items.len()])
    }
}

impl PushReceipt {
    /// Deletes the message; `false` if it has been received again, or is gone.
    pub fn delete(&self) -> bool {
        let mut messages = self.queue.lock();
        let mine = messages.received(self).is_some();
        if mine && let Some(waiting) = messages.groups.get_mut(&self.group) {
            waiting.pop_front();
        }
        drop(messages);
        // The next of the group can be received.
        self.queue.changed.notify_waiters();
        mine
    }
}

#[async_trait]
impl Receipt for PushReceipt {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        let until = self.queue.clock.now().plus(time);
        {
            let mut messages = self.queue.lock();
            let Some(message) = messages.received(self) else {
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

impl std::fmt::Debug for LocalPushQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalPushQueue")
            .field("visibility", &self.visibility)
            .field("messages", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
