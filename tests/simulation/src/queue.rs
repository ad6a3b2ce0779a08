//! The table's stream and the work queue: at least once, late, twice, early.

use crate::hub::{Fate, Hub};
use crate::mutant::Mutant;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::queue::{Receipt, TaskImage, WorkItem, WorkQueue};
use a2a_lambda::task::TaskRecord;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long a received message stays hidden: the longest turn.
const VISIBILITY: i64 = 900_000;

/// A message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) item: WorkItem,
    pub(crate) visible_at: i64,
    /// The last receipt.
    receipt: u64,
}

/// What is on its way between a commit and a worker.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    stream: Vec<TaskImage>,
    /// How far the relay has come.
    read: usize,
    pub(crate) queued: BTreeMap<u64, Queued>,
    /// Every message ever sent.
    pub(crate) sent: Vec<WorkItem>,
    numbers: u64,
    forwarded: BTreeSet<(String, u32)>,
}

impl Messages {
    pub(crate) fn streamed(&mut self, record: &TaskRecord) {
        self.stream.push(TaskImage::of(record));
    }

    /// The next images for the relay, and where they begin.
    pub(crate) fn images(&self) -> (usize, Vec<TaskImage>) {
        let images = self.stream.iter().skip(self.read).take(8);
        (self.read, images.cloned().collect())
    }

    pub(crate) fn has_images(&self) -> bool {
        self.read < self.stream.len()
    }

    /// The relay has handled everything before this place.
    pub(crate) fn relayed(&mut self, to: usize) {
        self.read = self.read.max(to).min(self.stream.len());
    }

    pub(crate) fn add(&mut self, item: WorkItem, now: i64) {
        self.numbers += 1;
        let queued = Queued {
            item: item.clone(),
            visible_at: now,
            receipt: 0,
        };
        self.queued.insert(self.numbers, queued);
        self.sent.push(item);
    }

    /// The visible messages.
    pub(crate) fn visible(&self, now: i64) -> Vec<u64> {
        let visible = self.queued.iter().filter(|(_, it)| it.visible_at <= now);
        visible.map(|(number, _)| *number).collect()
    }

    pub(crate) fn next_visible(&self) -> Option<i64> {
        self.queued.values().map(|it| it.visible_at).min()
    }

    pub(crate) fn receive(&mut self, number: u64, now: i64) -> Option<(WorkItem, u64)> {
        self.numbers += 1;
        let queued = self.queued.get_mut(&number)?;
        queued.visible_at = now + VISIBILITY;
        queued.receipt = self.numbers;
        Some((queued.item.clone(), queued.receipt))
    }

    /// Deletes by receipt: one that was received again is another's.
    pub(crate) fn delete(&mut self, number: u64, receipt: u64) {
        if self
            .queued
            .get(&number)
            .is_some_and(|it| it.receipt == receipt)
        {
            self.queued.remove(&number);
        }
    }

    pub(crate) fn delete_all_of(&mut self, item: &WorkItem) {
        self.queued.retain(|_, it| it.item.task != item.task);
    }
}

/// The sending end.
pub(crate) struct SimQueue(pub(crate) Arc<Hub>);

#[async_trait]
impl WorkQueue for SimQueue {
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError> {
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
                        let first = world
                            .messages
                            .forwarded
                            .insert((item.task.to_string(), item.turn));
                        let skip = world.is(Mutant::RelayOncePerTurn) && !first;
                        let now = world.now;
                        for _ in 0..if skip { 0 } else { copies } {
                            world.messages.add(item.clone(), now);
                        }
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

    async fn waiting(&self) -> Result<usize, StoreError> {
        self.0.pause().await;
        let world = self.0.world();
        Ok(world.messages.visible(world.now).len())
    }
}

/// A received message.
pub(crate) struct SimReceipt {
    pub(crate) hub: Arc<Hub>,
    pub(crate) number: u64,
    pub(crate) receipt: u64,
}

#[async_trait]
impl Receipt for SimReceipt {
    async fn hide(&self, time: Duration) -> Result<(), StoreError> {
        self.hub.pause().await;
        let refused = {
            let mut world = self.hub.world();
            let fate = world.fate();
            let until = world.now + i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            let queued = world.messages.queued.get_mut(&self.number);
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
}
