//! One turn of a skill: its event loop, its writes and its end.

pub(super) mod command;
pub(super) mod event_loop;
pub(super) mod event_sink;
pub(super) mod finish;
pub(super) mod heartbeat;
pub(super) mod output_rules;
pub(super) mod references;
pub(super) mod replayed_output;
pub(super) mod report;
pub(super) mod run;
pub(super) mod run_limit;
pub(super) mod scopes;
pub(super) mod skill_future;
pub(super) mod skill_host;
pub(super) mod spec;
#[cfg(test)]
mod state_size_tests;
pub(super) mod thread;
pub(super) mod turn_brake;
pub(super) mod turn_break;
pub(super) mod write_buffer;
