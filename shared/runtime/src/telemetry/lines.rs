//! Captures the log lines of a test.

use std::io;
use std::sync::{Arc, Mutex};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;

/// The log lines of this thread, at every level.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Captures until the guard is dropped.
    pub(crate) fn capture(&self) -> (DefaultGuard, DefaultGuard) {
        let writer = self.clone();
        // While there is one subscriber, `tracing` asks only that of the current thread about
        // a new callsite. A test on another thread would turn it off for this one too.
        let second = tracing_subscriber::fmt().with_max_level(LevelFilter::OFF);
        let second = tracing::subscriber::set_default(second.finish());
        let log = tracing_subscriber::fmt().json().flatten_event(true);
        let log = log.with_max_level(tracing::Level::TRACE);
        let log = log.with_writer(move || writer.clone()).finish();
        (tracing::subscriber::set_default(log), second)
    }

    /// Everything that was logged.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}
