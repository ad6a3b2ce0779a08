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
