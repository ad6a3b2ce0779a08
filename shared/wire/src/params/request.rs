//! Reads the requests that 0.3 and 1.0 have in common: a send and a list.

use super::{MAX_HISTORY, Object};
use a2a_lambda_model::task::{
    Generation, ListQuery, Message, Part, PushOffer, SendCommand, SendMode, TaskState,
};

/// The page size unless the client names one (A2A 1.0 §3.1.4).
pub(crate) const PAGE_SIZE: usize = 50;

/// The differences of a message between the dialects.
pub(crate) struct MessageForm {
    /// Reads the member `role`: a client sends as the user only.
    pub(crate) role: fn(&Object<'_>) -> Option<()>,
    /// The member that holds the parts.
    pub(crate) parts: &'static str,
    /// Reads one of them.
    pub(crate) part: fn(&Object<'_>) -> Option<Part>,
}

impl MessageForm {
    pub(crate) fn read(&self, message: &Object<'_>) -> Option<Message> {
        // A2A 1.0 §4.1.4; A2A 0.3 §6.4: the members of a message.
        let id = message.required_text("messageId");
        let context_id = message.context_id("contextId");
        let task_id = message.task_id("taskId");
        let role = (self.role)(message);
        let parts = message.parts(self.parts, self.part);
        let metadata = message.metadata("metadata");
        let extensions = message.strings("extensions");
        let reference_task_ids = message.strings("referenceTaskIds");
        role?;
        Some(Message {
            context_id,
            task_id,
            reference_task_ids,
            extensions,
            metadata,
            ..Message::from_user(id?, parts?)
        })
    }
}

/// The member `configuration` of a send.
pub(crate) struct SendOptions {
    pub(crate) mode: SendMode,
    pub(crate) history_length: usize,
    pub(crate) accepted_output_modes: Vec<String>,
    pub(crate) push: Option<PushOffer>,
}

impl SendOptions {
    pub(crate) const fn unset() -> Self {
        Self {
            // A2A 1.0 §3.2.2: a send is blocking unless it asks to return immediately.
            // A2A 0.3 §7.1.1: the default of `blocking` is open. SDK clients send
            // `blocking: true`.
            mode: SendMode::Blocking,
            history_length: MAX_HISTORY,
            accepted_output_modes: Vec::new(),
            push: None,
        }
    }

    /// The command of a send of `message`.
    pub(crate) fn command(
        self,
        params: &Object<'_>,
        message: Option<Message>,
        generation: Generation,
    ) -> Option<SendCommand> {
        let metadata = params.metadata("metadata");
        Some(SendCommand {
            message: message?,
            client_task_id: None,
            mode: self.mode,
            history_length: self.history_length,
            accepted_output_modes: self.accepted_output_modes,
            push: self.push,
            metadata,
            generation,
            idempotency_key: None,
        })
    }
}

/// Reads a list, whose filter names a state as `states` do.
pub(crate) fn read_list(params: &Object<'_>, states: &[(&str, TaskState)]) -> ListQuery {
    // A2A 1.0 §3.1.4: the members and their defaults.
    ListQuery {
        context_id: params.context_id("contextId"),
        status: params.choice("status", states),
        page_size: params.page_size().unwrap_or(PAGE_SIZE),
        page_token: params.text("pageToken").map(str::to_owned),
        history_length: params.history_length("historyLength", MAX_HISTORY),
        status_after: params.timestamp("statusTimestampAfter"),
        include_artifacts: params.boolean("includeArtifacts").unwrap_or(false),
    }
}
