//! The part of the engine that reads; the others have it too.

use super::brake::BrakeView;
use super::lots::TokenCache;
use super::policy::Policy;
use crate::clock::{Clock, Ids, RandomIds};
use crate::store::ReadBlobs;
use crate::store::limits::Limits;
use crate::store::records::RecordReader;
use std::sync::Arc;

/// The read-only methods; the function `tasks-get` has only these.
#[derive(Clone)]
pub struct Reader {
    pub(crate) records: RecordReader,
    pub(crate) blobs: Arc<dyn ReadBlobs>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: Arc<Policy>,
    /// The response budget in bytes: `Policy::response_max`, or a share of it.
    pub(crate) answer_max: usize,
    /// Whether tasks have push configs.
    pub(crate) push: bool,
    /// Counts what a tenant uses; `None` when there are no limits.
    pub(crate) limits: Option<Limits>,
    /// The tokens that this process has taken; all copies of the reader share them.
    pub(super) lots: Arc<TokenCache>,
    /// What this process knows of the brake; `None` when nobody can brake it.
    pub(super) brake: Option<Arc<BrakeView>>,
    /// Makes the ids of the holders of slots.
    pub(super) ids: Arc<dyn Ids>,
}

impl Reader {
    /// Creates a reader over these services.
    #[must_use]
    pub fn new(
        records: RecordReader,
        blobs: Arc<dyn ReadBlobs>,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        Self {
            records,
            blobs,
            clock,
            answer_max: policy.response_max,
            policy: Arc::new(policy),
            push: false,
            limits: None,
            lots: Arc::default(),
            brake: None,
            ids: Arc::new(RandomIds),
        }
    }

    /// The same reader with at most `bytes` as its response budget.
    #[must_use]
    pub(crate) fn with_budget(mut self, bytes: usize) -> Self {
        self.answer_max = self.answer_max.min(bytes);
        self
    }
}
