//! The agent's cards and its catalogue: made once, from the deployed agent and
//! its settings, never from a request.

use super::{Body, date, encode};
use crate::engine::EngineError;
use crate::protocol::{CardError, CardInfo, CardShape, CardSignature, Document, Reply};
use crate::task::{Refusal, Timestamp};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED,
};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

/// How long a client may keep a card.
const MAX_AGE: &str = "public, max-age=300";

/// What a deployment publishes of its agent.
#[derive(Debug, Clone)]
pub struct Cards {
    /// At `/.well-known/agent-card.json`.
    pub(super) agent_card: Card,
    /// At `/.well-known/agent.json` and `/agent.json`.
    pub(super) legacy: Card,
    /// Whether the public card announces one for known callers.
    announced: bool,
    /// The card for known callers.
    extended: Option<Document>,
    /// The skills everybody may know of.
    listed: Value,
    /// All skills.
    all: Value,
}

/// One public document.
#[derive(Debug, Clone)]
pub(super) struct Card {
    document: Document,
    modified: Option<Timestamp>,
}

impl Cards {
    /// The documents of an agent; `shape` is the one at the usual path.
    ///
    /// # Errors
    /// [`CardError`] when something the protocol requires is empty.
    pub fn new(info: &CardInfo, shape: CardShape) -> Result<Self, CardError> {
        Ok(Self {
            agent_card: Card::new(info.agent_card(shape)?),
            legacy: Card::new(info.legacy_agent_json()?),
            announced: info.capabilities.extended_agent_card,
            extended: None,
            listed: json!([]),
            all: json!([]),
        })
    }

    /// With a card for known callers (A2A 1.0 §3.1.11).
    ///
    /// # Errors
    /// [`CardError`] when something the protocol requires is empty.
    pub fn extended(mut self, info: &CardInfo, shape: CardShape) -> Result<Self, CardError> {
        self.extended = Some(info.agent_card(shape)?);
        Ok(self)
    }

    /// With a catalogue: the skills everybody may know of, and all of them, as
    /// lists of their manifests.
    #[must_use]
    pub fn catalogue(mut self, listed: Value, all: Value) -> Self {
        self.listed = listed;
        self.all = all;
        self
    }

    /// With the time from which the public documents are as they are.
    #[must_use]
    pub const fn modified(mut self, at: Option<Timestamp>) -> Self {
        self.agent_card.modified = at;
        self.legacy.modified = at;
        self
    }

    /// With signatures, each on the card it belongs to. The form of 0.1 and 0.2
    /// has no place for one.
    ///
    /// # Errors
    /// [`CardError::ForeignSignature`] for one that belongs to none.
    pub fn signed(mut self, signatures: &[CardSignature]) -> Result<Self, CardError> {
        for (index, signature) in signatures.iter().enumerate() {
            let mut documents = self.documents();
            if !documents.any(|document| signature.is_of(&document.value)) {
                return Err(CardError::ForeignSignature { number: index + 1 });
            }
        }
        if !signatures.is_empty() {
            self.agent_card.document = self.agent_card.document.signed(signatures);
            self.extended = self.extended.map(|document| document.signed(signatures));
        }
        Ok(self)
    }

    /// The documents that can be signed.
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        std::iter::once(&self.agent_card.document).chain(&self.extended)
    }

    /// The card for known callers. `proven` says whether this caller is one.
    pub(super) fn answer_extended(&self, proven: Result<(), Refusal>) -> Result<Reply, Refusal> {
        if !self.announced {
            // The card says so (A2A 1.0 §3.3.4).
            let why = "this agent has no extended card";
            return Err(Refusal::UnsupportedOperation { why });
        }
        proven?;
        let document = self.extended.as_ref();
        document
            .map(|document| Reply::Document(document.value.clone()))
            .ok_or(Refusal::ExtendedCardNotConfigured)
    }

    /// The catalogue: to a caller who proved nothing without the skills which
    /// only the extended card shows.
    pub(super) fn answer_catalogue(&self, proven: Result<(), Refusal>) -> Reply {
        let skills = proven.map_or(&self.listed, |()| &self.all);
        Reply::Document(json!({"skills": skills}))
    }
}

impl Card {
    const fn new(document: Document) -> Self {
        Self {
            document,
            modified: None,
        }
    }

    /// Answers with the card, or with 304 if the client has it.
    pub(super) fn respond<B>(&self, request: &Request<B>) -> Result<Response<Body>, EngineError> {
        let fresh = self.is_known_to(request);
        let body = if fresh {
            Vec::new()
        } else {
            self.document.body.clone()
        };
        let mut response = Response::new(encode::whole(body));
        if fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut put = |name, text: &str| {
            let value = HeaderValue::from_str(text)
                .map_err(|_| EngineError::broken("a validator is no header value"))?;
            headers.insert(name, value);
            Ok::<_, EngineError>(())
        };
        put(ETAG, &self.document.etag)?;
        if let Some(date) = self.modified.and_then(date::written) {
            put(LAST_MODIFIED, &date)?;
        }
        Ok(response)
    }

    /// Whether the client has these bytes. A tag is compared weakly, and a date
    /// counts only where there is no tag (RFC 9110 §13.1.2, §13.1.3).
    fn is_known_to<B>(&self, request: &Request<B>) -> bool {
        let header = |name: HeaderName| {
            let value = request.headers().get(name)?;
            value.to_str().ok()
        };
        if let Some(tags) = header(IF_NONE_MATCH) {
            return tags.split(',').map(str::trim).any(|tag| {
                tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.document.etag
            });
        }
        let since = header(IF_MODIFIED_SINCE).and_then(date::read);
        let seconds = |at: Timestamp| at.as_millis().div_euclid(1_000);
        match (self.modified, since) {
            (Some(modified), Some(since)) => seconds(modified) <= seconds(since),
            _ => false,
        }
    }
}
