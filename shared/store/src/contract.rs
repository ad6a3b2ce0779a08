//! The contract of what is stored over a table: the cases that pass on every table.
//!
//! `store_contract_cases!` lists those of tasks, threads, push configs and bytes, which take
//! [`Stores`], and `table_contract_cases!` the others, which take a [`Case`]. So each can be a
//! test of its own. A case panics where the contract is broken. Every case uses tenants of its
//! own, so that the suite can run against a table in use. Its clock is in the year 2100, so that
//! no TTL deletion interferes.

mod api_keys;
mod blobs;
mod brake;
mod clears;
mod commits;
mod contexts;
mod counters;
mod documents;
mod expiry;
mod keys;
mod leases;
mod limits;
mod lists;
mod open;
mod owners;
mod pieces;
mod pushes;
mod sample;
mod sizes;
mod threads;
mod watched;

pub use self::api_keys::*;
pub use self::blobs::*;
pub use self::brake::*;
pub use self::clears::*;
pub use self::commits::*;
pub use self::contexts::*;
pub use self::counters::*;
pub use self::documents::*;
pub use self::expiry::*;
pub use self::keys::*;
pub use self::leases::*;
pub use self::limits::*;
pub use self::lists::*;
pub use self::open::*;
pub use self::owners::*;
pub use self::pieces::*;
pub use self::pushes::*;
pub use self::sample::{Broken, SampleData, Stores};
pub use self::sizes::*;
pub use self::threads::*;
pub use self::watched::{Fault, WatchedTable};
pub use a2a_lambda_model::task::distinct::noise;

use crate::api_keys::ApiKeys;
use crate::brake::Brakes;
use crate::counters::Counters;
use crate::documents::Documents;
use crate::limits::Limits;
use crate::table::Table;
use std::sync::Arc;

/// A table under test, and the sample data of one case.
#[derive(Debug)]
pub struct Case {
    table: Arc<dyn Table>,
    sample: SampleData,
}

impl Case {
    /// The case `name` on `table`; `run` separates the runs against one table.
    ///
    /// # Errors
    /// [`Broken::Id`], never.
    pub fn new(table: Arc<dyn Table>, run: u128, name: &str) -> Result<Self, Broken> {
        let sample = SampleData::new(run, name)?;
        Ok(Self { table, sample })
    }

    fn api_keys(&self) -> ApiKeys {
        ApiKeys::new(self.table.clone())
    }

    fn brakes(&self) -> Brakes {
        Brakes::new(self.table.clone())
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
            a_day_counts_each_call_with_what_it_used
            concurrent_calls_never_exceed_a_day
            a_brake_is_in_force_until_it_is_lifted
        }
    };
}

/// Calls the macro `$run` with the name of every case over `Stores`.
#[macro_export]
macro_rules! store_contract_cases {
    ($run:ident) => {
        $run! {
            a_created_task_is_loaded_as_it_was_written
            an_unknown_task_is_not_found
            a_create_over_a_live_task_shows_that_task
            a_commit_needs_the_version_and_the_incarnation
            a_turn_of_an_earlier_task_changes_nothing_under_a_reused_id
            a_turn_stores_nothing_after_the_erasure_of_its_task_has_begun
            a_commit_to_an_absent_task_is_a_conflict
            a_write_without_an_id_is_refused
            a_repeated_write_is_done_once
            a_repeated_write_is_recognised_after_later_commits
            exactly_one_of_eight_concurrent_writes_wins
            a_finished_task_keeps_its_content
            a_task_at_rest_is_gone_from_its_expiry_on
            a_create_that_arrives_again_does_not_replace_its_own_expired_task
            a_create_takes_the_place_of_an_expired_task_only
            an_open_task_does_not_expire
            a_continued_task_does_not_expire
            items_beside_a_task_are_kept_and_removed_with_it
            a_write_that_was_stored_is_done_even_after_its_expiry
            a_heartbeat_extends_the_lease_and_nothing_else
            a_heartbeat_needs_the_running_turn_of_its_task
            a_heartbeat_does_not_make_a_commit_lose
            only_the_owner_extends_a_lease
            a_sweep_finds_open_tasks_and_none_at_rest
            an_open_task_names_its_owner_and_its_id
            pages_of_open_tasks_join_oldest_first
            a_page_position_of_another_shard_is_refused
            a_list_is_ordered_by_status_time_and_id
            a_list_shows_only_tasks_that_match_its_filters
            pages_join_to_the_whole_list
            a_count_stops_at_its_limit
            a_list_shows_tasks_as_they_are_now
            only_the_owner_reads_or_writes_a_task
            two_subjects_use_the_same_client_made_id
            hostile_names_stay_apart
            a_record_above_the_largest_size_is_refused
            a_large_message_is_stored_in_every_place
            saved_data_of_any_size_is_stored
            thread_state_of_any_size_is_stored
            a_long_log_is_read_whole_and_from_any_event
            a_tail_shows_what_a_load_shows
            output_taken_back_by_a_restart_is_not_read
            a_restart_restores_a_replaced_artifact_with_all_parts
            children_of_an_earlier_task_of_the_id_are_not_read
            a_conflict_shows_the_whole_of_a_large_task
            a_large_commit_that_is_repeated_is_done_once
            an_excerpt_shows_the_wanted_content_of_the_whole_task
            an_excerpt_never_mixes_two_commits
            a_commit_on_a_partial_record_is_refused
            heads_returns_only_tasks_that_load_returns
            a_thread_is_loaded_as_it_was_written
            a_thread_is_refreshed_without_its_state
            a_thread_write_needs_the_version
            a_repeated_thread_write_is_done
            a_thread_recognises_its_last_four_writes
            an_expired_thread_is_still_loaded
            only_the_owner_reads_a_thread
            contexts_are_listed_newest_first_and_once
            pages_of_contexts_join_to_the_whole_list
            a_context_begun_for_a_task_is_listed_while_it_has_one
            a_pointer_without_its_task_shows_nothing
            a_sweep_finds_and_removes_expired_state
            a_removed_task_is_gone_with_everything_beside_it
            a_removed_thread_leaves_nothing
            pages_of_a_context_return_all_its_tasks
            the_task_a_context_is_named_after_comes_last
            a_reused_task_id_is_found_in_its_own_context_only
            a_task_of_a_keyed_send_is_found_in_its_context
            a_context_with_few_tasks_is_listed_exactly
            a_late_removal_leaves_the_next_thread_of_the_id
            a_sweep_finds_a_deletion_after_the_last_possible_write
            removing_a_task_removes_only_its_own_keys
            a_task_and_its_thread_are_stored_together_or_not_at_all
            a_repeated_write_of_task_and_thread_is_done
            a_repeated_create_of_a_removed_task_is_a_thread_conflict
            a_push_config_is_stored_with_its_commit_or_not_at_all
            a_push_config_of_a_finished_task_leaves_the_task_unchanged
            a_push_config_can_be_removed_twice
            only_the_owner_reads_or_removes_a_push_config
            only_one_delivery_worker_holds_a_push_lease
            only_the_lease_holder_records_a_delivery
            a_push_lease_holds_for_one_registration_only
            a_sweep_finds_a_task_at_rest_until_its_pushes_are_confirmed
            a_key_is_stored_with_its_task
            a_taken_key_shows_its_task_as_it_is_now
            a_repeated_keyed_write_is_done_once
            a_keyed_continuation_is_stored_with_its_key_or_not_at_all
            exactly_one_of_eight_keyed_creates_wins
            exactly_one_create_takes_a_key_that_is_free_again
            a_key_is_free_when_its_task_has_expired_and_not_before
            a_key_does_not_pass_to_a_later_task_of_the_same_id
            a_key_that_is_gone_is_not_prolonged
            a_caller_finds_only_its_own_key
            bytes_are_read_as_they_were_put
            the_same_bytes_can_be_put_again
            other_bytes_never_replace_what_is_stored
            a_file_read_in_chunks_is_stored_whole
            a_file_that_breaks_off_is_not_stored
            a_head_shows_the_size_and_the_task
            a_copy_outlives_its_source
            keys_below_a_prefix_are_listed_and_removed
        }
    };
}

macro_rules! define_all {
    ($($case:ident)*) => {
        /// Runs every case.
        ///
        /// # Errors
        /// [`Broken`] when a call to the store fails that has to succeed.
        pub async fn all(stores: &Stores, run: u128) -> Result<(), Broken> {
            $(Box::pin($case(stores, &SampleData::new(run, stringify!($case))?)).await?;)*
            Ok(())
        }
    };
}
store_contract_cases!(define_all);
