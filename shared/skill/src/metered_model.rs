//! The one place through which the calls of models pass.
//!
//! Each call reserves what it may use, has 15 minutes, is dropped when an operator brakes its turn,
//! and is settled with what its service reports. Without a report that is what it has reserved: of
//! an answer that breaks off too, but not of a refusal. What is dropped stays reserved.

use super::model::{Delta, Model, ModelReply, ModelRequest, Usage};
use super::{AgentError, AgentResult};
use a2a_lambda_model::store::limits::{Reservation, SCARCE_TOKENS};
use a2a_lambda_model::task::TokenUse;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{self, BoxStream, StreamExt as _};
use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest time of a call.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The bytes of a request that count as one token.
const BYTES: u64 = 2;
/// The tokens of an answer whose request names no limit.
const ANSWER: u64 = 16_384;
/// The fewest tokens for which an answer is worth its request.
const LEAST: u64 = 64;

/// The most tokens that a call may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTokens {
    /// Those of the request.
    pub input: u64,
    /// Those of the answer.
    pub output: u64,
    /// Where they are reserved.
    pub reservation: Option<Reservation>,
}

impl CallTokens {
    /// What the call may use of the `rest` of a budget; `None` if its answer has no room. A request
    /// that leaves little of the rest is limited to that.
    #[must_use]
    pub fn of(request: &mut ModelRequest, rest: u64) -> Option<Self> {
        let bytes = serde_json::to_vec(&request).map_or(u64::MAX, |json| json.len() as u64);
        let files = request.files().map(|file| file.tokens());
        let input = bytes.div_ceil(BYTES).saturating_add(files.sum());
        let wish = request.max_tokens.map_or(ANSWER, u64::from);
        let output = wish.min(rest.checked_sub(input)?);
        if output < wish.min(LEAST) {
            return None;
        }
        if rest.saturating_sub(input).saturating_sub(output) < SCARCE_TOKENS {
            request.max_tokens = u32::try_from(output).ok();
        }
        let reservation = None;
        Some(Self {
            input,
            output,
            reservation,
        })
    }

    /// The tokens of request and answer.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What the call has used, as its service reports it: without a report what it has reserved.
    /// The reply says the same.
    fn settle(&self, usage: &mut Usage) -> TokenUse {
        if usage.input_tokens == 0 && usage.output_tokens == 0 {
            (usage.input_tokens, usage.output_tokens) = (self.input, self.output);
        }
        TokenUse {
            calls: 1,
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached: usage.cached_tokens,
        }
    }

    /// What a call has used that failed: nothing if the service has refused it.
    fn fail(&self, error: &AgentError) -> TokenUse {
        match error.is_after_answer() {
            true => self.settle(&mut Usage::default()),
            false => TokenUse::default(),
        }
    }
}

/// Counts the calls of models, and stops them.
pub trait MeterCalls: Send + Sync {
    /// Reserves what a call may use, before it begins. It limits the answer if little is left.
    ///
    /// # Errors
    /// `BUDGET_EXCEEDED`. In a turn it never returns if the store was unavailable.
    fn reserve<'a>(
        &'a self,
        request: &'a mut ModelRequest,
    ) -> BoxFuture<'a, AgentResult<CallTokens>> {
        let _ = request;
        Box::pin(std::future::ready(Ok(CallTokens::default())))
    }

    /// Replaces what a call of `model` has reserved by what it used.
    fn settle<'a>(
        &'a self,
        model: &'a str,
        call: CallTokens,
        usage: TokenUse,
    ) -> BoxFuture<'a, ()> {
        let _ = (model, call, usage);
        Box::pin(std::future::ready(()))
    }

    /// Returns when an operator has braked the turn: the call that runs in the current step has to
    /// be dropped.
    fn call_is_braked(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// The tokens that the task may still use; `None` without a limit.
    fn tokens_left(&self) -> Option<u64> {
        None
    }

    /// Keeps tokens of the task for the next call of one worker.
    fn hold(&self, _tokens: u64) {}

    /// Gives tokens back that were held.
    fn release(&self, _tokens: u64) {}

    /// Notes that a result is partial, because there was no room for more calls.
    fn note_partial(&self) {}
}

impl fmt::Debug for dyn MeterCalls + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeterCalls")
    }
}

/// Tokens of a task that no other branch and no worker within may use, until this is dropped.
#[derive(Debug)]
pub struct TokenHold<'a> {
    meter: &'a dyn MeterCalls,
    tokens: u64,
}

impl<'a> TokenHold<'a> {
    /// Holds these tokens.
    pub fn new(meter: &'a dyn MeterCalls, tokens: u64) -> Self {
        meter.hold(tokens);
        Self { meter, tokens }
    }
}

impl Drop for TokenHold<'_> {
    fn drop(&mut self) {
        self.meter.release(self.tokens);
    }
}

/// A model whose calls are counted.
#[derive(Debug, Clone, Copy)]
pub struct MeteredModel<'a> {
    meter: &'a dyn MeterCalls,
    model: &'a dyn Model,
}

impl<'a> MeteredModel<'a> {
    /// The same model with a meter.
    pub const fn new(meter: &'a dyn MeterCalls, model: &'a dyn Model) -> Self {
        Self { meter, model }
    }

    /// What `call` gives; `None` if the turn is braked, and the call dropped.
    async fn unless_braked<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        match select(self.meter.call_is_braked(), pin!(call)).await {
            Either::Left(_) => None,
            Either::Right((value, _)) => Some(value),
        }
    }

    /// What `send` gives for a request whose tokens are reserved, before `end`. One that fails is
    /// settled.
    async fn begin<T>(
        &self,
        mut request: ModelRequest,
        end: Instant,
        send: impl FnOnce(ModelRequest) -> BoxFuture<'a, AgentResult<T>>,
    ) -> AgentResult<(CallTokens, T)> {
        let call = async {
            let call = self.meter.reserve(&mut request).await?;
            let reply = timeout_at(end, send(request)).await;
            Ok::<_, AgentError>((call, reply.unwrap_or_else(|_| Err(late()))))
        };
        let Some(result) = self.unless_braked(call).await else {
            return pending().await;
        };
        match result? {
            (call, Ok(reply)) => Ok((call, reply)),
            (call, Err(error)) => {
                let usage = call.fail(&error);
                self.meter.settle(self.id(), call, usage).await;
                Err(error)
            }
        }
    }
}

impl Model for MeteredModel<'_> {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            let end = Instant::now() + LONGEST;
            let send = |request| self.model.converse(request);
            let (call, mut reply) = self.begin(request, end, send).await?;
            let usage = call.settle(&mut reply.usage);
            self.meter.settle(self.id(), call, usage).await;
            Ok(reply)
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let end = Instant::now() + LONGEST;
            let send = |request| self.model.converse_stream(request);
            let (call, deltas) = self.begin(request, end, send).await?;
            let reading = MeteredDeltas {
                model: *self,
                deltas,
                call: Some(call),
                end,
                has_begun: false,
            };
            Ok(stream::unfold(reading, MeteredDeltas::next).boxed())
        })
    }
}

/// A streamed answer that is being read.
struct MeteredDeltas<'a> {
    model: MeteredModel<'a>,
    deltas: BoxStream<'a, AgentResult<Delta>>,
    /// The call, until it is settled.
    call: Option<CallTokens>,
    end: Instant,
    has_begun: bool,
}

impl MeteredDeltas<'_> {
    async fn next(mut self) -> Option<(AgentResult<Delta>, Self)> {
        let delta = self.delta().await?;
        Some((delta, self))
    }

    async fn delta(&mut self) -> Option<AgentResult<Delta>> {
        let next = timeout_at(self.end, self.deltas.next());
        let Some(next) = self.model.unless_braked(next).await else {
            self.deltas = stream::empty().boxed();
            return pending().await;
        };
        let mut delta = next.unwrap_or_else(|_| {
            self.deltas = stream::empty().boxed();
            Some(Err(late()))
        });
        let usage = self.call.as_ref().and_then(|call| match &mut delta {
            Some(Ok(Delta::Stop { usage, .. })) => Some(call.settle(usage)),
            Some(Ok(_)) => None,
            Some(Err(error)) if !self.has_begun => Some(call.fail(error)),
            Some(Err(_)) | None => Some(call.settle(&mut Usage::default())),
        });
        self.has_begun = true;
        if let Some(usage) = usage
            && let Some(call) = self.call.take()
        {
            self.model.meter.settle(self.model.id(), call, usage).await;
        }
        delta
    }
}

/// The error of a call whose time is over.
fn late() -> AgentError {
    AgentError::deadline().after_answer()
}
