//! Large parts live in the blob store: bytes first, then the pointer.

use super::{Engine, EngineError, Reader};
use crate::store::StoreError;
use crate::task::{Blob, Change, Part, PartContent, Task, TaskRecord};
use sha2::{Digest as _, Sha256};

impl Engine {
    /// Moves parts above the inline limit to the blob store, before a commit
    /// names them. A key is new for each incarnation, epoch, version and place,
    /// so that no attempt can overwrite another's bytes.
    pub(super) async fn store_blobs(
        &self,
        base: &TaskRecord,
        changes: &mut [Change],
    ) -> Result<(), EngineError> {
        let mut place = 0;
        for part in changes.iter_mut().flat_map(parts_of) {
            let PartContent::Raw(bytes) = &part.content else {
                continue;
            };
            if bytes.len() <= self.reader.policy.inline_max {
                continue;
            }
            place += 1;
            let blob = Blob {
                key: key_of(base, place),
                size: bytes.len() as u64,
                sha256: digest(bytes),
            };
            self.reader.blobs.put(&blob.key, bytes.clone()).await?;
            part.content = PartContent::Stored(blob);
        }
        Ok(())
    }
}

impl Reader {
    /// Puts the bytes back into the parts of an answer.
    ///
    /// # Errors
    /// When the bytes are gone or are not the ones the pointer names.
    pub(super) async fn fill(&self, task: &mut Task) -> Result<(), EngineError> {
        let artifacts = task
            .artifacts
            .iter_mut()
            .flatten()
            .flat_map(|a| a.parts.iter_mut());
        let history = task
            .history
            .iter_mut()
            .flatten()
            .flat_map(|m| m.parts.iter_mut());
        let status = task
            .status
            .message
            .iter_mut()
            .flat_map(|m| m.parts.iter_mut());
        for part in artifacts.chain(history).chain(status) {
            self.fill_part(part).await?;
        }
        Ok(())
    }

    /// Puts the bytes back into one part.
    pub(super) async fn fill_part(&self, part: &mut Part) -> Result<(), EngineError> {
        let PartContent::Stored(blob) = &part.content else {
            return Ok(());
        };
        let bytes = self
            .blobs
            .get(&blob.key)
            .await?
            .ok_or_else(|| missing(blob))?;
        if bytes.len() as u64 != blob.size || digest(&bytes) != blob.sha256 {
            return Err(
                StoreError::Corrupt(format!("object `{}` has other bytes", blob.key)).into(),
            );
        }
        part.content = PartContent::Raw(bytes);
        Ok(())
    }
}

fn missing(blob: &Blob) -> EngineError {
    StoreError::Corrupt(format!("object `{}` is gone", blob.key)).into()
}

/// The key of an object: no part of it comes from a client but the task id,
/// whose alphabet is checked.
fn key_of(base: &TaskRecord, place: u32) -> String {
    let tenant = digest(base.owner.tenant.as_str().as_bytes());
    let tenant = tenant.get(..32).unwrap_or_default();
    format!(
        "v1/{tenant}/{}/{}-{}-{}.{place}",
        base.key().local(),
        base.incarnation,
        base.epoch,
        base.version + 1,
    )
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn parts_of(change: &mut Change) -> Box<dyn Iterator<Item = &mut Part> + Send + '_> {
    match change {
        Change::Accept { message }
        | Change::Resume { message, .. }
        | Change::Queue { message, .. }
        | Change::Update {
            message: Some(message),
            ..
        }
        | Change::AskInput { message, .. }
        | Change::AskAuth { message, .. }
        | Change::Complete {
            message: Some(message),
        }
        | Change::Fail { message }
        | Change::Reject { message } => Box::new(message.parts.iter_mut()),
        Change::Artifact(update) => Box::new(update.artifact.parts.iter_mut()),
        Change::Pin(_)
        | Change::Request(_)
        | Change::Dispatch
        | Change::Claim { .. }
        | Change::HandOver { .. }
        | Change::Start { .. }
        | Change::Update { message: None, .. }
        | Change::Save { .. }
        | Change::Step { .. }
        | Change::Complete { message: None }
        | Change::Cancel
        | Change::Listen(_) => Box::new(std::iter::empty()),
    }
}
