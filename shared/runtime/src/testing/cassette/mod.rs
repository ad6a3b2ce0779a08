//! A model for tests that records the answers of another model, and replays them.
//!
//! - here: the model and its file
//! - `redact`: takes secrets out of what is recorded and compared
//! - `nearest`: how a request differs from the nearest recorded one

mod nearest;
mod redact;

use super::scripted_model::deltas;
use crate::clock::lock;
use a2a_lambda_skill::model::{Delta, Model, ModelReply, ModelRequest};
use a2a_lambda_skill::{AgentError, AgentResult};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use redact::Redactor;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A model whose answers were recorded from another model, in a file beside the test.
///
/// A replay needs no network, no key and no model, and gives the same answers each time. Equal
/// requests get their recordings in order, and from then on the last one. A stream gets the
/// recorded answer in pieces of a few characters.
///
/// A request without a recording fails with `MODEL_PROVIDER`. The private cause shows the
/// nearest recording and the first differences: see
/// [`SkillTest::cause`](super::SkillTest::cause). [`Cassette::finish`] reports it too, for
/// skills that hide errors.
///
/// The file is JSON with one entry for each call, in the order of the answers. It is written
/// after each of them; an error of the model is not recorded.
///
/// ```
/// use a2a_lambda::skill::model::{Model, ModelRequest};
/// use a2a_lambda::testing::{Cassette, ScriptedModel};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("cassette-example-{}", std::process::id()));
/// # let path = folder.join("capital.json");
/// let request = ModelRequest {
///     system: "Name the capital of Norway.".to_owned(),
///     ..ModelRequest::default()
/// };
/// // Once, on the machine of the author, with a real model:
/// let live = Arc::new(ScriptedModel::new().text("Oslo"));
/// let recorded = Cassette::record(&path, live)?.converse(request.clone()).await;
/// // In each test:
/// let replayed = Cassette::replay(&path)?.converse(request).await;
/// assert_eq!(replayed, recorded);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
pub struct Cassette {
    path: PathBuf,
    redactor: Redactor,
    /// The model to record; `None` in a replay.
    live: Option<Arc<dyn Model>>,
    calls: Mutex<Vec<Recording>>,
    /// The first request without a recording.
    miss: Mutex<Option<CassetteError>>,
}

/// A call of a model, without secrets.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    request: ModelRequest,
    reply: ModelReply,
    #[serde(skip)]
    is_replayed: bool,
}

/// Why a [`Cassette`] cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// There is no file to replay.
    #[error("there is no cassette `{0}`: record it with `Cassette::record`")]
    Missing(String),
    /// The file cannot be read or written, or is no cassette.
    #[error("cassette `{cassette}`: {why}")]
    File {
        /// The file.
        cassette: String,
        /// What failed.
        why: String,
    },
    /// The recording would hold a secret that was given to [`Cassette::redact`].
    #[error("cassette `{0}` would hold a secret of `redact`, so it was not written")]
    Secret(String),
    /// A request has no recording.
    #[error(
        "cassette `{cassette}` has no recording of this request: {nearest}; if the change is \
         meant, record the test again with `Cassette::record`"
    )]
    Miss {
        /// The file.
        cassette: String,
        /// The nearest recording and the first differences from it.
        nearest: String,
    },
}

impl Cassette {
    /// The cassette in the file `path`, for replay. A test runs in the folder of its package.
    ///
    /// # Errors
    /// [`CassetteError`] when there is no such file, or it is not a cassette.
    pub fn replay(path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        let path = path.into();
        let calls = read(&path)?.ok_or_else(|| CassetteError::Missing(name(&path)))?;
        Ok(Self::new(path, None, calls))
    }

    /// A cassette that records the answers of `live`. The first answer replaces the recordings
    /// in the file.
    ///
    /// # Errors
    /// [`CassetteError::File`] when there is a file that is not a cassette.
    pub fn record(path: impl Into<PathBuf>, live: Arc<dyn Model>) -> Result<Self, CassetteError> {
        let path = path.into();
        // A file of something else is not overwritten.
        read(&path)?;
        Ok(Self::new(path, Some(live), Vec::new()))
    }

    /// Replaces this secret by `<redacted>` in all texts that are recorded, and in requests
    /// before they are compared. So a replay with another secret, or a placeholder, finds the
    /// recordings. The skill gets what the model wrote in a recording run, and `<redacted>` in a
    /// replay.
    ///
    /// In [`ModelRequest::options`] the members whose name ends with key, token, secret,
    /// authorization or password are replaced without this. A recording that would still hold
    /// the secret, for example as a number, fails.
    #[must_use]
    pub fn redact(mut self, secret: impl Into<String>) -> Self {
        self.redactor.add(secret.into());
        self
    }

    /// Checks that each request had a recording. A recording of a model that was not asked gets
    /// its file here, if there is none.
    ///
    /// # Errors
    /// [`CassetteError::Miss`] of the first request without one; [`CassetteError::File`].
    pub fn finish(&self) -> Result<(), CassetteError> {
        if self.live.is_some() && !self.path.exists() {
            self.write("[]\n".to_owned())?;
        }
        lock(&self.miss).clone().map_or(Ok(()), Err)
    }

    fn new(path: PathBuf, live: Option<Arc<dyn Model>>, calls: Vec<Recording>) -> Self {
        Self {
            path,
            redactor: Redactor::default(),
            live,
            calls: Mutex::new(calls),
            miss: Mutex::default(),
        }
    }

    async fn answered(&self, request: ModelRequest) -> AgentResult<ModelReply> {
        let public_request = self.redactor.request(&request);
        let result = match (&self.live, public_request) {
            (_, None) => Err(self.secret()),
            (None, Some(public_request)) => self.recorded(&public_request),
            (Some(live), Some(public_request)) => {
                let reply = live.converse(request).await?;
                self.store(public_request, &reply).map(|()| reply)
            }
        };
        result.map_err(AgentError::model_provider)
    }

    /// The next answer to a request.
    fn recorded(&self, request: &ModelRequest) -> Result<ModelReply, CassetteError> {
        let mut calls = lock(&self.calls);
        let same = calls.iter_mut().filter(|call| call.request == *request);
        let mut same = same.peekable();
        while let Some(call) = same.next() {
            // The last one answers all further requests.
            if !call.is_replayed || same.peek().is_none() {
                call.is_replayed = true;
                return Ok(call.reply.clone());
            }
        }
        let requests: Vec<&ModelRequest> = calls.iter().map(|call| &call.request).collect();
        let miss = CassetteError::Miss {
            cassette: name(&self.path),
            nearest: nearest::describe(&requests, request),
        };
        lock(&self.miss).get_or_insert_with(|| miss.clone());
        Err(miss)
    }

    /// Adds a call to the file.
    fn store(&self, request: ModelRequest, reply: &ModelReply) -> Result<(), CassetteError> {
        let mut calls = lock(&self.calls);
        calls.push(Recording {
            request,
            reply: self.redactor.reply(reply).ok_or_else(|| self.secret())?,
            is_replayed: false,
        });
        let text = serde_json::to_string_pretty(&*calls);
        let text = text.map_err(|error| failed(&self.path, &error))? + "\n";
        if self.redactor.finds_in(&text) {
            return Err(self.secret());
        }
        self.write(text)
    }

    fn write(&self, text: String) -> Result<(), CassetteError> {
        let folder = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let result = folder.and_then(|()| fs::write(&self.path, text));
        result.map_err(|error| failed(&self.path, &error))
    }

    fn secret(&self) -> CassetteError {
        CassetteError::Secret(name(&self.path))
    }
}

/// The calls in a file; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Vec<Recording>>, CassetteError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| failed(path, &error))?,
    };
    let calls = serde_json::from_str(&text).map_err(|error| failed(path, &error))?;
    Ok(Some(calls))
}

fn failed(path: &Path, why: &dyn fmt::Display) -> CassetteError {
    CassetteError::File {
        cassette: name(path),
        why: why.to_string(),
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

impl Model for Cassette {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(self.answered(request))
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let reply = self.answered(request).await?;
            Ok(stream::iter(deltas(reply)).map(Ok).boxed())
        })
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassette")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
