//! Sends push deliveries over HTTP (A2A 1.0 §4.3).
//!
//! | Header | Holds |
//! |---|---|
//! | `Authorization` | scheme and credentials of the push config |
//! | `X-A2A-Notification-Token` | the token of the push config |
//! | `X-A2A-Delivery-Id` | the id of the event, unique in its task; a repeated delivery has the same id |
//! | `traceparent` | the trace of the call that made the push config (W3C Trace Context) |
//! | `X-A2A-Signature` | `sha256=` and the HMAC-SHA256 in hex of `<delivery id>.<body>` under the token, if there is one |

use crate::engine::{PushDelivery, PushDeliveryError, SendPush};
use crate::outbound::{FetchError, Fetcher, Reach};
use crate::task::Secret;
use crate::telemetry::trace::TRACEPARENT;
use async_trait::async_trait;
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue, USER_AGENT,
};
use sha2::Sha256;
use std::time::Duration;

/// How long a webhook may take for its whole response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of a webhook's response body that are read. Only the status counts.
const ANSWER: usize = 16 * 1024;
/// The value of `User-Agent`.
const AGENT: &str = concat!("a2a-lambda/", env!("CARGO_PKG_VERSION"));

/// Sends push deliveries over HTTP.
#[derive(Debug, Clone)]
pub struct WebhookClient {
    fetcher: Fetcher,
}

impl WebhookClient {
    /// A sender that connects to the addresses which `reach` allows.
    #[must_use]
    pub fn new(reach: Reach) -> Self {
        Self {
            fetcher: Fetcher::new(reach, TIMEOUT),
        }
    }
}

#[async_trait]
impl SendPush for WebhookClient {
    async fn post(&self, notice: &PushDelivery) -> Result<(), PushDeliveryError> {
        // The body has the form of the generation in which the client made the config.
        let payload = a2a_lambda_wire::push_payload(notice.generation, &notice.frame);
        let (media, body) = payload
            .ok_or_else(|| PushDeliveryError::NoResponse("the frame has no payload".to_owned()))?;
        let headers = headers(notice, media, &body)
            .map_err(|_| PushDeliveryError::NoResponse("a header value is not valid".to_owned()))?;
        let answer = self
            .fetcher
            .post(&notice.url, headers, Bytes::from(body), ANSWER)
            .await
            .map_err(|error: FetchError| PushDeliveryError::NoResponse(error.to_string()))?;
        match answer.status {
            200..=299 => Ok(()),
            // A redirect counts as a failure. The client never follows one: its target
            // could be a private address.
            status => Err(PushDeliveryError::Status(status)),
        }
    }
}

fn headers(
    notice: &PushDelivery,
    media: &'static str,
    body: &[u8],
) -> Result<HeaderMap, InvalidHeaderValue> {
    let id = notice.id.to_string();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if let (Some(scheme), Some(credentials)) = (&notice.scheme, &notice.credentials) {
        let text = Secret::new(format!("{scheme} {}", credentials.expose()));
        headers.insert(AUTHORIZATION, secret(&text)?);
    }
    if let Some(token) = &notice.token {
        headers.insert("x-a2a-notification-token", secret(token)?);
        if let Some(signature) = signature(token, &id, body) {
            headers.insert("x-a2a-signature", HeaderValue::from_str(&signature)?);
        }
    }
    headers.insert("x-a2a-delivery-id", HeaderValue::from_str(&id)?);
    if let Some(trace) = &notice.trace {
        headers.insert(TRACEPARENT, HeaderValue::from_str(&trace.to_string())?);
    }
    Ok(headers)
}

/// A header value whose debug output does not show it.
fn secret(text: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text.expose())?;
    value.set_sensitive(true);
    Ok(value)
}

fn signature(token: &Secret, id: &str, body: &[u8]) -> Option<String> {
    // HMAC takes keys of any length, so this never returns `None`.
    let mut mac = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes()).ok()?;
    mac.update(id.as_bytes());
    mac.update(b".");
    mac.update(body);
    Some(format!(
        "sha256={}",
        hex::encode(mac.finalize().into_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::OutboundUrl;
    use crate::task::{EventId, Frame, Generation, Message, Part};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn push_payload() -> PushDelivery {
        PushDelivery {
            url: OutboundUrl::parse("https://hook.example/", Reach::Public).unwrap(),
            generation: Generation::V10,
            id: EventId {
                version: 3,
                n: 1,
                mark: None,
            },
            scheme: Some("Bearer".to_owned()),
            credentials: Some(Secret::new("canary-credentials")),
            token: Some(Secret::new("canary-token")),
            trace: None,
            frame: Frame::KeepAlive,
        }
    }

    #[test]
    fn a_delivery_carries_its_id_and_the_headers_of_the_push_config() {
        let headers = headers(&push_payload(), "application/a2a+json", b"{}").unwrap();
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(text("authorization"), "Bearer canary-credentials");
        assert_eq!(text("x-a2a-notification-token"), "canary-token");
        assert_eq!(text("x-a2a-delivery-id"), "3.1");
        assert_eq!(text("content-type"), "application/a2a+json");
        // printf '3.1.{}' | openssl dgst -sha256 -hmac canary-token
        let hash = "e5085ae3cc20dc06c45e233828a10fe801c62de8232823415e2fc1221084f93d";
        assert_eq!(text("x-a2a-signature"), format!("sha256={hash}"));
        let shown = format!("{headers:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_delivery_omits_headers_that_the_push_config_lacks() {
        let plain = PushDelivery {
            scheme: None,
            token: None,
            ..push_payload()
        };
        let headers = headers(&plain, "application/json", b"{}").unwrap();
        for name in [
            "authorization",
            "x-a2a-notification-token",
            "x-a2a-signature",
        ] {
            assert!(!headers.contains_key(name), "{name}");
        }
    }

    #[tokio::test]
    async fn a_frame_without_a_payload_is_not_sent() {
        let sent = WebhookClient::new(Reach::Public)
            .post(&push_payload())
            .await;
        assert!(
            matches!(sent, Err(PushDeliveryError::NoResponse(_))),
            "{sent:?}"
        );
    }

    #[tokio::test]
    async fn a_delivery_succeeds_on_2xx_and_follows_no_redirect() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = format!("http://{}/", listener.local_addr().unwrap());
        let reported = PushDelivery {
            url: OutboundUrl::parse(&here, Reach::Loopback).unwrap(),
            frame: Frame::Message(Message::from_agent("m-1", vec![Part::text("done")])),
            ..push_payload()
        };
        let webhooks = WebhookClient::new(Reach::Loopback);
        for status in [200, 204, 301, 302, 307, 308, 400, 404, 500, 503] {
            let answers = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut asked = [0; 4096];
                assert_ne!(socket.read(&mut asked).await.unwrap(), 0);
                let end = "content-length: 0\r\nconnection: close\r\n\r\n";
                let answer = format!("HTTP/1.1 {status} X\r\nlocation: {here}again\r\n{end}");
                socket.write_all(answer.as_bytes()).await.unwrap();
            };
            let (sent, ()) = tokio::join!(webhooks.post(&reported), answers);
            match sent {
                Ok(()) => assert!((200..300).contains(&status), "{status}"),
                Err(PushDeliveryError::Status(reported)) => assert_eq!(reported, status),
                Err(other) => panic!("{status}: {other}"),
            }
        }
    }
}
