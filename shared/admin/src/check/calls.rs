//! Requests and responses, and what the transcript shows of them.

use super::interface::text;
use a2a_lambda::outbound::{AddressPolicy, Fetcher, OutboundUrl};
use a2a_lambda::skill::is_invisible;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Uri, request};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::Value;
use std::cell::RefCell;
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long the head of a response may take, and each piece of its body.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of a response.
const LIMIT: usize = 64 * 1024 * 1024;
/// The most characters of a text, and lines of a value, in a transcript.
const SHOWN: usize = 120;
const LINES: usize = 40;

/// Why a step has no result.
pub(super) enum Fault {
    NotShown(String),
    Fails(String),
    /// A status of 400 or more, or an error of JSON-RPC: status, code, text. The code is 0 for a
    /// response that is no error of A2A.
    Refused(u16, i64, String),
}

impl<E: Display> From<E> for Fault {
    fn from(cause: E) -> Self {
        Self::Fails(cause.to_string())
    }
}

/// The scheme, host and port of a URL.
type Origin = (String, String, u16);

fn origin(url: &str) -> Option<Origin> {
    let url: Uri = url.parse().ok()?;
    let scheme = url.scheme_str()?.to_ascii_lowercase();
    let port = if scheme == "https" { 443 } else { 80 };
    let port = url.port_u16().unwrap_or(port);
    Some((scheme, url.host()?.to_ascii_lowercase(), port))
}

/// A request to the server on the command line, or for a file. Only [`CheckClient`] makes one:
/// the content of a stranger's card or task never decides where other requests go.
pub(super) struct WalkRequest<'a> {
    builder: request::Builder,
    fetcher: &'a Fetcher,
}

impl WalkRequest<'_> {
    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }
}

/// Sends requests to one server, with the key.
pub(super) struct CheckClient {
    fetcher: Fetcher,
    /// Reads files at other servers.
    elsewhere: Fetcher,
    pub(super) base: String,
    origin: Origin,
    pub(super) key: Option<String>,
    /// The transcript: a text for each call and heading.
    pub(super) entries: RefCell<Vec<String>>,
}

impl CheckClient {
    /// A caller of the server at `base`; none if that is not a URL to which the key may go.
    pub(super) fn new(base: &str, key: Option<String>) -> Option<Self> {
        // The operator named the address, so it may be in a private network. A key goes to
        // another machine encrypted only.
        let reach = match &key {
            Some(_) if !base.starts_with("https://") => AddressPolicy::Loopback,
            _ => AddressPolicy::Anything,
        };
        OutboundUrl::parse(base, reach).ok()?;
        Some(Self {
            fetcher: Fetcher::new(reach, TIMEOUT),
            elsewhere: Fetcher::new(AddressPolicy::Public, TIMEOUT),
            base: base.trim_end_matches('/').to_owned(),
            origin: origin(base)?,
            key,
            entries: RefCell::default(),
        })
    }

    /// Whether `url` is of the server.
    pub(super) fn is_own(&self, url: &str) -> bool {
        origin(url).as_ref() == Some(&self.origin)
    }

    /// A request to the server without the key.
    pub(super) fn keyless_request(
        &self,
        method: Method,
        url: &str,
    ) -> Result<WalkRequest<'_>, Fault> {
        if !self.is_own(url) {
            return Err(format!("`{url}` is another server: check that address").into());
        }
        Ok(WalkRequest {
            builder: Request::builder().method(method).uri(url),
            fetcher: &self.fetcher,
        })
    }

    /// A request to the server.
    pub(super) fn request(&self, method: Method, url: &str) -> Result<WalkRequest<'_>, Fault> {
        let request = self.keyless_request(method, url)?;
        Ok(match &self.key {
            Some(key) => request.header(AUTHORIZATION.as_str(), &format!("Bearer {key}")),
            None => request,
        })
    }

    /// A request for a file: of the server, of another port of its host, or of a public address.
    pub(super) fn file_request(&self, url: &str) -> Result<WalkRequest<'_>, Fault> {
        if self.is_own(url) {
            return self.request(Method::GET, url);
        }
        let (scheme, host, _) = &self.origin;
        let is_beside = origin(url).is_some_and(|it| (&it.0, &it.1) == (scheme, host));
        Ok(WalkRequest {
            builder: Request::builder().uri(url),
            fetcher: if is_beside {
                &self.fetcher
            } else {
                &self.elsewhere
            },
        })
    }

    /// Sends a request; the reply is there when its head is.
    pub(super) async fn open(
        &self,
        request: WalkRequest<'_>,
        body: &Value,
    ) -> Result<ServerReply<'_>, Fault> {
        let bytes = body.is_null().then(String::new);
        let bytes = Bytes::from(bytes.unwrap_or_else(|| body.to_string()));
        let WalkRequest { builder, fetcher } = request;
        let request = builder.header(ACCEPT, "application/json, text/event-stream");
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(bytes)?;
        let (method, url) = (request.method(), cut(&request.uri().to_string()));
        let entry = format!("{method} {url}{}", short(body));
        self.entries.borrow_mut().push(entry);
        let number = self.entries.borrow().len();
        let began = Instant::now();
        let (head, body) = fetcher.open(request).await?.into_parts();
        Ok(ServerReply {
            caller: self,
            number,
            began,
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.map_err(|cause| cause.to_string()).boxed_unsync(),
            read: BytesMut::new(),
        })
    }

    /// Reads a path of the server.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Fault> {
        let request = self.request(Method::GET, &format!("{}{path}", self.base))?;
        self.open(request, &Value::Null).await?.result().await
    }
}

/// A response whose body arrives.
pub(super) struct ServerReply<'a> {
    caller: &'a CheckClient,
    /// The number of entries when it was sent.
    number: usize,
    began: Instant,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: UnsyncBoxBody<Bytes, String>,
    read: BytesMut,
}

impl ServerReply<'_> {
    /// Reads on; false at the end.
    async fn more(&mut self) -> Result<bool, Fault> {
        let Some(frame) = timeout(TIMEOUT, self.body.frame()).await? else {
            return Ok(false);
        };
        self.read.extend(frame?.into_data().ok());
        match self.read.len() {
            ..=LIMIT => Ok(true),
            _ => Err("the response is above 64 MB".into()),
        }
    }

    /// The whole body.
    pub(super) async fn bytes(&mut self) -> Result<Bytes, Fault> {
        while self.more().await? {}
        Ok(self.read.split().freeze())
    }

    /// The result in the body, out of its JSON-RPC envelope.
    pub(super) async fn result(&mut self) -> Result<Value, Fault> {
        let bytes = self.bytes().await?;
        self.read_result(&bytes)
    }

    fn read_result(&self, data: &[u8]) -> Result<Value, Fault> {
        let mut value: Value = serde_json::from_slice(data).unwrap_or_default();
        let (status, took) = (self.status, self.began.elapsed().as_millis());
        let note = format!("\n\nAfter {took} ms, status {status}:{}", short(&value));
        let mut entries = self.caller.entries.borrow_mut();
        if let Some(entry) = entries.get_mut(self.number.saturating_sub(1)) {
            entry.push_str(&note);
        }
        if status >= 400 || value.get("error").is_some() || value.is_null() {
            let error = value.get("error").unwrap_or(&value);
            let code = error.get("code").and_then(Value::as_i64);
            // An error over REST of 0.3 may have a message only.
            let is_known = text(error, "/message").is_some();
            let code = code.unwrap_or(if is_known { status.into() } else { 0 });
            let public = text(error, "/message").or(text(error, "/detail"));
            let all = || value.to_string().chars().take(SHOWN * 4).collect();
            let public: String = public.map_or_else(all, str::to_owned);
            let text = format!("status {status}, code {code}: {public}");
            return Err(Fault::Refused(status, code, text));
        }
        let result = value.get_mut("result").map(Value::take);
        Ok(result.unwrap_or(value))
    }

    /// The next event of a stream; none at its end.
    pub(super) async fn event(&mut self) -> Result<Option<Value>, Fault> {
        let kind = self.headers.get(CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            self.result().await?;
            return Err("the response is not a stream".into());
        }
        loop {
            let ends = [b"\n\n".as_slice(), b"\r\n\r\n"];
            let end = ends.iter().find_map(|end| {
                let at = self.read.windows(end.len()).position(|it| it == *end);
                at.map(|at| at + end.len())
            });
            let Some(end) = end else {
                if self.more().await? {
                    continue;
                }
                return Ok(None);
            };
            let event = self.read.split_to(end);
            let event = String::from_utf8_lossy(&event);
            let data = event.lines().filter_map(|it| it.strip_prefix("data:"));
            let data: String = data.collect();
            if !data.is_empty() {
                return self.read_result(data.as_bytes()).map(Some);
            }
        }
    }
}

/// A value for people, cut if it is long.
fn short(value: &Value) -> String {
    if value.is_null() {
        return String::new();
    }
    let text = format!("{value:#}");
    let lines: Vec<String> = text.lines().take(LINES).map(cut).collect();
    let rest = if text.lines().nth(LINES).is_some() {
        "\n…"
    } else {
        ""
    };
    format!("\n\n```json\n{}{rest}\n```", lines.join("\n"))
}

/// A line without the signature of a URL, cut if it is long.
fn cut(line: &str) -> String {
    let plain = line.split("?X-Amz-").next().unwrap_or_default();
    let text: String = plain.chars().take(SHOWN).collect();
    let rest = if text.len() < line.len() { "…" } else { "" };
    escape(&text) + rest
}

/// A text of a stranger on one line: a terminal shows each of its characters and obeys none
/// (CWE-150).
pub(super) fn escape(text: &str) -> String {
    let is_hidden = |letter: char| letter.is_control() || is_invisible(letter);
    let letters = text.chars().map(|letter| match letter {
        '\n' => "\\n".to_owned(),
        letter if is_hidden(letter) => letter.escape_unicode().to_string(),
        letter => letter.to_string(),
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::CheckClient;
    use a2a_lambda::outbound::AddressPolicy;
    use a2a_lambda_rows::each_row;
    use http::Method;
    use http::header::AUTHORIZATION;

    fn client(base: &str) -> CheckClient {
        CheckClient::new(base, Some("secret".into())).unwrap()
    }

    #[test]
    fn no_request_goes_to_another_server() {
        let rows = [
            ("https://a.example/base", "https://a.example/", true),
            ("https://a.example", "https://A.EXAMPLE:443/x?y", true),
            ("http://127.0.0.1:80", "http://127.0.0.1/x", true),
            ("https://a.example", "http://a.example/", false),
            ("https://a.example", "https://a.example:8443/", false),
            ("https://a.example", "https://a.example.b.example/", false),
            ("https://a.example", "https://a.example@127.0.0.1/", false),
            ("https://a.example", "https://127.0.0.1#a.example/", false),
            ("http://127.0.0.1:8080", "http://localhost:8080/", false),
            ("http://127.0.0.1:8080", "/admin", false),
        ];
        each_row(rows, |(base, url, is_own)| {
            let client = client(base);
            assert_eq!(client.request(Method::POST, url).is_ok(), is_own);
            assert_eq!(client.keyless_request(Method::POST, url).is_ok(), is_own);
        });
    }

    #[test]
    fn a_file_elsewhere_is_public_and_gets_no_key() {
        let rows = [
            (
                "https://a.example",
                "https://a.example/f",
                true,
                AddressPolicy::Anything,
            ),
            (
                "https://a.example",
                "https://a.example:8443/f",
                false,
                AddressPolicy::Anything,
            ),
            (
                "https://a.example",
                "http://a.example:8080/f",
                false,
                AddressPolicy::Public,
            ),
            (
                "https://a.example",
                "https://b.example/f",
                false,
                AddressPolicy::Public,
            ),
            (
                "https://a.example",
                "http://169.254.169.254/f",
                false,
                AddressPolicy::Public,
            ),
            (
                "http://127.0.0.1:1",
                "http://127.0.0.1:2/f",
                false,
                AddressPolicy::Loopback,
            ),
            (
                "http://127.0.0.1:1",
                "http://localhost:2/f",
                false,
                AddressPolicy::Public,
            ),
        ];
        each_row(rows, |(base, url, has_key, reach)| {
            let client = client(base);
            let request = client.file_request(url).ok().unwrap();
            let headers = request.builder.headers_ref().unwrap();
            assert_eq!(headers.contains_key(AUTHORIZATION), has_key);
            assert_eq!(request.fetcher.reach(), reach);
        });
    }
}
