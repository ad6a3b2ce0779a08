//! Writes log lines for people: one short line for a call or a turn.

use super::events::{CALL, TURN};
use std::fmt::{self, Debug};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Compact, Format, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats the lines of calls and turns shortly, all others as `tracing` does.
#[derive(Debug)]
pub(super) struct ShortLines(pub(super) Format<Compact>);

impl<S, N> FormatEvent<S, N> for ShortLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if ![CALL, TURN].contains(&event.metadata().target()) {
            return self.0.format_event(context, writer, event);
        }
        let mut line = ShortLine::default();
        event.record(&mut line);
        SystemTime.format_time(&mut writer)?;
        writeln!(writer, "{} {} ms", line.words, line.ms)
    }
}

/// The words of a line, in the order in which a person reads them. The message is the first field.
#[derive(Default)]
struct ShortLine {
    words: String,
    ms: String,
}

impl ShortLine {
    fn keep(&mut self, field: &Field, value: String) {
        self.words += &match field.name() {
            "ms" => return self.ms = value,
            "a2a.tenant" => format!(" tenant={value}"),
            "a2a.left_out" => format!(" ({value} more)"),
            "message"
            | "a2a.method"
            | "a2a.generation"
            | "a2a.skill"
            | "a2a.task"
            | "a2a.state"
            | "a2a.error"
            | "a2a.task_error"
            | "http.response.status_code" => format!(" {value}"),
            _ => return,
        };
    }
}

impl Visit for ShortLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.keep(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::events::{self, CallEnd};
    use crate::telemetry::lines::Lines;
    use crate::telemetry::scope::{CallFacts, CallScope};

    #[test]
    fn a_call_is_one_short_line_for_people() {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .event_format(ShortLines(
                tracing_subscriber::fmt::format::format().compact(),
            ))
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(log.finish(), || {
            let span = tracing::error_span!("call", trace_id = "t-1");
            let _inside = span.enter();
            let facts = CallFacts {
                method: Some("GetTask"),
                generation: Some("0.3"),
                request_id: Some("request-7".to_owned()),
                trace_id: None,
            };
            let scope = CallScope::of_call(None, facts);
            let _first = scope.names().tenant.set("acme".to_owned());
            let _first = scope.names().task.set("order-1".to_owned());
            let end = CallEnd {
                status: 200,
                class: None,
                ms: 12,
            };
            events::call_error(&scope, end, "TASK_NOT_FOUND", Some(3));
            tracing::warn!("another line");
        });
        let text = lines.text();
        let (first, second) = text.split_once('\n').unwrap();
        let words = "refused GetTask 0.3 tenant=acme order-1 200 TASK_NOT_FOUND (3 more) 12 ms";
        assert_eq!(first.split_once(' ').unwrap().1, words);
        assert!(
            second.contains("another line") && second.contains("t-1"),
            "{second}"
        );
    }
}
