//! Answers HTTP requests: the edge of the runtime.
//!
//! All functions, the local agent and an author's own server call [`HttpService::handle`].
//! It never fails: each error becomes a response. This module knows HTTP and the
//! order of the checks. The rules of the protocol are in `a2a-lambda-wire`, those of a task
//! in `engine`.

mod backend;
mod call_context;
mod call_log;
mod card;
mod cards_by_url;
pub mod cors;
mod decode;
mod edges;
mod encode;
mod function;
mod ops;
mod options;
mod stream;

pub(crate) use backend::Backend;
pub use call_log::{EdgeLog, InvocationInfo};
pub use card::Cards;
pub use cards_by_url::CardsByUrl;
pub use edges::Edges;
pub use encode::Body;
pub use function::Function;
pub(crate) use ops::{MetricsSource, Ops};

use crate::auth::{AuthMode, Authentication, Identity};
use crate::engine::{CallBudget, RandomIds, SystemClock};
use crate::origin::{CorsOrigin, HostError, Hosts};
use crate::task::Timestamp;
use a2a_lambda_wire::OpenedRequest;
use bytes::Bytes;
use call_context::CallContext;
use futures::FutureExt as _;
use futures::future::{Either, ready};
use http::{Method, Request, Response};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The most bytes of a request body: 5 MiB. An event of Lambda has at most 6 MB.
pub const MAX_BODY: usize = 5 * 1024 * 1024;

/// The HTTP edge of one function.
#[derive(Debug, Clone)]
pub struct HttpService {
    pub(crate) function: Function,
    pub(crate) backend: Backend,
    pub(crate) cards: Arc<CardsByUrl>,
    pub(crate) auth: Authentication,
    /// Whether clients may register webhooks.
    pub(crate) push: bool,
    /// Whether clients may stream.
    pub(crate) streaming: bool,
    /// The hosts that a request with a development identity may name. API Gateway knows its own
    /// host names.
    pub(crate) hosts: Hosts,
    /// The origin whose pages may read responses. With development identities they may also make
    /// requests that other pages may not.
    pub(crate) cors: Option<CorsOrigin>,
    /// What the edges of the process share.
    pub(crate) log: EdgeLog,
}

impl HttpService {
    /// An edge for `function` that serves only cards.
    #[must_use]
    pub fn of_cards(function: Function, cards: Arc<CardsByUrl>, auth: Authentication) -> Self {
        Self {
            function,
            backend: Backend::Cards,
            cards,
            auth,
            push: false,
            streaming: true,
            hosts: Hosts::Any,
            cors: None,
            log: EdgeLog::new(Arc::new(SystemClock), Arc::new(RandomIds)),
        }
    }

    /// Answers one request. `deadline` is the end of the invocation, if it has one. The response
    /// to HEAD has the body of GET, which the server leaves out.
    pub fn handle(
        &self,
        request: Request<Bytes>,
        identity: Identity,
        deadline: Option<Timestamp>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let cors = self.cors.as_ref();
        let preflight =
            cors.and_then(|origin| origin.preflight(request.method(), request.headers()));
        let response = match preflight {
            Some(response) => Either::Left(ready(response)),
            None => Either::Right(self.respond(request, identity, deadline)),
        };
        response.map(move |mut response| {
            if let Some(cors) = cors {
                cors.allow(&mut response);
            }
            response
        })
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
            && let Err(error) = self.admit(&request)
        {
            log.foreign(error.status(), error.reason());
            return encode::refuse(error);
        }
        if request.method() == Method::OPTIONS
            && let Some(response) = options::respond(request.uri().path())
        {
            return response;
        }
        if let Backend::Ops(ops) = &self.backend
            && let Some(answer) = ops.answer(&request, &self.auth, &identity)
        {
            let response = answer.await;
            return encode::answer(
                response.unwrap_or_else(|error| decode::reject(&request, error)),
            );
        }
        let budget = self.backend.reader().map_or_else(
            |_| CallBudget::default(),
            |reader| reader.call_budget(deadline),
        );
        let mut context = CallContext {
            edge: self,
            identity,
            budget,
            stage: request.extensions().get().cloned(),
            log,
            admission: OnceCell::new(),
        };
        match decode::open(self, &request) {
            // Boxed, since the future holds a whole turn: callers stay small.
            Ok(OpenedRequest::One(call)) => Box::pin(context.one(&call, &request)).await,
            Ok(OpenedRequest::Batch(entries)) => {
                context.budget = budget.in_batch();
                Box::pin(context.batch(entries)).await
            }
            Err(rejection) => {
                context.log.log_rejection(&rejection);
                encode::answer(rejection.response())
            }
        }
    }

    /// Checks where a request with a development identity comes from.
    fn admit(&self, request: &Request<Bytes>) -> Result<(), HostError> {
        let headers = request.headers();
        self.hosts
            .admit(request.method(), headers)
            .or_else(|error| {
                let is_allowed = self
                    .cors
                    .as_ref()
                    .is_some_and(|origin| origin.is_sender(headers));
                match error {
                    HostError::Page if is_allowed => Ok(()),
                    _ => Err(error),
                }
            })
    }
}
