//! Answers HTTP requests: the edge of the runtime.
//!
//! All functions, the local agent and an author's own server call [`HttpService::handle`].
//! It never fails: each error becomes a response. This module knows HTTP and the
//! order of the checks. The rules of the protocol are in `a2a-lambda-wire`, those of a task
//! in `engine`.

mod backend;
pub mod base_url;
mod body;
mod call_log;
mod caller;
mod card;
mod cards_by_url;
pub mod cors;
mod date;
mod decode;
mod encode;
pub mod hosts;
mod ops;
mod stream;

pub use backend::Backend;
pub use base_url::{BaseUrl, StageUrl};
pub use body::Body;
pub use call_log::{EdgeLog, InvocationInfo};
pub use card::Cards;
pub use cards_by_url::CardsByUrl;
pub use cors::CorsOrigin;
pub use hosts::Hosts;
pub(crate) use ops::MetricsSource;
pub use ops::Ops;

use crate::auth::{Admitted, AuthMode, Authentication, Caller, Credentials, Identity};
use crate::engine::{CallBudget, Engine, EngineError, Reader};
use crate::task::{A2aError, Sent, Timestamp};
use crate::telemetry::scope;
use a2a_lambda_wire::{
    self, Call, CardForm, MethodCall, MethodResult, OpenedRequest, Rejected, WireResponse,
};
use bytes::Bytes;
use call_log::{CallLog, RequestLog};
use hosts::HostError;
use http::{Request, Response};
use ops::OpsPath;
use std::sync::Arc;
use tokio::sync::OnceCell;

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
    /// Health and metrics, for operators.
    Ops,
}

/// The HTTP edge of one function.
#[derive(Debug, Clone)]
pub struct HttpService {
    door: Function,
    backend: Backend,
    cards: Arc<CardsByUrl>,
    auth: Authentication,
    max_body: usize,
    push: bool,
    hosts: Hosts,
    cors: Option<CorsOrigin>,
    log: EdgeLog,
}

impl HttpService {
    /// An edge for the function `door`; `max_body` is the most bytes of a request body.
    #[must_use]
    pub fn new(
        door: Function,
        backend: Backend,
        cards: Arc<CardsByUrl>,
        auth: AuthMode,
        max_body: usize,
    ) -> Self {
        Self {
            door,
            backend,
            cards,
            auth: Authentication::new(auth, None),
            max_body,
            push: false,
            hosts: Hosts::Any,
            cors: None,
            log: EdgeLog::default(),
        }
    }

    /// Sets the credentials that the modes `keys` and `jwt` accept. Without them these modes
    /// refuse every caller.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Arc<Credentials>) -> Self {
        self.auth = Authentication::new(self.auth.mode(), Some(credentials));
        self
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

    /// Lets pages of `origin` read responses. With development identities, they may also make
    /// requests that other pages may not.
    #[must_use]
    pub fn with_cors(mut self, origin: Option<CorsOrigin>) -> Self {
        self.cors = origin;
        self
    }

    /// Shares `log` with the other edges of the process.
    #[must_use]
    pub fn with_log(mut self, log: EdgeLog) -> Self {
        self.log = log;
        self
    }

    /// Answers one request. `deadline` is the end of the invocation, if it has one.
    pub async fn handle(
        &self,
        request: Request<Bytes>,
        identity: Identity,
        deadline: Option<Timestamp>,
    ) -> Response<Body> {
        let Some(cors) = &self.cors else {
            return self.respond(request, identity, deadline).await;
        };
        let mut response = match cors.preflight(request.method(), request.headers()) {
            Some(response) => response,
            None => self.respond(request, identity, deadline).await,
        };
        cors.allow(&mut response);
        response
    }

    /// The response without the headers for pages of other origins.
    async fn respond(
        &self,
        request: Request<Bytes>,
        identity: Identity,
        deadline: Option<Timestamp>,
    ) -> Response<Body> {
        let log = self.log.begin(&request);
        if self.auth.mode() == AuthMode::Dev
            && let Err(foreign) = self.admit(&request)
        {
            log.foreign(foreign.status(), foreign.reason());
            return foreign.answer();
        }
        if let Backend::Ops(ops) = &self.backend
            && let Some(path) = OpsPath::of(request.method().as_str(), request.uri().path())
        {
            let answer = ops.respond(path, &self.auth, &identity).await;
            return encode::answer(
                answer.unwrap_or_else(|refusal| decode::reject(&request, refusal)),
            );
        }
        let budget = self
            .backend
            .reader()
            .map_or_else(|_| CallBudget::default(), |it| it.call_budget(deadline));
        let mut context = CallContext {
            edge: self,
            identity,
            budget,
            stage: request.extensions().get().cloned(),
            log,
            admitted: OnceCell::new(),
        };
        match decode::open(self, &request) {
            // Boxed, since the future holds a whole turn: callers stay small.
            Ok(OpenedRequest::One(call)) => Box::pin(context.one(&call, &request)).await,
            Ok(OpenedRequest::Batch(entries)) => {
                context.budget = budget.in_batch();
                Box::pin(context.batch(entries)).await
            }
            Err(rejected) => {
                context.log.rejected(&rejected);
                encode::answer(rejected.answer())
            }
        }
    }

    /// Checks where a request with a development identity comes from.
    fn admit(&self, request: &Request<Bytes>) -> Result<(), HostError> {
        let headers = request.headers();
        self.hosts
            .admit(request.method(), headers)
            .or_else(|foreign| {
                let allowed = self.cors.as_ref().is_some_and(|it| it.is_sender(headers));
                match foreign {
                    HostError::Page if allowed => Ok(()),
                    _ => Err(foreign),
                }
            })
    }

    fn engine(&self) -> Result<&Engine, A2aError> {
        self.backend.engine()
    }

    fn reader(&self) -> Result<&Reader, A2aError> {
        self.backend.reader()
    }
}

/// One request while it is answered.
struct CallContext<'e> {
    edge: &'e HttpService,
    identity: Identity,
    budget: CallBudget,
    /// The base URL in the stage variable of API Gateway.
    stage: Option<StageUrl>,
    log: RequestLog,
    /// The caller, once it is known: the calls of a batch share one lookup.
    admitted: OnceCell<Result<Admitted, A2aError>>,
}

impl CallContext<'_> {
    /// Answers a call that is not in a batch, with JSON or a stream.
    async fn one(&self, call: &Call, request: &Request<Bytes>) -> Response<Body> {
        let log = self.log.call(call, false);
        let answered = Box::pin(log.run(self.answered(call, request, &log))).await;
        match answered {
            // The line of a stream is written at its end.
            Ok(response) if call.streams() => response,
            Ok(response) => {
                log.answered(response.status().as_u16());
                response
            }
            Err(error) => {
                log.failed(call, &error.refusal);
                encode::answer(a2a_lambda_wire::refuse(call, &error.refusal))
            }
        }
    }

    async fn answered(
        &self,
        call: &Call,
        request: &Request<Bytes>,
        log: &CallLog,
    ) -> Result<Response<Body>, EngineError> {
        let answered = if call.operation.is_card() {
            // The public cards need no caller.
            call.decode()
                .map_err(EngineError::from)
                .and_then(|ask| match ask {
                    MethodCall::Card(CardForm::LegacyAgentJson) => {
                        self.cards()?.legacy.respond(request)
                    }
                    _ => self.cards()?.agent_card.respond(request),
                })
        } else {
            self.call(call, log).await
        };
        answered.inspect_err(EngineError::log)
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
                Err(rejected) => {
                    self.log.rejected(&rejected);
                    rejected.answer()
                }
            };
            left = left.saturating_sub(answer.body.len());
            waiting -= 1;
            answers.push(answer);
        }
        encode::answer(a2a_lambda_wire::batch(&answers))
    }

    /// Answers one entry of a batch, in at most `share` bytes.
    async fn slot(&self, call: &Call, share: usize) -> WireResponse {
        let log = self.log.call(call, true);
        let reply = async {
            let reply = self.unary(call, Some(share)).await;
            reply.inspect_err(EngineError::log)
        };
        match Box::pin(log.run(reply)).await {
            Ok(reply) => {
                let answer = a2a_lambda_wire::answer(call, &reply);
                log.answered(answer.status);
                answer
            }
            Err(error) => {
                log.failed(call, &error.refusal);
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

    async fn call(&self, call: &Call, log: &CallLog) -> Result<Response<Body>, EngineError> {
        if !call.streams() {
            let reply = self.unary(call, None).await?;
            return Ok(encode::answer(a2a_lambda_wire::answer(call, &reply)));
        }
        let (Admitted { caller, ends }, ask) = self.enter(call).await?;
        let budget = self.budget.for_credentials(ends);
        let until = self.edge.reader()?.clock.clone();
        let until = ends.map(|end| (end, until));
        match ask {
            MethodCall::Stream(command) => {
                let engine = self.edge.engine()?.clone();
                stream::respond(call, log, until, move |frames, stop| async move {
                    let stream = engine.stream(&caller, *command, budget, frames);
                    let reader = engine.reader();
                    Box::pin(reader.with_slots(&caller, stop, stream)).await
                })
                .await
            }
            MethodCall::Subscribe(command) => {
                let reader = self.edge.reader()?.clone();
                stream::respond(call, log, until, move |frames, stop| async move {
                    let stream = reader.subscribe(&caller, &command, budget, frames);
                    reader.with_slots(&caller, stop, stream).await
                })
                .await
            }
            _ => Err(EngineError::broken("a stream call decoded as a unary one")),
        }
    }

    /// Runs a call without a stream, until the client's response is due.
    async fn unary(&self, call: &Call, share: Option<usize>) -> Result<MethodResult, EngineError> {
        let (Admitted { caller, .. }, ask) = self.enter(call).await?;
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
                let sent = engine.send(caller, *command, self.budget).await?;
                if let Sent::Task(task) = &sent {
                    scope::note_task(task.id.as_str());
                }
                MethodResult::Sent(sent)
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
            MethodCall::ExtendedCard => self.cards()?.answer_extended(self.proven())?,
            MethodCall::Skills => self.cards()?.answer_catalogue(self.proven()),
            MethodCall::Stream(_) | MethodCall::Subscribe(_) | MethodCall::Card(_) => {
                return Err(EngineError::broken("a stream or a card in a unary call"));
            }
        })
    }

    /// The cards for the base URL of this request.
    fn cards(&self) -> Result<Arc<Cards>, EngineError> {
        self.edge.cards.of(self.stage.as_ref())
    }

    /// Checks the caller, its rate, the version and the parameters, in this order: only
    /// authenticated callers get errors about the last two, and each such error costs one
    /// call of the caller's rate.
    async fn enter(&self, call: &Call) -> Result<(Admitted, MethodCall), A2aError> {
        let admitted = self.admitted().await?;
        let caller = &admitted.caller;
        if let Ok(reader) = self.edge.reader() {
            reader.charge_call(caller).await?;
        }
        scope::note_tenant(caller.owner.tenant.as_str());
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
            .is_some_and(|t| t != admitted.caller.owner.tenant.as_str());
        if elsewhere {
            return Err(A2aError::TaskNotFound);
        }
        if call.operation.is_push() && !self.edge.push {
            return Err(A2aError::PushNotSupported);
        }
        let ask = call.decode()?;
        if let Some(task) = ask.task() {
            scope::note_task(task.as_str());
        }
        Ok((admitted, ask))
    }
}
