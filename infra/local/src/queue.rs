//! The queues inside this process, with the promises of SQS: a message comes at
//! least once, is hidden while somebody has it, comes again unless it is
//! deleted, and is deleted by the receipt it was last received with. The
//! messages of one group come one at a time and in order, as in a FIFO queue;
//! a turn is a group of its own, a webhook of a task is one.
//!
//! They forget everything at the end. The table does not: a start reads its
//! stream from the beginning and sweeps, and each webhook has its cursor.

use a2a_lambda::engine::Clock;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{PushItem, PushQueue, Receipt, WorkItem, WorkQueue};
use a2a_lambda::task::{Owner, PushId, TaskId, Timestamp};
use async_trait::async_trait;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A message that was received this often is given up, as the queue of a
/// deployment does. The sweep finds its task.
const RECEIVES: u32 = 100;
/// Items after which those are forgotten that would not be known any more.
const KNOWN_ITEMS: usize = 10_000;

/// What waits in a queue.
pub trait Queued: Clone + Ord + Debug + Send + Sync + 'static {
    /// What messages have in common that come one at a time and in order.
    type Group: Clone + Ord + Debug + Send + Sync;

    /// For how long the same item, sent again, does not come again.
    const KNOWN: Option<Duration>;

    /// The group of the message with this number.
    fn group(&self, number: u64) -> Self::Group;

    /// Whose message it is, for the log.
    fn task(&self) -> &TaskId;
}

impl Queued for WorkItem {
    type Group = u64;
    const KNOWN: Option<Duration> = None;

    fn group(&self, number: u64) -> u64 {
        number
    }

    fn task(&self) -> &TaskId {
        &self.task
    }
}

impl Queued for PushItem {
    type Group = (Owner, TaskId, PushId);
    /// The interval in which SQS FIFO queues know a de-duplication id again.
    const KNOWN: Option<Duration> = Some(Duration::from_secs(300));

    fn group(&self, _number: u64) -> Self::Group {
        (self.owner.clone(), self.task.clone(), self.config.clone())
    }

    fn task(&self) -> &TaskId {
        &self.task
    }
}

/// A queue. Clones are the same queue.
pub struct LocalQueue<I: Queued> {
    clock: Arc<dyn Clock>,
    visibility: Duration,
    messages: Arc<Mutex<Messages<I>>>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct Messages<I: Queued> {
    /// A group is gone with its last message.
    groups: BTreeMap<I::Group, VecDeque<Message<I>>>,
    /// Items sent lately, and until when they are known again.
    known: BTreeMap<I, Timestamp>,
    /// Numbers given so far, to messages and receipts.
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
    /// What waited.
    pub item: I,
    /// What the message is hidden and deleted by.
    pub receipt: LocalReceipt<I>,
}

/// The receipt of one receive. It is worth nothing once the message has been
/// received again.
#[derive(Debug, Clone)]
pub struct LocalReceipt<I: Queued> {
    queue: LocalQueue<I>,
    group: I::Group,
    receipt: u64,
}

impl<I: Queued> LocalQueue<I> {
    /// An empty queue which hides a received message for `visibility`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, visibility: Duration) -> Self {
        Self {
            clock,
            visibility,
            messages: Arc::new(Mutex::new(Messages {
                groups: BTreeMap::new(),
                known: BTreeMap::new(),
                numbers: 0,
            })),
            changed: Arc::default(),
        }
    }

    /// The first message of a group that is not hidden, once there is one.
    pub async fn receive(&self) -> Delivery<I> {
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

    fn take(&self) -> Next<I> {
        let now = self.clock.now();
        let mut messages = self.lock();
        messages.give_up(now);
        let receipt = messages.number();
        let group = match messages.next(now) {
            Ok(group) => group,
            Err(next) => return next.map_or(Next::Nothing, Next::At),
        };
        let Some(first) = messages.first(&group) else {
            return Next::Nothing;
        };
        first.visible_at = now.plus(self.visibility);
        first.receipt = receipt;
        first.receives += 1;
        Next::Message(Box::new(Delivery {
            item: first.item.clone(),
            receipt: LocalReceipt {
                queue: self.clone(),
                group,
                receipt,
            },
        }))
    }

    /// Everything sent to this process is taken.
    fn put(&self, items: &[I]) -> Vec<bool> {
        let now = self.clock.now();
        let mut messages = self.lock();
        for item in items {
            if messages.is_new(item, now) {
                let group = item.group(messages.number());
                let waiting = messages.groups.entry(group).or_default();
                waiting.push_back(Message {
                    item: item.clone(),
                    visible_at: now,
                    receipt: 0,
                    receives: 0,
                });
            }
        }
        drop(messages);
        self.changed.notify_waiters();
        vec![true; items.len()]
    }

    fn lock(&self) -> MutexGuard<'_, Messages<I>> {
        // Nothing panics while it holds the lock with a message half changed.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a look at the queue gives.
enum Next<I: Queued> {
    Message(Box<Delivery<I>>),
    /// All are hidden, the first of them until then.
    At(Timestamp),
    Nothing,
}

impl<I: Queued> Messages<I> {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn first(&mut self, group: &I::Group) -> Option<&mut Message<I>> {
        self.groups.get_mut(group).and_then(VecDeque::front_mut)
    }

    /// The group that is next; if there is none, when one will be. Whoever could
    /// be seen for longest is first, so that no group starves.
    fn next(&self, now: Timestamp) -> Result<I::Group, Option<Timestamp>> {
        let fronts = self.groups.iter();
        let fronts = fronts.filter_map(|(group, waiting)| Some((waiting.front()?, group)));
        let earliest = fronts.min_by_key(|(first, _)| first.visible_at);
        match earliest {
            Some((first, group)) if first.visible_at <= now => Ok(group.clone()),
            hidden => Err(hidden.map(|(first, _)| first.visible_at)),
        }
    }

    fn give_up(&mut self, now: Timestamp) {
        for waiting in self.groups.values_mut() {
            waiting.retain(|message| {
                let dead = message.visible_at <= now && message.receives >= RECEIVES;
                if dead {
                    let task = message.item.task();
                    tracing::error!(task.id = %task, "gave up a message of task `{task}`");
                }
                !dead
            });
        }
        self.groups.retain(|_, waiting| !waiting.is_empty());
    }

    /// Whether the item is new; it is known from now on.
    fn is_new(&mut self, item: &I, now: Timestamp) -> bool {
        let Some(time) = I::KNOWN else {
            return true;
        };
        if self.known.get(item).is_some_and(|until| *until > now) {
            return false;
        }
        if self.known.len() >= KNOWN_ITEMS {
            self.known.retain(|_, until| *until > now);
        }
        self.known.insert(item.clone(), now.plus(time));
        true
    }

    /// The message of a receipt that is still worth something.
    fn received(&mut self, receipt: &LocalReceipt<I>) -> Option<&mut Message<I>> {
        self.first(&receipt.group)
            .filter(|message| message.receipt == receipt.receipt)
    }
}

#[async_trait]
impl WorkQueue for LocalQueue<WorkItem> {
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError> {
        Ok(self.put(items))
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let messages = self.lock();
        let all = messages.groups.values().flatten();
        Ok(all.filter(|message| message.visible_at <= now).count())
    }
}

#[async_trait]
impl PushQueue for LocalQueue<PushItem> {
    async fn send_pushes(&self, items: &[PushItem]) -> Result<Vec<bool>, StoreError> {
        Ok(self.put(items))
    }
}

impl<I: Queued> LocalReceipt<I> {
    /// Deletes the message; `false` if it has been received again, or is gone.
    pub fn delete(&self) -> bool {
        let mut messages = self.queue.lock();
        let mine = messages.received(self).is_some();
        if mine && let Some(waiting) = messages.groups.get_mut(&self.group) {
            waiting.pop_front();
            if waiting.is_empty() {
                messages.groups.remove(&self.group);
            }
        }
        drop(messages);
        // The next of the group can be received.
        self.queue.changed.notify_waiters();
        mine
    }
}

#[async_trait]
impl<I: Queued> Receipt for LocalReceipt<I> {
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

impl<I: Queued> Clone for LocalQueue<I> {
    fn clone(&self) -> Self {
        Self {
            clock: self.clock.clone(),
            visibility: self.visibility,
            messages: self.messages.clone(),
            changed: self.changed.clone(),
        }
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
