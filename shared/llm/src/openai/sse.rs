//! Reads server-sent events from chunks of bytes.
//!
//! A chunk may end anywhere: inside a line, between CR and LF, or inside a character.

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ServerEvent {
    /// The field `event`; empty if the event has none.
    pub(super) name: String,
    /// The lines of the fields `data`, joined with line feeds.
    pub(super) data: String,
}

/// The parser of one stream. It keeps at most the unfinished event, so the caller limits the
/// bytes of the stream.
#[derive(Debug, Default)]
pub(super) struct ServerEventParser {
    /// The bytes of the unfinished line.
    line: Vec<u8>,
    /// Whether the previous byte was a CR. A LF after it ends no line.
    after_cr: bool,
    /// Whether the first line has ended.
    has_begun: bool,
    name: String,
    data: Option<String>,
}

impl ServerEventParser {
    /// Takes the next bytes and returns the events that they complete.
    ///
    /// HTML standard §9.2.6: an event without its blank line at the end of a stream is
    /// discarded.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<ServerEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    fn end_line(&mut self) -> Option<ServerEvent> {
        let line = std::mem::take(&mut self.line);
        let mut text = &*String::from_utf8_lossy(&line);
        if !std::mem::replace(&mut self.has_begun, true) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            return self.dispatch();
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments, `id`, `retry`, and fields that the standard does not know.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<ServerEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(ServerEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::{ServerEvent, ServerEventParser};
    use proptest::prelude::*;

    fn event(name: &str, data: &str) -> ServerEvent {
        ServerEvent {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    fn whole(bytes: &[u8]) -> Vec<ServerEvent> {
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
    fn in_pieces(bytes: &[u8], lengths: &[usize]) -> Vec<ServerEvent> {
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
            for (name, data) in &written {
                let lines = data.split('\n').map(|line| format!("data: {line}\r\n"));
                text.push_str(&format!("event: {name}\r\n{}\r\n", lines.collect::<String>()));
                expected.push(event(name, data));
            }
            prop_assert_eq!(in_pieces(text.as_bytes(), &lengths), expected);
        }
    }
}
