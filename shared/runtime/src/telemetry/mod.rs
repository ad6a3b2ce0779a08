//! Starts logging.
//!
//! No log line of this crate holds message content, artifacts, tokens or presigned
//! URLs.

use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object on each line, for functions.
    Json,
    /// Text for people.
    Text,
}

/// Starts logging to standard error. `filter` is the value of `A2A_LOG`, for example
/// `info,a2a_lambda=debug`; one that cannot be read counts as `info`. A second call
/// has no effect.
pub fn start(format: LogFormat, filter: Option<&str>) {
    let filter =
        EnvFilter::try_new(filter.unwrap_or("info")).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let lines = lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // An error means that logging has started already: the first start counts.
    let _started = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.compact().try_init(),
    };
}
