//! What the providers share: why a call fails, and the deltas of a stream.

use a2a_lambda_skill::model::Delta;
use a2a_lambda_skill::{AgentError, AgentResult};
use futures::stream::{self, BoxStream, StreamExt as _};
use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

/// The error of the skill for a failed call, which is its private cause.
pub(super) type ToError = fn(Box<dyn Error + Send + Sync>) -> AgentError;

/// The error of a service that is out of order, and answers nothing. It may answer a moment later.
pub(super) fn out_of_order(cause: Box<dyn Error + Send + Sync>) -> AgentError {
    AgentError::model_provider(cause).transient()
}

/// The error of an answer that has begun and breaks off, or has no right form.
pub(super) fn broken(cause: Box<dyn Error + Send + Sync>) -> AgentError {
    AgentError::model_provider(cause).after_answer()
}

/// Why a call of a model service fails. What the service wrote stays in the private cause.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelCallError {
    /// The request cannot be written.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// The service was silent, or the whole call took too long.
    #[error("no complete answer within {0:?}")]
    Slow(Duration),
    /// The answer exceeds the limit of bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The stream ended without its terminal event.
    #[error("the stream ended before the answer was complete")]
    Cut,
    /// The answer does not have the form of the API.
    #[error("the answer has {0}")]
    Form(&'static str),
    /// The service refused the call, reported an error, or could not be reached.
    #[error("{text}")]
    Service {
        /// The error of the skill.
        error: ToError,
        /// What happened.
        text: String,
    },
}

impl ModelCallError {
    pub(super) fn into_agent(self) -> AgentError {
        let error: ToError = match &self {
            Self::Service { error, .. } => *error,
            Self::TooLong(_) => |cause| AgentError::model_output(cause).after_answer(),
            Self::Slow(_) | Self::Cut | Self::Form(_) => broken,
            Self::Request(_) => AgentError::model_provider,
        };
        error(self.into())
    }
}

/// A streamed answer that is being read.
pub(super) trait ReadDeltas: Send {
    /// Reads more of the answer, which may have no delta.
    fn read(
        &mut self,
        out: &mut VecDeque<Delta>,
    ) -> impl Future<Output = Result<(), ModelCallError>> + Send;
}

/// The deltas of an answer, to [`Delta::Stop`].
pub(super) fn deltas<'a>(reader: impl ReadDeltas + 'a) -> BoxStream<'a, AgentResult<Delta>> {
    let reading = DeltaReading {
        reader,
        deltas: VecDeque::new(),
        is_complete: false,
    };
    stream::try_unfold(reading, DeltaReading::next).boxed()
}

/// An answer, and its deltas that are not returned.
struct DeltaReading<R> {
    reader: R,
    deltas: VecDeque<Delta>,
    is_complete: bool,
}

impl<R: ReadDeltas> DeltaReading<R> {
    /// The next delta, and `None` after [`Delta::Stop`].
    async fn next(mut self) -> AgentResult<Option<(Delta, Self)>> {
        while !self.is_complete {
            if let Some(delta) = self.deltas.pop_front() {
                self.is_complete = matches!(delta, Delta::Stop { .. });
                return Ok(Some((delta, self)));
            }
            let result = self.reader.read(&mut self.deltas).await;
            result.map_err(ModelCallError::into_agent)?;
        }
        Ok(None)
    }
}
