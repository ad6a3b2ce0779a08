//! The contract of what is stored over a table: the cases that pass on every table.
//!
//! `table_contract_cases!` lists them, so that each can be a test of its own. A case panics
//! where the contract is broken. Every case uses tenants of its own, so that the suite can run
//! against a table in use. Its clock is in the year 2100, so that no TTL deletion interferes.

mod api_keys;
mod counters;
mod documents;
mod limits;
mod watched;

pub use self::api_keys::*;
pub use self::counters::*;
pub use self::documents::*;
pub use self::limits::*;
pub use self::watched::{Fault, WatchedTable};
pub use a2a_lambda_model::store::contract::{Broken, World};

use crate::api_keys::ApiKeys;
use crate::counters::Counters;
use crate::documents::Documents;
use crate::limits::Limits;
use crate::table::Table;
use std::sync::Arc;

/// A table under test, and the names and times of one case.
#[derive(Debug)]
pub struct Case {
    table: Arc<dyn Table>,
    world: World,
}

impl Case {
    /// The case `name` on `table`; `run` separates the runs against one table.
    ///
    /// # Errors
    /// [`Broken::Id`], never.
    pub fn new(table: Arc<dyn Table>, run: u128, name: &str) -> Result<Self, Broken> {
        let world = World::new(run, name)?;
        Ok(Self { table, world })
    }

    fn api_keys(&self) -> ApiKeys {
        ApiKeys::new(self.table.clone())
    }

    fn counters(&self) -> Counters {
        Counters::new(self.table.clone())
    }

    fn documents(&self) -> Documents {
        Documents::new(self.table.clone())
    }

    fn limits(&self) -> Limits {
        Limits::new(self.table.clone())
    }
}

/// Calls the macro `$run` with the name of every case of the suite.
#[macro_export]
macro_rules! table_contract_cases {
    ($run:ident) => {
        $run! {
            an_api_key_reads_back_until_it_is_withdrawn
            the_first_check_of_keys_stays
            counters_of_many_processes_add_up
            a_document_reads_back_until_it_is_removed
            one_of_two_writers_of_a_document_wins
            an_expired_document_is_gone
            pages_of_documents_join_to_the_collection
            collections_of_documents_are_apart
            a_bucket_gives_its_burst_and_then_its_rate
            buckets_do_not_share_tokens
            concurrent_takers_share_a_bucket
            a_raised_rate_does_not_wait_for_the_old_one
            a_pool_leases_its_cap_and_forgets_ended_leases
            concurrent_streams_never_exceed_the_cap
            a_total_never_exceeds_its_limit
            a_blocked_tenant_gets_nothing_until_its_block_ends
        }
    };
}
