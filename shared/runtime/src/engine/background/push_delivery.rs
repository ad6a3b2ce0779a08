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
//!
//! - `send_push`: one delivery, its errors, and the trait that sends it
//! - `payload`: the body of a delivery
//! - `host`: when a host gets the next request of a tenant
//! - `pacing`: how long an attempt may take, and how long a webhook is paused
//! - `resend`: sends the messages of a task at rest again

mod host;
mod pacing;
mod payload;
mod resend;
mod send_push;

pub(in crate::engine) use resend::resend_pushes;
pub use send_push::{PushDelivery, PushDeliveryError, SendPush};

use crate::clock::{Clock, Ids};
use crate::engine::brake::BrakeView;
use crate::engine::error::EngineError;
use crate::engine::policy::Policy;
use crate::engine::push_config::open_secrets;
use crate::outbound::OutboundUrl;
use crate::store::limits::Limits;
use crate::store::queue::{Ack, PushItem, PushQueue};
use crate::store::records::Deliveries;
use crate::store::{StoreError, Tail};
use crate::task::{
    Delivery, EventId, Frame, Generation, PushLease, PushRecord, Secret, SkillId, TaskRecord,
    Timestamp, WriteId,
};
use crate::telemetry::{TraceContext, events};
use host::UnconnectedHosts;
use pacing::ATTEMPTS;
use resend::find_undelivered;
use std::sync::Arc;
use std::time::Duration;

/// How long a lease lasts from the last time it was extended.
const LEASE: Duration = Duration::from_secs(30);
/// The part of the lease that remains after the longest attempt, to store its result.
const NOTING: Duration = Duration::from_secs(10);

/// What the push delivery worker needs.
#[derive(Clone)]
pub struct PushServices {
    /// Reads tasks and push configs, and notes what was delivered.
    pub deliveries: Deliveries,
    /// The push queue.
    pub queue: Arc<dyn PushQueue>,
    /// Calls the webhooks.
    pub webhooks: Arc<dyn SendPush>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Fresh numbers for ids.
    pub ids: Arc<dyn Ids>,
}

debug_as_name!(PushServices);

/// The push delivery worker: sends events to webhooks.
#[derive(Debug, Clone)]
pub struct PushDispatcher {
    to: PushServices,
    policy: Arc<Policy>,
    brake: Arc<BrakeView>,
    limits: Limits,
    hosts: Arc<UnconnectedHosts>,
}

/// How the work under one lease ended.
enum DispatchEnd {
    /// The worker dropped the lease and stored this push config.
    Released(Box<PushRecord>),
    /// The worker lost the lease, or does not know whether it holds it.
    LeaseLost,
    /// The webhook is paused or given up, or another worker holds the lease. A push queue
    /// message arrives when a pause is over. Or it is braked: the sweep sends the message again.
    Nothing,
    /// The time of the invocation is up; the worker holds no lease.
    OutOfTime,
}

impl PushDispatcher {
    /// A worker that uses these services.
    #[must_use]
    pub fn new(to: PushServices, policy: Policy) -> Self {
        Self {
            brake: Arc::new(BrakeView::new(to.deliveries.brakes())),
            limits: to.deliveries.limits(),
            to,
            policy: Arc::new(policy),
            hosts: Arc::default(),
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
        let now = self.to.clock.now();
        let (brake, candidate) = futures::join!(self.brake.read(now), self.find(item));
        let mut candidate = (brake?, candidate?).1;
        let mut went = false;
        loop {
            let now = self.to.clock.now();
            // A live lease or a pause: rule 2 above.
            let delivery = candidate.as_ref().map(|push| &push.delivery);
            if delivery.is_some_and(|delivery| delivery.is_busy(now)) {
                return Ok(());
            }
            // Without a push config only the state of the task is needed, not its events.
            let cursor = delivery.map_or(u64::MAX, |delivery| delivery.cursor);
            let deliveries = &self.to.deliveries;
            let log = deliveries
                .tail(&item.owner, &item.task, cursor, now)
                .await?;
            let Some(log) = log.filter(|log| log.incarnation == item.incarnation) else {
                return Ok(());
            };
            // It is no attempt. When the brake is lifted, the sweep sends the message again.
            if self.is_braked(item, &log).await? {
                return Ok(());
            }
            let Some(push) = candidate.take_if(|_| !log.events.is_empty()) else {
                // If this push config was removed, the task may have waited only for it.
                // A message that finds no new event costs no write.
                if went || candidate.is_none() {
                    self.confirm_delivered(item, &log).await?;
                }
                return Ok(());
            };
            went = true;
            candidate = match self.dispatch(item, push, &log, deadline).await? {
                DispatchEnd::Released(push) => Some(*push),
                DispatchEnd::LeaseLost => self.find(item).await?,
                // Another invocation continues immediately.
                DispatchEnd::OutOfTime => return self.requeue(item, Duration::ZERO).await,
                DispatchEnd::Nothing => return Ok(()),
            };
        }
    }

    /// Reads the push config that a message names; `None` if there is none.
    async fn find(&self, item: &PushItem) -> Result<Option<PushRecord>, EngineError> {
        let pushes = self.to.deliveries.pushes(&item.owner, &item.task).await?;
        Ok(pushes.into_iter().find(|push| {
            push.registration.id == item.config && push.incarnation == item.incarnation
        }))
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
        let mut lease = lease(&holder, self.to.clock.now(), deadline);
        if let Some(end) = self.take_lease(&push, &lease).await? {
            return Ok(end);
        }
        let events = log.events.len();
        let mut grant = match self.ask_host(&mut push, events).await? {
            Ok(grant) => grant,
            Err(wait) => return self.set_aside(item, push, &holder, log, wait).await,
        };
        // A webhook of 0.3 or 0.1 gets the task, so its content is read.
        let record = match push.registration.generation {
            Generation::V10 => None,
            Generation::V03 | Generation::V01 => self.with_content(item).await?,
        };
        for (index, event) in log.events.iter().enumerate().take(grant.requests) {
            let within = pacing::attempt(&push.delivery);
            let is_braked = self.is_braked(item, log).await?;
            if is_braked || lease.until.since(self.to.clock.now()) < within + NOTING {
                push.delivery.lease = None;
                let is_stored = self.store_progress(&push, &holder).await?;
                return Ok(match is_stored {
                    true if is_braked => DispatchEnd::Nothing,
                    true => DispatchEnd::OutOfTime,
                    false => DispatchEnd::LeaseLost,
                });
            }
            let so_far = log.events.get(..=index).unwrap_or_default();
            let frame = payload::frame(&push, log, record.as_ref(), so_far, event);
            let result = self.send_events(&push, event.id, frame, within).await;
            let pause = match &result {
                Ok(took) => {
                    self.note_accepted(&mut grant).await?;
                    push.delivery = Delivery {
                        took: *took,
                        ..Delivery::after(event.seq)
                    };
                    pacing::pause(*took)
                }
                Err(why) => {
                    let wait = self.note_refusal(&grant, why).await?;
                    Some(wait.max(self.count_failure(&mut push, why)))
                }
            };
            if let Some(wait) = pause {
                return self.set_aside(item, push, &holder, log, wait).await;
            }
            let now = self.to.clock.now();
            let continues = index + 1 < events.min(grant.requests) && now < grant.until;
            lease = self::lease(&holder, now, deadline);
            push.delivery.lease = continues.then(|| lease.clone());
            if !self.store_progress(&push, &holder).await? {
                return Ok(DispatchEnd::LeaseLost);
            }
            if !continues {
                break;
            }
        }
        Ok(DispatchEnd::Released(Box::new(push)))
    }

    /// Whether nothing of the task may be delivered now.
    async fn is_braked(&self, item: &PushItem, log: &Tail) -> Result<bool, EngineError> {
        let brake = self.brake.read(self.to.clock.now()).await?;
        let skill = log.skill.as_ref().map(SkillId::as_str);
        Ok(brake.refusal(&item.owner.tenant, skill).is_some())
    }

    /// Drops the lease, and sends a message for the time after `wait`.
    async fn set_aside(
        &self,
        item: &PushItem,
        mut push: PushRecord,
        holder: &WriteId,
        log: &Tail,
        wait: Duration,
    ) -> Result<DispatchEnd, EngineError> {
        // The earliest time at which the next message arrives. It is sent before the pause is
        // stored: a worker that reads the pause may rely on a later message.
        let retry_at = self.to.clock.now().plus(wait);
        push.delivery.retry_at = retry_at.minus(pacing::SKEW);
        if push.delivery.attempts < ATTEMPTS {
            self.requeue(item, wait).await?;
        }
        push.delivery.lease = None;
        if !self.store_progress(&push, holder).await? {
            return Ok(DispatchEnd::LeaseLost);
        }
        if push.delivery.attempts >= ATTEMPTS {
            self.confirm_delivered(item, log).await?;
            return Ok(DispatchEnd::Nothing);
        }
        // A message that has already arrived found the lease and was deleted.
        Ok(match self.to.clock.now() < retry_at {
            true => DispatchEnd::Nothing,
            false => DispatchEnd::Released(Box::new(push)),
        })
    }

    /// Takes the lease; otherwise returns how the dispatch ends.
    async fn take_lease(
        &self,
        push: &PushRecord,
        lease: &PushLease,
    ) -> Result<Option<DispatchEnd>, EngineError> {
        let now = self.to.clock.now();
        // No call starts that could outlast the lease: another worker would call too.
        if lease.until.since(now) < pacing::attempt(&push.delivery) + NOTING {
            return Ok(Some(DispatchEnd::OutOfTime));
        }
        let is_ours = self.to.deliveries.lease_push(push, lease, now).await?;
        Ok((!is_ours).then_some(DispatchEnd::Nothing))
    }

    /// Counts and logs a failure; returns how long the webhook is paused.
    fn count_failure(&self, push: &mut PushRecord, why: &PushDeliveryError) -> Duration {
        let attempts = push.delivery.attempts.saturating_add(1);
        push.delivery.attempts = attempts;
        let (task, config) = (&push.task, &push.registration.id);
        let trace = push.registration.trace_parent.as_deref();
        let trace_id = trace.and_then(TraceContext::parse).map(|it| it.trace_id());
        let trace_id = trace_id.as_deref();
        if attempts >= ATTEMPTS {
            events::gave_up(task.as_str(), config.as_str(), trace_id, &why.to_string());
        } else {
            tracing::warn!(
                trace_id,
                a2a.task = %task,
                a2a.push_config = %config,
                push.attempts = attempts,
                "a push delivery of task `{task}` failed: {why}"
            );
        }
        pacing::back_off(attempts, self.to.ids.next())
    }

    /// Stores cursor, attempts and lease; `false` if the lease is lost.
    async fn store_progress(
        &self,
        push: &PushRecord,
        holder: &WriteId,
    ) -> Result<bool, EngineError> {
        let deliveries = &self.to.deliveries;
        let write = deliveries.note_delivery(push, holder, &push.delivery);
        Ok(write.await?)
    }

    /// Sends a push queue message for the same push config, to be received after `wait`.
    async fn requeue(&self, item: &PushItem, wait: Duration) -> Result<(), EngineError> {
        match self.to.queue.send(std::slice::from_ref(item), wait).await?[..] {
            [true] => Ok(()),
            _ => Err(
                StoreError::Unavailable("the push queue did not accept a message".to_owned())
                    .into(),
            ),
        }
    }

    /// The task with its content; `None` if it is gone or this function cannot read all
    /// of it.
    async fn with_content(&self, item: &PushItem) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.to.clock.now();
        match self.to.deliveries.load(&item.owner, &item.task, now).await {
            Ok(record) => Ok(record.filter(|record| record.incarnation == item.incarnation)),
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
        let registration = &push.registration;
        // The policy may be stricter than at the registration, so the URL is checked
        // again.
        let url = OutboundUrl::parse(&registration.url, self.policy.reach)?;
        let (token, credentials) = self.secrets_of(push).await?;
        let began = self.to.clock.now();
        let delivery = PushDelivery {
            url,
            generation: registration.generation,
            owner: push.owner.clone(),
            task: push.task.clone(),
            incarnation: push.incarnation.clone(),
            id,
            at: began,
            signs: registration.signs,
            scheme: registration.schemes.first().cloned(),
            credentials,
            token,
            trace: trace_of(push, id),
            frame,
        };
        tokio::select! {
            // Without `biased` the order is random, and the simulation could not replay a
            // run.
            biased;
            result = self.to.webhooks.post(&delivery) => result?,
            () = self.to.clock.sleep_until(began.plus(within)) => {
                return Err(PushDeliveryError::NoResponse(format!("no answer within {within:?}")));
            }
        }
        Ok(self.to.clock.now().since(began))
    }

    /// The token and the credentials of a push config. A config without secrets needs no key.
    async fn secrets_of(
        &self,
        push: &PushRecord,
    ) -> Result<(Option<Secret>, Option<Secret>), PushDeliveryError> {
        let registration = &push.registration;
        let credentials = registration.credentials.as_ref();
        let Some(ciphertext) = registration.token.as_ref().or(credentials) else {
            return Ok((None, None));
        };
        let keys = self.policy.secrets.keys_of(Some(ciphertext.as_str())).await;
        let keys = keys.map_err(|error| PushDeliveryError::NoKeys(error.to_string()))?;
        open_secrets(&keys, push).ok_or(PushDeliveryError::Sealed)
    }

    /// Removes a task at rest from the index of the sweep, if no push config has events
    /// to get.
    async fn confirm_delivered(&self, item: &PushItem, log: &Tail) -> Result<(), EngineError> {
        if !log.state.is_at_rest() {
            return Ok(());
        }
        let (now, deliveries) = (self.to.clock.now(), &self.to.deliveries);
        if let Some(head) = deliveries.head(&item.owner, &item.task, now).await? {
            find_undelivered(deliveries, &head).await?;
        }
        Ok(())
    }
}

/// The trace of a push config, in the span of the delivery of this event.
fn trace_of(push: &PushRecord, id: EventId) -> Option<TraceContext> {
    let trace = TraceContext::parse(push.registration.trace_parent.as_deref()?)?;
    let (event, attempt) = (id.to_string(), push.delivery.attempts.to_string());
    Some(trace.child(&["push", push.registration.id.as_str(), &event, &attempt]))
}

/// A lease from `now` on, of an invocation that ends at `deadline`.
fn lease(holder: &WriteId, now: Timestamp, deadline: Option<Timestamp>) -> PushLease {
    let until = now.plus(LEASE);
    PushLease {
        holder: holder.clone(),
        until: deadline.map_or(until, |end| end.min(until)),
    }
}

#[cfg(test)]
mod tests;
