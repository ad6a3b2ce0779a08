//! A model for tests that records the answers of another model, and replays them.
//!
//! - here: the model, and its three modes
//! - `entry`: a recorded call, and what finds it
//! - `file`: reads and writes the file of a cassette
//! - `redact`: takes secrets out of what is recorded
//! - `nearest`: how a request differs from the nearest recorded one
//! - `tape`: the recordings of a run
//! - `error`: why a cassette cannot answer

mod entry;
mod error;
mod file;
mod nearest;
mod redact;
mod tape;

pub use error::CassetteError;

use super::lock::lock;
use crate::skill::model::{Delta, Model, ModelReply, ModelRequest};
use crate::skill::{AgentError, AgentResult};
use entry::{CallKind, RecordedAnswer, RecordedCall};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use redact::Redactor;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tape::{RecordTape, ReplayTape};

/// What a [`Cassette`] does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CassetteMode {
    /// It gives the recorded answer, and never asks a model.
    #[default]
    Replay,
    /// It asks the model, and records the answer. The file then holds this run alone.
    Record,
    /// It asks the model, and records nothing.
    Live,
}

/// A model whose answers were recorded from another model, in a file beside the test.
///
/// A replay needs no network, no key and no model, and gives the same answers each time. It
/// finds a recording by the SHA-256 of the request's JSON, with sorted members. A whole answer
/// and a stream are different recordings. Equal requests get their recordings in order, and
/// from then on the last one.
///
/// A request without a recording fails with `MODEL_PROVIDER`. The private cause shows the
/// nearest recording and the first differences: see
/// [`SkillTest::cause`](super::SkillTest::cause). [`Cassette::finish`] reports it too, for
/// skills that hide errors.
///
/// The file is JSON with one entry for each call, in the order of the requests. It is replaced
/// in one step after each call. A test has a cassette of its own: two that record into the same
/// file overwrite each other.
///
/// ```
/// use a2a_lambda::prelude::*;
/// use a2a_lambda::skill::model::{Model, ModelRequest};
/// use a2a_lambda::testing::{Cassette, ScriptedModel};
/// use std::sync::Arc;
///
/// /// The model to record. A replay does not call this function.
/// fn live() -> AgentResult<Arc<dyn Model>> {
///     Ok(Arc::new(ScriptedModel::new().text("Oslo")))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("cassette-example-{}", std::process::id()));
/// # let path = folder.join("capital.json");
/// let request = ModelRequest {
///     system: "Name the capital of Norway.".to_owned(),
///     ..ModelRequest::default()
/// };
/// // Once, on the machine of the author:
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
    source: AnswerSource,
    /// The first request without a recording.
    miss: Mutex<Option<CassetteError>>,
}

enum AnswerSource {
    Replay(Mutex<ReplayTape>),
    Record(Arc<dyn Model>, Mutex<RecordTape>),
    Live(Arc<dyn Model>),
}

impl Cassette {
    /// The cassette in the file `path`, for replay. A test runs in the folder of its package.
    ///
    /// # Errors
    /// [`CassetteError`] when there is no such file, or it is not a cassette.
    pub fn replay(path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        let path = path.into();
        let recordings = file::read(&path)?;
        let recordings = recordings.ok_or_else(|| CassetteError::Missing(name(&path)))?;
        let tape = ReplayTape::new(recordings);
        Ok(Self::new(path, AnswerSource::Replay(Mutex::new(tape))))
    }

    /// A cassette that records the answers of the model which `live` makes. The first answer
    /// replaces the recordings in the file.
    ///
    /// # Errors
    /// [`CassetteError`] when there is a file that is not a cassette, or `live` fails.
    pub fn record(
        path: impl Into<PathBuf>,
        live: impl FnOnce() -> AgentResult<Arc<dyn Model>>,
    ) -> Result<Self, CassetteError> {
        Self::open(path, CassetteMode::Record, live)
    }

    /// A cassette in a mode that the test chooses, for example by a variable. `live` makes the
    /// model; a replay does not call it.
    ///
    /// # Errors
    /// Those of [`Cassette::replay`] and [`Cassette::record`].
    pub fn open(
        path: impl Into<PathBuf>,
        mode: CassetteMode,
        live: impl FnOnce() -> AgentResult<Arc<dyn Model>>,
    ) -> Result<Self, CassetteError> {
        let path = path.into();
        let made = || live().map_err(|error| CassetteError::no_model(&path, &error));
        let source = match mode {
            CassetteMode::Replay => return Self::replay(path),
            CassetteMode::Record => {
                // A file of something else is not overwritten.
                file::read(&path)?;
                AnswerSource::Record(made()?, Mutex::default())
            }
            CassetteMode::Live => AnswerSource::Live(made()?),
        };
        Ok(Self::new(path, source))
    }

    /// Replaces this secret by `<redacted>` in all texts that are recorded, and in requests
    /// before they are compared. So a replay with another secret, or a placeholder, finds the
    /// recordings. The skill gets what the model wrote in a recording run, and `<redacted>` in a
    /// replay.
    ///
    /// In [`ModelRequest::options`] the members whose name has the word key, token, secret,
    /// authorization or password are replaced without this. A recording that would still hold
    /// the secret, for example as a number, fails.
    #[must_use]
    pub fn redact(mut self, secret: impl Into<String>) -> Self {
        self.redactor.add(secret.into());
        self
    }

    /// Checks that each request had a recording.
    ///
    /// # Errors
    /// [`CassetteError::Miss`] of the first request without one.
    pub fn finish(&self) -> Result<(), CassetteError> {
        lock(&self.miss).clone().map_or(Ok(()), Err)
    }

    fn new(path: PathBuf, source: AnswerSource) -> Self {
        Self {
            path,
            redactor: Redactor::default(),
            source,
            miss: Mutex::default(),
        }
    }

    async fn whole(&self, request: ModelRequest) -> AgentResult<ModelReply> {
        match &self.source {
            AnswerSource::Live(live) => live.converse(request).await,
            AnswerSource::Record(live, tape) => {
                let number = lock(tape).begin();
                let recorded = self.redacted(&request)?;
                let reply = live.converse(request).await;
                let answer = RecordedAnswer::of_whole(&reply);
                self.store(tape, number, recorded, answer)?;
                reply
            }
            AnswerSource::Replay(tape) => {
                let answer = self.find(tape, CallKind::Whole, &request)?;
                answer.whole(&name(&self.path))
            }
        }
    }

    async fn streamed(
        &self,
        request: ModelRequest,
    ) -> AgentResult<BoxStream<'_, AgentResult<Delta>>> {
        match &self.source {
            AnswerSource::Live(live) => live.converse_stream(request).await,
            AnswerSource::Record(live, tape) => {
                let number = lock(tape).begin();
                let recorded = self.redacted(&request)?;
                // The whole stream is read first: a skill that drops it early would cut the
                // recording.
                let pieces = drained(&**live, request).await;
                let answer = RecordedAnswer::of_stream(&pieces);
                self.store(tape, number, recorded, answer)?;
                Ok(stream::iter(pieces?).boxed())
            }
            AnswerSource::Replay(tape) => {
                let answer = self.find(tape, CallKind::Stream, &request)?;
                let pieces = answer.stream(&name(&self.path))?;
                Ok(stream::iter(pieces).boxed())
            }
        }
    }

    fn redacted(&self, request: &ModelRequest) -> AgentResult<ModelRequest> {
        let redacted = self.redactor.request(request);
        redacted.ok_or_else(|| self.form_lost())
    }

    fn form_lost(&self) -> AgentError {
        AgentError::model_provider(CassetteError::Secret(name(&self.path)))
    }

    fn find(
        &self,
        tape: &Mutex<ReplayTape>,
        kind: CallKind,
        request: &ModelRequest,
    ) -> AgentResult<RecordedAnswer> {
        let asked = self.redacted(request)?;
        lock(tape).find(kind, &asked).map_err(|nearest| {
            let cassette = name(&self.path);
            let miss = CassetteError::Miss { cassette, nearest };
            lock(&self.miss).get_or_insert_with(|| miss.clone());
            AgentError::model_provider(miss)
        })
    }

    fn store(
        &self,
        tape: &Mutex<RecordTape>,
        number: u64,
        request: ModelRequest,
        answer: RecordedAnswer,
    ) -> AgentResult<()> {
        let answer = self.redactor.answer(answer);
        let answer = answer.ok_or_else(|| self.form_lost())?;
        let mut tape = lock(tape);
        tape.store(number, RecordedCall { request, answer });
        let written = file::write(&self.path, tape.calls(), &self.redactor);
        written.map_err(AgentError::model_provider)
    }
}

/// The pieces of a stream, up to its first error.
async fn drained(live: &dyn Model, request: ModelRequest) -> AgentResult<Vec<AgentResult<Delta>>> {
    let mut stream = live.converse_stream(request).await?;
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        let ended = piece.is_err();
        pieces.push(piece);
        if ended {
            break;
        }
    }
    Ok(pieces)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

impl Model for Cassette {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(self.whole(request))
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(self.streamed(request))
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.source {
            AnswerSource::Replay(_) => CassetteMode::Replay,
            AnswerSource::Record(..) => CassetteMode::Record,
            AnswerSource::Live(_) => CassetteMode::Live,
        };
        f.debug_struct("Cassette")
            .field("path", &self.path)
            .field("mode", &mode)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
