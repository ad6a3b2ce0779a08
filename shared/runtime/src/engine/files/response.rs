//! Decides what a response shows of stored bytes: the bytes if they fit the response
//! budget, else a URL made for this response, else only their digest.
//!
//! The sizes in the pointers decide, before a byte is read. So no response takes more
//! memory or becomes longer than its limit.

use super::{download, encoded_size};
use crate::engine::error::EngineError;
use crate::engine::reader::Reader;
use crate::store::Download;
use crate::task::metadata_keys::TRUNCATED;
use crate::task::{Blob, Event, Message, Metadata, Part, PartContent, Task};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// How long a URL to a file is valid.
const LINK_LIFE: Duration = Duration::from_secs(300);
/// The most bytes of a URL to a file, including a session token.
const LINK: usize = 4 * 1024;
/// The bytes of a task that shows only its state, with its envelope.
const BARE: usize = 4 * 1024;

/// The response budget: the bytes that a response may still use.
#[derive(Debug)]
pub(in crate::engine) struct ResponseBudget {
    pub(in crate::engine) remaining: usize,
}

impl ResponseBudget {
    /// Uses `bytes` of the budget if they fit; `false` if they do not.
    const fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.remaining;
        if fits {
            self.remaining -= bytes;
        }
        fits
    }
}

impl Reader {
    /// The budget of a response with `tasks` tasks, without the bytes of their states.
    pub(in crate::engine) const fn response_budget(&self, tasks: usize) -> ResponseBudget {
        ResponseBudget {
            remaining: self.answer_max.saturating_sub(BARE * tasks),
        }
    }

    /// Cuts a task to the response budget, and marks it if something was left out.
    pub(in crate::engine) async fn fit(
        &self,
        task: &mut Task,
        budget: &mut ResponseBudget,
    ) -> Result<(), EngineError> {
        self.plan(task, budget).await?;
        self.fetch_planned([task]).await.into_iter().collect()
    }

    /// Decides from the sizes alone what the response shows of a task. Every pointer that
    /// remains has bytes that fit.
    pub(in crate::engine) async fn plan(
        &self,
        task: &mut Task,
        budget: &mut ResponseBudget,
    ) -> Result<(), EngineError> {
        let mut left_out = trim(task, budget);
        for part in task.parts_mut() {
            left_out |= self.give(part, budget).await?;
        }
        if left_out {
            mark(&mut task.metadata);
        }
        Ok(())
    }

    /// Reads the bytes that [`Reader::plan`] reserved budget for, for all `tasks`
    /// together. Returns one result for each task, in their order.
    pub(in crate::engine) async fn fetch_planned<'t>(
        &self,
        tasks: impl IntoIterator<Item = &'t mut Task>,
    ) -> Vec<Result<(), EngineError>> {
        let (mut owners, mut parts, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for (index, task) in tasks.into_iter().enumerate() {
            results.push(Ok(()));
            let stored_parts = task.parts_mut().filter(|part| is_stored(part));
            parts.extend(stored_parts);
            owners.resize(parts.len(), index);
        }
        for (index, result) in owners.into_iter().zip(self.fetch(parts).await) {
            if let (Err(error), Some(entry @ Ok(()))) = (result, results.get_mut(index)) {
                *entry = Err(error.into());
            }
        }
        results
    }

    /// Cuts an event to the budget of its own frame.
    pub(in crate::engine) async fn fit_event(&self, event: &mut Event) -> Result<(), EngineError> {
        let (parts, metadata) = match event {
            Event::Artifact(update) => (&mut update.artifact.parts, &mut update.metadata),
            Event::Status(update) => match &mut update.status.message {
                Some(message) => (&mut message.parts, &mut update.metadata),
                None => return Ok(()),
            },
        };
        let mut budget = self.response_budget(1);
        let mut left_out = false;
        for part in parts.iter_mut() {
            // Inline parts come first: a stored part that does not fit can become a URL.
            if !is_stored(part) && !budget.take(encoded_size::part(part)) {
                name_only(part);
                left_out = true;
            }
        }
        for part in parts.iter_mut() {
            left_out |= self.give(part, &mut budget).await?;
        }
        if left_out {
            mark(metadata);
        }
        let stored_parts = parts.iter_mut().filter(|part| is_stored(part)).collect();
        let results = self.fetch(stored_parts).await.into_iter();
        Ok(results.collect::<Result<(), _>>()?)
    }

    /// Whether a message fits the response budget as it is.
    pub(in crate::engine) fn can_give(&self, message: &Message) -> bool {
        self.response_budget(1).take(encoded_size::message(message))
    }

    /// Keeps a pointer if the budget holds its bytes, else replaces it by a URL. Returns
    /// `true` if neither fits and only the digest is left.
    async fn give(
        &self,
        part: &mut Part,
        budget: &mut ResponseBudget,
    ) -> Result<bool, EngineError> {
        let PartContent::Stored(blob) = &part.content else {
            return Ok(false);
        };
        if budget.take(encoded_size::base64(blob.size)) {
            return Ok(false);
        }
        if budget.take(LINK)
            && let Some(url) = self.link(part, blob).await?
        {
            part.content = PartContent::Url(url);
            return Ok(false);
        }
        name_only(part);
        Ok(true)
    }

    /// Makes a URL to the bytes of a part, for this response only: it must not be stored
    /// or logged. `None` if the store makes no URLs.
    async fn link(&self, part: &Part, blob: &Blob) -> Result<Option<String>, EngineError> {
        let disposition = download::disposition(part.filename.as_deref());
        let download = Download {
            key: &blob.key,
            content_type: download::content_type(part.effective_media_type()),
            disposition: &disposition,
        };
        let now = self.clock.now();
        Ok(self.blobs.read_url(&download, now, LINK_LIFE).await?)
    }
}

const fn is_stored(part: &Part) -> bool {
    matches!(part.content, PartContent::Stored(_))
}

/// Replaces the content of a part by its SHA-256, and marks the part.
fn name_only(part: &mut Part) {
    let digest = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    let sha256 = match &part.content {
        PartContent::Stored(blob) => blob.sha256.clone(),
        PartContent::Raw(bytes) => digest(bytes),
        PartContent::Text(text) | PartContent::Url(text) => digest(text.as_bytes()),
        PartContent::Data(value) => digest(value.to_string().as_bytes()),
    };
    if !matches!(part.content, PartContent::Stored(_)) {
        // The metadata may be what is too large.
        part.metadata.clear();
    }
    part.content = PartContent::Url(format!("urn:sha256:{sha256}"));
    mark(&mut part.metadata);
}

/// Marks metadata: something was left out.
pub(in crate::engine) fn mark(metadata: &mut Metadata) {
    metadata.insert(TRUNCATED.to_owned(), Value::Bool(true));
}

/// Leaves out what does not fit even without stored bytes; returns whether anything was
/// left out. The state always stays. The budget is used in this order: the status
/// message, the metadata, the artifacts from the first on (0.1 numbers them by position),
/// the history from the newest message back.
fn trim(task: &mut Task, budget: &mut ResponseBudget) -> bool {
    show_last_once(task, budget);
    let mut left_out = false;
    let message = task.status.message.as_ref();
    if !budget.take(message.map_or(0, encoded_size::message)) {
        task.status.message = None;
        left_out = true;
    }
    if !budget.take(encoded_size::members(&task.metadata)) {
        task.metadata.clear();
        left_out = true;
    }
    if let Some(artifacts) = &mut task.artifacts {
        let fits = artifacts
            .iter()
            .take_while(|a| budget.take(encoded_size::artifact(a)));
        let fits = fits.count();
        left_out |= fits < artifacts.len();
        artifacts.truncate(fits);
    }
    if let Some(history) = &mut task.history {
        let newest = history.iter().rev();
        let fits = newest.take_while(|m| budget.take(encoded_size::message(m)));
        let fits = fits.count();
        left_out |= fits < history.len();
        history.drain(..history.len() - fits);
    }
    left_out
}

/// Leaves the last message out of the history if it is that of the status and has no room twice.
fn show_last_once(task: &mut Task, budget: &ResponseBudget) {
    let (Some(status), Some(history)) = (&task.status.message, &mut task.history) else {
        return;
    };
    let is_status = history.last().is_some_and(|last| last.id == status.id);
    if is_status && whole_size(status) > budget.remaining / 2 {
        history.pop();
    }
}

/// The encoded size of a message with its files.
fn whole_size(message: &Message) -> usize {
    let files = message.parts.iter().map(|part| match &part.content {
        PartContent::Stored(blob) => encoded_size::base64(blob.size),
        _ => 0,
    });
    encoded_size::message(message) + files.sum::<usize>()
}

#[cfg(test)]
mod tests;
