//! The documents of a tenant outside of a turn.

use crate::engine::{Clock as _, Ids as _, RandomIds, SystemClock};
use crate::store::StoreError;
use crate::store::documents::Documents;
use crate::store::table::Table;
use crate::task::{TenantId, Timestamp, WriteId};
use a2a_lambda_skill::turn_host::DocumentHost;
use a2a_lambda_skill::{AgentError, AgentResult, TenantDocuments};
use futures::future::BoxFuture;
use std::sync::Arc;

struct TableDocuments(Documents);

/// The documents of `tenant` in a table.
#[must_use]
pub fn tenant_documents(table: Arc<dyn Table>, tenant: TenantId) -> TenantDocuments {
    let host = TableDocuments(Documents::new(table));
    TenantDocuments::new(Arc::new(host), tenant)
}

impl DocumentHost for TableDocuments {
    fn documents(&self) -> AgentResult<Documents> {
        Ok(self.0.clone())
    }

    fn write_stamp(&self) -> (Timestamp, WriteId) {
        (SystemClock.now(), WriteId::made_of(RandomIds.next()))
    }

    fn store_failed(&self, error: StoreError) -> BoxFuture<'_, AgentError> {
        Box::pin(std::future::ready(error.into()))
    }
}
