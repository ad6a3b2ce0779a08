//! Sends that come twice, under one idempotency key.
//!
//! A keyed send is looked up before anything else is asked, and written with
//! its key in one transaction. So the second of two sends finds the first one's
//! task, however close they come, and nothing of it runs again.

use super::admit::Admission;
use super::run::{Job, Work};
use super::sink::Sink;
use super::upload::Reference;
use super::{Engine, EngineError, Reader};
use crate::auth::Caller;
use crate::store::{KeyWrite, Keyed};
use crate::task::{
    IdempotencyKey, KeyHash, Message, Metadata, Part, PartContent, Refusal, SendCommand,
    TaskRecord, TaskState, Timestamp,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Seconds after which a reply that is still being made is worth asking for.
const RETRY_AFTER: u64 = 1;

/// The key of one send, with what the send asks for.
#[derive(Debug, Clone)]
pub(super) struct SendKey {
    key: KeyHash,
    content: String,
}

impl SendKey {
    /// Its address.
    pub(super) const fn address(&self) -> &KeyHash {
        &self.key
    }

    /// What is stored of it beside the send's commit.
    pub(super) fn write(&self, kept_until: Timestamp) -> KeyWrite {
        KeyWrite {
            key: self.key.clone(),
            content: self.content.clone(),
            kept_until,
        }
    }

    /// The task of the earlier send, if it asked for the same.
    pub(super) fn task_of(&self, keyed: Keyed) -> Result<TaskRecord, Refusal> {
        if keyed.content == self.content {
            Ok(keyed.record)
        } else {
            Err(Refusal::IdempotencyKeyReused)
        }
    }
}

impl Work {
    /// Makes this the turn of a keyed send: never deferred. The reply of a
    /// skill that makes no task is kept in one that nobody sees.
    pub(super) fn keyed(&mut self, key: SendKey) {
        let makes_task = match &self.job {
            Job::Skill(skill, _) => skill.makes_task(),
            Job::Ask { .. } | Job::Fail(_) => true,
        };
        self.record.hidden = self.record.version == 0 && !makes_task && !self.force;
        self.key = Some(key);
        self.force = true;
    }
}

impl Engine {
    /// The key of a send: the one its client gave, or the id of its message
    /// where that is the setting.
    pub(super) fn send_key(&self, caller: &Caller, command: &SendCommand) -> Option<SendKey> {
        let given = command.idempotency_key.clone();
        let id = &command.message.id;
        let by_message = self.reader.policy.idempotent_message_id && !id.is_empty();
        let key = given.or_else(|| by_message.then(|| IdempotencyKey::of_message(id)))?;
        Some(SendKey {
            key: key.hash(&caller.owner),
            content: key.seal(&asked_hash(command)),
        })
    }

    /// Lets a send in that has a key: once, however often it comes.
    pub(super) async fn admit_keyed(
        &self,
        caller: &Caller,
        command: SendCommand,
        deadline: Option<Timestamp>,
        key: SendKey,
    ) -> Result<Admission, EngineError> {
        // Before anything that the first of the sends may have changed.
        if let Some(record) = self.taken(caller, &key).await? {
            return Ok(Admission::Repeat(Box::new(record)));
        }
        match self.admit_unkeyed(caller, command, deadline).await {
            Ok(Admission::Work(mut work)) => {
                work.keyed(key);
                Ok(Admission::Work(work))
            }
            // It may have found what the first of the sends has made since, or be
            // refused for what that has done.
            found_or_refused => match self.taken(caller, &key).await? {
                Some(record) => Ok(Admission::Repeat(Box::new(record))),
                None => found_or_refused,
            },
        }
    }

    /// The task that an earlier send under this key has made or continued.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyKeyReused`] if that send asked for something else.
    async fn taken(
        &self,
        caller: &Caller,
        key: &SendKey,
    ) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.reader.clock.now();
        let found = self.tasks.load_key(&caller.owner, &key.key, now).await?;
        Ok(found.map(|keyed| key.task_of(keyed)).transpose()?)
    }
}

impl Reader {
    /// The reply that a hidden task keeps.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] while it is being made: the same send will get
    /// it later.
    pub(super) async fn reply(&self, record: &TaskRecord) -> Result<Message, EngineError> {
        if !record.state().is_at_rest() {
            let retry_after = RETRY_AFTER;
            return Err(Refusal::Unavailable { retry_after }.into());
        }
        let message = record.status().message.clone();
        let (TaskState::Completed, Some(mut message)) = (record.state(), message) else {
            return Err(Refusal::TaskNotFound.into());
        };
        self.fit_message(&mut message).await?;
        Ok(alone(message))
    }

    /// Shows a task that runs elsewhere, or the reply it keeps.
    pub(super) async fn follow(
        &self,
        caller: &Caller,
        record: TaskRecord,
        sink: &mut Sink,
    ) -> Result<(), EngineError> {
        if !record.hidden {
            return self.tail(caller, &record, sink).await;
        }
        let until = self.clock.now().plus(self.policy.blocking_budget);
        let record = self.rested(caller, record, until).await?;
        if !record.hidden {
            return self.tail(caller, &record, sink).await;
        }
        sink.message(self.reply(&record).await?);
        Ok(())
    }
}

/// A message that is all of the answer.
pub(super) fn alone(mut message: Message) -> Message {
    message.task_id = None;
    message
}

/// A hash of what a send asks for: not how it wants its answer, nor the id of
/// its message, which a client may make anew for each try.
fn asked_hash(command: &SendCommand) -> Vec<u8> {
    let message = &command.message;
    let mut hash = Fields::default();
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
        hash.metadata(metadata);
    }
    hash.feed("parts", parts_hash(&message.parts));
    hash.finish()
}

/// A hash of what is said, the same for bytes kept elsewhere.
pub(super) fn parts_hash(parts: &[Part]) -> Vec<u8> {
    let mut hash = Fields::default();
    for part in parts {
        match &part.content {
            PartContent::Text(text) => hash.feed("text", text.as_bytes()),
            PartContent::Raw(bytes) => hash.feed("raw", hex::encode(Sha256::digest(bytes))),
            PartContent::Stored(blob) => hash.feed("raw", &blob.sha256),
            // An upload is what was sent, however often it was sent.
            PartContent::Url(url) => match Reference::of(url) {
                Some(Ok(upload)) => hash.feed("raw", upload.sha256()),
                _ => hash.feed("url", url),
            },
            PartContent::Data(value) => hash.value(value),
        }
        hash.feed("name", part.filename.as_deref().unwrap_or_default());
        hash.feed("type", part.media_type.as_deref().unwrap_or_default());
        hash.metadata(&part.metadata);
    }
    hash.finish()
}

/// Fields with their names and lengths, so that no two lists hash alike.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn feed(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update(name.as_bytes());
        self.0.update([0]);
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    /// The key itself is no part of what is asked.
    fn metadata(&mut self, metadata: &Metadata) {
        self.members(metadata, |name| name != IdempotencyKey::METADATA);
    }

    fn members(&mut self, members: &Metadata, counts: fn(&str) -> bool) {
        let mut names: Vec<&String> = members.keys().filter(|name| counts(name)).collect();
        // The order of members says nothing.
        names.sort_unstable();
        self.feed("members", names.len().to_be_bytes());
        for name in names {
            self.feed("member", name);
            if let Some(value) = members.get(name) {
                self.value(value);
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => self.members(members, |_| true),
            Value::Array(entries) => {
                self.feed("entries", entries.len().to_be_bytes());
                for entry in entries {
                    self.value(entry);
                }
            }
            scalar => self.feed("scalar", scalar.to_string()),
        }
    }

    fn finish(self) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}

#[cfg(test)]
mod tests;
