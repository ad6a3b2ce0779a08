//! What a set of skills keeps for a tenant, written into a folder for an operator.

use super::RUNS_TURNS;
use super::documents::Collection;
use super::turn_host::DocumentHost;
use super::{AgentBuildError, AgentResult};
use a2a_lambda_model::task::TenantId;
use a2a_lambda_store::documents::DocumentOwner;
use futures::future::BoxFuture;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The documents that the skills of a tenant share, for a program of an operator: what
/// [`TaskContext::documents`](super::TaskContext::documents) is in a turn.
#[derive(Debug, Clone)]
pub struct TenantDocuments {
    host: Arc<dyn DocumentHost>,
    tenant: TenantId,
}

impl TenantDocuments {
    /// The documents of `tenant`.
    #[must_use]
    pub fn new(host: Arc<dyn DocumentHost>, tenant: TenantId) -> Self {
        Self { host, tenant }
    }

    /// Their tenant.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The documents `name`.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a name with `#`, with a control character, or above 512 bytes.
    pub fn documents(&self, name: &str) -> AgentResult<Collection<'_>> {
        let owner = DocumentOwner::Tenant(self.tenant.clone());
        Collection::of(&*self.host, owner, name)
    }
}

pub(super) type Exporting<'a> = BoxFuture<'a, Result<String, AgentBuildError>>;
type ExportFn = dyn for<'a> Fn(&'a TenantDocuments, &'a Path) -> Exporting<'a> + Send + Sync;

/// The export of a set: see [`SkillSet::export`](super::SkillSet::export).
#[derive(Clone)]
pub struct SetExport {
    about: &'static str,
    write: Arc<ExportFn>,
}

impl SetExport {
    /// The export, if this build runs skills, as the local program does.
    pub(super) fn new<F>(about: &'static str, write: F) -> Option<Self>
    where
        F: for<'a> Fn(&'a TenantDocuments, &'a Path) -> Exporting<'a> + Send + Sync + 'static,
    {
        RUNS_TURNS.then(|| Self {
            about,
            write: Arc::new(write),
        })
    }

    /// What it writes, as the help of its command says it.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.about
    }

    /// Writes into the folder. Returns what to print.
    ///
    /// # Errors
    /// The error of the set.
    pub async fn write(
        &self,
        documents: &TenantDocuments,
        folder: &Path,
    ) -> Result<String, AgentBuildError> {
        (self.write)(documents, folder).await
    }
}

impl fmt::Debug for SetExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetExport")
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}
