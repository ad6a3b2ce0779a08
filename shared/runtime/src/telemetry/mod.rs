//! Logging and counting: the lines that operators read, and what they may contain.
//!
//! No log line of this crate holds message content, artifacts, tokens or presigned
//! URLs. What a skill logs is the author's.
//!
//! - here: starts logging, also of panics
//! - `events`: the lines of calls, turns and starts, with the names of their fields
//! - `format`: how lines look for people
//! - [`metrics`]: counts what the lines of calls, turns, sweeps and starts say
//! - `outcomes`: the table of outcomes: who has to act, and what an operator does
//! - `sampling`: limits how often the same refusal is logged
//! - `scope`: what belongs to the running call or turn
//! - `trace`: the trace of a request

pub mod events;
mod format;
#[cfg(test)]
pub(crate) mod lines;
pub mod metrics;
pub(crate) mod outcomes;
pub(crate) mod sampling;
pub(crate) mod scope;
pub(crate) mod trace;

pub use metrics::Metrics;
pub use scope::CurrentMeter;
pub use trace::TraceContext;

use format::ShortLines;
use std::panic::PanicHookInfo;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, fmt};

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object on each line, for functions.
    Json,
    /// Text for people.
    Text,
}

/// The target of a line of the Lambda runtime for each refused caller and each panic, which have
/// lines of their own.
const RUNTIME: &str = "lambda_runtime::layers::panic";

/// Starts logging to standard error, and counting. `filter` is the value of `A2A_LOG`, for
/// example `info,a2a_lambda=debug`; one that cannot be read counts as `info`. It has no
/// effect on what is counted, here or by alarms. A second call has no effect, and its metrics stay
/// empty.
///
/// Panics are logged from then on with their place, and without their text.
pub fn start(format: LogFormat, filter: Option<&str>) -> Metrics {
    let filter = lines_shown(format, filter);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let metrics = Metrics::default();
    let counting = tracing_subscriber::registry().with(metrics.layer());
    // An error means that logging has started already: the first start counts.
    let _started = match format {
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false);
            counting.with(lines.with_filter(filter)).try_init()
        }
        LogFormat::Text => {
            let short = ShortLines(fmt::format::format().compact());
            counting
                .with(lines.event_format(short).with_filter(filter))
                .try_init()
        }
    };
    hide_panic_texts();
    metrics
}

/// The lines that a filter shows. Those of a function that alarms count, which have a class, pass
/// at every level.
#[must_use]
pub fn lines_shown<S: 'static>(
    format: LogFormat,
    filter: Option<&str>,
) -> impl Filter<S> + Send + Sync + 'static {
    // Without the filters of spans and fields, which would link regular expressions.
    let filter: Option<Targets> = filter.and_then(|text| text.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let has_class = filter_fn(move |event| {
        format == LogFormat::Json && event.fields().field(events::CLASS).is_some()
    });
    // The hints make the level of `filter` that of all, but at least that of a counted line.
    // Without one each event of each level is looked up at its first use, which costs CPU of the
    // first call.
    let filter = filter.or(has_class.with_max_level_hint(LevelFilter::INFO));
    // Under `cargo lambda watch` the runtime warns in each process that it runs one call at a time.
    let is_shown = filter_fn(|event| {
        ![events::LEFT_OUT, RUNTIME].contains(&event.target())
            && (event.target() != "lambda_runtime::runtime"
                || *event.level() != tracing::Level::WARN)
    });
    filter.and(is_shown.with_max_level_hint(LevelFilter::TRACE))
}

/// Replaces the hook of the process that prints panics. The new one logs where a panic happened, and
/// not its text: the text may have content of a message.
fn hide_panic_texts() {
    std::panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    tracing::error!(
        code.file.path = panic.location().map(std::panic::Location::file),
        code.line.number = panic.location().map(std::panic::Location::line),
        "a panic at {}",
        location.as_deref().unwrap_or("an unknown place")
    );
}

#[cfg(test)]
mod tests {
    use super::hide_panic_texts;
    use super::lines::Lines;

    #[test]
    fn a_panic_is_logged_with_its_place_and_without_its_text() {
        let lines = Lines::default();
        let _guard = lines.capture();
        let before = std::panic::take_hook();
        hide_panic_texts();
        let died = std::panic::catch_unwind(|| panic!("canary-panic"));
        std::panic::set_hook(before);
        assert!(died.is_err());
        let text = lines.text();
        assert!(text.contains("telemetry/mod.rs:"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}
