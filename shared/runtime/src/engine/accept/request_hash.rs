//! Hashes what a send asks for, so that a repeated send is recognised.

use crate::engine::handler::upload::UploadReference;
use crate::task::{IdempotencyKey, Metadata, Part, PartContent, SendCommand};
use a2a_lambda_skill::FieldHasher;
use sha2::{Digest as _, Sha256};

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
pub(in crate::engine) fn parts_hash(parts: &[Part]) -> Vec<u8> {
    let mut hash = FieldHasher::default();
    for part in parts {
        match &part.content {
            PartContent::Text(text) => hash.feed("text", text.as_bytes()),
            PartContent::Raw(bytes) => hash.feed("raw", hex::encode(Sha256::digest(bytes))),
            PartContent::Stored(blob) => hash.feed("raw", &blob.sha256),
            // Two uploads of the same bytes are the same content.
            PartContent::Url(url) => match UploadReference::of(url) {
                Some(Ok(upload)) => hash.feed("raw", upload.sha256()),
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
