//! The documents of a tenant outside of a turn.

use crate::engine::{Clock as _, Ids as _, RandomIds, SystemClock};
use crate::store::StoreError;
use crate::store::documents::{DocumentCollection, DocumentOwner, Documents};
use crate::store::table::Table;
use crate::task::{TenantId, Timestamp, WriteId};
use a2a_lambda_skill::bad_name;
use a2a_lambda_skill::turn_host::DocumentHost;
use a2a_lambda_skill::{AgentError, AgentResult, Collection};
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// The documents that the skills of a tenant share, for a program of an operator: what
/// [`TaskContext::documents`](a2a_lambda_skill::TaskContext::documents) is in a turn.
#[derive(Clone)]
pub struct TenantDocuments {
    store: Documents,
    tenant: TenantId,
}

impl TenantDocuments {
    /// The documents of `tenant` in a table.
    #[must_use]
    pub fn new(table: Arc<dyn Table>, tenant: TenantId) -> Self {
        let store = Documents::new(table);
        Self { store, tenant }
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
        let collection = DocumentCollection::new(owner, name).map_err(bad_name)?;
        Ok(Collection::new(self, collection))
    }
}

impl DocumentHost for TenantDocuments {
    fn documents(&self) -> AgentResult<Documents> {
        Ok(self.store.clone())
    }

    fn write_stamp(&self) -> (Timestamp, WriteId) {
        (SystemClock.now(), WriteId::made_of(RandomIds.next()))
    }

    fn store_failed(&self, error: StoreError) -> BoxFuture<'_, AgentError> {
        Box::pin(std::future::ready(error.into()))
    }
}

impl fmt::Debug for TenantDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantDocuments")
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}
