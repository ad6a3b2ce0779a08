//! Names what the push delivery worker needs.

use super::send_push::SendPush;
use crate::engine::{Clock, Ids};
use crate::store::ReadTasks;
use crate::store::push::DeliverPushes;
use crate::store::queue::PushQueue;
use std::sync::Arc;

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

impl std::fmt::Debug for PushServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}
