//! Reads the events of API Gateway.
//!
//! An event is decoded once, and only into what the edge uses: a decoder of all its members
//! costs a send more than the skill. Whatever headers, path and body a client sends, reading
//! an event never panics.
//!
//! Source: Amazon API Gateway Developer Guide, "Input format of a Lambda function for proxy
//! integration" (format 1.0) and "Create AWS Lambda proxy integrations for HTTP APIs"
//! (formats 1.0 and 2.0).

use super::path::below_the_api;
use crate::auth::Identity;
use crate::http::StageUrl;
use crate::http::base_url::STAGE_VARIABLE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Formatter, Write as _};

/// The format of an event, which is also that of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFormat {
    /// Format 1.0, of REST APIs.
    One,
    /// Format 2.0, of HTTP APIs and function URLs.
    Two,
}

/// What an event says.
#[derive(Debug)]
pub struct GatewayEvent {
    /// The request with the path of the event. In format 1.0 that has no stage, and the base
    /// path of a custom domain is cut off.
    pub request: Request<Bytes>,
    /// The identity of the sender, from the authorizer of API Gateway and the headers.
    pub identity: Identity,
    /// The format of the event.
    pub format: EventFormat,
}

impl GatewayEvent {
    /// Reads an event.
    ///
    /// # Errors
    /// [`Error`] if `text` is not an event of API Gateway for a proxy integration.
    pub fn read(text: &[u8]) -> Result<Self, Error> {
        let event: ProxyEvent<'_> = serde_json::from_slice(text)?;
        let EventContext {
            resource_path,
            http_method,
            http,
            authorizer,
        } = event.request_context;
        let (format, method) = match (&http_method, &http) {
            (Some(method), _) => (EventFormat::One, method),
            (None, Some(http)) => (EventFormat::Two, &http.method),
            (None, None) => return Err(Error::custom("expected an event of API Gateway")),
        };
        let method = Method::from_bytes(method.0.as_bytes()).map_err(Error::custom)?;
        let (path, query) = match format {
            EventFormat::One => (event.path, one_of(event.queries, event.query)?),
            EventFormat::Two => (
                event.raw_path,
                event.raw_query.map(|it| QueryText(it.into())),
            ),
        };
        let path = path.as_ref().map_or("", |path| path.0.as_ref());
        let path = below_the_api(path, resource_path.as_ref().map(|it| it.0.as_ref()));
        let mut request = Request::new(body(event.body, event.is_base64_encoded)?);
        *request.method_mut() = method;
        *request.uri_mut() = target(path, query.as_ref().map_or("", |query| &query.0))?;
        // `headers` has only the last of several values.
        let headers = one_of(event.many_headers, event.headers)?;
        *request.headers_mut() = headers.unwrap_or_default().0;
        let stage = event.stage_variables;
        if let Some(url) = stage.and_then(|mut stage| stage.remove(STAGE_VARIABLE)) {
            request.extensions_mut().insert(StageUrl(url));
        }
        let identity = Identity {
            authorizer: match format {
                EventFormat::One => Some(authorizer.unwrap_or_default()),
                EventFormat::Two => authorizer.map(of_lambda),
            },
            ..Identity::of(request.headers())
        };
        Ok(Self {
            request,
            identity,
            format,
        })
    }
}

/// The members of both formats that the edge uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProxyEvent<'a> {
    #[serde(borrow)]
    path: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    raw_path: Option<BorrowedText<'a>>,
    #[serde(borrow, rename = "rawQueryString")]
    raw_query: Option<BorrowedText<'a>>,
    // In format 1.0 these two repeat the two after them, so they are read only if needed.
    #[serde(borrow)]
    headers: Option<&'a RawValue>,
    #[serde(borrow, rename = "queryStringParameters")]
    query: Option<&'a RawValue>,
    #[serde(rename = "multiValueHeaders")]
    many_headers: Option<Headers>,
    #[serde(rename = "multiValueQueryStringParameters")]
    queries: Option<QueryText>,
    stage_variables: Option<HashMap<String, String>>,
    #[serde(borrow)]
    request_context: EventContext<'a>,
    #[serde(borrow)]
    body: Option<BorrowedText<'a>>,
    is_base64_encoded: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventContext<'a> {
    /// The resource of API Gateway that the path matched. Format 2.0 has none.
    #[serde(borrow)]
    resource_path: Option<BorrowedText<'a>>,
    /// Only in format 1.0. The event of a load balancer has it outside of the context.
    #[serde(borrow)]
    http_method: Option<BorrowedText<'a>>,
    /// Only in format 2.0.
    #[serde(borrow)]
    http: Option<Http<'a>>,
    authorizer: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Http<'a> {
    #[serde(borrow)]
    method: BorrowedText<'a>,
}

/// The context of a Lambda authorizer, which format 2.0 keeps beside those of other kinds.
fn of_lambda(mut authorizer: Map<String, Value>) -> Map<String, Value> {
    match authorizer.remove("lambda") {
        Some(Value::Object(context)) => context,
        _ => Map::new(),
    }
}

/// `first` if the event has it, else `second`.
fn one_of<'a, T: MemberTexts + Deserialize<'a>>(
    first: Option<T>,
    second: Option<&'a RawValue>,
) -> Result<Option<T>, Error> {
    match (first.filter(|it| !it.is_empty()), second) {
        (None, Some(second)) => serde_json::from_str(second.get()),
        (first, _) => Ok(first),
    }
}

fn body(text: Option<BorrowedText<'_>>, is_base64: Option<bool>) -> Result<Bytes, Error> {
    let Some(BorrowedText(text)) = text else {
        return Ok(Bytes::new());
    };
    if is_base64 == Some(true) {
        let bytes = STANDARD.decode(text.as_bytes());
        return bytes
            .map(Bytes::from)
            .map_err(|_| Error::custom("expected a body in base64"));
    }
    Ok(Bytes::from(text.into_owned()))
}

/// The target of a request. Characters that a path or a query cannot have are encoded: a
/// front end may have decoded them.
fn target(path: &str, query: &str) -> Result<Uri, Error> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte);
    let mut target = String::with_capacity(path.len() + query.len() + 2);
    if !path.starts_with('/') {
        target.push('/');
    }
    percent_encode(&mut target, path, |byte| is_allowed(byte) && byte != b'?');
    if !query.is_empty() {
        target.push('?');
        percent_encode(&mut target, query, is_allowed);
    }
    target.parse().map_err(Error::custom)
}

fn percent_encode(out: &mut String, text: &str, is_allowed: impl Fn(u8) -> bool) {
    for byte in text.bytes() {
        if is_allowed(byte) {
            out.push(char::from(byte));
        } else {
            // Infallible: a string takes every text.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// A text that is copied only if it has escapes. serde copies a `Cow` in an `Option` always.
struct BorrowedText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BorrowedTextVisitor;

        impl<'de> Visitor<'de> for BorrowedTextVisitor {
            type Value = BorrowedText<'de>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(BorrowedText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(BorrowedText(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(BorrowedTextVisitor)
    }
}

impl From<BorrowedText<'_>> for String {
    fn from(BorrowedText(text): BorrowedText<'_>) -> Self {
        text.into_owned()
    }
}

/// What is read from an object. Each of its members is a text or a list of texts.
trait MemberTexts: Default {
    /// Whether nothing was read.
    fn is_empty(&self) -> bool;

    /// Adds the value of a member.
    fn add<E: serde::de::Error>(&mut self, name: &str, value: &str) -> Result<(), E>;
}

/// Headers.
#[derive(Default)]
struct Headers(HeaderMap);

impl MemberTexts for Headers {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add<E: serde::de::Error>(&mut self, name: &str, value: &str) -> Result<(), E> {
        let name = HeaderName::from_bytes(name.as_bytes());
        let name = name.map_err(|_| E::custom("invalid name of a header"))?;
        let value = HeaderValue::from_bytes(value.as_bytes());
        let value = value.map_err(|_| E::custom("invalid value of a header"))?;
        self.0.append(name, value);
        Ok(())
    }
}

/// A query string. API Gateway decodes its values, so they are encoded again.
#[derive(Default)]
struct QueryText(String);

impl MemberTexts for QueryText {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add<E: serde::de::Error>(&mut self, name: &str, value: &str) -> Result<(), E> {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if !self.0.is_empty() {
            self.0.push('&');
        }
        percent_encode(&mut self.0, name, is_unreserved);
        self.0.push('=');
        percent_encode(&mut self.0, value, is_unreserved);
        Ok(())
    }
}

/// Reads the members of an object.
struct TextsVisitor<M>(M);

impl<'de, M: MemberTexts> Visitor<'de> for TextsVisitor<M> {
    type Value = M;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts or lists of texts")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<M, A::Error> {
        while let Some(BorrowedText(name)) = members.next_key()? {
            members.next_value_seed(MemberValues {
                into: &mut self.0,
                name: &name,
            })?;
        }
        Ok(self.0)
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TextsVisitor(Self::default()))
    }
}

impl<'de> Deserialize<'de> for QueryText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TextsVisitor(Self::default()))
    }
}

/// Reads the values of one member.
struct MemberValues<'m, M> {
    into: &'m mut M,
    name: &'m str,
}

impl<'de, M: MemberTexts> DeserializeSeed<'de> for MemberValues<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: MemberTexts> Visitor<'de> for MemberValues<'_, M> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.into.add(self.name, value)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(BorrowedText(value)) = values.next_element()? {
            self.into.add(self.name, &value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
