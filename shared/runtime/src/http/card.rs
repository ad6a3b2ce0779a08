//! The public agent card: made once, from the deployed agent and the
//! configured URL, never from a request.

use super::{Body, encode};
use crate::engine::EngineError;
use crate::protocol::{CardError, CardInfo, CardShape, Document};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Request, Response, StatusCode};

/// How long a client may keep a card.
const MAX_AGE: &str = "public, max-age=300";

/// The card documents of a deployment.
#[derive(Debug, Clone)]
pub struct Cards {
    /// At `/.well-known/agent-card.json`.
    pub(super) agent_card: Card,
    /// At `/.well-known/agent.json` and `/agent.json`.
    pub(super) legacy: Card,
}

/// One document.
#[derive(Debug, Clone)]
pub(super) struct Card(Document);

impl Cards {
    /// The documents of an agent; `shape` is the one at the usual path.
    ///
    /// # Errors
    /// [`CardError`] when something the protocol requires is empty.
    pub fn new(info: &CardInfo, shape: CardShape) -> Result<Self, CardError> {
        Ok(Self {
            agent_card: Card(info.agent_card(shape)?),
            legacy: Card(info.legacy_agent_json()?),
        })
    }
}

impl Card {
    /// Answers with the card, or with 304 if the client has these bytes.
    pub(super) fn respond<B>(&self, request: &Request<B>) -> Result<Response<Body>, EngineError> {
        let known = request
            .headers()
            .get(IF_NONE_MATCH)
            .and_then(|v| v.to_str().ok());
        let mut tags = known.unwrap_or_default().split(',').map(str::trim);
        let fresh = tags.any(|tag| tag == self.0.etag || tag == "*");
        let body = if fresh {
            Vec::new()
        } else {
            self.0.body.clone()
        };
        let mut response = Response::new(encode::whole(body));
        if fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let etag = HeaderValue::from_str(&self.0.etag)
            .map_err(|_| EngineError::broken("an entity tag is no header value"))?;
        headers.insert(ETAG, etag);
        Ok(response)
    }
}
