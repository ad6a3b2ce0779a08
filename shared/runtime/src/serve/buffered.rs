//! Writes whole responses, for functions with a buffered integration.
//!
//! A response is one JSON object with the body as a text, or as base64 if it is no text.
//!
//! Source: Amazon API Gateway Developer Guide, "Output format of a Lambda function for proxy
//! integration"; for the format 2.0, "Create AWS Lambda proxy integrations for HTTP APIs".

use super::event::EventFormat;
use crate::http::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use std::io::Write as _;

/// The bytes around a body. Most responses have fewer.
const AROUND: usize = 256;

/// The response in the format of the event.
pub(super) async fn envelope(response: Response<Body>, format: EventFormat) -> Vec<u8> {
    let (parts, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        // The error type of a body is empty, see `Body`.
        Err(never) => match never {},
    };
    // Most bodies are JSON, where one byte in eight is a quote, which gets an escape.
    let mut out = Vec::with_capacity(body.len() + body.len() / 4 + AROUND);
    // Infallible: a vector takes every byte.
    let _ = write!(out, "{{\"statusCode\":{}", parts.status.as_u16());
    headers(&mut out, &parts.headers, format);
    if format == EventFormat::Two {
        // API Gateway does without, but `cargo lambda watch` requires them.
        out.extend_from_slice(b",\"multiValueHeaders\":{},\"cookies\":[]");
    }
    let is_text = std::str::from_utf8(&body).is_ok();
    let _ = write!(out, ",\"isBase64Encoded\":{},\"body\":\"", !is_text);
    if is_text {
        escape(&mut out, &body);
    } else {
        out.extend_from_slice(STANDARD.encode(&body).as_bytes());
    }
    out.extend_from_slice(b"\"}");
    out
}

/// Writes the headers. Format 1.0 takes every value of a header; `headers` beside them would
/// send each again. Format 2.0 takes one value, and values of one header may be joined by
/// commas (RFC 9110 §5.3). No response of ours sets a cookie.
fn headers(out: &mut Vec<u8>, headers: &HeaderMap, format: EventFormat) {
    let (open, between, close): (&[u8], &[u8], &[u8]) = match format {
        EventFormat::One => (b":[\"", b"\",\"", b"\"]"),
        EventFormat::Two => (b":\"", b", ", b"\""),
    };
    out.extend_from_slice(match format {
        EventFormat::One => b",\"multiValueHeaders\":{",
        EventFormat::Two => b",\"headers\":{",
    });
    let mut is_first = true;
    for name in headers.keys() {
        // A value that is no text would make the whole response unreadable.
        let values = headers.get_all(name).iter();
        let mut texts = values
            .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
            .peekable();
        if texts.peek().is_none() {
            continue;
        }
        out.extend_from_slice(if is_first { b"\"" } else { b",\"" });
        is_first = false;
        out.extend_from_slice(name.as_str().as_bytes());
        out.push(b'"');
        out.extend_from_slice(open);
        for (place, value) in texts.enumerate() {
            if place > 0 {
                out.extend_from_slice(between);
            }
            escape(out, value.as_bytes());
        }
        out.extend_from_slice(close);
    }
    out.push(b'}');
}

/// Writes UTF-8 as the inside of a JSON text (RFC 8259 §7).
fn escape(out: &mut Vec<u8>, text: &[u8]) {
    if !has_control(text) {
        return escape_quotes(out, text);
    }
    for line in text.split_inclusive(u8::is_ascii_control) {
        match line.split_last() {
            Some((control, before)) if control.is_ascii_control() => {
                escape_quotes(out, before);
                // Infallible: a vector takes every byte.
                let _ = write!(out, "\\u{control:04x}");
            }
            _ => escape_quotes(out, line),
        }
    }
}

/// Whether a byte is below a space. Bodies mostly have none, so eight bytes are compared at
/// once: the subtraction borrows into the high bit of such a byte.
fn has_control(text: &[u8]) -> bool {
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = text.as_chunks();
    let below = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        word.wrapping_sub(SPACES) & !word & HIGH != 0
    };
    words.iter().any(below) || rest.iter().any(|byte| *byte < b' ')
}

/// Writes a text without control characters.
fn escape_quotes(out: &mut Vec<u8>, text: &[u8]) {
    let mut written = 0;
    for at in memchr::memchr2_iter(b'"', b'\\', text) {
        out.extend_from_slice(text.get(written..at).unwrap_or_default());
        out.push(b'\\');
        written = at;
    }
    out.extend_from_slice(text.get(written..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::{EventFormat, envelope};
    use crate::http::Body;
    use bytes::Bytes;
    use http::Response;
    use http_body_util::{BodyExt as _, Full};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn written(body: impl Into<Bytes>, format: EventFormat) -> Value {
        let response: Response<Body> = Response::builder()
            .status(201)
            .header("vary", "a")
            .header("vary", "b")
            .header("etag", "\"1\"")
            .header("x-bytes", &b"\xff"[..])
            .body(Full::new(body.into()).boxed_unsync())
            .unwrap();
        let bytes = futures::executor::block_on(envelope(response, format));
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn a_rest_api_gets_every_value_of_a_header_once() {
        assert_eq!(
            written("{\"a\":1}", EventFormat::One),
            json!({
                "statusCode": 201, "multiValueHeaders": {"vary": ["a", "b"], "etag": ["\"1\""]},
                "body": "{\"a\":1}", "isBase64Encoded": false,
            })
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_base64_and_said_to_be() {
        let envelope = written(&[0xff, 0][..], EventFormat::Two);
        assert_eq!(envelope["body"], "/wA=");
        assert_eq!(envelope["isBase64Encoded"], true);
        let headers = json!({"vary": "a, b", "etag": "\"1\""});
        assert_eq!(envelope["headers"], headers);
        // `cargo lambda watch` reads no response without these.
        assert_eq!(envelope["multiValueHeaders"], json!({}));
        assert_eq!(envelope["cookies"], json!([]));
    }

    proptest! {
        #[test]
        fn every_text_of_a_body_arrives_unchanged(
            text in prop_oneof![any::<String>(), "[ a\"\\\\\n\t\u{1}\u{1f}\u{7f}é]{0,40}"],
            format in prop::sample::select(vec![EventFormat::One, EventFormat::Two]),
        ) {
            let envelope = written(text.clone(), format);
            prop_assert_eq!(envelope["body"].as_str(), Some(text.as_str()));
        }
    }
}
