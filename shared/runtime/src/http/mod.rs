//! Answers HTTP requests: the edge of the runtime.
//!
//! All functions, the local agent and an author's own server call [`HttpService::handle`].
//! It never fails: each error becomes a response. This module knows HTTP and the
//! order of the checks. The rules of the protocol are in `a2a-lambda-wire`, those of a task
//! in `engine`.

mod body;
mod card;
mod date;
mod decode;
mod encode;
pub mod hosts;
mod stream;

pub use body::Body;
pub use card::Cards;
pub use hosts::Hosts;

use crate::auth::{AuthMode, Caller, Identity};
use crate::engine::{CallBudget, Engine, EngineError, Reader};
use crate::task::{A2aError, Timestamp};
use a2a_lambda_wire::{
    self, Call, CardForm, MethodCall, MethodResult, OpenedRequest, Rejected, WireResponse,
};
use bytes::Bytes;
use http::{Request, Response};
use std::sync::Arc;

/// The function that a request reached. Each function accepts only its own
/// operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The public card.
    AgentCard,
    /// Path operations that write.
    TasksSend,
    /// Path operations that read.
    TasksGet,
    /// Path operations that stream, and `POST /tasks/{id}:cancel`.
    TasksStream,
    /// JSON-RPC: one URL for all methods.
    Rpc,
}

/// The part of the engine that a function has.
#[derive(Debug, Clone)]
pub enum Backend {
    /// None of it: the function serves cards only.
    Cards,
    /// The part that reads.
    Reader(Reader),
    /// All of it.
    Engine(Engine),
}

/// The HTTP edge of one function.
#[derive(Debug, Clone)]
pub struct HttpService {
    door: Function,
    backend: Backend,
    cards: Arc<Cards>,
    auth: AuthMode,
    max_body: usize,
    push: bool,
    hosts: Hosts,
}

impl HttpService {
    /// An edge for the function `door`; `max_body` is the most bytes of a request body.
    #[must_use]
    pub const fn new(
        door: Function,
        backend: Backend,
        cards: Arc<Cards>,
        auth: AuthMode,
        max_body: usize,
    ) -> Self {
        Self {
            door,
            backend,
            cards,
            auth,
            max_body,
            push: false,
            hosts: Hosts::Any,
        }
    }

    /// Turns push notifications on or off.
    #[must_use]
    pub const fn with_push(mut self, on: bool) -> Self {
        self.push = on;
        self
    }

    /// Refuses requests to other hosts than `hosts`, if identities are those of
    /// development. Otherwise this has no effect: API Gateway knows its own host names.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Hosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// Answers one request. `deadline` is the end of the invocation, if it has one.
    pub async fn handle(
        &self,
        request: Request<Bytes>,
        identity: Identity,
        deadline: Option<Timestamp>,
    ) -> Response<Body> {
        if self.auth == AuthMode::Dev
            && let Err(foreign) = self.hosts.admit(request.method(), request.headers())
        {
            return foreign.answer();
        }
        let budget = self
            .reader()
            .map_or_else(|_| CallBudget::default(), |it| it.call_budget(deadline));
        let mut context = CallContext {
            edge: self,
            identity,
            budget,
        };
        match decode::open(self, &request) {
            // Boxed, since the future holds a whole turn: callers stay small.
            Ok(OpenedRequest::One(call)) => Box::pin(context.one(&call, &request)).await,
            Ok(OpenedRequest::Batch(entries)) => {
                context.budget = budget.in_batch();
                Box::pin(context.batch(entries)).await
            }
            Err(rejected) => encode::answer(rejected.answer()),
        }
    }

    fn engine(&self) -> Result<&Engine, A2aError> {
        match &self.backend {
            Backend::Engine(engine) => Ok(engine),
            Backend::Cards | Backend::Reader(_) => Err(A2aError::MethodNotFound),
        }
    }

    fn reader(&self) -> Result<&Reader, A2aError> {
        match &self.backend {
            Backend::Engine(engine) => Ok(engine.reader()),
            Backend::Reader(reader) => Ok(reader),
            Backend::Cards => Err(A2aError::MethodNotFound),
        }
    }
}

/// One request while it is answered.
struct CallContext<'e> {
    edge: &'e HttpService,
    identity: Identity,
    budget: CallBudget,
}

impl CallContext<'_> {
    /// Answers a call that is not in a batch, with JSON or a stream.
    async fn one(&self, call: &Call, request: &Request<Bytes>) -> Response<Body> {
        let answered = if call.operation.is_card() {
            // The public cards need no caller.
            call.decode()
                .map_err(EngineError::from)
                .and_then(|ask| match ask {
                    MethodCall::Card(CardForm::LegacyAgentJson) => {
                        self.edge.cards.legacy.respond(request)
                    }
                    _ => self.edge.cards.agent_card.respond(request),
                })
        } else {
            self.call(call).await
        };
        answered.unwrap_or_else(|error| refused(call, &error))
    }

    /// Answers the calls of a batch, in order, each in its own entry.
    async fn batch(&self, entries: Vec<Result<Call, Rejected>>) -> Response<Body> {
        let mut answers = Vec::with_capacity(entries.len());
        let reader = self.edge.reader();
        let mut left = reader.map_or(usize::MAX, |reader| reader.policy.response_max);
        let mut waiting = entries.len();
        for entry in entries {
            // INVARIANT: all entries together stay within the response budget of one
            // call. Bytes that an entry does not use go to the entries after it.
            let share = left / waiting.max(1);
            let answer = match entry {
                Ok(call) => self.slot(&call, share).await,
                Err(rejected) => rejected.answer(),
            };
            left = left.saturating_sub(answer.body.len());
            waiting -= 1;
            answers.push(answer);
        }
        encode::answer(a2a_lambda_wire::batch(&answers))
    }

    /// Answers one entry of a batch, in at most `share` bytes.
    async fn slot(&self, call: &Call, share: usize) -> WireResponse {
        match self.unary(call, Some(share)).await {
            Ok(reply) => a2a_lambda_wire::answer(call, &reply),
            Err(error) => {
                error.log();
                a2a_lambda_wire::refuse(call, &error.refusal)
            }
        }
    }

    /// The reader, with a response budget of `share` bytes if given.
    fn reader(&self, share: Option<usize>) -> Result<Reader, A2aError> {
        let reader = self.edge.reader()?.clone();
        Ok(match share {
            Some(bytes) => reader.within(bytes),
            None => reader,
        })
    }

    /// The engine, with a response budget of `share` bytes if given.
    fn engine(&self, share: Option<usize>) -> Result<Engine, A2aError> {
        let engine = self.edge.engine()?.clone();
        Ok(match share {
            Some(bytes) => engine.within(bytes),
            None => engine,
        })
    }

    async fn call(&self, call: &Call) -> Result<Response<Body>, EngineError> {
        if !call.streams() {
            let reply = self.unary(call, None).await?;
            return Ok(encode::answer(a2a_lambda_wire::answer(call, &reply)));
        }
        let (caller, ask) = self.enter(call)?;
        match ask {
            MethodCall::Stream(command) => {
                let engine = self.edge.engine()?.clone();
                let budget = self.budget;
                stream::respond(call, move |frames| async move {
                    engine.stream(&caller, *command, budget, frames).await
                })
                .await
            }
            MethodCall::Subscribe(command) => {
                let reader = self.edge.reader()?.clone();
                let budget = self.budget;
                stream::respond(call, move |frames| async move {
                    reader.subscribe(&caller, &command, budget, frames).await
                })
                .await
            }
            _ => Err(EngineError::broken("a stream call decoded as a unary one")),
        }
    }

    /// Runs a call without a stream, until the client's response is due.
    async fn unary(&self, call: &Call, share: Option<usize>) -> Result<MethodResult, EngineError> {
        let (caller, ask) = self.enter(call)?;
        // Boxed, since the future holds a whole turn.
        let reply = Box::pin(self.reply(&caller, ask, share));
        match self.edge.reader() {
            Ok(reader) => reader.with_timeout(&self.budget, reply).await,
            Err(_) => reply.await,
        }
    }

    async fn reply(
        &self,
        caller: &Caller,
        ask: MethodCall,
        share: Option<usize>,
    ) -> Result<MethodResult, EngineError> {
        Ok(match ask {
            MethodCall::Send(command) => {
                let engine = self.engine(share)?;
                MethodResult::Sent(engine.send(caller, *command, self.budget).await?)
            }
            MethodCall::Get(query) => {
                MethodResult::Task(Box::new(self.reader(share)?.get(caller, &query).await?))
            }
            MethodCall::List(query) => {
                MethodResult::Page(self.reader(share)?.list(caller, &query).await?)
            }
            MethodCall::Cancel(command) => MethodResult::Task(Box::new(
                self.engine(share)?.cancel(caller, &command).await?,
            )),
            MethodCall::CreateUpload(order) => MethodResult::Upload(Box::new(
                self.edge.engine()?.create_upload(caller, order).await?,
            )),
            MethodCall::CreatePush(command) => {
                MethodResult::Push(self.edge.engine()?.create_push(caller, &command).await?)
            }
            MethodCall::GetPush(query) => {
                MethodResult::Push(self.edge.reader()?.get_push(caller, &query).await?)
            }
            MethodCall::ListPushes(query) => {
                MethodResult::Pushes(self.edge.reader()?.list_pushes(caller, &query).await?)
            }
            MethodCall::DeletePush(query) => {
                self.edge.engine()?.delete_push(caller, &query).await?;
                MethodResult::PushDeleted
            }
            MethodCall::ListContexts(query) => {
                MethodResult::Contexts(self.edge.reader()?.contexts(caller, &query).await?)
            }
            MethodCall::DeleteContext(id) => {
                self.edge.engine()?.delete_context(caller, &id).await?;
                MethodResult::Deleted
            }
            MethodCall::DeleteTask(id) => {
                self.edge.engine()?.delete_task(caller, &id).await?;
                MethodResult::Deleted
            }
            MethodCall::ExtendedCard => self.edge.cards.answer_extended(self.proven())?,
            MethodCall::Skills => self.edge.cards.answer_catalogue(self.proven()),
            MethodCall::Stream(_) | MethodCall::Subscribe(_) | MethodCall::Card(_) => {
                return Err(EngineError::broken("a stream or a card in a unary call"));
            }
        })
    }

    /// Checks that the sender has credentials.
    fn proven(&self) -> Result<(), A2aError> {
        self.edge.auth.proven(&self.identity)
    }

    /// Checks the caller, the version and the parameters, in this order: only
    /// authenticated callers get errors about the last two.
    fn enter(&self, call: &Call) -> Result<(Caller, MethodCall), A2aError> {
        let caller = self.edge.auth.caller(&self.identity)?;
        if let Some(newer) = call.newer_version() {
            tracing::warn!(
                a2a.version = newer,
                "a client uses protocol version `{newer}`, newer than this agent knows"
            );
        }
        call.check_version()?;
        // A tenant in the path or body is for routing, not an identity. Another tenant
        // than the caller's gets "not found" before the parameters are checked, so that
        // the response shows nothing about that tenant.
        let elsewhere = call
            .routing_tenant
            .as_deref()
            .is_some_and(|t| t != caller.owner.tenant.as_str());
        if elsewhere {
            return Err(A2aError::TaskNotFound);
        }
        if call.operation.is_push() && !self.edge.push {
            return Err(A2aError::PushNotSupported);
        }
        let ask = call.decode()?;
        Ok((caller, ask))
    }
}

fn refused(call: &Call, error: &EngineError) -> Response<Body> {
    error.log();
    encode::answer(a2a_lambda_wire::refuse(call, &error.refusal))
}
