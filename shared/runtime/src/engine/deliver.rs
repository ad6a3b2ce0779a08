//! Telling webhooks what happens: the step behind the queue of deliveries.
//!
//! A message is a doorbell: a webhook may have something to get. The task's log
//! and the webhook's cursor say what, and the lease of the webhook who brings
//! it. These rules keep every event and their order:
//!
//! 1. Only the holder of the lease calls the webhook and moves its cursor, one
//!    event after the other, each once the one before it has been taken. So an
//!    event may come twice, and none before an earlier one was taken.
//! 2. A doorbell that finds a lease, or a webhook to be left alone, goes: the
//!    holder looks at the log once more after it has dropped the lease, and
//!    whoever leaves a webhook alone rings for its time first.
//! 3. A message goes last. Whoever dies leaves one, and a lease that ends.

use super::again::QUEUED;
use super::push::{Opened, open_secrets};
use super::seal::Sealer;
use super::sweep::Leases;
use super::{Clock, EngineError, Ids, Policy};
use crate::outbound::{OutboundUrl, UrlFault};
use crate::store::push::DeliverPushes;
use crate::store::queue::{Ack, PushItem, PushQueue, TaskImage};
use crate::store::{ReadTasks, StoreError, Tail};
use crate::task::{
    Delivery, EventId, Frame, Generation, PushLease, PushRecord, Secret, TaskRecord, Timestamp,
    WriteId,
};
use async_trait::async_trait;
use pace::ATTEMPTS;
use std::sync::Arc;
use std::time::Duration;

mod frame;
mod pace;

/// For how long a courier may be silent before another takes over.
const LEASE: Duration = Duration::from_secs(30);
/// So much of its lease is left when the longest attempt is over, to note what
/// it came to.
const NOTING: Duration = Duration::from_secs(10);

/// One delivery, not yet spelled.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Where it goes.
    pub url: OutboundUrl,
    /// The words it is spelled in.
    pub generation: Generation,
    /// The event: unique in its task.
    pub id: EventId,
    /// How it proves who sends it.
    pub scheme: Option<String>,
    /// The proof.
    pub credentials: Option<Secret>,
    /// What the client wants back.
    pub token: Option<Secret>,
    /// What is told: an event, or the task for the generations that get it.
    pub frame: Frame,
}

/// Why a webhook has not taken a delivery. No text of it reaches a client.
#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    /// It answered, but not with success.
    #[error("the webhook answered {0}")]
    Status(u16),
    /// It did not answer.
    #[error("the webhook did not answer: {0}")]
    Silent(String),
    /// It may not be called.
    #[error("the webhook may not be called: its URL {0}")]
    Forbidden(#[from] UrlFault),
    /// Its secrets do not open.
    #[error("the secrets of the webhook were sealed under another key")]
    Sealed,
}

/// Sends deliveries.
#[async_trait]
pub trait Webhooks: Send + Sync {
    /// Sends one; it is taken when this returns without an error.
    ///
    /// # Errors
    /// [`NoticeError`] when the webhook has not taken it, or may not have.
    async fn post(&self, notice: &Notice) -> Result<(), NoticeError>;
}

/// What a courier stands on.
#[derive(Clone)]
pub struct Outgoing {
    /// The tasks.
    pub tasks: Arc<dyn ReadTasks>,
    /// Their webhooks.
    pub pushes: Arc<dyn DeliverPushes>,
    /// Where its messages come from.
    pub queue: Arc<dyn PushQueue>,
    /// How a webhook is called.
    pub webhooks: Arc<dyn Webhooks>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Fresh numbers.
    pub ids: Arc<dyn Ids>,
}

/// Brings events to webhooks.
#[derive(Clone)]
pub struct Courier {
    to: Outgoing,
    policy: Arc<Policy>,
}

/// How far a courier came under one lease.
enum Came {
    /// It has dropped the lease, and the webhook is as it says.
    Back(Box<PushRecord>),
    /// It has lost the lease, or does not know.
    Astray,
    /// It leaves the webhook alone: a doorbell comes when the wait is over.
    Left,
    /// Its time is up; it has no lease.
    Late,
    /// Somebody else is on the way.
    Second,
}

/// Forwards images that webhooks want to know of, one message a webhook; gives
/// the indexes of those of which the queue did not take every message.
///
/// Like [`relay`](super::relay) it keeps no state: `notify` stands in the image
/// of the commit that logged the event, and in no later one.
pub async fn relay_pushes(queue: &dyn PushQueue, images: &[TaskImage]) -> Vec<usize> {
    let mut items = Vec::new();
    let mut asking = Vec::new();
    for (index, image) in images.iter().enumerate() {
        if image.notify.is_none() {
            continue;
        }
        for config in &image.listeners {
            asking.push(index);
            items.push(PushItem {
                owner: image.owner.clone(),
                task: image.task.clone(),
                incarnation: image.incarnation.clone(),
                config: config.clone(),
            });
        }
    }
    if items.is_empty() {
        return Vec::new();
    }
    let taken = match queue.ring(&items, Duration::ZERO).await {
        Ok(taken) => taken,
        Err(error) => {
            tracing::warn!("failed to send deliveries: {error}");
            Vec::new()
        }
    };
    let lost = |place: usize| !taken.get(place).copied().unwrap_or(false);
    let places = asking.into_iter().enumerate();
    let mut again: Vec<usize> = places
        .filter(|(place, _)| lost(*place))
        .map(|(_, index)| index)
        .collect();
    again.dedup();
    again
}

impl Courier {
    /// A courier between the stores of the tasks and their webhooks.
    #[must_use]
    pub fn new(to: Outgoing, policy: Policy) -> Self {
        Self {
            to,
            policy: Arc::new(policy),
        }
    }

    /// Sends a webhook what it has not got, and says what becomes of the
    /// message. `deadline` is the end of the invocation, if it has one.
    pub async fn deliver(&self, item: &PushItem, deadline: Option<Timestamp>) -> Ack {
        match Box::pin(self.try_deliver(item, deadline)).await {
            Ok(()) => Ack::Delete,
            Err(error) => {
                error.log();
                Ack::Keep
            }
        }
    }

    /// Returns when the message is not needed any more.
    async fn try_deliver(
        &self,
        item: &PushItem,
        deadline: Option<Timestamp>,
    ) -> Result<(), EngineError> {
        let mut found = self.find(item).await?;
        let mut went = false;
        loop {
            let now = self.to.clock.now();
            if found.as_ref().is_some_and(|it| it.delivery.is_busy(now)) {
                return Ok(());
            }
            let cursor = found.as_ref().map_or(u64::MAX, |it| it.delivery.cursor);
            let log = self.to.tasks.tail(&item.owner, &item.task, cursor, now);
            let log = log.await?;
            let Some(log) = log.filter(|log| log.incarnation == item.incarnation) else {
                return Ok(());
            };
            let Some(push) = found.take_if(|_| !log.events.is_empty()) else {
                // If it was removed, the others may be all that was waited for. A
                // doorbell that finds nothing new costs no write.
                if went || found.is_none() {
                    self.settle(item, &log).await?;
                }
                return Ok(());
            };
            went = true;
            found = match self.bring(item, push, &log, deadline).await? {
                Came::Back(push) => Some(*push),
                Came::Astray => self.find(item).await?,
                Came::Late => return self.ring(item, Duration::ZERO).await,
                Came::Left | Came::Second => return Ok(()),
            };
        }
    }

    /// The webhook as it stands.
    async fn find(&self, item: &PushItem) -> Result<Option<PushRecord>, EngineError> {
        let pushes = self.to.pushes.pushes(&item.owner, &item.task).await?;
        Ok(pushes
            .into_iter()
            .find(|it| it.listener.id == item.config && it.incarnation == item.incarnation))
    }

    /// Takes the lease and brings the webhook the events of `log`.
    async fn bring(
        &self,
        item: &PushItem,
        mut push: PushRecord,
        log: &Tail,
        deadline: Option<Timestamp>,
    ) -> Result<Came, EngineError> {
        let holder = WriteId::made_of(self.to.ids.next());
        let now = self.to.clock.now();
        let mut lease = lease(&holder, now, deadline);
        if lease.until.since(now) < pace::attempt(&push.delivery) + NOTING {
            return Ok(Came::Late);
        }
        let clean_at = self.clean_at(&push, now);
        let leased = self.to.pushes.lease_push(&push, &lease, now, clean_at);
        if !leased.await? {
            return Ok(Came::Second);
        }
        let whole = match push.listener.generation {
            Generation::V10 => None,
            Generation::V03 | Generation::V01 => self.whole(item).await?,
        };
        for (place, event) in log.events.iter().enumerate() {
            let within = pace::attempt(&push.delivery);
            if lease.until.since(self.to.clock.now()) < within + NOTING {
                push.delivery.lease = None;
                let dropped = self.note(&push, &holder).await?;
                return Ok(if dropped { Came::Late } else { Came::Astray });
            }
            let so_far = log.events.get(..=place).unwrap_or_default();
            let frame = frame::frame(&push, log, whole.as_ref(), so_far, event);
            let told = self.tell(&push, event.id, frame, within).await;
            let leaves = match &told {
                Ok(took) => {
                    push.delivery = Delivery {
                        took: *took,
                        ..Delivery::after(event.seq)
                    };
                    pace::pause(*took)
                }
                Err(why) => Some(self.failed(&mut push, why)),
            };
            let rings_at = match leaves {
                Some(wait) => Some(self.leave(item, &mut push, wait).await?),
                None => None,
            };
            let goes_on = leaves.is_none() && place + 1 < log.events.len();
            lease = self::lease(&holder, self.to.clock.now(), deadline);
            push.delivery.lease = goes_on.then(|| lease.clone());
            if !self.note(&push, &holder).await? {
                return Ok(Came::Astray);
            }
            if push.delivery.attempts >= ATTEMPTS {
                self.settle(item, log).await?;
                return Ok(Came::Left);
            }
            // A doorbell that has rung already has met the lease, and is gone.
            match rings_at {
                Some(at) if self.to.clock.now() < at => return Ok(Came::Left),
                Some(_) => break,
                None => {}
            }
        }
        Ok(Came::Back(Box::new(push)))
    }

    /// Counts a failure; gives how long the webhook is left alone.
    fn failed(&self, push: &mut PushRecord, why: &NoticeError) -> Duration {
        let attempts = push.delivery.attempts.saturating_add(1);
        push.delivery.attempts = attempts;
        let (task, config) = (&push.task, &push.listener.id);
        if attempts >= ATTEMPTS {
            tracing::error!(
                task.id = %task,
                push.config = %config,
                "gave up the webhook `{config}` of task `{task}`: {why}"
            );
        } else {
            tracing::warn!(
                task.id = %task,
                push.config = %config,
                push.attempts = attempts,
                "a delivery of task `{task}` failed: {why}"
            );
        }
        pace::back_off(attempts, self.to.ids.next())
    }

    /// Leaves the webhook alone for `wait`; gives when the doorbell rings, at the
    /// earliest. It is sent before that is noted: who finds the note may rely on
    /// a doorbell that comes later.
    async fn leave(
        &self,
        item: &PushItem,
        push: &mut PushRecord,
        wait: Duration,
    ) -> Result<Timestamp, EngineError> {
        let rings_at = self.to.clock.now().plus(wait);
        push.delivery.retry_at = rings_at.minus(pace::SKEW);
        if push.delivery.attempts < ATTEMPTS {
            self.ring(item, wait).await?;
        }
        Ok(rings_at)
    }

    /// Notes how far the deliveries are; `false` if somebody else does.
    async fn note(&self, push: &PushRecord, holder: &WriteId) -> Result<bool, EngineError> {
        let noted = self.to.pushes.note_delivery(push, holder, &push.delivery);
        Ok(noted.await?)
    }

    /// Sends a message for the same webhook, to be received after `wait`.
    async fn ring(&self, item: &PushItem, wait: Duration) -> Result<(), EngineError> {
        match self.to.queue.ring(std::slice::from_ref(item), wait).await?[..] {
            [true] => Ok(()),
            _ => Err(StoreError::Unavailable("the queue takes no message".to_owned()).into()),
        }
    }

    /// Until when the webhook is kept: long enough, and seldom a new time.
    fn clean_at(&self, push: &PushRecord, now: Timestamp) -> Timestamp {
        let life = self.policy.task_ttl;
        if push.clean_at < now.plus(life) {
            return now.plus(life * 2);
        }
        push.clean_at
    }

    /// The task with its content; `None` if some of it is out of reach here.
    async fn whole(&self, item: &PushItem) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.to.clock.now();
        match self.to.tasks.load(&item.owner, &item.task, now).await {
            Ok(found) => Ok(found.filter(|it| it.incarnation == item.incarnation)),
            Err(StoreError::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls the webhook; gives how long it took for its answer.
    async fn tell(
        &self,
        push: &PushRecord,
        id: EventId,
        frame: Frame,
        within: Duration,
    ) -> Result<Duration, NoticeError> {
        let listener = &push.listener;
        let url = OutboundUrl::parse(&listener.url, self.policy.reach)?;
        let opened = open_secrets(&Sealer::new(&self.policy.secret), push);
        let Opened { token, credentials } = opened.ok_or(NoticeError::Sealed)?;
        let notice = Notice {
            url,
            generation: listener.generation,
            id,
            scheme: listener.schemes.first().cloned(),
            credentials,
            token,
            frame,
        };
        let began = self.to.clock.now();
        tokio::select! {
            biased;
            told = self.to.webhooks.post(&notice) => told?,
            () = self.to.clock.sleep_until(began.plus(within)) => {
                return Err(NoticeError::Silent(format!("no answer within {within:?}")));
            }
        }
        Ok(self.to.clock.now().since(began))
    }

    /// Takes a task at rest off the sweep's index once nobody waits to hear
    /// of it.
    async fn settle(&self, item: &PushItem, log: &Tail) -> Result<(), EngineError> {
        if !log.state.is_at_rest() {
            return Ok(());
        }
        let now = self.to.clock.now();
        match self.to.tasks.head(&item.owner, &item.task, now).await? {
            Some(head) => settle(&*self.to.pushes, &head).await,
            None => Ok(()),
        }
    }
}

/// A lease from `now` on, of an invocation that ends at `deadline`.
fn lease(holder: &WriteId, now: Timestamp, deadline: Option<Timestamp>) -> PushLease {
    let until = now.plus(LEASE);
    PushLease {
        holder: holder.clone(),
        until: deadline.map_or(until, |end| end.min(until)),
    }
}

/// See [`Courier::settle`].
async fn settle(pushes: &dyn DeliverPushes, record: &TaskRecord) -> Result<(), EngineError> {
    if !record.state().is_at_rest() {
        return Ok(());
    }
    if waiting(pushes, record).await?.is_empty() {
        pushes.confirm_pushes(record).await?;
    }
    Ok(())
}

/// The webhooks of a task that have not got all of it and are not given up.
async fn waiting(
    pushes: &dyn DeliverPushes,
    record: &TaskRecord,
) -> Result<Vec<PushRecord>, EngineError> {
    let mut found = pushes.pushes(&record.owner, &record.id).await?;
    found.retain(|push| {
        push.incarnation == record.incarnation
            && record.listeners.contains(&push.listener.id)
            && push.delivery.cursor < record.last_seq
            && push.delivery.attempts < ATTEMPTS
    });
    Ok(found)
}

/// Rings again for a task at rest, if nobody seems to be at it; gives how many
/// webhooks. It writes nothing: only a call of a webhook counts as an attempt.
/// After the process before this one died, no doorbell of it is left: then it
/// rings for all, each when its lease or its pause ends.
pub(super) async fn push_again(
    pushes: &dyn DeliverPushes,
    queue: &dyn PushQueue,
    record: &TaskRecord,
    leases: Leases,
    now: Timestamp,
) -> Result<usize, EngineError> {
    let mut waiting = waiting(pushes, record).await?;
    if waiting.is_empty() {
        pushes.confirm_pushes(record).await?;
        return Ok(0);
    }
    if leases == Leases::CountAsExpired {
        for push in &waiting {
            let leased = push.delivery.lease.as_ref().map(|lease| lease.until);
            let free = push.delivery.retry_at.max(leased.unwrap_or_default());
            queue.ring(&[item_of(push)], free.since(now)).await?;
        }
        return Ok(waiting.len());
    }
    waiting.retain(|push| {
        let since = record.updated_at.max(push.delivery.retry_at);
        since.plus(QUEUED) <= now && !push.delivery.is_busy(now)
    });
    let items: Vec<PushItem> = waiting.iter().map(item_of).collect();
    if !items.is_empty() {
        queue.ring(&items, Duration::ZERO).await?;
    }
    Ok(items.len())
}

fn item_of(push: &PushRecord) -> PushItem {
    PushItem {
        owner: push.owner.clone(),
        task: push.task.clone(),
        incarnation: push.incarnation.clone(),
        config: push.listener.id.clone(),
    }
}

impl std::fmt::Debug for Courier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Courier").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
