//! Writes log lines as JSON, for functions.
//!
//! A line is written in one pass. The fields of a span are written once. The formatter of
//! `tracing-subscriber` collects fields in a map first, and parses those of spans again for
//! each line. That was a tenth of the CPU of a short call.

use super::events::CALL;
use serde_json::{Map, Value};
use std::fmt::{self, Debug};
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats an event as one JSON object: `timestamp`, `level`, the fields, `target`, and the
/// `spans` that it is in, outermost first. The line of a call has no `spans`, since its own
/// fields say more. The fields of spans are formatted by [`JsonSpans`].
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

/// Formats the fields of a span as the members of a JSON object, without its braces.
#[derive(Debug)]
pub(super) struct JsonSpans;

impl<'w> FormatFields<'w> for JsonSpans {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut members = JsonLine(Vec::new());
        fields.record(&mut members);
        // The first byte is the brace.
        let text = std::str::from_utf8(members.0.get(1..).unwrap_or_default());
        writer.write_str(text.map_err(|_| fmt::Error)?)
    }

    /// Adds fields that a span gets late. A field that it has already is replaced.
    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        let mut late = String::new();
        self.format_fields(Writer::new(&mut late), fields)?;
        let object = |members: &str| serde_json::from_str(&format!("{{{members}}}"));
        let mut all: Map<String, Value> = object(&current.fields).map_err(|_| fmt::Error)?;
        let late: Map<String, Value> = object(&late).map_err(|_| fmt::Error)?;
        all.extend(late);
        let text = Value::Object(all).to_string();
        let members = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        current.fields = members.unwrap_or_default().to_owned();
        Ok(())
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
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.value(name);
        self.0.push(b':');
    }

    fn member<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.name(name);
        self.value(value);
    }

    /// A span: its `members`, which are formatted already, and its name.
    fn span(&mut self, members: &str, name: &str) {
        self.raw("{");
        if !members.is_empty() {
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
    use super::{JsonLines, JsonSpans};
    use crate::telemetry::events::{self, CallFields};
    use crate::telemetry::lines::Lines;
    use serde_json::{Value, json};

    /// The lines that `work` logs.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .fmt_fields(JsonSpans)
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
            let late = tracing::field::Empty;
            let outer = tracing::error_span!("call", trace_id = "t\"1", late, later = late);
            outer.record("late", 0);
            outer.record("late", 1);
            outer.record("later", None::<&str>);
            outer.record("later", "two");
            let _outer = outer.enter();
            let inner = tracing::error_span!("turn");
            let _inner = inner.enter();
            let absent: Option<&str> = None;
            tracing::warn!(
                a = 1.5,
                b = -2,
                c = true,
                d = absent,
                "an \"e\"" = 0,
                "a \"text\"\n{}",
                7
            );
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "a \"text\"\n7");
        assert_eq!((&line["a"], &line["b"]), (&json!(1.5), &json!(-2)));
        assert_eq!((&line["c"], line.get("d")), (&json!(true), None));
        assert_eq!(line["an \"e\""], 0);
        assert_eq!(line["target"], module_path!());
        let spans = json!([{"trace_id": "t\"1", "late": 1, "later": "two", "name": "call"}, {"name": "turn"}]);
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
