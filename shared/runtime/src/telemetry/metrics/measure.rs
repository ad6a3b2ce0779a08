//! Turns the events of calls, turns, sweeps and starts into measured amounts.

use super::family::{EACH, Family, RATE_LIMITED, TOKENS};
use super::registry::UNROUTED;
use crate::telemetry::events::{CALL, LEFT_OUT, TURN};
use std::fmt::Debug;
use tracing::field::{Field, Visit};

/// The labels of metrics: the field that each shows, and what it shows without a value. An event
/// without a value of another label is not measured.
const LABELS: [(&str, &str, Option<&str>); 10] = [
    ("method", "a2a.method", Some("none")),
    ("tenant_id", "a2a.tenant", Some("none")),
    ("skill_name", "a2a.skill", Some(UNROUTED)),
    ("status", "http.response.status_code", Some("0")),
    ("state", "a2a.state", Some("none")),
    ("class", "class", Some("none")),
    ("function", "function", Some("none")),
    ("model", "gen_ai.request.model", Some("unknown")),
    ("how", "a2a.route", None),
    ("reason", "a2a.error", None),
];
/// The fields in the line of a call that a line of its turn would have under another name.
const OF_TURN: [(&str, &str); 3] = [
    ("a2a.error", "a2a.task_error"),
    ("class", "turn_class"),
    ("ms", "a2a.turn_ms"),
];

/// An amount of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measurement<'a> {
    pub(super) family: Family,
    /// The label values in the order of the metric's labels.
    pub(super) labels: Vec<&'a str>,
    /// The amount to add, or the value of a histogram in milliseconds.
    pub(super) amount: u64,
}

/// The fields of one event that metrics need.
#[derive(Debug, Default)]
pub(super) struct Fields {
    texts: Vec<(&'static str, String)>,
    amounts: Vec<(&'static str, u64)>,
}

impl Fields {
    /// What an event with this target measured.
    pub(super) fn measurements(&self, target: &str) -> Vec<Measurement<'_>> {
        let target = if target == LEFT_OUT { CALL } else { target };
        let mut all = Vec::new();
        self.measure(target, Some, &mut all);
        // The line of a call that ran a turn is that of the turn too. Its units are those of both.
        if target == CALL && self.amount("a2a.attempt").is_some() {
            let of_turn =
                |name: &'static str| match OF_TURN.iter().find(|(field, _)| *field == name) {
                    Some((_, in_call)) => Some(*in_call),
                    None => Some(name).filter(|name| !name.starts_with("units.")),
                };
            self.measure(TURN, of_turn, &mut all);
        }
        all
    }

    /// Adds what an event of `target` measured to `all`. `field` is the name that a field has here.
    fn measure<'f>(
        &'f self,
        target: &str,
        field: impl Fn(&'static str) -> Option<&'static str>,
        all: &mut Vec<Measurement<'f>>,
    ) {
        for family in Family::ALL {
            let metric = family.describe();
            for (_, source) in metric.sources.iter().filter(|(of, _)| *of == target) {
                let Some(amount) = field(source).and_then(|name| self.amount(name)) else {
                    continue;
                };
                let value = |label: &&str| match LABELS.iter().find(|(name, ..)| name == label) {
                    Some((_, name, default)) => self.text(field(name)?).or(*default),
                    // The kind of units is in the name of their field.
                    None => source.strip_prefix("units."),
                };
                let labels = metric.labels.iter().map(value).collect::<Option<_>>();
                all.extend(labels.map(|labels| Measurement {
                    family: *family,
                    labels,
                    amount,
                }));
            }
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let text = self.texts.iter().find(|(field, _)| *field == name);
        text.map(|(_, text)| text.as_str())
    }

    fn amount(&self, name: &str) -> Option<u64> {
        if name == EACH {
            return Some(1);
        }
        let amounts = self.amounts.iter().filter(|(field, _)| *field == name);
        amounts
            .map(|(_, amount)| *amount)
            .reduce(u64::saturating_add)
    }
}

/// A number of units in thousandths; `None` if there are none.
fn thousandths(units: f64) -> Option<u64> {
    // The text of a number that is not finite does not parse.
    let text = format!("{:.0}", units * 1_000.0);
    text.parse().ok().filter(|amount| *amount > 0)
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let name = field.name();
        let labels = LABELS.iter().map(|(_, name, _)| *name);
        let mut fields = labels.chain(OF_TURN.map(|(_, in_call)| in_call));
        if fields.any(|it| it == name) && !value.is_empty() {
            self.texts.push((name, value.to_owned()));
        }
        if (name, value) == ("a2a.error", "RATE_LIMITED") {
            self.amounts.push((RATE_LIMITED, 1));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        let amount = thousandths(value).map(|amount| (field.name(), amount));
        self.amounts.extend(amount);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            name @ "http.response.status_code" => self.texts.push((name, value.to_string())),
            "gen_ai.usage.input_tokens" | "gen_ai.usage.output_tokens" => {
                self.amounts.push((TOKENS, value));
            }
            name => self.amounts.push((name, value)),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.record_u64(field, value);
        }
    }
}
