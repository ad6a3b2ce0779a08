//! What a process writes: all of it is passed on, and its beginning is kept for the page.

use std::io::Write;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Split};

/// The most bytes of the output of cargo or of a program that the page shows.
const SHOWN: usize = 32 * 1024;

/// The lines of a pipe, and the beginning of them.
pub(super) struct Output<R> {
    lines: Option<Split<BufReader<R>>>,
    pub(super) beginning: OutputHead,
}

impl<R: AsyncRead + Unpin> Output<R> {
    pub(super) fn of(pipe: Option<R>) -> Self {
        Self {
            lines: pipe.map(|pipe| BufReader::new(pipe).split(b'\n')),
            beginning: OutputHead::default(),
        }
    }

    /// The next line, which need not be UTF-8; `None` at the end. A wait that is dropped loses
    /// nothing.
    pub(super) async fn line(&mut self) -> Option<String> {
        let line = self.lines.as_mut()?.next_segment().await.ok()??;
        Some(String::from_utf8_lossy(&line).into_owned() + "\n")
    }

    /// Passes the other lines on to `target`.
    pub(super) async fn pass_on(&mut self, mut target: impl Write) {
        while let Some(line) = self.line().await {
            let _told = target.write_all(line.as_bytes());
            self.beginning.push(&line);
        }
    }
}

/// The beginning of an output, without the escape sequences of terminals.
#[derive(Default)]
pub(super) struct OutputHead(pub(super) String);

impl OutputHead {
    pub(super) fn push(&mut self, output: &str) {
        let Self(text) = self;
        let mut characters = output.chars();
        while text.len() < SHOWN
            && let Some(character) = characters.next()
        {
            if character == '\u{1b}' {
                // Cargo and rustc write `ESC [ … letter`.
                let _sequence = characters.find(char::is_ascii_alphabetic);
                continue;
            }
            text.push(character);
            if text.len() >= SHOWN {
                text.push_str("\n…\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_gets_an_output_without_colours_and_not_all_of_a_long_one() {
        let mut beginning = OutputHead::default();
        beginning.push("\u{1b}[1m\u{1b}[91merror\u{1b}[0m: é");
        assert_eq!(beginning.0, "error: é");
        let mut beginning = OutputHead::default();
        for _ in 0..=SHOWN {
            beginning.push("é");
        }
        assert_eq!(beginning.0, "é".repeat(SHOWN / 2) + "\n…\n");
    }

    #[tokio::test]
    async fn a_line_that_is_not_utf_8_does_not_end_the_output() {
        let mut output = Output::of(Some(&b"\xff\nafter\n"[..]));
        let mut target = Vec::new();
        output.pass_on(&mut target).await;
        assert_eq!(target, "\u{fffd}\nafter\n".as_bytes());
    }
}
