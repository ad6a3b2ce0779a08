//! Calls over HTTP, among them the `curl` lines of documents and banners.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A call before it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    url: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    /// Without one it is POST for a call with a body, else GET.
    method: Option<Method>,
}

impl Call {
    /// A GET request of A2A 1.0.
    pub(crate) fn get(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            headers: vec![("A2A-Version".to_owned(), "1.0".to_owned())],
            body: None,
            method: None,
        }
    }

    /// The same call with another method.
    pub(crate) fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// A message of A2A 1.0 with the text `text`.
    pub(crate) fn say(base: &str, text: &str) -> Self {
        let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]});
        let body = json!({"message": message}).to_string();
        Self {
            body: Some(body),
            ..Self::get(&format!("{base}/message:send")).header("Content-Type", "application/json")
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same call without a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// The same call with another body.
    pub(crate) fn body(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self
    }

    /// The call of a `curl` line.
    pub(crate) fn pasted(line: &str) -> Self {
        let mut call = Self {
            url: String::new(),
            headers: Vec::new(),
            body: None,
            method: None,
        };
        let words = words(line);
        let mut words = words.iter().map(String::as_str);
        assert_eq!(words.next(), Some("curl"));
        while let Some(word) = words.next() {
            match word {
                // `-N` switches off the output buffer of curl.
                "-N" => {}
                "-H" => {
                    let (name, value) = words.next().unwrap().split_once(": ").unwrap();
                    call = call.header(name, value);
                }
                "-d" => call.body = words.next().map(str::to_owned),
                url => {
                    assert!(call.url.is_empty() && url.starts_with("http://"), "{url}");
                    url.clone_into(&mut call.url);
                }
            }
        }
        call
    }

    /// The same call to another server.
    pub(crate) fn at(mut self, base: &str) -> Self {
        let uri: Uri = self.url.parse().unwrap();
        self.url = format!("{base}{}", uri.path_and_query().unwrap());
        self
    }

    /// The same call to another path of the server.
    pub(crate) fn at_path(mut self, path: &str) -> Self {
        let uri: Uri = self.url.parse().unwrap();
        self.url = format!("http://{}{path}", uri.authority().unwrap());
        self
    }

    /// The status and the whole body of the response.
    pub(crate) async fn send(self) -> (StatusCode, String) {
        let (status, body) = self.open().await;
        let bytes = body.collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// The status, and the body while it arrives. Dropping it closes the connection.
    pub(crate) async fn open(self) -> (StatusCode, Incoming) {
        let (head, body) = self.response().await.into_parts();
        (head.status, body)
    }

    /// The response, as soon as its headers have arrived.
    pub(crate) async fn response(self) -> Response<Incoming> {
        self.tried().await.unwrap()
    }

    /// The JSON body, unless nothing listens or the connection ends, as between two programs.
    pub(crate) async fn json_if_served(self) -> Option<Value> {
        let body = self.tried().await.ok()?.collect().await.ok()?;
        serde_json::from_slice(&body.to_bytes()).ok()
    }

    async fn tried(self) -> Result<Response<Incoming>, Box<dyn std::error::Error>> {
        let uri: Uri = self.url.parse().unwrap();
        let socket = TcpStream::connect(uri.authority().unwrap().as_str()).await;
        let socket = TokioIo::new(socket?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await?;
        tokio::spawn(connection);
        let method = match (self.method, &self.body) {
            (Some(method), _) => method,
            (None, Some(_)) => Method::POST,
            (None, None) => Method::GET,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(uri.path_and_query().unwrap().as_str())
            .header("Host", uri.authority().unwrap().as_str());
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(self.body.unwrap_or_default()));
        Ok(sender.send_request(request.body(body).unwrap()).await?)
    }

    /// The JSON body of a response with status 200.
    pub(crate) async fn json(self) -> Value {
        let shown = format!("{self:?}");
        let (status, text) = self.send().await;
        assert_eq!(status, StatusCode::OK, "{shown}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// The words of a shell line with single quotes and backslashes at line ends.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let line = line.replace("\\\n", " ");
    // Every second piece is in quotes.
    for (n, piece) in line.split('\'').enumerate() {
        if n % 2 == 1 {
            words.push(piece.to_owned());
        } else {
            assert!(!piece.contains(['"', '\\', '$', '`', '&', ';']), "{piece}");
            words.extend(piece.split_whitespace().map(str::to_owned));
        }
    }
    words
}
