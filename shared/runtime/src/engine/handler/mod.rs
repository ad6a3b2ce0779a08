//! The methods of the protocol, and ours: one file a method.

pub(super) mod cancel_task;
pub(super) mod delete_context;
pub(super) mod delete_task;
pub(super) mod get_task;
pub(super) mod list_contexts;
pub(super) mod list_tasks;
pub(super) mod page_token;
pub(super) mod send_message;
pub(super) mod stream_message;
pub(super) mod subscribe;
mod wait_for_rest;

use super::commit::Commits;
use super::reader::Reader;
use super::turn::Turns;
use std::sync::Arc;

/// Cancels and deletes tasks, and deletes contexts.
#[derive(Clone)]
pub struct Tasks {
    pub(super) reader: Reader,
    pub(super) commits: Arc<Commits>,
    pub(super) turns: Arc<Turns>,
}

impl Tasks {
    pub(super) fn new(turns: Turns) -> Self {
        Self {
            reader: turns.reader.clone(),
            commits: turns.commits.clone(),
            turns: Arc::new(turns),
        }
    }
}
