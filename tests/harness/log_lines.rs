//! Captures the log lines of a test, at every level.

use a2a_lambda::telemetry::{LogFormat, lines_shown};
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The log lines of one thread.
#[derive(Debug, Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogLines {
    /// Captures what this thread logs, in the form of the functions, until the guard is
    /// dropped.
    #[must_use]
    pub fn capture(&self) -> impl Sized {
        let writer = self.clone();
        // `tracing` asks only the subscriber of the current thread about a new callsite while
        // there is one subscriber. A test on another thread would turn the callsite off for
        // this one too. With two subscribers it asks both.
        let second = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::OFF)
            .set_default();
        let lines = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(LevelFilter::TRACE)
            .with_writer(move || writer.clone())
            .set_default();
        // In this order, so that the drops restore the subscribers from the last to the first.
        (lines, second)
    }

    /// Captures what a function with this value of `A2A_LOG` writes, until the guard is dropped.
    #[must_use]
    pub fn capture_at(&self, filter: &str) -> impl Sized {
        let writer = self.clone();
        let second = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::OFF)
            .set_default();
        let lines = tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_writer(move || writer.clone())
            .with_filter(lines_shown(LogFormat::Json, Some(filter)));
        let lines = tracing_subscriber::registry().with(lines).set_default();
        (lines, second)
    }

    /// Everything that was logged.
    #[must_use]
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// The lines with this message.
    #[must_use]
    pub fn with_message(&self, message: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines
            .filter(|line: &Value| line["message"] == message)
            .collect()
    }

    /// Forgets the lines so far.
    pub fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}
