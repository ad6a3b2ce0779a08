//! Reads server-sent events from chunks of bytes.
//!
//! A chunk may end anywhere: inside a line, between CR and LF, or inside a character. The crate
//! `eventsource-stream` 0.2.3 panics on a byte order mark, and reads an unfinished line again with
//! each chunk: 8 seconds for 16 MiB.

use super::failure::no_json;
use crate::provider::ModelCallError;
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use std::mem;

/// An event: its name, which may be empty, and its data.
pub(super) type ServerEvent<T = Value> = (String, T);

/// The name that an answer without a stream has as an event.
pub(super) const WHOLE: &str = "whole";

/// The events in `chunks`, to `[DONE]`. The caller limits the bytes.
pub(super) fn events(
    chunks: BoxStream<'static, Result<Bytes, ModelCallError>>,
) -> BoxStream<'static, Result<ServerEvent, ModelCallError>> {
    let mut parser = ServerEventParser::default();
    let events = chunks.map_ok(move |chunk| stream::iter(parser.push(&chunk)).map(Ok));
    let events = events.try_flatten();
    // Chat Completions ends so, and the Responses of some services.
    let events = events.try_take_while(|(_, data)| ready(Ok(data.trim() != "[DONE]")));
    let parse = |(name, data): ServerEvent<String>| {
        let data = serde_json::from_str(&data).map_err(|error| no_json(&error));
        ready(data.map(|data| (name, data)))
    };
    events.and_then(parse).boxed()
}

/// The parser of one stream. It keeps at most the unfinished event.
#[derive(Debug, Default)]
struct ServerEventParser {
    /// The bytes of the unfinished line.
    line: Vec<u8>,
    /// Whether the previous byte was a CR. A LF after it ends no line.
    after_cr: bool,
    name: String,
    /// The lines of the fields `data`, each with a line feed.
    data: String,
}

impl ServerEventParser {
    /// Takes the next bytes and returns the events that they complete.
    ///
    /// HTML standard §9.2.6: an event without its blank line at the end of a stream is
    /// discarded.
    fn push(&mut self, bytes: &[u8]) -> Vec<ServerEvent<String>> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_cr = mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    fn end_line(&mut self) -> Option<ServerEvent<String>> {
        let line = mem::take(&mut self.line);
        // A byte order mark may precede the first line. No field begins with one.
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                let event = (mem::take(&mut self.name), mem::take(&mut self.data));
                // An event without data keeps the connection open.
                return Some(event).filter(|(_, data)| !data.trim().is_empty());
            }
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.extend([value, "\n"]),
            // Comments, `id`, `retry`, and fields that the standard does not know.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{ServerEvent, ServerEventParser};
    use proptest::prelude::*;

    fn event(name: &str, data: &str) -> ServerEvent<String> {
        (name.to_owned(), format!("{data}\n"))
    }

    fn whole(bytes: &[u8]) -> Vec<ServerEvent<String>> {
        ServerEventParser::default().push(bytes)
    }

    #[test]
    fn parser_reads_names_comments_and_several_data_lines() {
        let text = "\u{feff}: hello\nevent: a\nid: 7\nretry: 5\ndata: one\ndata:two\ndata\n\n\
                    data: [DONE]\n\nevent: without data\n\ndata: unfinished";
        let events = whole(text.as_bytes());
        assert_eq!(events, [event("a", "one\ntwo\n"), event("", "[DONE]")]);
    }

    #[test]
    fn parser_takes_every_kind_of_line_end() {
        let expected = [event("x", "1\n2"), event("", "3")];
        for end in ["\n", "\r\n", "\r"] {
            let text = "event: x\ndata: 1\ndata: 2\n\ndata: 3\n\n".replace('\n', end);
            assert_eq!(whole(text.as_bytes()), expected, "{end:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_become_replacement_characters() {
        assert_eq!(whole(b"data: a\xffb\n\n"), [event("", "a\u{fffd}b")]);
    }

    /// The events of `bytes`, pushed in pieces of these lengths.
    fn in_pieces(bytes: &[u8], lengths: &[usize]) -> Vec<ServerEvent<String>> {
        let (mut parser, mut events, mut rest) = (ServerEventParser::default(), Vec::new(), bytes);
        for length in lengths {
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            events.extend(parser.push(piece));
            rest = after;
        }
        events.extend(parser.push(rest));
        events
    }

    /// Text in which line ends, fields and long characters are frequent.
    fn stream_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("\r".to_owned()),
            Just("data: ".to_owned()),
            Just("event:".to_owned()),
            Just(":".to_owned()),
            "[a-zäß漢🦀 ]{0,4}",
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn cuts_of_a_stream_change_no_event(
            text in stream_text(),
            lengths in prop::collection::vec(0_usize..7, 0..60),
        ) {
            prop_assert_eq!(in_pieces(text.as_bytes(), &lengths), whole(text.as_bytes()));
        }

        #[test]
        fn any_bytes_are_read_in_any_pieces(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            lengths in prop::collection::vec(0_usize..7, 0..60),
        ) {
            prop_assert_eq!(in_pieces(&bytes, &lengths), whole(&bytes));
        }

        #[test]
        fn written_events_are_read_back(
            written in prop::collection::vec(("[a-z.]{0,9}", "[^\r\n]{0,20}(\n[^\r\n]{0,20}){0,3}"), 0..8),
            lengths in prop::collection::vec(0_usize..9, 0..60),
        ) {
            let mut text = String::new();
            let mut expected = Vec::new();
            for (name, data) in written.iter().filter(|(_, data)| !data.trim().is_empty()) {
                let lines = data.split('\n').map(|line| format!("data: {line}\r\n"));
                text.push_str(&format!("event: {name}\r\n{}\r\n", lines.collect::<String>()));
                expected.push(event(name, data));
            }
            prop_assert_eq!(in_pieces(text.as_bytes(), &lengths), expected);
        }
    }
}
