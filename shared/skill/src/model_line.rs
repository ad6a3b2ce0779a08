//! Writes the log line of a call of a model.

use super::AgentError;
use super::call_names::CallNames;
use super::model::ModelReply;
use tokio::time::Instant;
use tracing::Level;

/// The target of the line of a call of a model.
pub const MODEL: &str = "a2a_lambda::model";

/// Logs a call of a model, without its content. The names of tokens and of the reason are
/// those of OpenTelemetry for generative AI.
pub fn log_model_call(began: Instant, result: Result<&ModelReply, &AgentError>) {
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
        ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "model"
    );
}
