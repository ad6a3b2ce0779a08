//! Routes a request once, and opens or refuses it in the dialect of its path.

use super::call::{OpenedRequest, RawRequest, Rejected, RequestReader, rejection};
use super::rest::{Endpoint, PathRoute};
use super::{Dialect, RpcId, rest};
use a2a_lambda_model::task::{A2aError, Generation};

/// A request with the route of its method and path.
#[derive(Debug)]
pub struct RoutedRequest<'a> {
    request: RawRequest<'a>,
    route: Option<PathRoute>,
}

impl<'a> RoutedRequest<'a> {
    /// Finds the route of `request`. Nothing else routes it again.
    #[must_use]
    pub fn of(request: RawRequest<'a>) -> Self {
        Self {
            request,
            route: rest::route(request.method, request.path),
        }
    }

    /// The request as received.
    #[must_use]
    pub const fn raw(&self) -> &RawRequest<'a> {
        &self.request
    }

    /// The kind of its route.
    #[must_use]
    pub const fn endpoint(&self) -> Endpoint {
        rest::endpoint(self.route.as_ref())
    }

    /// Opens the request: checks its route, content type, number of JSON values, depth,
    /// envelope and method, in this order. No value is built from the body before its
    /// values are counted.
    ///
    /// # Errors
    /// [`Rejected`], with everything that its response needs.
    pub fn open(self) -> Result<OpenedRequest, Rejected> {
        let opener = RequestReader {
            request: &self.request,
            pairs: rest::query_pairs(self.request.query),
        };
        match &self.route {
            None => Err(self.reject(A2aError::MethodNotFound)),
            Some(PathRoute::JsonRpc) => opener.json_rpc(),
            Some(PathRoute::Operation(target)) => opener.path(target).map(OpenedRequest::one),
        }
    }

    /// Refuses the request without opening it, for example one that is too large, in
    /// the dialect of its path.
    #[must_use]
    pub fn reject(&self, error: A2aError) -> Rejected {
        let dialect = match &self.route {
            Some(PathRoute::JsonRpc) => Dialect::json_rpc(Generation::V10),
            Some(PathRoute::Operation(target)) => Dialect::rest(target.generation),
            None => Dialect::rest(rest::family(self.request.path)),
        };
        rejection(&self.request, dialect, RpcId::Null, error)
    }
}

/// Routes and opens a request: [`RoutedRequest::open`].
///
/// # Errors
/// As [`RoutedRequest::open`].
pub fn open(request: &RawRequest<'_>) -> Result<OpenedRequest, Rejected> {
    RoutedRequest::of(*request).open()
}
