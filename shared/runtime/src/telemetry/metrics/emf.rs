//! Writes lines in the embedded metric format, from which CloudWatch makes metrics.
//!
//! Skill and function are dimensions. A tenant is a property: each value of a dimension is
//! a metric that is billed.

use super::family::Family;
use super::measure::Measurement;
use crate::task::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most values of one metric in a line (CloudWatch, embedded metric format specification).
const VALUES: usize = 100;
/// Most tenants that a line names.
const TENANTS: usize = 10;
/// The dimension of a metric that has no label.
const FUNCTION: &str = "function";

/// What is not printed yet, one line for each set of dimension values.
#[derive(Debug, Default)]
pub(super) struct EmfLines {
    open: BTreeMap<Dimensions, Line>,
    /// Lines that have as many values as a line can have.
    full: Vec<(Dimensions, Line)>,
}

/// Dimensions in order. The one without a value is the function of the process.
type Dimensions = Vec<(&'static str, Option<String>)>;

#[derive(Debug, Default)]
struct Line {
    metrics: BTreeMap<&'static str, Values>,
    tenants: BTreeSet<String>,
}

/// The values of one metric in one line.
#[derive(Debug)]
enum Values {
    /// A sum.
    Sum(u64),
    /// A sum of thousandths.
    Thousandths(u64),
    /// Milliseconds, each value.
    Times(Vec<u64>),
}

impl EmfLines {
    /// Adds what was measured for `tenant`.
    pub(super) fn record(&mut self, measured: &Measurement, tenant: Option<&str>) {
        let (name, dimensions) = place(measured);
        let line = self.open.entry(dimensions.clone()).or_default();
        if let Some(tenant) = tenant.filter(|_| line.tenants.len() < TENANTS) {
            line.tenants.insert(tenant.to_owned());
        }
        let amount = measured.amount;
        match line
            .metrics
            .entry(name)
            .or_insert_with(|| empty(measured.family))
        {
            Values::Sum(sum) | Values::Thousandths(sum) => *sum = sum.saturating_add(amount),
            Values::Times(times) => {
                times.push(amount);
                if times.len() >= VALUES {
                    self.full.extend(self.open.remove_entry(&dimensions));
                }
            }
        }
    }

    /// Removes everything and returns it as lines: as few as the values of dimensions allow,
    /// because each byte of a line is billed.
    pub(super) fn take(&mut self, namespace: &str, function: &str, now: Timestamp) -> Vec<String> {
        let full = std::mem::take(&mut self.full);
        let all = full.into_iter().chain(std::mem::take(&mut self.open));
        let mut documents: Vec<EmfDocument> = Vec::new();
        for (dimensions, line) in all {
            let dimensions: Vec<_> = dimensions
                .into_iter()
                .map(|(name, value)| (name, value.unwrap_or_else(|| function.to_owned())))
                .collect();
            match documents
                .iter_mut()
                .find(|known| known.has_room_for(&dimensions, &line))
            {
                Some(known) => known.add(namespace, dimensions, line),
                None => {
                    let mut new = EmfDocument::default();
                    new.add(namespace, dimensions, line);
                    documents.push(new);
                }
            }
        }
        documents.into_iter().map(|it| it.written(now)).collect()
    }
}

/// One printed line: metrics of several sets of dimensions.
#[derive(Debug, Default)]
struct EmfDocument {
    /// The values of dimensions and metrics.
    members: Map<String, Value>,
    directives: Vec<Value>,
    tenants: BTreeSet<String>,
}

impl EmfDocument {
    /// Whether no member of the document would get a second value.
    fn has_room_for(&self, dimensions: &[(&'static str, String)], line: &Line) -> bool {
        let mut named = dimensions.iter();
        named.all(|(name, value)| self.members.get(*name).is_none_or(|known| known == value))
            && !line.metrics.keys().any(|it| self.members.contains_key(*it))
            && self.tenants.len() + line.tenants.len() <= TENANTS
    }

    fn add(&mut self, namespace: &str, dimensions: Vec<(&'static str, String)>, line: Line) {
        let definition = |(name, values): (&&str, &Values)| match values {
            Values::Times(_) => json!({"Name": name, "Unit": "Milliseconds"}),
            Values::Sum(_) | Values::Thousandths(_) => json!({"Name": name, "Unit": "Count"}),
        };
        let names: Vec<_> = dimensions.iter().map(|(name, _)| *name).collect();
        let definitions: Vec<_> = line.metrics.iter().map(definition).collect();
        self.directives.push(json!({
            "Namespace": namespace, "Dimensions": [names], "Metrics": definitions,
        }));
        for (name, value) in dimensions {
            self.members.insert(name.to_owned(), value.into());
        }
        for (name, values) in line.metrics {
            self.members.insert(name.to_owned(), values.into_json());
        }
        self.tenants.extend(line.tenants);
    }

    /// The line. It has no member `level`, so Lambda treats it as a line of the level INFO.
    fn written(mut self, now: Timestamp) -> String {
        let head = json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": self.directives});
        self.members.insert("_aws".to_owned(), head);
        if !self.tenants.is_empty() {
            let tenants = self.tenants.into_iter().collect();
            self.members.insert("tenants".to_owned(), tenants);
        }
        Value::Object(self.members).to_string()
    }
}

/// The name in CloudWatch, and the dimensions. A tenant is none of them.
fn place(measured: &Measurement) -> (&'static str, Dimensions) {
    let label = |place: usize| measured.labels.get(place).cloned();
    let skill = |place| ("skill_name", label(place));
    match measured.family {
        Family::Requests => ("Requests", vec![skill(1)]),
        Family::RequestDuration => ("RequestDuration", vec![skill(1)]),
        Family::Errors => ("Errors", vec![skill(0), ("reason", label(1))]),
        Family::Turns => ("Turns", vec![skill(0), ("state", label(1))]),
        Family::TurnDuration => ("TurnDuration", vec![skill(0)]),
        Family::RateLimited => ("RateLimited", vec![skill(1)]),
        Family::ModelTokens => ("ModelTokens", vec![skill(0)]),
        Family::Routes => ("Routes", vec![("how", label(0))]),
        Family::StatesCleaned => ("StatesCleaned", vec![(FUNCTION, None)]),
        Family::TasksCleaned => ("TasksCleaned", vec![(FUNCTION, None)]),
        Family::ColdStarts => ("ColdStarts", vec![(FUNCTION, None)]),
        Family::ColdStart => ("ColdStart", vec![(FUNCTION, None)]),
        Family::Units => {
            let name = match label(0).as_deref() {
                Some("read") => "ReadUnits",
                _ => "WriteUnits",
            };
            (name, vec![(FUNCTION, None)])
        }
    }
}

const fn empty(family: Family) -> Values {
    match family {
        Family::RequestDuration | Family::TurnDuration | Family::ColdStart => {
            Values::Times(Vec::new())
        }
        Family::Units => Values::Thousandths(0),
        Family::Requests
        | Family::Errors
        | Family::Turns
        | Family::RateLimited
        | Family::StatesCleaned
        | Family::TasksCleaned
        | Family::ColdStarts
        | Family::ModelTokens
        | Family::Routes => Values::Sum(0),
    }
}

impl Values {
    fn into_json(self) -> Value {
        match self {
            Self::Sum(sum) => sum.into(),
            // A number of units has at most 15 digits: no digit is lost.
            Self::Thousandths(sum) => {
                let text = format!("{}.{:03}", sum / 1_000, sum % 1_000);
                serde_json::from_str(&text).unwrap_or_default()
            }
            Self::Times(times) => times.into(),
        }
    }
}
