//! Webhooks: registration, delivery, and the receiving end.

use crate::clients::{Endpoint, Letter, policy};
use crate::hub::{Fate, Hub};
use crate::mutant::Mutant;
use crate::queue::SimQueue;
use a2a_lambda::engine::{PushDelivery, PushDeliveryError, PushDispatcher, PushServices, SendPush};
use a2a_lambda::store::queue::Ack;
use a2a_lambda::task::{Frame, Generation, PushId, PushOffer, Timestamp};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// The prefix of every webhook's URL; the webhook's name follows.
const HOOKS: &str = "https://hooks.example/";
/// How many milliseconds a slow webhook takes.
const SLOW: i64 = 4_000;

impl Endpoint {
    /// The push config of a letter, in a history with webhooks.
    pub(crate) fn hook(&self, letter: &Letter) -> Option<PushOffer> {
        let mut world = self.hub.world();
        if !world.features.hooks || letter.key.is_some() || world.chance.below(2) == 0 {
            return None;
        }
        world.ids += 1;
        let name = format!("hook-{}", world.ids);
        Some(PushOffer {
            signs: false,
            at: String::new(),
            id: PushId::parse(name.clone()).ok(),
            url: format!("{HOOKS}{name}"),
            token: None,
            schemes: Vec::new(),
            credentials: None,
            generation: Generation::V10,
        })
    }

    /// A push delivery worker receives a push queue message.
    pub(crate) async fn bring(self, number: u64, deadline: Option<Timestamp>) {
        let deadline = self.local(deadline);
        let received = {
            let mut world = self.hub.world();
            let now = world.now;
            let push_messages = &mut world.messages.push_messages;
            // A queue that shows one message to two receivers may lose it with them; then the
            // sweep sends a new one.
            let free = push_messages.visible(now).contains(&number);
            free.then(|| push_messages.receive(number, now)).flatten()
        };
        let Some((item, receipt, _)) = received else {
            return;
        };
        if self.hub.world().is(Mutant::PushMessageEarlyDelete) {
            self.hub
                .world()
                .messages
                .push_messages
                .delete(number, receipt);
        }
        let dispatcher = PushDispatcher::new(
            PushServices {
                deliveries: self.deliveries(),
                queue: Arc::new(SimQueue(Arc::clone(&self.hub))),
                webhooks: Arc::new(SimHooks(Arc::clone(&self.hub))),
                clock: self.clock(),
                ids: self.hub.clone(),
            },
            policy(None),
        );
        let ack = dispatcher.deliver(&item, deadline).await;
        self.hub.pause().await;
        let mut world = self.hub.world();
        world
            .oracle
            .note(|| format!("push delivery: {ack:?} message {number}"));
        if ack == Ack::Delete {
            world.messages.push_messages.delete(number, receipt);
        }
    }
}

/// The receiving end of all webhooks.
struct SimHooks(Arc<Hub>);

#[async_trait]
impl SendPush for SimHooks {
    async fn post(&self, notice: &PushDelivery) -> Result<(), PushDeliveryError> {
        self.0.pause().await;
        let (fate, slow) = {
            let mut world = self.0.world();
            let slow = world.faulty && world.chance.below(20) == 0;
            (world.fate(), slow.then_some(world.now + SLOW))
        };
        if let Some(until) = slow {
            self.0.sleep_until(until).await;
        }
        if fate != Fate::Refused
            && let Frame::Event { task_id, event, .. } = &notice.frame
        {
            let hook = notice.url.as_str().trim_start_matches(HOOKS);
            self.0.world().oracle.brought(hook, task_id, event);
        }
        self.0.pause().await;
        match fate {
            Fate::Fine | Fate::Twice => Ok(()),
            Fate::Refused => Err(PushDeliveryError::Status(503)),
            Fate::Unheard => Err(PushDeliveryError::NoResponse("simulated".to_owned())),
        }
    }
}

/// The time after which the platform ends a push delivery worker.
pub(crate) const BRINGS: Duration = Duration::from_secs(60);
