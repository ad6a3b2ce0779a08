//! Delivers push notifications: sends the events of a task to webhooks, one push queue
//! message at a time.
//!
//! A push queue message says "look at this push config". The task's log and the cursor of
//! the push config say which events to send. The lease of the push config says which
//! worker sends them. These rules keep every event and their order:
//!
//! 1. Only the holder of the lease calls the webhook and moves its cursor. It sends one
//!    event after the other, each after the webhook has accepted the one before. So an
//!    event may arrive twice, but not before an earlier one was accepted.
//! 2. A message that finds a live lease or a paused webhook is deleted. No event is lost:
//!    the holder reads the log once more after it has dropped the lease, and a worker
//!    that pauses a webhook first sends a message for the end of the pause.
//! 3. A worker deletes its message last. A worker that dies leaves its message, and a
//!    lease that ends.

use super::leases::Leases;
use super::redispatch::QUEUED;
use crate::engine::handler::push_config::{PushSecrets, open_secrets};
use crate::engine::seal::Sealer;
use crate::engine::{Clock, EngineError, Ids, Policy};
use crate::outbound::{OutboundUrl, UrlError};
use crate::store::push::DeliverPushes;
use crate::store::queue::{Ack, PushItem, PushQueue, TaskImage};
use crate::store::{ReadTasks, StoreError, Tail};
use crate::task::{
    Delivery, EventId, Frame, Generation, PushLease, PushRecord, Secret, TaskRecord, Timestamp,
    WriteId,
};
use async_trait::async_trait;
use pacing::ATTEMPTS;
use std::sync::Arc;
use std::time::Duration;

mod pacing;
mod payload;

/// How long a lease lasts from the last time it was extended.
const LEASE: Duration = Duration::from_secs(30);
/// The part of the lease that remains after the longest attempt, to store its result.
const NOTING: Duration = Duration::from_secs(10);

/// One push delivery before it is encoded.
#[derive(Debug, Clone)]
pub struct PushDelivery {
    /// The URL of the webhook.
    pub url: OutboundUrl,
    /// The protocol generation that encodes the body.
    pub generation: Generation,
    /// The id of the event, unique within its task.
    pub id: EventId,
    /// The scheme of the `Authorization` header.
    pub scheme: Option<String>,
    /// The credentials of the `Authorization` header.
    pub credentials: Option<Secret>,
    /// The token of the push config, sent as `X-A2A-Notification-Token`.
    pub token: Option<Secret>,
    /// The body: an event in 1.0, the task in 0.3 and 0.1.
    pub frame: Frame,
}

/// Why a push delivery failed. Its text does not reach a client.
#[derive(Debug, thiserror::Error)]
pub enum PushDeliveryError {
    /// The webhook answered with a status that is not success.
    #[error("the webhook answered status {0}")]
    Status(u16),
    /// The webhook did not answer.
    #[error("the webhook did not answer: {0}")]
    NoResponse(String),
    /// The URL may not be called.
    #[error("the webhook may not be called: its URL {0}")]
    Forbidden(#[from] UrlError),
    /// The stored secrets cannot be opened.
    #[error("the secrets of the webhook were sealed under another key")]
    Sealed,
}

/// Sends push deliveries.
#[async_trait]
pub trait SendPush: Send + Sync {
    /// Sends one delivery; `Ok` means that the webhook has accepted it.
    ///
    /// # Errors
    /// [`PushDeliveryError`] when the webhook has not accepted it, or may not have.
    async fn post(&self, notice: &PushDelivery) -> Result<(), PushDeliveryError>;
}

/// What the push delivery worker needs.
#[derive(Clone)]
pub struct PushServices {
    /// Reads the tasks.
    pub tasks: Arc<dyn ReadTasks>,
    /// Reads and updates their push configs.
    pub pushes: Arc<dyn DeliverPushes>,
    /// The push queue.
    pub queue: Arc<dyn PushQueue>,
    /// Calls the webhooks.
    pub webhooks: Arc<dyn SendPush>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Fresh numbers for ids.
    pub ids: Arc<dyn Ids>,
}

/// The push delivery worker: sends events to webhooks.
#[derive(Clone)]
pub struct PushDispatcher {
    to: PushServices,
    policy: Arc<Policy>,
}

/// How the work under one lease ended.
enum DispatchEnd {
    /// The worker dropped the lease and stored this push config.
    Back(Box<PushRecord>),
    /// The worker lost the lease, or does not know whether it holds it.
    Astray,
    /// The webhook is paused or given up. A push queue message arrives when a pause is
    /// over.
    Left,
    /// The time of the invocation is up; the worker holds no lease.
    Late,
    /// Another worker holds the lease.
    Second,
}

/// Forwards images with new events: one push queue message for each push config. Returns
/// the indexes of the images for which the queue did not accept every message.
///
/// Like [`relay`](crate::engine::relay) it keeps no state: `notify` is in the image of the commit
/// that logged the event, and in no later one.
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
            tracing::warn!("failed to send push queue messages: {error}");
            Vec::new()
        }
    };
    let lost = |place: usize| !taken.get(place).copied().unwrap_or(false);
    let places = asking.into_iter().enumerate();
    let mut again: Vec<usize> = places
        .filter(|(place, _)| lost(*place))
        .map(|(_, index)| index)
        .collect();
    // Several messages of one image may be lost.
    again.dedup();
    again
}

impl PushDispatcher {
    /// A worker that uses these services.
    #[must_use]
    pub fn new(to: PushServices, policy: Policy) -> Self {
        Self {
            to,
            policy: Arc::new(policy),
        }
    }

    /// Sends a webhook the events it has not accepted; returns whether to delete or keep
    /// the message. `deadline` is the end of the invocation, if it has one.
    pub async fn deliver(&self, item: &PushItem, deadline: Option<Timestamp>) -> Ack {
        match Box::pin(self.try_deliver(item, deadline)).await {
            Ok(()) => Ack::Delete,
            Err(error) => {
                error.log();
                Ack::Keep
            }
        }
    }

    /// Returns `Ok` when the message is not needed any more.
    async fn try_deliver(
        &self,
        item: &PushItem,
        deadline: Option<Timestamp>,
    ) -> Result<(), EngineError> {
        let mut found = self.find(item).await?;
        let mut went = false;
        loop {
            let now = self.to.clock.now();
            // A live lease or a pause: rule 2 above.
            if found.as_ref().is_some_and(|it| it.delivery.is_busy(now)) {
                return Ok(());
            }
            // Without a push config only the state of the task is needed, not its events.
            let cursor = found.as_ref().map_or(u64::MAX, |it| it.delivery.cursor);
            let log = self.to.tasks.tail(&item.owner, &item.task, cursor, now);
            let log = log.await?;
            let Some(log) = log.filter(|log| log.incarnation == item.incarnation) else {
                return Ok(());
            };
            let Some(push) = found.take_if(|_| !log.events.is_empty()) else {
                // If this push config was removed, the task may have waited only for it.
                // A message that finds no new event costs no write.
                if went || found.is_none() {
                    self.confirm_delivered(item, &log).await?;
                }
                return Ok(());
            };
            went = true;
            found = match self.dispatch(item, push, &log, deadline).await? {
                DispatchEnd::Back(push) => Some(*push),
                DispatchEnd::Astray => self.find(item).await?,
                // Another invocation continues immediately.
                DispatchEnd::Late => return self.ring(item, Duration::ZERO).await,
                DispatchEnd::Left | DispatchEnd::Second => return Ok(()),
            };
        }
    }

    /// Reads the push config that a message names; `None` if there is none.
    async fn find(&self, item: &PushItem) -> Result<Option<PushRecord>, EngineError> {
        let pushes = self.to.pushes.pushes(&item.owner, &item.task).await?;
        Ok(pushes
            .into_iter()
            .find(|it| it.listener.id == item.config && it.incarnation == item.incarnation))
    }

    /// Takes the lease and sends the events of `log` to the webhook.
    async fn dispatch(
        &self,
        item: &PushItem,
        mut push: PushRecord,
        log: &Tail,
        deadline: Option<Timestamp>,
    ) -> Result<DispatchEnd, EngineError> {
        let holder = WriteId::made_of(self.to.ids.next());
        let now = self.to.clock.now();
        let mut lease = lease(&holder, now, deadline);
        // No call starts that could outlast the lease: another worker would call too.
        if lease.until.since(now) < pacing::attempt(&push.delivery) + NOTING {
            return Ok(DispatchEnd::Late);
        }
        let clean_at = self.clean_at(&push, now);
        let leased = self.to.pushes.lease_push(&push, &lease, now, clean_at);
        if !leased.await? {
            return Ok(DispatchEnd::Second);
        }
        // A webhook of 0.3 or 0.1 gets the task, so its content is read.
        let whole = match push.listener.generation {
            Generation::V10 => None,
            Generation::V03 | Generation::V01 => self.with_content(item).await?,
        };
        for (place, event) in log.events.iter().enumerate() {
            let within = pacing::attempt(&push.delivery);
            if lease.until.since(self.to.clock.now()) < within + NOTING {
                return self.drop_lease(push, &holder).await;
            }
            let so_far = log.events.get(..=place).unwrap_or_default();
            let frame = payload::frame(&push, log, whole.as_ref(), so_far, event);
            let sent = self.send_events(&push, event.id, frame, within).await;
            let pause = match &sent {
                Ok(took) => {
                    push.delivery = Delivery {
                        took: *took,
                        ..Delivery::after(event.seq)
                    };
                    pacing::pause(*took)
                }
                Err(why) => Some(self.count_failure(&mut push, why)),
            };
            let retry_at = match pause {
                Some(wait) => Some(self.defer(item, &mut push, wait).await?),
                None => None,
            };
            let continues = pause.is_none() && place + 1 < log.events.len();
            lease = self::lease(&holder, self.to.clock.now(), deadline);
            push.delivery.lease = continues.then(|| lease.clone());
            if !self.store_progress(&push, &holder).await? {
                return Ok(DispatchEnd::Astray);
            }
            if push.delivery.attempts >= ATTEMPTS {
                self.confirm_delivered(item, log).await?;
                return Ok(DispatchEnd::Left);
            }
            // A message that has already arrived found the lease and was deleted.
            match retry_at {
                Some(at) if self.to.clock.now() < at => return Ok(DispatchEnd::Left),
                Some(_) => break,
                None => {}
            }
        }
        Ok(DispatchEnd::Back(Box::new(push)))
    }

    /// Ends the lease, so that another invocation can continue.
    async fn drop_lease(
        &self,
        mut push: PushRecord,
        holder: &WriteId,
    ) -> Result<DispatchEnd, EngineError> {
        push.delivery.lease = None;
        let dropped = self.store_progress(&push, holder).await?;
        Ok(if dropped {
            DispatchEnd::Late
        } else {
            DispatchEnd::Astray
        })
    }

    /// Counts and logs a failure; returns how long the webhook is paused.
    fn count_failure(&self, push: &mut PushRecord, why: &PushDeliveryError) -> Duration {
        let attempts = push.delivery.attempts.saturating_add(1);
        push.delivery.attempts = attempts;
        let (task, config) = (&push.task, &push.listener.id);
        if attempts >= ATTEMPTS {
            tracing::error!(
                task.id = %task,
                push.config = %config,
                "gave up push config `{config}` of task `{task}`: {why}"
            );
        } else {
            tracing::warn!(
                task.id = %task,
                push.config = %config,
                push.attempts = attempts,
                "a push delivery of task `{task}` failed: {why}"
            );
        }
        pacing::back_off(attempts, self.to.ids.next())
    }

    /// Pauses the webhook for `wait`; returns the earliest time at which its next message
    /// arrives. The message is sent before the pause is stored: a worker that reads the
    /// pause may rely on a later message.
    async fn defer(
        &self,
        item: &PushItem,
        push: &mut PushRecord,
        wait: Duration,
    ) -> Result<Timestamp, EngineError> {
        let retry_at = self.to.clock.now().plus(wait);
        push.delivery.retry_at = retry_at.minus(pacing::SKEW);
        if push.delivery.attempts < ATTEMPTS {
            self.ring(item, wait).await?;
        }
        Ok(retry_at)
    }

    /// Stores cursor, attempts and lease; `false` if the lease is lost.
    async fn store_progress(
        &self,
        push: &PushRecord,
        holder: &WriteId,
    ) -> Result<bool, EngineError> {
        let noted = self.to.pushes.note_delivery(push, holder, &push.delivery);
        Ok(noted.await?)
    }

    /// Sends a push queue message for the same push config, to be received after `wait`.
    async fn ring(&self, item: &PushItem, wait: Duration) -> Result<(), EngineError> {
        match self.to.queue.ring(std::slice::from_ref(item), wait).await?[..] {
            [true] => Ok(()),
            _ => Err(
                StoreError::Unavailable("the push queue did not accept a message".to_owned())
                    .into(),
            ),
        }
    }

    /// The time until which the push config is kept: at least one task lifetime, changed
    /// rarely.
    fn clean_at(&self, push: &PushRecord, now: Timestamp) -> Timestamp {
        let life = self.policy.task_ttl;
        if push.clean_at < now.plus(life) {
            return now.plus(life * 2);
        }
        push.clean_at
    }

    /// The task with its content; `None` if it is gone or this function cannot read all
    /// of it.
    async fn with_content(&self, item: &PushItem) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.to.clock.now();
        match self.to.tasks.load(&item.owner, &item.task, now).await {
            Ok(found) => Ok(found.filter(|it| *it.incarnation() == item.incarnation)),
            Err(StoreError::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls the webhook; returns how long its answer took.
    async fn send_events(
        &self,
        push: &PushRecord,
        id: EventId,
        frame: Frame,
        within: Duration,
    ) -> Result<Duration, PushDeliveryError> {
        let listener = &push.listener;
        // The policy may be stricter than at the registration, so the URL is checked
        // again.
        let url = OutboundUrl::parse(&listener.url, self.policy.reach)?;
        let opened = open_secrets(&Sealer::new(&self.policy.secret), push);
        let PushSecrets { token, credentials } = opened.ok_or(PushDeliveryError::Sealed)?;
        let notice = PushDelivery {
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
            // Without `biased` the order is random, and the simulation could not replay a
            // run.
            biased;
            sent = self.to.webhooks.post(&notice) => sent?,
            () = self.to.clock.sleep_until(began.plus(within)) => {
                return Err(PushDeliveryError::NoResponse(format!("no answer within {within:?}")));
            }
        }
        Ok(self.to.clock.now().since(began))
    }

    /// Removes a task at rest from the index of the sweep, if no push config has events
    /// to get.
    async fn confirm_delivered(&self, item: &PushItem, log: &Tail) -> Result<(), EngineError> {
        if !log.state.is_at_rest() {
            return Ok(());
        }
        let now = self.to.clock.now();
        match self.to.tasks.head(&item.owner, &item.task, now).await? {
            Some(head) => confirm_delivered(&*self.to.pushes, &head).await,
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

/// See [`PushDispatcher::confirm_delivered`].
async fn confirm_delivered(
    pushes: &dyn DeliverPushes,
    record: &TaskRecord,
) -> Result<(), EngineError> {
    if !record.state().is_at_rest() {
        return Ok(());
    }
    if undelivered(pushes, record).await?.is_empty() {
        pushes.confirm_pushes(record).await?;
    }
    Ok(())
}

/// The push configs of a task that have events to get and are not given up.
async fn undelivered(
    pushes: &dyn DeliverPushes,
    record: &TaskRecord,
) -> Result<Vec<PushRecord>, EngineError> {
    let mut found = pushes.pushes(record.owner(), record.id()).await?;
    found.retain(|push| {
        push.incarnation == *record.incarnation()
            && record.listeners().contains(&push.listener.id)
            && push.delivery.cursor < record.last_seq()
            && push.delivery.attempts < ATTEMPTS
    });
    Ok(found)
}

/// Sends push queue messages for a task at rest again, if no worker seems to handle them;
/// returns for how many push configs. It changes no push config: only a call of a webhook
/// counts as an attempt.
///
/// With [`Leases::CountAsExpired`] the process before this one has died with its queue.
/// Then each push config gets a message, for the time at which its lease or its pause
/// ends.
pub(in crate::engine) async fn resend_pushes(
    pushes: &dyn DeliverPushes,
    queue: &dyn PushQueue,
    record: &TaskRecord,
    leases: Leases,
    now: Timestamp,
) -> Result<usize, EngineError> {
    let mut waiting = undelivered(pushes, record).await?;
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
        // A younger push config still has its message in the queue.
        let since = record.updated_at().max(push.delivery.retry_at);
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

impl std::fmt::Debug for PushDispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushDispatcher").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PushServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
