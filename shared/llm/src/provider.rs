//! What the providers share: why a call fails, and how an answer is read.

use a2a_lambda_skill::model::{Delta, ModelFile, ModelReply, ModelRequest};
use a2a_lambda_skill::{AgentError, AgentResult, Collected, ErrorCode};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
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
pub(super) fn answer_error(cause: Box<dyn Error + Send + Sync>) -> AgentError {
    AgentError::model_provider(cause).after_answer()
}

/// Why a call of a model service fails. What the service wrote stays in the private cause.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelCallError {
    /// The request cannot be written.
    #[error("the request cannot be made: {0}")]
    Request(String),
    /// The models of the service do not read a file. The text is public.
    #[error("{0}")]
    File(String),
    /// The service was silent, or the whole call took too long.
    #[error("no complete answer within {0:?}")]
    Slow(Duration),
    /// The answer exceeds the limit of bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The answer ended without its terminal event.
    #[error("the answer ended before it was complete")]
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
            Self::File(text) => return AgentError::model_input(text.as_str()),
            Self::Service { error, .. } => *error,
            Self::TooLong(_) => |cause| AgentError::model_output(cause).after_answer(),
            Self::Slow(_) | Self::Cut | Self::Form(_) => answer_error,
            Self::Request(_) => AgentError::model_provider,
        };
        error(self.into())
    }
}

/// Checks that the service takes the files of a request: `limit` is the most bytes of a file, if
/// the service takes its type.
pub(super) fn check_files(
    request: &ModelRequest,
    limit: impl Fn(&ModelFile) -> Option<u64>,
) -> Result<(), ModelCallError> {
    for file in request.files() {
        let name = file.name.as_deref().unwrap_or("a file");
        let media_type = &file.media_type;
        match limit(file) {
            Some(most) if file.size <= most => {}
            Some(most) => {
                let size = file.size;
                return Err(ModelCallError::File(format!(
                    "the model takes a file of {media_type} up to {most} bytes; {name} has {size}"
                )));
            }
            None => {
                return Err(ModelCallError::File(format!(
                    "the model does not read {media_type} ({name}): send a picture, a PDF or text"
                )));
            }
        }
    }
    Ok(())
}

/// The error of a call. A service that refuses a request with files for a reason without a code
/// does not read them: the services have many words for it.
pub(super) fn call_error(error: AgentError, has_files: bool) -> AgentError {
    let is_refusal = !error.is_transient() && !error.is_after_answer();
    if has_files && is_refusal && error.code() == ErrorCode::ModelProvider {
        let cause = error.cause().unwrap_or_default().to_owned();
        return AgentError::model_refused_files(cause);
    }
    error
}

/// The deltas of an answer, or why there is none.
pub(super) type ReplyDeltas = Result<BoxStream<'static, AgentResult<Delta>>, ModelCallError>;

/// Reads the events of one answer. A whole answer is its only event.
pub(super) trait ReplyDecoder<E>: Send {
    /// Takes the next event, which may have no delta.
    fn event(&mut self, event: E, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError>;

    /// Takes the end of the events, when there was no [`Delta::Stop`].
    fn end(&mut self, _out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        Err(ModelCallError::Cut)
    }
}

/// The deltas of an answer, to [`Delta::Stop`]. An error comes after the deltas of the events
/// before it.
pub(super) fn deltas<E: Send + 'static>(
    events: BoxStream<'static, Result<E, ModelCallError>>,
    decoder: Box<dyn ReplyDecoder<E>>,
) -> BoxStream<'static, AgentResult<Delta>> {
    let begin = Some((events, decoder, VecDeque::<Delta>::new()));
    stream::try_unfold(begin, |reading| async move {
        let Some((mut events, mut decoder, mut deltas)) = reading else {
            return Ok(None);
        };
        loop {
            if let Some(delta) = deltas.pop_front() {
                let is_last = matches!(delta, Delta::Stop { .. });
                let rest = (!is_last).then_some((events, decoder, deltas));
                return Ok(Some((delta, rest)));
            }
            let result = match events.next().await {
                Some(event) => event.and_then(|event| decoder.event(event, &mut deltas)),
                None => decoder.end(&mut deltas),
            };
            result.map_err(ModelCallError::into_agent)?;
        }
    })
    .boxed()
}

/// Joins the deltas of an answer.
pub(super) async fn join(deltas: ReplyDeltas) -> AgentResult<ModelReply> {
    let deltas = deltas.map_err(ModelCallError::into_agent)?;
    let deltas: Vec<Delta> = deltas.try_collect().await?;
    Collected::collect(deltas).ok_or_else(|| ModelCallError::Cut.into_agent())
}

/// Waits for `work`, at most for `limit`.
pub(super) async fn wait<T>(
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ModelCallError> {
    let result = tokio::time::timeout(limit, work).await;
    result.map_err(|_| ModelCallError::Slow(limit))
}

/// Arguments that return to the model. Some services refuse everything but an object, so other
/// values become a member of one.
pub(super) fn arguments(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        Value::Null => json!({}),
        other => json!({ "invalid_arguments": other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_arguments_are_always_an_object() {
        assert_eq!(arguments(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(arguments(&Value::Null), json!({}));
        let invalid = arguments(&json!(r#"{"a":"#));
        assert_eq!(invalid, json!({"invalid_arguments": r#"{"a":"#}));
    }
}
