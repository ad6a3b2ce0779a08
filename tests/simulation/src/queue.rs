//! The table's stream, the work queue and the push queue. They deliver at least once:
//! late, twice or early.

use crate::hub::{Fate, Hub, SimulationWorld};
use crate::mutant::Mutant;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{
    PushItem, PushQueue, Receipt, TaskImage, WorkItem, WorkMessage, WorkQueue,
};
use a2a_lambda::task::TaskRecord;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How many milliseconds a received work message stays hidden: the longest turn.
const VISIBILITY: i64 = 900_000;
/// The same for a push queue message.
const PUSH_VISIBILITY: i64 = 90_000;

/// A message in a queue.
#[derive(Debug, Clone)]
pub(crate) struct Queued<I> {
    pub(crate) item: I,
    pub(crate) visible_at: i64,
    /// The latest receipt.
    receipt: u64,
    /// How often it was received.
    receives: u32,
}

/// A queue.
#[derive(Debug)]
pub(crate) struct Line<I> {
    pub(crate) queued: BTreeMap<u64, Queued<I>>,
    /// Every message ever sent.
    pub(crate) sent: Vec<I>,
    numbers: u64,
    hides: i64,
}

impl<I: Clone> Line<I> {
    const fn new(hides: i64) -> Self {
        Self {
            queued: BTreeMap::new(),
            sent: Vec::new(),
            numbers: 0,
            hides,
        }
    }

    pub(crate) fn add(&mut self, item: I, visible_at: i64) {
        self.numbers += 1;
        let queued = Queued {
            item: item.clone(),
            visible_at,
            receipt: 0,
            receives: 0,
        };
        self.queued.insert(self.numbers, queued);
        self.sent.push(item);
    }

    /// The numbers of the visible messages.
    pub(crate) fn visible(&self, now: i64) -> Vec<u64> {
        let visible = self.queued.iter().filter(|(_, it)| it.visible_at <= now);
        visible.map(|(number, _)| *number).collect()
    }

    pub(crate) fn next_visible(&self) -> Option<i64> {
        self.queued.values().map(|it| it.visible_at).min()
    }

    /// Receives a message; returns its item, its receipt and how often it was received.
    pub(crate) fn receive(&mut self, number: u64, now: i64) -> Option<(I, u64, u32)> {
        self.numbers += 1;
        let queued = self.queued.get_mut(&number)?;
        queued.visible_at = now + self.hides;
        queued.receipt = self.numbers;
        queued.receives += 1;
        Some((queued.item.clone(), queued.receipt, queued.receives))
    }

    /// Deletes by receipt. The receipt of an earlier receive has no effect.
    pub(crate) fn delete(&mut self, number: u64, receipt: u64) {
        if self
            .queued
            .get(&number)
            .is_some_and(|it| it.receipt == receipt)
        {
            self.queued.remove(&number);
        }
    }
}

/// Everything on its way from a commit to a worker or to a webhook.
#[derive(Debug)]
pub(crate) struct Messages {
    stream: Vec<TaskImage>,
    /// The number of stream records that the relay has handled.
    read: usize,
    pub(crate) work: Line<WorkItem>,
    pub(crate) push_messages: Line<PushItem>,
    forwarded: BTreeSet<(String, u32)>,
    /// The webhooks of which the push queue did not accept every message. Their deliveries may
    /// wait for the sweep.
    pub(crate) unqueued: BTreeSet<String>,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            stream: Vec::new(),
            read: 0,
            work: Line::new(VISIBILITY),
            push_messages: Line::new(PUSH_VISIBILITY),
            forwarded: BTreeSet::new(),
            unqueued: BTreeSet::new(),
        }
    }
}

impl Messages {
    pub(crate) fn streamed(&mut self, record: &TaskRecord) {
        self.stream.push(TaskImage::of(record));
    }

    /// The next stream records for the relay, and the place of the first.
    pub(crate) fn images(&self) -> (usize, Vec<TaskImage>) {
        let images = self.stream.iter().skip(self.read).take(8);
        (self.read, images.cloned().collect())
    }

    pub(crate) fn has_images(&self) -> bool {
        self.read < self.stream.len()
    }

    /// The relay has handled every stream record before this place.
    pub(crate) fn relayed(&mut self, to: usize) {
        self.read = self.read.max(to).min(self.stream.len());
    }

    pub(crate) fn delete_all_of(&mut self, item: &WorkItem) {
        self.work.queued.retain(|_, it| it.item.task != item.task);
    }
}

/// The sending end of both queues.
pub(crate) struct SimQueue(pub(crate) Arc<Hub>);

impl SimQueue {
    /// Sends items in one call. The call may fail, lose its reply, or refuse single items.
    /// Returns one flag per item: whether it was accepted.
    async fn send_each<I>(
        &self,
        items: &[I],
        mut add: impl FnMut(&mut SimulationWorld, &I, usize) + Send,
    ) -> Result<Vec<bool>, StoreError>
    where
        I: Sync,
    {
        self.0.pause().await;
        let away = || Err(StoreError::Unavailable("simulated".to_owned()));
        let answer = {
            let mut world = self.0.world();
            match world.fate() {
                Fate::Refused => away(),
                fate => {
                    let mut taken = Vec::new();
                    for item in items {
                        let lost = world.faulty && world.chance.below(20) == 0;
                        let copies = if fate == Fate::Twice {
                            2
                        } else {
                            usize::from(!lost)
                        };
                        add(&mut world, item, copies);
                        taken.push(copies > 0);
                    }
                    if fate == Fate::Unheard {
                        away()
                    } else {
                        Ok(taken)
                    }
                }
            }
        };
        self.0.pause().await;
        answer
    }
}

#[async_trait]
impl WorkQueue for SimQueue {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        self.send_each(messages, |world, WorkMessage { item, delay }, copies| {
            let turn = (item.task.to_string(), item.turn);
            let first = world.messages.forwarded.insert(turn);
            let skip = world.is(Mutant::RelayOncePerTurn) && !first;
            let at = world.now + i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
            for _ in 0..if skip { 0 } else { copies } {
                world.messages.work.add(item.clone(), at);
            }
        })
        .await
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        self.0.pause().await;
        let world = self.0.world();
        Ok(world.messages.work.visible(world.now).len())
    }
}

#[async_trait]
impl PushQueue for SimQueue {
    async fn send(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError> {
        let rings = self.send_each(items, |world, item, copies| {
            let at = world.now + i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            world
                .oracle
                .note(|| format!("{} is queued {copies} times for {at}", item.config));
            for _ in 0..copies {
                world.messages.push_messages.add(item.clone(), at);
            }
        });
        let answer = rings.await;
        let flags = answer.as_deref().unwrap_or_default();
        let mut world = self.0.world();
        for (number, item) in items.iter().enumerate() {
            if flags.get(number) != Some(&true) {
                world.messages.unqueued.insert(item.config.to_string());
            }
        }
        drop(world);
        answer
    }
}

/// A received message.
pub(crate) struct SimReceipt {
    pub(crate) hub: Arc<Hub>,
    pub(crate) number: u64,
    pub(crate) receipt: u64,
    pub(crate) receives: u32,
}

#[async_trait]
impl Receipt for SimReceipt {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        self.hub.pause().await;
        let refused = {
            let mut world = self.hub.world();
            let fate = world.fate();
            let until = world.now + i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            let queued = world.messages.work.queued.get_mut(&self.number);
            if let Some(queued) = queued.filter(|it| it.receipt == self.receipt)
                && fate != Fate::Refused
            {
                queued.visible_at = until;
            }
            matches!(fate, Fate::Refused | Fate::Unheard)
        };
        self.hub.pause().await;
        if refused {
            return Err(StoreError::Unavailable("simulated".to_owned()));
        }
        Ok(())
    }

    fn receives(&self) -> u32 {
        self.receives
    }
}
