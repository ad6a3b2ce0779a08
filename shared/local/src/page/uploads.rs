//! Puts the large files of the page into the object store, and reads them.
//!
//! The store answers no web page, and its port changes with each start. So the page sends
//! a file to its own server, and asks it for one, with the URL that the agent signed for it.

use super::PageError;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, IF_NONE_MATCH};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, Request, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::error::Error;
use tokio::net::TcpStream;

/// The header with the signed URL.
const TARGET: &str = "x-a2a-local-upload";
/// The headers that belong to the signed URL.
const SIGNED: [HeaderName; 4] = [
    CONTENT_LENGTH,
    CONTENT_TYPE,
    IF_NONE_MATCH,
    HeaderName::from_static("x-amz-checksum-sha256"),
];

/// Sends the body of `request` to the URL in its header. `store` is the base URL of the
/// object store; nothing is sent anywhere else.
///
/// # Errors
/// [`PageError`] for another URL, and when the store does not take the file.
pub(super) async fn put(store: Option<&str>, request: Request<Incoming>) -> Result<(), PageError> {
    let (head, body) = request.into_parts();
    let (address, path) = target(store, &head.headers).ok_or(PageError::UploadTarget)?;
    let mut put = Request::put(path).header(HOST, &address);
    for name in SIGNED {
        if let Some(value) = head.headers.get(&name) {
            put = put.header(name, value);
        }
    }
    let put = put.body(body).map_err(|_| PageError::UploadTarget)?;
    send(&address, put).await.map(drop)
}

/// Reads the file at the URL in the headers. `store` is the base URL of the object store;
/// nothing is read anywhere else.
///
/// # Errors
/// [`PageError`] for another URL, and when the store does not give the file.
pub(super) async fn get(store: Option<&str>, headers: &HeaderMap) -> Result<Bytes, PageError> {
    let (address, path) = target(store, headers).ok_or(PageError::UploadTarget)?;
    let get = Request::get(path).header(HOST, &address);
    let get = get.body(Empty::<Bytes>::new());
    send(&address, get.map_err(|_| PageError::UploadTarget)?).await
}

/// The body of the store's answer, if that is a success.
async fn send<B>(address: &str, request: Request<B>) -> Result<Bytes, PageError>
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let exchange = async {
        let socket = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let answer = async move {
            let response = sender.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        // The connection is driven beside the request, and ends with it.
        let (answer, _ended) = tokio::join!(answer, connection);
        Ok::<_, Box<dyn Error + Send + Sync>>(answer?)
    };
    match exchange.await {
        Ok((status, body)) if status.is_success() => Ok(body),
        Ok((status, _)) => Err(PageError::Upload(format!("status {}", status.as_u16()))),
        Err(error) => Err(PageError::Upload(error.to_string())),
    }
}

/// The address and the path of the signed URL, if it is one of the object store.
fn target(store: Option<&str>, headers: &HeaderMap) -> Option<(String, String)> {
    let store: Uri = store?.parse().ok()?;
    let target: Uri = headers.get(TARGET)?.to_str().ok()?.parse().ok()?;
    let same = store.authority()? == target.authority()?;
    let is_http = target.scheme() == Some(&Scheme::HTTP) && store.scheme() == target.scheme();
    let path = target.path_and_query()?.to_string();
    (same && is_http).then_some((target.authority()?.to_string(), path))
}

#[cfg(test)]
mod tests {
    use super::{TARGET, target};
    use a2a_lambda_rows::each_row;
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn a_file_goes_to_the_object_store_only() {
        let store = Some("http://127.0.0.1:9000");
        let given = |url: &'static str| {
            let header = (
                HeaderName::from_static(TARGET),
                HeaderValue::from_static(url),
            );
            target(store, &HeaderMap::from_iter([header]))
        };
        assert!(given("http://127.0.0.1:9000/bucket/key?X-Amz-Signature=1").is_some());
        let rows = [
            "http://127.0.0.1:9001/bucket/key",
            "http://evil.example/bucket/key",
            "http://127.0.0.1:9000@evil.example/key",
            "http://user@127.0.0.1:9000/key",
            "https://127.0.0.1:9000/key",
            "/key",
            "",
        ];
        each_row(rows, |other| {
            assert_eq!(given(other), None, "{other}");
        });
        assert_eq!(target(store, &HeaderMap::new()), None);
    }
}
