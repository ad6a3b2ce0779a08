//! Answers the calls of one request: one call, or the entries of a batch.

use super::call_log::{CallLog, RequestLog};
use super::{Body, Cards, HttpService, encode, stream};
use crate::auth::{Authenticated, Identity};
use crate::engine::{CallBudget, Clock as _, EngineError, SystemClock};
use crate::origin::StageUrl;
use crate::task::A2aError;
use a2a_lambda_skill::CallNames;
use a2a_lambda_wire::{
    self, Call, MethodCall, MethodResult, Rejected, RpcId, UnaryCall, WireResponse,
};
use bytes::Bytes;
use http::{Request, Response};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// One request while it is answered.
pub(super) struct CallContext<'e> {
    pub(super) edge: &'e HttpService,
    pub(super) identity: Identity,
    pub(super) budget: CallBudget,
    /// The base URL in the stage variable of API Gateway.
    pub(super) stage: Option<StageUrl>,
    pub(super) log: RequestLog,
    /// The caller, once it is known: the calls of a batch share one lookup.
    pub(super) admission: OnceCell<Result<Authenticated, A2aError>>,
}

impl CallContext<'_> {
    /// Answers a call that is not in a batch, with JSON or a stream.
    pub(super) async fn one(&self, call: &Call, request: &Request<Bytes>) -> Response<Body> {
        let log = self.log.call(call, false);
        let response = if call.operation.is_card() {
            log.run(async { self.card(call, request) }).await
        } else if call.streams() {
            match Box::pin(log.run(self.stream(call, &log))).await {
                // The line of a stream is written at its end.
                Ok(response) => return response,
                Err(error) => Err(error),
            }
        } else {
            let reply = Box::pin(log.run(self.unary(call, None))).await;
            reply.map(|reply| encode::answer(a2a_lambda_wire::answer(call, &reply)))
        };
        match response {
            Ok(response) => {
                log.log_response(response.status().as_u16());
                response
            }
            Err(error) => {
                log.log_error(call, &error);
                encode::answer(a2a_lambda_wire::refuse(call, &error.a2a_error))
            }
        }
    }

    /// Answers the calls of a batch, in order, each in its own entry.
    pub(super) async fn batch(&self, entries: Vec<Result<Call, Rejected>>) -> Response<Body> {
        let mut responses = Vec::with_capacity(entries.len());
        let reader = self.edge.backend.reader();
        let mut remaining = reader.map_or(usize::MAX, |reader| reader.policy.response_max);
        let mut waiting = entries.len();
        for entry in entries {
            // INVARIANT: all entries together stay within the response budget of one
            // call. Bytes that an entry does not use go to the entries after it.
            let share = remaining / waiting.max(1);
            let (id, response) = match entry {
                Ok(call) => (call.rpc_id.clone(), self.entry(&call, share).await),
                Err(rejection) => {
                    self.log.log_rejection(&rejection);
                    let response = rejection.answer();
                    (rejection.rpc_id, response)
                }
            };
            waiting -= 1;
            // JSON-RPC 2.0 §4.1: a notification has no response, not even an error.
            if id != RpcId::Absent {
                remaining = remaining.saturating_sub(response.body.len());
                responses.push(response);
            }
        }
        encode::answer(a2a_lambda_wire::batch(&responses))
    }

    /// Answers one entry of a batch, in at most `share` bytes.
    async fn entry(&self, call: &Call, share: usize) -> WireResponse {
        let log = self.log.call(call, true);
        match Box::pin(log.run(self.unary(call, Some(share)))).await {
            Ok(reply) => {
                let response = a2a_lambda_wire::answer(call, &reply);
                log.log_response(response.status);
                response
            }
            Err(error) => {
                log.log_error(call, &error);
                a2a_lambda_wire::refuse(call, &error.a2a_error)
            }
        }
    }

    /// Answers with a public card, which needs no caller.
    fn card(&self, call: &Call, request: &Request<Bytes>) -> Result<Response<Body>, EngineError> {
        let MethodCall::Card(form) = call.decode()? else {
            return Err(EngineError::internal("a card call decoded as another one"));
        };
        self.cards()?.respond(form, request)
    }

    /// Begins the stream of a call, whose line `log` writes at its end.
    async fn stream(&self, call: &Call, log: &CallLog) -> Result<Response<Body>, EngineError> {
        let (Authenticated { caller, ends }, method_call) = self.enter(call).await?;
        let MethodCall::Stream(stream_call) = method_call else {
            return Err(EngineError::internal(
                "a stream call decoded as another one",
            ));
        };
        let budget = self.budget.for_credentials(ends);
        let calls = Arc::clone(self.edge.backend.calls()?);
        let until = ends.map(|end| (end, calls.reader().clock.clone()));
        stream::respond(call, log, until, |frames, stop| {
            calls.stream(caller, stream_call, budget, frames, stop)
        })
        .await
    }

    /// Runs a call without a stream, until the client's response is due.
    async fn unary(&self, call: &Call, share: Option<usize>) -> Result<MethodResult, EngineError> {
        let (Authenticated { caller, .. }, method_call) = self.enter(call).await?;
        let unary_call = match method_call {
            MethodCall::Unary(UnaryCall::ExtendedCard) => {
                return Ok(self.cards()?.answer_extended(self.proven())?);
            }
            MethodCall::Unary(UnaryCall::Skills) => {
                return Ok(self.cards()?.answer_catalogue(self.proven()));
            }
            MethodCall::Unary(unary_call) => unary_call,
            MethodCall::Stream(_) | MethodCall::Card(_) => {
                return Err(EngineError::internal("a unary call decoded as another one"));
            }
        };
        let calls = self.edge.backend.calls()?;
        tokio::select! {
            // Work that is finished wins over the clock.
            biased;
            result = calls.unary(&caller, unary_call, self.budget, share) => result,
            error = calls.reader().response_is_due(&self.budget) => Err(error),
        }
    }

    /// The cards for the base URL of this request.
    fn cards(&self) -> Result<Arc<Cards>, EngineError> {
        self.edge.cards.of(self.stage.as_ref())
    }

    /// Checks the caller, its brake and rate, the version and the parameters, in this order: only
    /// authenticated callers get errors about the last two, and each such error costs one
    /// call of the caller's rate.
    async fn enter(&self, call: &Call) -> Result<(Authenticated, MethodCall), EngineError> {
        let admission = self.authenticate().await?;
        let caller = &admission.caller;
        CallNames::note(|names| &names.tenant, caller.owner.tenant.as_str());
        if let Ok(reader) = self.edge.backend.reader() {
            reader.admit(caller).await?;
        }
        if let Some(newer) = call.newer_version() {
            self.edge.log.newer_version(newer);
        }
        call.check_version()?;
        // A tenant in the path or body is for routing, not an identity. Another tenant
        // than the caller's gets "not found" before the parameters are checked, so that
        // the response shows nothing about that tenant.
        let elsewhere = call
            .routing_tenant
            .as_deref()
            .is_some_and(|t| t != admission.caller.owner.tenant.as_str());
        if elsewhere {
            return Err(A2aError::ForeignTenant.into());
        }
        if call.operation.is_push() && !self.edge.push {
            return Err(A2aError::PushNotSupported.into());
        }
        if call.streams() && !self.edge.streaming {
            // A2A 1.0 §3.3.4: an operation that the card does not announce is unsupported.
            let why = "this agent does not stream";
            return Err(A2aError::UnsupportedOperation { why }.into());
        }
        let method_call = call.decode()?;
        if let Some(task) = method_call.task() {
            CallNames::note(|names| &names.task, task.as_str());
        }
        Ok((admission, method_call))
    }

    /// The caller of this request. The calls of a batch share one lookup.
    async fn authenticate(&self) -> Result<Authenticated, A2aError> {
        let look = async || {
            let now = self.edge.backend.reader().map(|reader| reader.clock.now());
            let now = now.unwrap_or_else(|_| SystemClock.now());
            let admission = self.edge.auth.caller(&self.identity, now).await;
            admission.map_err(EngineError::log_cause)
        };
        self.admission.get_or_init(look).await.clone()
    }

    /// Checks that the sender of an admitted request has credentials.
    fn proven(&self) -> Result<(), A2aError> {
        let is_proven = self.edge.auth.proves(&self.identity);
        is_proven.then_some(()).ok_or(A2aError::Unauthenticated)
    }
}
