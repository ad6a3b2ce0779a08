//! Writes the bytes of server-sent events.
//!
//! Each event has one `data:` line, as the 1.0 kit reads line by line. Compact JSON
//! holds no line break, so one line is enough.

use super::payload::write;
use serde::Serialize;
use serde_json::Value;

/// A comment that keeps the connection open. No blank line follows, as some readers
/// make an empty event of one after they have seen an id.
pub(super) const PING: &[u8] = b": ping\n";

/// The time in milliseconds after which a client reconnects. It is the last line of
/// a stream that ends before its task. No blank line follows, as above.
pub(super) const RETRY: &[u8] = b"retry: 1000\n";

/// One event. `id` is the event id from which a client can resume.
pub(super) fn event(id: Option<&str>, data: &impl Serialize) -> Vec<u8> {
    frame(None, id, data)
}

/// The event that ends a REST stream with an error.
pub(super) fn error(data: &Value) -> Vec<u8> {
    frame(Some("error"), None, data)
}

fn frame(name: Option<&str>, id: Option<&str>, data: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    for (field, value) in [("event", name), ("id", id)] {
        if let Some(value) = value {
            text.extend_from_slice(field.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
    }
    text.extend_from_slice(b"data: ");
    write(&mut text, data);
    text.extend_from_slice(b"\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_an_id_line_and_one_data_line() {
        let bytes = event(Some("3.1"), &json!({"text": "a\nb\r\u{2028}c"}));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, "id: 3.1\ndata: {\"text\":\"a\\nb\\r\u{2028}c\"}\n\n");
        assert_eq!(text.matches('\n').count(), 3);
    }

    #[test]
    fn an_error_event_is_named_and_has_no_id() {
        let text = String::from_utf8(error(&json!({"code": 1}))).unwrap();
        assert_eq!(text, "event: error\ndata: {\"code\":1}\n\n");
    }

    #[test]
    fn a_ping_and_a_retry_do_not_end_an_event() {
        assert_eq!(PING, b": ping\n");
        assert_eq!(RETRY, b"retry: 1000\n");
    }
}
