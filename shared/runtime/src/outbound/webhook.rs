//! Sends push deliveries over HTTP (A2A 1.0 §4.3).
//!
//! | Header | Holds |
//! |---|---|
//! | `Authorization` | scheme and credentials of the push config |
//! | `X-A2A-Notification-Token` | the token of the push config, unless it signs |
//! | `X-A2A-Delivery-Id` | the id of the event, unique in its task; a repeated delivery has the same id |
//! | `traceparent` | the trace of the call that made the push config (W3C Trace Context) |
//!
//! A push config made with the extension `urn:a2a-lambda:ext:webhook-signatures:1` has these
//! headers instead of the token. A receiver computes the signature, compares it in constant
//! time, and refuses a timestamp that is more than five minutes off or a delivery that it knows.
//!
//! | Header | Holds |
//! |---|---|
//! | `X-A2A-Timestamp` | the seconds since 1970 of this attempt |
//! | `X-A2A-Task-Id` | the id of the task |
//! | `X-A2A-Signature` | `v1=` and the HMAC-SHA256 in hex of `v1.<timestamp>.<task id>.<delivery id>.<body>` under the token |

use crate::engine::{PushDelivery, PushDeliveryError, SendPush};
use crate::outbound::{AddressPolicy, FetchError, Fetcher};
use crate::task::Secret;
use crate::telemetry::trace::TRACEPARENT;
use async_trait::async_trait;
use http::Method;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue, USER_AGENT,
};
use ring::hmac;
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
    pub fn new(reach: AddressPolicy) -> Self {
        Self {
            fetcher: Fetcher::new(reach, TIMEOUT),
        }
    }
}

#[async_trait]
impl SendPush for WebhookClient {
    async fn post(&self, delivery: &PushDelivery) -> Result<(), PushDeliveryError> {
        // The body has the form of the generation in which the client made the config.
        let payload = a2a_lambda_wire::push_payload(delivery.generation, &delivery.frame);
        let (media, body) = payload
            .ok_or_else(|| PushDeliveryError::NoResponse("the frame has no payload".to_owned()))?;
        let headers = headers(delivery, media, &body)
            .map_err(|_| PushDeliveryError::NoResponse("a header value is not valid".to_owned()))?;
        let response = self
            .fetcher
            .send(&delivery.url, Method::POST, headers, body.into(), ANSWER)
            .await
            .map_err(|error| match error {
                FetchError::Unconnected(why) => PushDeliveryError::Unconnected(why),
                error => PushDeliveryError::NoResponse(error.to_string()),
            })?;
        match response.status {
            200..=299 => Ok(()),
            // A redirect counts as a failure. The client never follows one: its target
            // could be a private address.
            status => Err(PushDeliveryError::Status(status)),
        }
    }
}

fn headers(
    delivery: &PushDelivery,
    media: &'static str,
    body: &[u8],
) -> Result<HeaderMap, InvalidHeaderValue> {
    let id = delivery.id.to_string();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if let (Some(scheme), Some(credentials)) = (&delivery.scheme, &delivery.credentials) {
        let text = Secret::new(format!("{scheme} {}", credentials.expose()));
        headers.insert(AUTHORIZATION, secret(&text)?);
    }
    if let Some(token) = &delivery.token {
        if delivery.signs {
            let at = (delivery.at.as_millis() / 1000).to_string();
            let task = delivery.task.as_str();
            let signature = signature(token, &["v1", &at, task, &id], body);
            headers.insert("x-a2a-timestamp", HeaderValue::from_str(&at)?);
            headers.insert("x-a2a-task-id", HeaderValue::from_str(task)?);
            headers.insert("x-a2a-signature", HeaderValue::from_str(&signature)?);
        } else {
            headers.insert("x-a2a-notification-token", secret(token)?);
        }
    }
    headers.insert("x-a2a-delivery-id", HeaderValue::from_str(&id)?);
    if let Some(trace) = &delivery.trace {
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

/// The signature of `fields` and the body, with a dot after each field.
fn signature(token: &Secret, fields: &[&str], body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.expose().as_bytes());
    let mut mac = hmac::Context::with_key(&key);
    for field in fields {
        mac.update(field.as_bytes());
        mac.update(b".");
    }
    mac.update(body);
    format!("v1={}", hex::encode(mac.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::OutboundUrl;
    use crate::task::{
        EventId, Frame, Generation, Message, Owner, Part, Subject, TaskId, TenantId, Timestamp,
        WriteId,
    };
    use a2a_lambda_rows::each_row_async;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn push_payload() -> PushDelivery {
        PushDelivery {
            url: OutboundUrl::parse("https://hook.example/", AddressPolicy::Public).unwrap(),
            generation: Generation::V10,
            owner: Owner {
                tenant: TenantId::parse("acme").unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            task: TaskId::parse("task-1").unwrap(),
            incarnation: WriteId::made_of(1),
            at: Timestamp::from_millis(1_700_000_000_123),
            signs: false,
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
        assert!(!headers.contains_key("x-a2a-signature"));
        let shown = format!("{headers:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_signed_delivery_has_a_time_and_a_signature_and_no_token() {
        let signed = PushDelivery {
            signs: true,
            ..push_payload()
        };
        let headers = headers(&signed, "application/a2a+json", b"{}").unwrap();
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(text("x-a2a-timestamp"), "1700000000");
        assert_eq!(text("x-a2a-task-id"), "task-1");
        // printf 'v1.1700000000.task-1.3.1.{}' | openssl dgst -sha256 -hmac canary-token
        let hash = "89c6c650a32ebeea792cf364887f99b8fe005d78041c5f6b621c93c37e02f4bb";
        assert_eq!(text("x-a2a-signature"), format!("v1={hash}"));
        let all = headers.values().map(|value| value.as_bytes());
        let token = b"canary-token".as_slice();
        assert!(
            !all.into_iter()
                .any(|value| value.windows(12).any(|part| part == token))
        );
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
        let sent = WebhookClient::new(AddressPolicy::Public)
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
            url: OutboundUrl::parse(&here, AddressPolicy::Loopback).unwrap(),
            frame: Frame::Message(Message::from_agent("m-1", vec![Part::text("done")])),
            ..push_payload()
        };
        let webhooks = WebhookClient::new(AddressPolicy::Loopback);
        let rows = [200, 204, 301, 302, 307, 308, 400, 404, 500, 503];
        each_row_async(rows, async |status| {
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
        })
        .await;
    }
}
