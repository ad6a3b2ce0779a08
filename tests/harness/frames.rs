//! A strict parser for server-sent events. It accepts only the forms that this project
//! promises, so that strict clients can read them.

use crate::world::{Live, Reply};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::time::Duration;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Its `id:` line.
    pub id: Option<String>,
    /// Its `event:` line.
    pub name: Option<String>,
    /// Its one `data:` line.
    pub data: Value,
}

/// Parses a whole stream.
///
/// # Errors
/// The first line or block that does not have the promised form.
pub fn frames(reply: &Reply) -> Result<Vec<Frame>, String> {
    let text = String::from_utf8(reply.body.clone()).map_err(|e| e.to_string())?;
    if !(text.is_empty() || text.ends_with('\n')) {
        return Err(format!("the stream ends inside a line: {text:?}"));
    }
    let mut found = Vec::new();
    for block in text.split("\n\n") {
        if let Some(frame) = frame(block)? {
            found.push(frame);
        }
    }
    Ok(found)
}

fn frame(block: &str) -> Result<Option<Frame>, String> {
    let mut frame = Frame {
        id: None,
        name: None,
        data: Value::Null,
    };
    let mut data = Vec::new();
    for line in block.lines() {
        // A comment or the reconnection time is not an event.
        if line.starts_with(':') || line == "retry: 1000" {
            continue;
        }
        match line.split_once(": ") {
            Some(("id", id)) if frame.id.is_none() => frame.id = Some(id.to_owned()),
            Some(("event", name)) if frame.name.is_none() => frame.name = Some(name.to_owned()),
            Some(("data", text)) => data.push(text),
            _ => return Err(format!("unexpected line {line:?}")),
        }
    }
    match data.as_slice() {
        [] if frame.id.is_none() && frame.name.is_none() => Ok(None),
        [one] => {
            frame.data = serde_json::from_str(one).map_err(|e| format!("{e}: {one:?}"))?;
            Ok(Some(frame))
        }
        lines => Err(format!("{} data lines in {block:?}", lines.len())),
    }
}

impl Live {
    /// The next event; `None` at the end of the stream, or without an event for ten minutes
    /// of the test's clock.
    ///
    /// # Errors
    /// The first line or block that does not have the promised form.
    pub async fn next(&mut self) -> Result<Option<Frame>, String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let rest = self.buffer.split_off(end + 2);
                let block = std::mem::replace(&mut self.buffer, rest);
                let text = String::from_utf8(block).map_err(|e| e.to_string())?;
                if let Some(frame) = frame(text.trim_end_matches('\n'))? {
                    return Ok(Some(frame));
                }
                continue;
            }
            match tokio::time::timeout(Duration::from_secs(600), self.body.frame()).await {
                Ok(Some(Ok(chunk))) => {
                    self.buffer
                        .extend(chunk.into_data().unwrap_or_default().as_ref());
                }
                Ok(Some(Err(never))) => match never {},
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// Whether only comments arrive for `time`.
    pub async fn is_silent_for(&mut self, time: Duration) -> bool {
        let wait = async {
            while let Some(chunk) = self.body.frame().await {
                let bytes = chunk.ok().and_then(|chunk| chunk.into_data().ok());
                let bytes = bytes.unwrap_or_default();
                if !bytes.starts_with(b":") {
                    self.buffer.extend(bytes);
                    return;
                }
            }
        };
        tokio::time::timeout(time, wait).await.is_err()
    }
}
