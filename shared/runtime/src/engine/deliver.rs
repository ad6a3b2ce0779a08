//! Telling webhooks what happens: the step behind the queue of deliveries.
//!
//! A message says that a webhook may have something to get; the task's log and
//! the webhook's cursor say what. Each event is sent once the one before it has
//! been taken, and the cursor moves after the answer, so an event may come
//! twice and never out of order. Its id is the id of the delivery.

use super::again::QUEUED;
use super::push::{Opened, open_secrets};
use super::seal::Sealer;
use super::subscribe::status_as_of;
use super::{Clock, EngineError, Policy};
use crate::outbound::{OutboundUrl, UrlFault};
use crate::store::push::DeliverPushes;
use crate::store::queue::{Ack, PushItem, PushQueue, Receipt, TaskImage};
use crate::store::{ReadTasks, StoreError, Tail};
use crate::task::names::TRUNCATED;
use crate::task::{
    Event, EventId, Frame, Generation, LoggedEvent, Metadata, Part, PartContent, PushRecord,
    Secret, Status, Task, TaskRecord, TaskState, Timestamp,
};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// After this many attempts without success a webhook is given up. With the
/// waits between them that is four hours.
pub(super) const ATTEMPTS: u32 = 24;
/// The wait after the first failure; doubled at each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(900);
/// Time that has to be left for one more delivery.
const ONE_MORE: Duration = Duration::from_secs(15);
/// For how long a message is hidden while its deliveries run.
const WORKING: Duration = Duration::from_secs(90);
/// Messages of history in a task that is pushed.
const HISTORY: usize = 100;

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

/// Brings events to webhooks.
#[derive(Clone)]
pub struct Courier {
    tasks: Arc<dyn ReadTasks>,
    pushes: Arc<dyn DeliverPushes>,
    webhooks: Arc<dyn Webhooks>,
    clock: Arc<dyn Clock>,
    policy: Arc<Policy>,
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
        let Some(seq) = image.notify else { continue };
        for config in &image.listeners {
            asking.push(index);
            items.push(PushItem {
                owner: image.owner.clone(),
                task: image.task.clone(),
                config: config.clone(),
                seq,
            });
        }
    }
    if items.is_empty() {
        return Vec::new();
    }
    let taken = match queue.send_pushes(&items).await {
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
    /// A courier between the stores of the tasks and `webhooks`.
    #[must_use]
    pub fn new(
        tasks: Arc<dyn ReadTasks>,
        pushes: Arc<dyn DeliverPushes>,
        webhooks: Arc<dyn Webhooks>,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        Self {
            tasks,
            pushes,
            webhooks,
            clock,
            policy: Arc::new(policy),
        }
    }

    /// Sends a webhook what it has not got, and says what becomes of the
    /// message. `deadline` is the end of the invocation, if it has one.
    pub async fn deliver(
        &self,
        item: &PushItem,
        receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Ack {
        match Box::pin(self.try_deliver(item, receipt, deadline)).await {
            Ok(ack) => ack,
            Err(error) => {
                error.log();
                Ack::Keep
            }
        }
    }

    async fn try_deliver(
        &self,
        item: &PushItem,
        receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Result<Ack, EngineError> {
        receipt.hide(WORKING).await?;
        let now = self.clock.now();
        // Its place in the log, without its content: that may be in the bucket,
        // which this function cannot read.
        let found = self.tasks.tail(&item.owner, &item.task, u64::MAX, now);
        let Some(task) = found.await? else {
            return Ok(Ack::Delete);
        };
        let pushes = self.pushes.pushes(&item.owner, &item.task).await?;
        let found = pushes
            .into_iter()
            .find(|push| push.listener.id == item.config && push.incarnation == task.incarnation);
        let Some(mut push) = found else {
            // It was removed; the others may be all that was waited for.
            self.settle(item, &task).await?;
            return Ok(Ack::Delete);
        };
        let events = self.events_after(item, &task, push.cursor).await?;
        let whole = match push.listener.generation {
            Generation::V10 => None,
            Generation::V03 | Generation::V01 if events.is_empty() => None,
            Generation::V03 | Generation::V01 => self.whole(item).await?,
        };
        for (place, event) in events.iter().enumerate() {
            if self.is_late(deadline) {
                receipt.hide(Duration::ZERO).await?;
                return Ok(Ack::Keep);
            }
            let so_far = events.get(..=place).unwrap_or_default();
            let frame = frame(&push, &task, whole.as_ref(), so_far, event);
            if let Err(why) = self.tell(&push, event.id, frame).await {
                return self.failed(item, &task, &push, receipt, &why).await;
            }
            let clean_at = self.clock.now().plus(self.policy.task_ttl * 2);
            if !self.pushes.advance_push(&push, event.seq, clean_at).await? {
                // It is gone, was registered anew, or somebody else is further.
                receipt.hide(Duration::ZERO).await?;
                return Ok(Ack::Keep);
            }
            (push.cursor, push.attempts) = (event.seq, 0);
        }
        self.settle(item, &task).await?;
        Ok(Ack::Delete)
    }

    /// The task with its content; `None` if some of it is out of reach here.
    async fn whole(&self, item: &PushItem) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.clock.now();
        match self.tasks.load(&item.owner, &item.task, now).await {
            Ok(found) => Ok(found),
            Err(StoreError::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The events of this very task after number `cursor`.
    async fn events_after(
        &self,
        item: &PushItem,
        task: &Tail,
        cursor: u64,
    ) -> Result<Vec<LoggedEvent>, EngineError> {
        if task.last_seq <= cursor {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let found = self
            .tasks
            .tail(&item.owner, &item.task, cursor, now)
            .await?;
        Ok(found
            .filter(|tail| tail.incarnation == task.incarnation)
            .map(|tail| tail.events)
            .unwrap_or_default())
    }

    fn is_late(&self, deadline: Option<Timestamp>) -> bool {
        deadline.is_some_and(|end| end.since(self.clock.now()) < ONE_MORE)
    }

    async fn tell(&self, push: &PushRecord, id: EventId, frame: Frame) -> Result<(), NoticeError> {
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
        self.webhooks.post(&notice).await
    }

    /// Notes a failure; the message comes again after a while, until the
    /// webhook is given up.
    async fn failed(
        &self,
        item: &PushItem,
        state: &Tail,
        push: &PushRecord,
        receipt: &dyn Receipt,
        why: &NoticeError,
    ) -> Result<Ack, EngineError> {
        let (task, config) = (&push.task, &push.listener.id);
        let wait = back_off(push.attempts);
        let retry_at = self.clock.now().plus(wait);
        self.pushes.attempt_push(push, retry_at).await?;
        if push.attempts.saturating_add(1) >= ATTEMPTS {
            tracing::error!(
                task.id = %task,
                push.config = %config,
                "gave up the webhook `{config}` of task `{task}`: {why}"
            );
            self.settle(item, state).await?;
            return Ok(Ack::Delete);
        }
        tracing::warn!(
            task.id = %task,
            push.config = %config,
            push.attempts = push.attempts + 1,
            "a delivery of task `{task}` failed: {why}"
        );
        receipt.hide(wait).await?;
        Ok(Ack::Keep)
    }

    /// Takes a task at rest off the sweep's index once nobody waits to hear
    /// of it. Where this function cannot read all of the task, a sweep does it.
    async fn settle(&self, item: &PushItem, task: &Tail) -> Result<(), EngineError> {
        if !task.state.is_at_rest() {
            return Ok(());
        }
        match self.whole(item).await? {
            Some(record) => settle(&*self.pushes, &record).await,
            None => Ok(()),
        }
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
            && push.cursor < record.last_seq
            && push.attempts < ATTEMPTS
    });
    Ok(found)
}

/// Asks for the deliveries of a task at rest again, if nobody seems to be at
/// it; gives how many. What is asked for too often is given up.
pub(super) async fn push_again(
    pushes: &dyn DeliverPushes,
    queue: &dyn PushQueue,
    record: &TaskRecord,
    now: Timestamp,
) -> Result<usize, EngineError> {
    let mut items = Vec::new();
    for push in waiting(pushes, record).await? {
        let left_alone_until = record.updated_at.max(push.retry_at).plus(QUEUED);
        if left_alone_until > now {
            continue;
        }
        let retry_at = now.plus(back_off(push.attempts));
        if pushes.attempt_push(&push, retry_at).await? {
            items.push(PushItem {
                owner: push.owner,
                task: push.task,
                config: push.listener.id,
                seq: record.last_seq,
            });
        }
    }
    if !items.is_empty() {
        queue.send_pushes(&items).await?;
    }
    settle(pushes, record).await?;
    Ok(items.len())
}

/// How long to wait after the attempt that follows `attempts` others.
fn back_off(attempts: u32) -> Duration {
    (FIRST_WAIT * 2_u32.saturating_pow(attempts.min(16))).min(LONGEST_WAIT)
}

/// What a webhook is told of an event: the event itself in 1.0, the task with
/// its status as of the event in the generations before. `events` are those
/// since the last delivery, this one included.
fn frame(
    push: &PushRecord,
    task: &Tail,
    whole: Option<&TaskRecord>,
    events: &[LoggedEvent],
    event: &LoggedEvent,
) -> Frame {
    if push.listener.generation == Generation::V10 {
        let mut event = event.clone();
        match &mut event.event {
            Event::Status(update) => {
                let message = update.status.message.iter_mut();
                message.for_each(|message| message.parts.iter_mut().for_each(leave_out));
            }
            Event::Artifact(update) => update.artifact.parts.iter_mut().for_each(leave_out),
        }
        return Frame::Event {
            task_id: push.task.clone(),
            context_id: task.context_id.clone(),
            last: task.state.is_terminal() && event.seq == task.last_seq,
            event,
        };
    }
    let mut shown = match whole {
        Some(record) => Task {
            status: status_as_of(record, event.seq),
            ..record.view(HISTORY, true)
        },
        None => status_only(push, task, events),
    };
    shown.last_event = Some(event.id);
    let messages = shown.history.iter_mut().flatten();
    let messages = messages.chain(&mut shown.status.message);
    let said = messages.flat_map(|message| message.parts.iter_mut());
    let artifacts = shown.artifacts.iter_mut().flatten();
    let made = artifacts.flat_map(|artifact| artifact.parts.iter_mut());
    said.chain(made).for_each(leave_out);
    Frame::Task(Box::new(shown))
}

/// A task whose content is out of reach here: where it stands, and that there
/// is more.
fn status_only(push: &PushRecord, task: &Tail, events: &[LoggedEvent]) -> Task {
    let status = events.iter().rev().find_map(|event| match &event.event {
        Event::Status(update) => Some(update.status.clone()),
        Event::Artifact(_) => None,
    });
    Task {
        id: push.task.clone(),
        context_id: task.context_id.clone(),
        generation: push.listener.generation,
        status: status.unwrap_or(Status {
            state: TaskState::Working,
            message: None,
            timestamp: push.created_at,
        }),
        artifacts: None,
        history: None,
        metadata: Metadata::from_iter([(TRUNCATED.to_owned(), Value::Bool(true))]),
        transitions: Vec::new(),
        last_event: None,
    }
}

/// Bytes that are kept apart are not pushed: the part names them by their hash,
/// and the client reads the task for them.
fn leave_out(part: &mut Part) {
    if let PartContent::Stored(blob) = &part.content {
        part.content = PartContent::Url(format!("urn:sha256:{}", blob.sha256));
        part.metadata
            .insert(TRUNCATED.to_owned(), Value::Bool(true));
    }
}

impl std::fmt::Debug for Courier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Courier").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
