//! Writes the log line of a call of a model, and its row in the trace of the turn.

use super::AgentError;
use super::call_names::CallNames;
use super::model::{ModelReply, ModelRequest};
use super::trace::ModelRow;
use std::fmt;
use tokio::time::Instant;
use tracing::Level;

/// The target of the line of a call of a model.
pub const MODEL: &str = "a2a_lambda::model";

/// A call of a model while it runs.
pub struct ModelCall {
    began: Instant,
    row: Option<ModelRow>,
}

impl ModelCall {
    /// A call begins.
    #[must_use]
    pub fn begin(request: &ModelRequest) -> Self {
        Self {
            began: Instant::now(),
            row: ModelRow::begin(request),
        }
    }

    /// A piece of the answer has arrived.
    pub fn delta(&mut self) {
        if let Some(row) = &mut self.row {
            row.delta();
        }
    }

    /// Logs the call, without its content. The names of tokens and of the reason are those of
    /// OpenTelemetry for generative AI.
    pub fn end(mut self, result: Result<&ModelReply, &AgentError>) {
        if let Some(row) = &mut self.row {
            row.end(result);
        }
        let names = CallNames::current();
        let reply = result.ok();
        tracing::event!(
            target: MODEL,
            Level::INFO,
            a2a.tenant = names.tenant.get().map(String::as_str),
            a2a.skill = names.skill.get().map(String::as_str),
            a2a.task = names.task.get().map(String::as_str),
            gen_ai.usage.input_tokens = reply.map(|reply| reply.usage.input_tokens),
            gen_ai.usage.output_tokens = reply.map(|reply| reply.usage.output_tokens),
            gen_ai.response.finish_reason = reply.map(|reply| reply.stop.as_str()),
            a2a.error = result.err().map(|error| error.code().as_str()),
            ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            "model"
        );
    }
}

impl fmt::Debug for ModelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCall").finish_non_exhaustive()
    }
}
