//! Writes the log line of a call of a model, and its row in the trace of the turn.

use super::call_names::CallNames;
use super::collect::Collected;
use super::model::{Delta, Model, ModelReply, ModelRequest};
use super::run_trace::RunTrace;
use super::trace::TraceRow;
use super::{AgentError, AgentResult};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use std::ops::Deref;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Level;

/// The target of the line of a call of a model.
pub const MODEL: &str = "a2a_lambda::model";

/// A model whose calls have a log line each, and a row in the trace of the turn.
#[derive(Debug)]
pub struct LoggedModel<P>(pub P);

impl<P: Deref<Target: Model> + Send + Sync> Model for LoggedModel<P> {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            let mut call = ModelCall::begin(self.0.id(), &request);
            let reply = self.0.converse(request).await;
            call.end(self.0.id(), reply.as_ref());
            reply
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let mut call = ModelCall::begin(self.0.id(), &request);
            let deltas = self.0.converse_stream(request).await;
            let deltas = deltas.inspect_err(|error| call.end(self.0.id(), Err(error)))?;
            let mut reply = Collected::default();
            let deltas = deltas.inspect(move |delta| match delta {
                Ok(delta) => {
                    call.delta();
                    if let Some(reply) = reply.add(delta.clone()) {
                        call.end(self.0.id(), Ok(&reply));
                    }
                }
                Err(error) => call.end(self.0.id(), Err(error)),
            });
            Ok(deltas.boxed())
        })
    }
}

/// A call of a model while it runs.
pub(crate) struct ModelCall {
    began: Instant,
    trace: Option<Box<(Arc<RunTrace>, TraceRow)>>,
}

impl ModelCall {
    /// A call of `model` begins.
    pub(crate) fn begin(model: &str, request: &ModelRequest) -> Self {
        Self {
            began: Instant::now(),
            trace: CallNames::current().trace.get().map(|trace| {
                let row = trace.begin_call(model, request);
                Box::new((Arc::clone(trace), row))
            }),
        }
    }

    /// A piece of the answer has arrived.
    fn delta(&mut self) {
        if let Some((_, row)) = self.trace.as_deref_mut()
            && !row.facts.contains_key("firstMs")
        {
            row.fact("firstMs", millis(self.began));
        }
    }

    /// Logs the call, without its content. The names of tokens and of the reason are those of
    /// OpenTelemetry for generative AI.
    pub(crate) fn end(&mut self, model: &str, result: Result<&ModelReply, &AgentError>) {
        if let Some(call) = self.trace.take() {
            let (trace, mut row) = *call;
            row.note("reply", result);
            if let Ok(reply) = result {
                row.fact("stop", reply.stop.as_str());
                row.fact("inputTokens", reply.usage.input_tokens);
                row.fact("outputTokens", reply.usage.output_tokens);
                row.fact("cachedTokens", reply.usage.cached_tokens);
            }
            trace.end(row);
        }
        let names = CallNames::current();
        let reply = result.ok();
        tracing::event!(
            target: MODEL,
            Level::INFO,
            a2a.tenant = names.tenant.get().map(String::as_str),
            a2a.skill = names.skill.get().map(String::as_str),
            a2a.task = names.task.get().map(String::as_str),
            gen_ai.request.model = model,
            gen_ai.usage.input_tokens = reply.map(|reply| reply.usage.input_tokens),
            gen_ai.usage.output_tokens = reply.map(|reply| reply.usage.output_tokens),
            gen_ai.usage.cache_read.input_tokens = reply.map(|reply| reply.usage.cached_tokens),
            gen_ai.response.finish_reason = reply.map(|reply| reply.stop.as_str()),
            a2a.error = result.err().map(|error| error.code().as_str()),
            ms = millis(self.began),
            "model"
        );
    }
}

/// The milliseconds since `began`.
fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A call that its caller has dropped ends too.
impl Drop for ModelCall {
    fn drop(&mut self) {
        if let Some(call) = self.trace.take() {
            let (trace, row) = *call;
            trace.end(row);
        }
    }
}
