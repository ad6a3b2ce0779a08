//! Keeps large parts in the blob store: it writes the bytes first, then the pointer.
//!
//! - here: how parts are written, and how a skill reads them
//! - `object_key`: the keys of objects
//! - `verified_reader`: reads a file in pieces and checks it
//! - `response`: what a response shows of stored bytes
//! - `encoded_size`: the encoded size of a response
//! - `upload`: files that clients send to the bucket, and messages that name them
//! - `download`: the headers of a file that a client gets by URL

pub(super) mod chained_reader;
mod download;
mod encoded_size;
pub(crate) mod object_key;
mod response;
pub(crate) mod upload;
mod verified_reader;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) use download::{content_type, disposition};
pub(super) use response::{ResponseBudget, mark};

use self::object_key::{ObjectKeys, ObjectName};
use self::verified_reader::VerifiedReader;
use super::error::EngineError;
use super::reader::Reader;
use crate::engine::turn_break::BreakSignal;
use crate::store::{BlobOwner, BlobReader, Blobs, Measured, StoreError};
use crate::task::{Blob, Change, Message, Part, PartContent, Task, TaskRecord, WriteId};
use a2a_lambda_model::store::OBJECTS_AT_ONCE;
use a2a_lambda_skill::route;
use bytes::Bytes;
use futures::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that one request lists.
const LISTED: usize = 1000;

/// Keeps the files of tasks in the blob store.
#[derive(Clone)]
pub(crate) struct Files {
    pub(super) reader: Reader,
    pub(super) blobs: Arc<dyn Blobs>,
}

impl Files {
    /// Moves parts above the inline limit to the blob store, before a commit names them.
    /// Each commit has its own keys, made from `write`, so that no commit overwrites the
    /// bytes of another: two continuations of one task may be in flight together. Bytes
    /// that are stored elsewhere, as an upload or in another task, are copied to this
    /// task: once, however many parts name them.
    pub(super) async fn store_blobs(
        &self,
        base: &TaskRecord,
        write: &WriteId,
        changes: &mut Arc<Vec<Change>>,
    ) -> Result<(), EngineError> {
        let max = self.reader.policy.inline_max;
        let attempt = ObjectKeys::of(base, self.reader.clock.now());
        let stays = |part: &Part| match &part.content {
            PartContent::Raw(bytes) => bytes.len() <= max,
            PartContent::Stored(blob) => attempt.is_ours(&blob.key),
            PartContent::Text(_) | PartContent::Url(_) | PartContent::Data(_) => true,
        };
        if changes.iter().flat_map(parts).all(stays) {
            return Ok(());
        }
        let bytes = changes.iter().flat_map(parts).filter(|part| !stays(part));
        let bytes = bytes.map(|part| match &part.content {
            PartContent::Raw(bytes) => bytes.len() as u64,
            // The order of an upload has counted.
            PartContent::Stored(blob) if !blob.key.starts_with(object_key::UPLOADS) => blob.size,
            _ => 0,
        });
        self.charge_bytes(&base.owner.tenant, bytes.sum()).await?;
        let changes = Arc::make_mut(changes);
        let (mut number, mut copies) = (0, BTreeMap::new());
        for part in changes.iter_mut().flat_map(parts_mut) {
            let blob = match &part.content {
                PartContent::Raw(bytes) if bytes.len() > max => {
                    number += 1;
                    self.put_blob(base, attempt.key(write, number), bytes)
                        .await?
                }
                PartContent::Stored(blob) if !attempt.is_ours(&blob.key) => {
                    match copies.get(&blob.key) {
                        Some(copy) => Blob::clone(copy),
                        None => {
                            number += 1;
                            let key = attempt.key(write, number);
                            let copy = self.copy_blob(base, key, blob).await?;
                            copies.insert(blob.key.clone(), copy.clone());
                            copy
                        }
                    }
                }
                _ => continue,
            };
            part.content = PartContent::Stored(blob);
        }
        Ok(())
    }

    async fn put_blob(
        &self,
        base: &TaskRecord,
        key: String,
        bytes: &Bytes,
    ) -> Result<Blob, EngineError> {
        let measure = Measured::of(bytes);
        let (blobs, owner) = (&self.blobs, BlobOwner::Task(base.key()));
        blobs.put_for(&owner, &key, bytes.clone()).await?;
        Ok(Blob {
            key,
            size: measure.size,
            sha256: measure.sha256,
            upload: None,
        })
    }

    async fn copy_blob(
        &self,
        base: &TaskRecord,
        key: String,
        from: &Blob,
    ) -> Result<Blob, EngineError> {
        let blobs = &self.blobs;
        if !blobs.copy(&base.key(), from, &key).await? {
            return Err(missing(from).into());
        }
        // An object of another task is not an upload of this one.
        let upload = from.upload.clone();
        Ok(Blob {
            key,
            upload: upload.filter(|_| from.key.starts_with(object_key::UPLOADS)),
            ..from.clone()
        })
    }
}

impl Reader {
    /// Reads the bytes a pointer names.
    ///
    /// # Errors
    /// When the object is missing, or differs from the pointer in size or SHA-256.
    pub(super) async fn bytes_of(&self, blob: &Blob) -> Result<Bytes, StoreError> {
        let object = self.blobs.get(&blob.key).await?;
        let bytes = object.ok_or_else(|| missing(blob))?;
        let measure = Measured::of(&bytes);
        if measure.size != blob.size || measure.sha256 != blob.sha256 {
            let key = &blob.key;
            return Err(StoreError::Corrupt(format!(
                "object `{key}` does not match its pointer"
            )));
        }
        Ok(bytes)
    }

    /// Opens the bytes a pointer names: they are read in pieces and checked on the way.
    /// If the store fails during a read, `signal` ends the turn.
    pub(super) async fn open_blob(
        &self,
        blob: Blob,
        signal: Arc<BreakSignal>,
    ) -> Result<BlobReader, StoreError> {
        let object = self.blobs.open(&blob.key).await?;
        let source = object.ok_or_else(|| missing(&blob))?;
        Ok(Box::pin(VerifiedReader::new(source, blob, signal)))
    }

    /// A message as a skill gets it: with the bytes of its files, up to the response
    /// limit. The skill opens larger files itself.
    pub(super) async fn load_message_files(
        &self,
        message: &Message,
    ) -> Result<Message, EngineError> {
        let (mut message, mut budget) = (message.clone(), self.policy.response_max as u64);
        self.load_parts(message.parts.iter_mut(), &mut budget)
            .await?;
        Ok(message)
    }

    /// The messages of a client to the router as one; `None` without a message.
    pub(super) async fn load_request(
        &self,
        messages: &[&Message],
    ) -> Result<Option<Message>, EngineError> {
        let mut request = None;
        for message in messages {
            let next = self.load_message_files(message).await?;
            request = Some(match request {
                Some(first) => route::with_line(first, &next),
                None => next,
            });
        }
        Ok(request)
    }

    /// The result of an earlier task as a skill gets it: with the bytes of its files, up
    /// to `budget` bytes together.
    pub(super) async fn load_task_files(
        &self,
        record: &TaskRecord,
        budget: &mut u64,
    ) -> Result<Task, StoreError> {
        let mut task = record.content(0, true);
        let artifacts = task.artifacts.iter_mut().flatten();
        let parts = artifacts.flat_map(|artifact| artifact.parts.iter_mut());
        self.load_parts(parts, budget).await?;
        Ok(task)
    }

    /// Reads the files of `parts`, in order, that fit into `budget` bytes.
    async fn load_parts(
        &self,
        parts: impl Iterator<Item = &mut Part> + Send,
        budget: &mut u64,
    ) -> Result<(), StoreError> {
        let fits = |part: &&mut Part| match &part.content {
            PartContent::Stored(blob) if blob.size <= *budget => {
                *budget -= blob.size;
                true
            }
            _ => false,
        };
        let results = self.fetch(parts.filter(fits).collect()).await;
        results.into_iter().collect()
    }

    /// Replaces each pointer in `parts` by the bytes it names, with [`OBJECTS_AT_ONCE`]
    /// reads at a time. Returns one result for each part, in their order.
    async fn fetch(&self, mut parts: Vec<&mut Part>) -> Vec<Result<(), StoreError>> {
        let mut results = Vec::with_capacity(parts.len());
        for wave in parts.chunks_mut(OBJECTS_AT_ONCE) {
            let reads = wave.iter_mut().map(|part| self.fetch_one(part));
            results.extend(join_all(reads).await);
        }
        results
    }

    async fn fetch_one(&self, part: &mut Part) -> Result<(), StoreError> {
        if let PartContent::Stored(blob) = &part.content {
            part.content = PartContent::Raw(self.bytes_of(blob).await?);
        }
        Ok(())
    }
}

/// Removes the objects of an ended task, and those that earlier tasks with its id left.
/// An object stored after its end stays, because it may belong to the next task with
/// this id. The call can be repeated.
pub(in crate::engine) async fn remove_objects_of(
    blobs: &dyn Blobs,
    task: &TaskRecord,
) -> Result<usize, StoreError> {
    let is_over = |key: &&String| {
        ObjectName::of(key).is_none_or(|name| {
            let is_its_own = task.incarnation.as_str().ends_with(name.incarnation);
            is_its_own || name.at < task.expires_at
        })
    };
    let below = object_key::below(&task.key());
    let (mut total, mut after) = (0, None);
    loop {
        let keys = blobs.keys(&below, after.as_deref(), LISTED).await?;
        let old_keys: Vec<String> = keys.iter().filter(is_over).cloned().collect();
        if !old_keys.is_empty() {
            blobs.remove(&old_keys).await?;
            total += old_keys.len();
        }
        if keys.len() < LISTED {
            return Ok(total);
        }
        after = keys.last().cloned();
    }
}

fn missing(blob: &Blob) -> StoreError {
    StoreError::Corrupt(format!("object `{}` is missing", blob.key))
}

/// The parts that a change adds, by a shared or an exclusive reference.
macro_rules! parts_of {
    ($change:expr, $($by:tt)+) => {
        match $change {
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
            | Change::Reject { message } => $($by)+ message.parts,
            Change::Artifact(update) => $($by)+ update.artifact.parts,
            Change::Seal(_)
            | Change::Pin(..)
            | Change::Request(_)
            | Change::Dispatch
            | Change::Claim { .. }
            | Change::HandOver { .. }
            | Change::Release { .. }
            | Change::Build(_)
            | Change::Tries(..)
            | Change::Use(..)
            | Change::Start { .. }
            | Change::Update { message: None, .. }
            | Change::Save { .. }
            | Change::Step { .. }
            | Change::Complete { message: None }
            | Change::Cancel
            | Change::RegisterPush(_) => $($by)+ [],
        }
    };
}

fn parts(change: &Change) -> &[Part] {
    parts_of!(change, &)
}

fn parts_mut(change: &mut Change) -> &mut [Part] {
    parts_of!(change, &mut)
}
