//! The one suite which every store passes, ours and an author's.
//!
//! Each case is a function over [`Stores`]; [`all`] runs them in order and
//! `store_contract_cases!` names them, for a test of its own each. A case
//! panics where the store breaks its promise. Every case works under tenants of
//! its own, made from `run`, so that a suite can meet a store in use; its clock
//! stands in the year 2100, where no background deletion interferes.

mod blobs;
mod clears;
mod commits;
mod contexts;
mod expiry;
mod keys;
mod leases;
mod lists;
mod open;
mod owners;
mod pieces;
mod pushes;
mod sizes;
mod threads;
mod world;

pub use blobs::*;
pub use clears::*;
pub use commits::*;
pub use contexts::*;
pub use expiry::*;
pub use keys::*;
pub use leases::*;
pub use lists::*;
pub use open::*;
pub use owners::*;
pub use pieces::*;
pub use pushes::*;
pub use sizes::*;
pub use threads::*;
pub use world::{Broken, Stores, World};

/// Calls the macro `$run` with the name of every case of the suite.
#[macro_export]
macro_rules! store_contract_cases {
    ($run:ident) => {
        $run! {
            a_created_task_is_loaded_as_it_was_written
            an_unknown_task_is_not_found
            a_create_over_a_live_task_shows_that_task
            a_commit_needs_the_version_and_the_incarnation
            nothing_of_an_earlier_task_reaches_the_next_one_under_its_id
            a_commit_to_an_absent_task_is_a_conflict
            a_write_without_an_id_is_refused
            a_repeated_write_is_done_once
            a_repeated_write_is_known_below_later_commits
            of_writes_at_once_exactly_one_wins
            a_finished_task_keeps_its_content
            a_task_at_rest_is_gone_from_its_expiry_on
            a_create_takes_the_place_of_an_expired_task_only
            an_open_task_does_not_expire
            a_task_that_goes_on_does_not_expire
            a_write_that_was_stored_is_done_even_after_its_expiry
            a_heartbeat_extends_the_lease_and_nothing_else
            a_heartbeat_needs_the_running_turn_of_its_task
            a_heartbeat_does_not_make_a_commit_lose
            nobody_extends_the_lease_of_anothers_task
            a_sweep_finds_what_is_open_and_nothing_at_rest
            an_open_task_names_its_owner_and_its_id
            pages_of_open_tasks_join_oldest_first
            a_place_that_is_none_of_ours_is_refused
            a_list_is_ordered_by_status_time_and_id
            a_list_shows_what_its_filters_ask_for
            pages_join_to_the_whole_list
            a_count_stops_at_its_limit
            a_list_shows_tasks_as_they_are_now
            nobody_reads_or_writes_anothers_task
            two_subjects_use_the_same_client_made_id
            hostile_names_stay_apart
            a_record_above_the_largest_size_is_refused
            a_large_message_is_stored_wherever_it_stands
            what_a_task_keeps_is_stored_at_any_size
            what_a_conversation_keeps_is_stored_at_any_size
            a_long_log_is_read_whole_and_from_any_event
            a_tail_shows_what_a_load_shows
            what_a_restart_takes_back_is_not_read_again
            an_artifact_that_was_replaced_comes_back_with_all_its_parts
            what_an_earlier_task_of_the_same_id_has_left_is_not_read
            a_conflict_shows_the_whole_of_a_large_task
            a_large_commit_that_is_repeated_is_done_once
            an_excerpt_shows_what_is_wanted_as_the_whole_task_does
            an_excerpt_is_never_of_two_commits
            a_part_of_a_task_is_no_base_of_a_commit
            heads_are_those_of_the_tasks_that_can_be_loaded
            a_thread_is_loaded_as_it_was_written
            a_thread_is_refreshed_without_its_state
            a_thread_write_needs_the_version
            a_repeated_thread_write_is_done
            an_expired_thread_is_still_told_from_an_unknown_one
            nobody_reads_anothers_thread
            conversations_are_listed_newest_first_and_each_once
            pages_of_conversations_join_to_the_whole_list
            a_sweep_finds_state_that_has_expired_and_removes_it
            a_removed_task_is_gone_with_everything_beside_it
            a_removed_thread_is_as_if_it_had_never_been
            everything_in_a_conversation_is_found_page_by_page
            a_conversation_after_a_deleted_one_keeps_what_is_its_own
            a_sweep_finds_a_deletion_when_nothing_can_be_hidden_any_more
            a_sweep_comes_once_to_a_conversation_for_the_one_before_it
            a_removed_task_takes_its_own_keys_along_and_no_others
            a_task_and_its_thread_are_stored_together_or_not_at_all
            a_repeated_write_of_task_and_thread_is_done
            a_webhook_is_stored_with_its_commit_or_not_at_all
            a_webhook_of_a_finished_task_leaves_the_task_alone
            a_removed_webhook_is_gone_and_may_be_removed_again
            nobody_sees_or_removes_anothers_webhook
            of_couriers_at_once_one_has_the_lease
            a_delivery_is_noted_by_the_holder_and_nobody_else
            a_lease_is_for_its_own_registration_only
            a_webhook_that_is_delivered_to_is_kept_for_longer
            a_sweep_finds_a_task_until_its_webhooks_have_heard_of_its_rest
            a_key_is_stored_with_its_task
            a_taken_key_shows_its_task_as_it_is_now
            a_repeated_keyed_write_is_done_once
            a_keyed_continuation_is_stored_with_its_key_or_not_at_all
            of_keyed_creates_at_once_exactly_one_wins
            a_key_that_is_free_again_goes_to_exactly_one
            a_key_is_free_when_its_task_has_expired_and_not_before
            a_key_does_not_pass_to_a_later_task_of_the_same_id
            nobody_finds_anothers_key
            a_task_that_only_keeps_a_reply_is_in_no_list
            bytes_are_read_as_they_were_put
            the_same_bytes_can_be_put_again
            other_bytes_never_replace_what_is_stored
            a_file_that_comes_bit_by_bit_is_stored_whole
            a_file_that_breaks_off_is_not_stored
            a_head_tells_the_size_and_the_task
            a_copy_is_independent_of_what_it_was_made_of
            keys_below_a_prefix_are_listed_and_removed
        }
    };
}

macro_rules! define_all {
    ($($case:ident)*) => {
        /// Runs every case.
        ///
        /// # Errors
        /// [`Broken`] when the store fails where it has to answer.
        pub async fn all(stores: &Stores<'_>, run: u128) -> Result<(), Broken> {
            $(Box::pin($case(stores, &World::new(run, stringify!($case))?)).await?;)*
            Ok(())
        }
    };
}
store_contract_cases!(define_all);
