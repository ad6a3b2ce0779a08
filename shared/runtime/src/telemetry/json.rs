//! Writes log lines as JSON, for functions.
//!
//! A line is written in one pass, and the fields of spans as they were formatted once. The
//! formatter of `tracing-subscriber` parses these again for each line, twice for the current
//! span, and that was a tenth of the CPU of a short call.

use super::events::CALL;
use std::fmt::{self, Debug};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats an event as one JSON object: `timestamp`, `level`, the fields, `target`, and the
/// `spans` that it is in, outermost first. The line of a call has no `spans`, since its own
/// fields say more. Span fields have to be formatted as JSON too.
#[derive(Debug)]
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
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
        let metadata = event.metadata();
        let mut time = String::with_capacity(32);
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = JsonLine(Vec::with_capacity(1024));
        line.member("timestamp", &time);
        line.member("level", metadata.level().as_str());
        event.record(&mut line);
        line.member("target", metadata.target());
        if metadata.target() != CALL
            && let Some(scope) = context.event_scope()
        {
            let mut before = "[";
            line.name("spans");
            for span in scope.from_root() {
                line.raw(before);
                before = ",";
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<N>>();
                line.span(fields.map_or("", |it| it.fields.as_str()), span.name());
            }
            line.raw("]");
        }
        line.raw("}\n");
        let text = std::str::from_utf8(&line.0).map_err(|_| fmt::Error)?;
        writer.write_str(text)
    }
}

/// A JSON object in the making, from its first member.
struct JsonLine(Vec<u8>);

impl JsonLine {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A value as JSON. A number that JSON cannot express becomes `null`.
    fn value<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        let length = self.0.len();
        if serde_json::to_writer(&mut self.0, value).is_err() {
            self.0.truncate(length);
            self.raw("null");
        }
    }

    fn name(&mut self, name: &str) {
        self.raw(if self.0.is_empty() { "{" } else { "," });
        self.value(name);
        self.raw(":");
    }

    fn member<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.name(name);
        self.value(value);
    }

    /// A span: its `fields`, an object that is formatted already, and its name.
    fn span(&mut self, fields: &str, name: &str) {
        let members = fields.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        self.raw("{");
        if let Some(members) = members.filter(|it| !it.is_empty()) {
            self.raw(members);
            self.raw(",");
        }
        self.value("name");
        self.raw(":");
        self.value(name);
        self.raw("}");
    }
}

impl Visit for JsonLine {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.member(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.member(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.member(field.name(), &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::JsonLines;
    use crate::telemetry::events::{self, CallFields};
    use crate::telemetry::lines::Lines;
    use serde_json::{Value, json};
    use tracing_subscriber::fmt::format::JsonFields;

    /// The lines that `work` logs.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(log.finish(), work);
        let text = lines.text();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    #[test]
    fn a_line_has_the_fields_of_its_event_and_of_all_spans_around_it() {
        let lines = logged(|| {
            let outer = tracing::error_span!("call", trace_id = "t\"1");
            let _outer = outer.enter();
            let inner = tracing::error_span!("turn");
            let _inner = inner.enter();
            let absent: Option<&str> = None;
            tracing::warn!(a = 1.5, b = -2, c = true, d = absent, "a \"text\"\n{}", 7);
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "a \"text\"\n7");
        assert_eq!((&line["a"], &line["b"]), (&json!(1.5), &json!(-2)));
        assert_eq!((&line["c"], line.get("d")), (&json!(true), None));
        assert_eq!(line["target"], module_path!());
        let spans = json!([{"trace_id": "t\"1", "name": "call"}, {"name": "turn"}]);
        assert_eq!(line["spans"], spans);
    }

    #[test]
    fn the_line_of_a_call_does_not_repeat_its_spans() {
        let lines = logged(|| {
            let span = tracing::error_span!("call", trace_id = "t1");
            let _inside = span.enter();
            events::call(&CallFields {
                trace_id: Some("t1"),
                status: 200,
                ..CallFields::default()
            });
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!((&line["trace_id"], line.get("spans")), (&json!("t1"), None));
        assert_eq!(line["http.response.status_code"], 200);
    }
}
