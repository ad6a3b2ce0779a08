//! Serves the agent's cards and its catalogue of skills.
//!
//! They are made once for a base URL, of the deployed agent and its settings. No client
//! changes them.

use super::encode;
use super::encode::Body;
use crate::engine::EngineError;
use crate::task::{A2aError, Timestamp};
use a2a_lambda_wire::{
    CardDocument, CardError, CardForm, CardInfo, CardShape, CardSignature, MethodResult,
};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED,
};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// How long a client may cache a card.
const MAX_AGE: &str = "public, max-age=300";

/// The documents that a deployment publishes about its agent.
#[derive(Debug, Clone)]
pub struct Cards {
    /// The card at `/.well-known/agent-card.json`.
    agent_card: CardDocument,
    /// The card at `/.well-known/agent.json` and `/agent.json`.
    legacy: CardDocument,
    /// The schemas at `/a2a-lambda/schemas`.
    schemas: CardDocument,
    /// Whether the public card announces an extended card.
    has_extended: bool,
    /// The extended card, for authenticated callers (A2A 1.0 §3.1.11).
    pub(crate) extended_card: Option<CardDocument>,
    /// The manifests of the skills on the public card.
    pub(crate) public_skills: Value,
    /// The manifests of all skills.
    pub(crate) all: Value,
    /// When the public cards last changed.
    pub(crate) modified_at: Option<Timestamp>,
}

impl Cards {
    /// Makes the public cards of an agent. `shape` is that of the card at
    /// `/.well-known/agent-card.json`.
    ///
    /// # Errors
    /// [`CardError`] when something the protocol requires is empty.
    pub fn new(info: &CardInfo, shape: CardShape) -> Result<Self, CardError> {
        let (agent_card, schemas) = info.agent_card(shape)?.with_schemas_apart(&info.base_url);
        Ok(Self {
            agent_card,
            legacy: info.legacy_agent_json()?,
            schemas,
            has_extended: info.capabilities.extended_agent_card,
            extended_card: None,
            public_skills: json!([]),
            all: json!([]),
            modified_at: None,
        })
    }

    /// Adds each signature to the card it belongs to, and leaves out signatures of other
    /// cards. The card of 0.1 and 0.2 has no member for signatures.
    #[must_use]
    pub fn with_signatures(mut self, signatures: &[CardSignature]) -> Self {
        if !signatures.is_empty() {
            self.agent_card = self.agent_card.with_signatures(signatures);
            self.extended_card = self
                .extended_card
                .map(|document| document.with_signatures(signatures));
        }
        self
    }

    /// The cards that can be signed, the public one first.
    pub fn documents(&self) -> impl Iterator<Item = &CardDocument> {
        std::iter::once(&self.agent_card).chain(&self.extended_card)
    }

    /// The extended card. `proven` is an error if the sender has no credentials.
    pub(super) fn answer_extended(
        &self,
        proven: Result<(), A2aError>,
    ) -> Result<MethodResult, A2aError> {
        if !self.has_extended {
            // A2A 1.0 §3.3.4: an operation that the card does not announce is
            // unsupported, with or without credentials.
            let why = "this agent has no extended card";
            return Err(A2aError::UnsupportedOperation { why });
        }
        proven?;
        let document = self.extended_card.as_ref();
        document
            .map(|document| MethodResult::Document(document.value.clone()))
            .ok_or(A2aError::ExtendedCardNotConfigured)
    }

    /// The catalogue. A sender without credentials gets the skills on the public card
    /// only.
    pub(super) fn answer_catalogue(&self, proven: Result<(), A2aError>) -> MethodResult {
        let skills = proven.map_or(&self.public_skills, |()| &self.all);
        MethodResult::Document(json!({"skills": skills}))
    }

    /// Responds with a public card, or with 304 if the client has these bytes.
    pub(super) fn respond<B>(
        &self,
        form: CardForm,
        request: &Request<B>,
    ) -> Result<Response<Body>, EngineError> {
        let document = match form {
            CardForm::AgentCard => &self.agent_card,
            CardForm::LegacyAgentJson => &self.legacy,
            CardForm::Schemas => &self.schemas,
        };
        let fresh = self.is_known_to(request, document);
        let body = if fresh {
            Vec::new()
        } else {
            document.body.clone()
        };
        let mut response = Response::new(encode::full_body(body));
        if fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut put = |name, text: &str| {
            let value = HeaderValue::from_str(text)
                .map_err(|_| EngineError::internal("an ETag or date is not valid text"))?;
            headers.insert(name, value);
            Ok::<_, EngineError>(())
        };
        put(ETAG, &document.etag)?;
        if let Some(date) = self.modified_at.and_then(format_date) {
            put(LAST_MODIFIED, &date)?;
        }
        Ok(response)
    }

    /// Whether the client has these bytes.
    fn is_known_to<B>(&self, request: &Request<B>, document: &CardDocument) -> bool {
        let header = |name: HeaderName| {
            let value = request.headers().get(name)?;
            value.to_str().ok()
        };
        // RFC 9110 §13.1.2: tags are compared weakly.
        // RFC 9110 §13.1.3: the date counts only if there is no tag.
        if request.headers().contains_key(IF_NONE_MATCH) {
            let lists = request.headers().get_all(IF_NONE_MATCH).iter();
            let tags = lists.filter_map(|list| list.to_str().ok());
            return tags.flat_map(|tags| tags.split(',')).any(|tag| {
                let tag = tag.trim();
                tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == document.etag
            });
        }
        let since = header(IF_MODIFIED_SINCE).and_then(read_date);
        let seconds = |at: Timestamp| at.as_millis().div_euclid(1_000);
        match (self.modified_at, since) {
            (Some(modified_at), Some(since)) => seconds(modified_at) <= seconds(since),
            _ => false,
        }
    }
}

/// The date of a header (RFC 9110 §5.6.7), to the second, for example `Thu, 28 May 2026 10:00:00
/// GMT`; `None` outside the years that this form can express.
fn format_date(at: Timestamp) -> Option<String> {
    let seconds = u64::try_from(at.as_millis().div_euclid(1_000)).ok()?;
    // Later dates have five digits for the year, and `httpdate` panics.
    let is_known = seconds < 253_402_300_800;
    is_known.then(|| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)))
}

/// Reads the date of a header.
fn read_date(text: &str) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(since.as_secs()).ok()?;
    Some(Timestamp::from_millis(seconds.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::{format_date, read_date};
    use crate::task::Timestamp;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_date_is_written_to_the_second_and_read_back() {
        let at = Timestamp::parse_rfc3339("1994-11-06T08:49:37.900Z").unwrap();
        let text = format_date(at).unwrap();
        assert_eq!(text, "Sun, 06 Nov 1994 08:49:37 GMT");
        let second = Timestamp::parse_rfc3339("1994-11-06T08:49:37Z");
        assert_eq!(read_date(&text), second);
        assert_eq!(read_date("Sun Nov  6 08:49:37 1994"), second);
    }

    #[test]
    fn a_text_that_is_not_a_date_is_none() {
        let rows = [
            "",
            "yesterday",
            "1994-11-06T08:49:37Z",
            "Sun, 32 Nov 1994 08:49:37 GMT",
        ];
        each_row(rows, |bad| {
            assert_eq!(read_date(bad), None, "{bad}");
        });
    }
}
