//! Writes lines in the embedded metric format, from which CloudWatch makes metrics.
//!
//! Skill and function are dimensions. A tenant is a property: each value of a dimension is
//! a metric that is billed.

use super::family::{Family, MetricKind};
use super::measure::Measurement;
use crate::task::Timestamp;
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// Most values of one metric in a line (CloudWatch, embedded metric format specification).
const VALUES: usize = 100;
/// Most tenants that a line names.
const TENANTS: usize = 10;
/// The dimension of a metric that has no label.
const FUNCTION: &str = "function";

/// What is not printed yet. An invocation has few sets of dimension values, so they are
/// searched one by one.
#[derive(Debug, Default)]
pub(super) struct EmfLines {
    open: Vec<Line>,
    /// Lines that have as many values as a line can have.
    full: Vec<Line>,
}

/// The metrics of one set of dimension values.
#[derive(Debug)]
struct Line {
    /// Names and values. The function of the process has no value.
    dimensions: Vec<(&'static str, Option<String>)>,
    metrics: Vec<(&'static str, Values)>,
    tenants: BTreeSet<String>,
}

/// The values of one metric in one line.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Values {
    Sum(u64),
    /// A sum of thousandths.
    #[serde(serialize_with = "decimal")]
    Thousandths(u64),
    /// Milliseconds, each value.
    Times(Vec<u64>),
}

impl EmfLines {
    /// Adds what was measured for `tenant`.
    pub(super) fn record(&mut self, measurement: &Measurement<'_>, tenant: Option<&str>) {
        let (name, dimensions) = place(measurement);
        let position = self.open.iter().position(|line| line.is_at(&dimensions));
        let index = position.unwrap_or_else(|| {
            self.open.push(Line::at(&dimensions));
            self.open.len().saturating_sub(1)
        });
        let Some(line) = self.open.get_mut(index) else {
            return;
        };
        line.add_tenant(tenant);
        if line.add(name, measurement) {
            self.full.push(self.open.remove(index));
        }
    }

    /// Removes everything and returns it as lines: as few as the values of dimensions allow,
    /// because each byte of a line is billed.
    pub(super) fn take(&mut self, namespace: &str, function: &str, now: Timestamp) -> Vec<String> {
        let mut all = std::mem::take(&mut self.full);
        all.append(&mut self.open);
        let mut documents: Vec<EmfDocument<'_>> = Vec::new();
        for line in &all {
            match documents
                .iter_mut()
                .find(|document| document.has_room_for(line))
            {
                Some(document) => document.add(line),
                None => {
                    let mut new = EmfDocument {
                        namespace,
                        function,
                        now,
                        lines: Vec::new(),
                        tenants: BTreeSet::new(),
                    };
                    new.add(line);
                    documents.push(new);
                }
            }
        }
        let texts = documents.iter().map(serde_json::to_string);
        // Names, texts and finite numbers: writing them cannot fail.
        texts.filter_map(Result::ok).collect()
    }
}

impl Line {
    fn at(dimensions: &[Dimension<'_>]) -> Self {
        let to_pair =
            |(name, value): &(&'static str, Option<&str>)| (*name, value.map(str::to_owned));
        Self {
            dimensions: dimensions.iter().map(to_pair).collect(),
            metrics: Vec::new(),
            tenants: BTreeSet::new(),
        }
    }

    fn is_at(&self, dimensions: &[Dimension<'_>]) -> bool {
        let pairs = self.dimensions.iter();
        pairs
            .map(|(name, value)| (*name, value.as_deref()))
            .eq(dimensions.iter().copied())
    }

    fn add_tenant(&mut self, tenant: Option<&str>) {
        if let Some(tenant) = tenant
            && self.tenants.len() < TENANTS
            && !self.tenants.contains(tenant)
        {
            self.tenants.insert(tenant.to_owned());
        }
    }

    /// Adds to the metric with this name. Returns whether the line is full.
    fn add(&mut self, name: &'static str, measurement: &Measurement<'_>) -> bool {
        let amount = measurement.amount;
        let entry = self.metrics.iter_mut().find(|(other, _)| *other == name);
        match entry.map(|(_, values)| values) {
            Some(Values::Sum(sum) | Values::Thousandths(sum)) => *sum = sum.saturating_add(amount),
            Some(Values::Times(times)) => {
                times.push(amount);
                return times.len() >= VALUES;
            }
            None => self.metrics.push((name, first(measurement.family, amount))),
        }
        false
    }

    /// Whether one printed line can have this one and `other`: no name gets two values.
    fn fits(&self, other: &Self) -> bool {
        let dimensions = self.dimensions.iter().all(|(name, value)| {
            let mut same = other.dimensions.iter().filter(|(it, _)| it == name);
            same.all(|(_, other)| other == value)
        });
        dimensions && !self.metrics.iter().any(|(name, _)| other.has(name))
    }

    fn has(&self, metric: &str) -> bool {
        self.metrics.iter().any(|(name, _)| *name == metric)
    }
}

/// One printed line: metrics of several sets of dimensions. It has no member `level`, so
/// Lambda treats it as a line of the level INFO.
#[derive(Debug)]
struct EmfDocument<'a> {
    namespace: &'a str,
    function: &'a str,
    now: Timestamp,
    lines: Vec<&'a Line>,
    tenants: BTreeSet<&'a str>,
}

impl<'a> EmfDocument<'a> {
    fn has_room_for(&self, line: &Line) -> bool {
        let tenants = line.tenants.iter();
        let new = tenants.filter(|it| !self.tenants.contains(it.as_str()));
        self.tenants.len() + new.count() <= TENANTS
            && self.lines.iter().all(|entry| entry.fits(line))
    }

    fn add(&mut self, line: &'a Line) {
        self.lines.push(line);
        self.tenants.extend(line.tenants.iter().map(String::as_str));
    }

    /// Which members are metrics, and which their dimensions.
    fn definitions(&self) -> Definitions<'a> {
        let directive = |line: &&'a Line| {
            let dimensions = line.dimensions.iter().map(|(name, _)| *name);
            let metrics = line.metrics.iter().map(|(name, values)| Metric {
                name,
                unit: match values {
                    Values::Times(_) => "Milliseconds",
                    Values::Sum(_) | Values::Thousandths(_) => "Count",
                },
            });
            Directive {
                namespace: self.namespace,
                dimensions: [dimensions.collect()],
                metrics: metrics.collect(),
            }
        };
        Definitions {
            timestamp: self.now.as_millis(),
            cloud_watch_metrics: self.lines.iter().map(directive).collect(),
        }
    }
}

impl Serialize for EmfDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("_aws", &self.definitions())?;
        let mut names: Vec<&str> = Vec::new();
        for line in &self.lines {
            for (name, value) in &line.dimensions {
                if !names.contains(name) {
                    names.push(name);
                    members.serialize_entry(name, value.as_deref().unwrap_or(self.function))?;
                }
            }
            for (name, values) in &line.metrics {
                members.serialize_entry(name, values)?;
            }
        }
        if !self.tenants.is_empty() {
            members.serialize_entry("tenants", &self.tenants)?;
        }
        members.end()
    }
}

/// The member `_aws`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Definitions<'a> {
    timestamp: i64,
    cloud_watch_metrics: Vec<Directive<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Directive<'a> {
    namespace: &'a str,
    dimensions: [Vec<&'static str>; 1],
    metrics: Vec<Metric>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metric {
    name: &'static str,
    unit: &'static str,
}

/// The name of a dimension and its value. The function of the process has none.
type Dimension<'a> = (&'static str, Option<&'a str>);

/// The name in CloudWatch, and the dimensions. A tenant is none of them.
fn place<'a>(measurement: &Measurement<'a>) -> (&'static str, Vec<Dimension<'a>>) {
    let label = |index: usize| measurement.labels.get(index).copied();
    let skill = |index| ("skill_name", label(index));
    match measurement.family {
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
        Family::TurnsResent => ("TurnsResent", vec![(FUNCTION, None)]),
        Family::ColdStarts => ("ColdStarts", vec![(FUNCTION, None)]),
        Family::ColdStart => ("ColdStart", vec![(FUNCTION, None)]),
        Family::UnknownSettings => ("UnknownSettings", vec![(FUNCTION, None)]),
        Family::Units => {
            let name = match label(0) {
                Some("read") => "ReadUnits",
                _ => "WriteUnits",
            };
            (name, vec![(FUNCTION, None)])
        }
    }
}

/// The first value of a metric.
fn first(family: Family, amount: u64) -> Values {
    match family.describe().kind {
        MetricKind::Counter => Values::Sum(amount),
        MetricKind::Thousandths => Values::Thousandths(amount),
        MetricKind::Histogram => Values::Times(vec![amount]),
    }
}

/// Writes thousandths as a number. Units have at most 15 digits: no digit is lost.
fn decimal<S: Serializer>(thousandths: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    serializer.serialize_f64(text.parse().map_err(S::Error::custom)?)
}
