//! A recorded call: a request and its answer.

use crate::skill::model::{Delta, ModelReply, ModelRequest};
use crate::skill::{AgentError, AgentResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// A call of a model, without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedCall {
    pub(super) request: ModelRequest,
    pub(super) answer: RecordedAnswer,
}

/// What the model did. Errors are codes: what a service writes in an error can hold a part of
/// its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum RecordedAnswer {
    /// It gave a whole answer.
    Reply(ModelReply),
    /// It refused to give a whole answer.
    Error(String),
    /// It streamed an answer, perhaps up to an error.
    Stream {
        deltas: Vec<Delta>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// It refused to stream an answer.
    StreamError(String),
}

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// For a whole answer.
    Whole,
    /// For a stream.
    Stream,
}

impl RecordedCall {
    pub(super) const fn kind(&self) -> CallKind {
        match self.answer {
            RecordedAnswer::Reply(_) | RecordedAnswer::Error(_) => CallKind::Whole,
            RecordedAnswer::Stream { .. } | RecordedAnswer::StreamError(_) => CallKind::Stream,
        }
    }
}

impl RecordedAnswer {
    pub(super) fn of_whole(reply: &AgentResult<ModelReply>) -> Self {
        match reply {
            Ok(reply) => Self::Reply(reply.clone()),
            Err(error) => Self::Error(code(error)),
        }
    }

    pub(super) fn of_stream(pieces: &AgentResult<Vec<AgentResult<Delta>>>) -> Self {
        match pieces {
            Ok(pieces) => Self::Stream {
                deltas: pieces.iter().flatten().cloned().collect(),
                error: pieces.iter().find_map(|it| it.as_ref().err()).map(code),
            },
            Err(error) => Self::StreamError(code(error)),
        }
    }

    /// The answer to a call for a whole one.
    pub(super) fn whole(self, cassette: &str) -> AgentResult<ModelReply> {
        match self {
            Self::Reply(reply) => Ok(reply),
            Self::Error(code) | Self::StreamError(code) => Err(failure(&code, cassette)),
            Self::Stream { .. } => Err(other_kind(cassette)),
        }
    }

    /// The answer to a call for a stream.
    pub(super) fn stream(self, cassette: &str) -> AgentResult<Vec<AgentResult<Delta>>> {
        match self {
            Self::Stream { deltas, error } => {
                let error = error.map(|code| Err(failure(&code, cassette)));
                Ok(deltas.into_iter().map(Ok).chain(error).collect())
            }
            Self::Error(code) | Self::StreamError(code) => Err(failure(&code, cassette)),
            Self::Reply(_) => Err(other_kind(cassette)),
        }
    }
}

/// A recording is found by its kind, so this does not happen.
fn other_kind(cassette: &str) -> AgentError {
    AgentError::model_provider(format!("cassette `{cassette}` has another kind of answer"))
}

fn code(error: &AgentError) -> String {
    error.code().as_str().to_owned()
}

/// The error with a recorded code. A code that no model gives becomes `MODEL_PROVIDER`.
fn failure(code: &str, cassette: &str) -> AgentError {
    let cause = format!("cassette `{cassette}` has the recorded error {code}");
    match code {
        "MODEL_AUTH" => AgentError::model_auth(cause),
        "MODEL_RATE_LIMITED" => AgentError::model_rate_limited(cause),
        "CONTENT_FILTERED" => AgentError::content_filtered(cause),
        "CONTEXT_LENGTH_EXCEEDED" => AgentError::context_length_exceeded(cause),
        "MODEL_OUTPUT" => AgentError::model_output(cause),
        "MODEL_UNAVAILABLE" => AgentError::model_unavailable(),
        "NETWORK" => AgentError::network(cause),
        "DEADLINE" => AgentError::deadline(),
        "INTERNAL_ERROR" => AgentError::internal(cause),
        _ => AgentError::model_provider(cause),
    }
}

/// A call as one value, for its key and for differences.
pub(super) fn asked(kind: CallKind, request: &ModelRequest) -> Value {
    let call = match kind {
        CallKind::Whole => "whole",
        CallKind::Stream => "stream",
    };
    json!({ "call": call, "request": request })
}

/// The SHA-256 of a value's JSON with sorted members.
pub(super) fn key(value: Value) -> [u8; 32] {
    Sha256::digest(sorted(value).to_string()).into()
}

/// The value with sorted members, also where the JSON library keeps another order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<String, Value> = members.into_iter().collect();
            let members = members.into_iter();
            Value::Object(members.map(|(name, it)| (name, sorted(it))).collect())
        }
        scalar => scalar,
    }
}
