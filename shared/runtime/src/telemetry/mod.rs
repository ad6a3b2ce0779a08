//! What is logged, and what never is: message content, artifacts, tokens and
//! presigned URLs stay out of every log line.

use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line, for functions.
    Json,
    /// For people.
    Text,
}

/// Starts logging to standard error with the filter of `A2A_LOG` (for example
/// `info,a2a_lambda=debug`); a second start changes nothing.
pub fn start(format: LogFormat, filter: Option<&str>) {
    let filter =
        EnvFilter::try_new(filter.unwrap_or("info")).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let lines = lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // Already started: the first one stays.
    let _started = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.compact().try_init(),
    };
}
