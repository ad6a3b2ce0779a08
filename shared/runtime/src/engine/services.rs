//! What the engine uses of the world.

use super::turn::ReportFailure;
use super::turn::output_rules::ReportFault;
use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::store::Blobs;
use crate::store::brake::Brakes;
use crate::store::documents::Documents;
use crate::store::limits::Limits;
use crate::store::records::Records;
use a2a_lambda_skill::RecordTrace;
use a2a_lambda_skill::model::Model;
use a2a_lambda_skill::route::RouterModel;
use std::sync::Arc;

/// The services that an [`Engine`](super::Engine) uses.
#[derive(Clone)]
pub struct Services {
    /// Tasks, threads and push configs.
    pub records: Records,
    /// Files. The records keep their large values there too.
    pub blobs: Arc<dyn Blobs>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random ids.
    pub ids: Arc<dyn Ids>,
    /// The model that skills can call, if there is one.
    pub model: Option<Arc<dyn Model>>,
    /// The model that chooses a skill for a message that does not name one, if there is one.
    pub router: Option<Arc<RouterModel>>,
    /// What skills keep beside their tasks.
    pub documents: Option<Documents>,
    /// Counts what [`Policy::limits`](super::Policy::limits) allows; `None` when there are no limits.
    pub limits: Option<Limits>,
    /// What operators have stopped; `None` when nobody can brake the engine.
    pub brakes: Option<Brakes>,
    /// Whether tasks have push configs.
    pub push: bool,
    /// Records what turns do, for the author of the agent. Deployed functions have none.
    pub recorder: Option<Arc<dyn RecordTrace>>,
    /// Gets the error of each turn that fails, for the tests of skills.
    pub failures: Option<ReportFailure>,
    /// Gets each fault in the output of a skill, for the tests of skills.
    pub output_faults: Option<ReportFault>,
}

impl Services {
    /// The services of an engine over these stores, with the clock of the system, and without
    /// those that an engine may lack.
    #[must_use]
    pub fn new(records: Records, blobs: Arc<dyn Blobs>) -> Self {
        Self {
            records,
            blobs,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            model: None,
            router: None,
            documents: None,
            limits: None,
            brakes: None,
            push: false,
            recorder: None,
            failures: None,
            output_faults: None,
        }
    }
}
