//! Recognises a message that its client sends again without an idempotency key.
//!
//! A client whose response was lost sends its answer once more. The task may have asked its
//! next question meanwhile, and must not take the same message as the answer to that. The hashes of
//! what a send asks for are here, also for sends with a key.

use crate::engine::files::upload::UploadReference;
use crate::task::{
    IdempotencyKey, Message, Metadata, Part, PartContent, Role, SendCommand, TaskRecord,
};
use a2a_lambda_skill::FieldHasher;
use sha2::{Digest as _, Sha256};

/// What recognises a message to a task when it is sent again.
#[derive(Debug, Clone)]
pub(in crate::engine) struct MessagePrint {
    /// The message id; empty for A2A 0.1, which has none.
    id: String,
    /// The hash of the parts.
    parts: Vec<u8>,
    /// Whether the client gave an idempotency key. Then only the key makes a repeat.
    is_keyed: bool,
}

impl MessagePrint {
    /// The print of a message as its client sent it; `None` if it names no task.
    pub(super) fn of(command: &SendCommand) -> Option<Self> {
        let message = &command.message;
        let names_a_task = message.task_id.is_some() || command.client_task_id.is_some();
        names_a_task.then(|| Self::of_send(command))
    }

    /// The print of a message whose task is known.
    pub(super) fn of_send(command: &SendCommand) -> Self {
        Self {
            is_keyed: command.idempotency_key.is_some(),
            ..Self::of_message(&command.message)
        }
    }

    /// The print of a message without an idempotency key.
    pub(in crate::engine) fn of_message(message: &Message) -> Self {
        Self {
            id: message.id.clone(),
            parts: parts_hash(&message.parts),
            is_keyed: false,
        }
    }

    /// Whether the message may be a repeat of one to `record`. A2A 0.1 has no message ids, and the
    /// same words may answer two questions.
    pub(super) fn can_repeat(&self, record: &TaskRecord) -> bool {
        let is_answer = self.id.is_empty() && record.state().is_interrupted();
        !self.is_keyed && !is_answer
    }

    /// Whether the message is `last`.
    pub(super) fn is_of(&self, last: &Message) -> bool {
        (self.id.is_empty() || self.id == last.id) && self.parts == parts_hash(&last.parts)
    }

    /// The print as bytes, for a fingerprint.
    pub(in crate::engine) fn bytes(&self) -> Vec<u8> {
        [&self.parts, self.id.as_bytes()].concat()
    }
}

/// The client's last message in a task: it opened the current turn.
pub(in crate::engine) fn last_message(record: &TaskRecord) -> Option<&Message> {
    let mut messages = record.history.iter().rev();
    messages.find(|message| message.role == Role::User)
}

/// A hash of what a send asks for. It leaves out how the client wants the response, and
/// the message id, which a client may make anew for each try.
pub(super) fn request_hash(command: &SendCommand) -> Vec<u8> {
    let message = &command.message;
    let mut hash = FieldHasher::default();
    let ids = [
        message.task_id.as_ref().map(|id| id.as_str()),
        command.client_task_id.as_ref().map(|id| id.as_str()),
        message.context_id.as_ref().map(|id| id.as_str()),
    ];
    for id in ids {
        hash.feed("id", id.unwrap_or_default().as_bytes());
    }
    for id in &message.reference_task_ids {
        hash.feed("reference", id.as_bytes());
    }
    for metadata in [&message.metadata, &command.metadata] {
        feed_metadata(&mut hash, metadata);
    }
    hash.feed("parts", parts_hash(&message.parts));
    hash.finish()
}

/// A hash of message parts, the same for bytes inline, in the blob store or uploaded.
pub(super) fn parts_hash(parts: &[Part]) -> Vec<u8> {
    let mut hash = FieldHasher::default();
    for part in parts {
        match &part.content {
            PartContent::Text(text) => hash.feed("text", text.as_bytes()),
            PartContent::Raw(bytes) => hash.feed("raw", hex::encode(Sha256::digest(bytes))),
            PartContent::Stored(blob) => hash.feed("raw", &blob.sha256),
            // Two uploads of the same bytes are the same content.
            PartContent::Url(url) => match UploadReference::of(url) {
                Some(Ok(upload)) => hash.feed("raw", &upload.sha256),
                _ => hash.feed("url", url),
            },
            PartContent::Data(value) => hash.value(value),
        }
        hash.feed("name", part.filename.as_deref().unwrap_or_default());
        hash.feed("type", part.media_type.as_deref().unwrap_or_default());
        feed_metadata(&mut hash, &part.metadata);
    }
    hash.finish()
}

/// Leaves out the idempotency key, which is not part of what a send asks for.
fn feed_metadata(hash: &mut FieldHasher, metadata: &Metadata) {
    hash.members(metadata, |name| name != IdempotencyKey::METADATA);
}
