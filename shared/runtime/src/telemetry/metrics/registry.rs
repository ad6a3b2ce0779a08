//! Keeps counters and histograms of a bounded number of label sets.

use super::family::{BOUNDS, Family, MetricKind};
use super::measure::Measurement;
use crate::store::counters::Counter;
use std::collections::{BTreeMap, BTreeSet};

/// The most names of skills that are counted one by one.
const SKILLS: usize = 500;
/// The most tenants that are counted one by one.
const TENANTS: usize = 1_000;
/// The most values of any other label. The code has fewer of each.
const WORDS: usize = 64;
/// The longest label value in bytes. The text of a series has to fit into a sort key.
const LONGEST: usize = 128;
/// The label value of names beyond a bound.
const OTHER: &str = "other";
/// The skill of a call that has none, or was refused before its skill was known.
pub(super) const UNROUTED: &str = "unrouted";

/// One label set of one metric: the values in the order of the metric's labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series {
    pub(super) family: Family,
    pub(super) labels: Vec<String>,
}

/// The amounts of one series: one number, or one for each bucket and the sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Amounts(pub(super) BTreeMap<Amount, u64>);

/// One number of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Amount {
    /// The number of a counter.
    Count,
    /// The values of a histogram in the bucket at this place; the last one has no bound.
    Bucket(usize),
    /// The sum of a histogram, in milliseconds.
    Sum,
}

impl Amount {
    /// Its name in a stored counter.
    fn name(self) -> String {
        match self {
            Self::Count => "n".to_owned(),
            Self::Bucket(index) => format!("b{index}"),
            Self::Sum => "s".to_owned(),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "n" => Some(Self::Count),
            "s" => Some(Self::Sum),
            _ => {
                let index = name.strip_prefix('b')?.parse().ok()?;
                (index <= BOUNDS.len()).then_some(Self::Bucket(index))
            }
        }
    }
}

/// The counters of one process, or the sums of several.
#[derive(Debug, Clone, Default)]
pub(super) struct Registry {
    /// In the order of the metrics.
    pub(super) series: BTreeMap<Series, Amounts>,
}

/// The label values that are counted one by one.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<&'static str, BTreeSet<String>>);

impl Names {
    /// What was measured, with the label values under which it counts.
    pub(super) fn admit<'a>(&mut self, mut measurement: Measurement<'a>) -> Measurement<'a> {
        let names = measurement.family.describe().labels;
        for (name, value) in names.iter().zip(&mut measurement.labels) {
            *value = self.admit_label(name, value);
        }
        measurement
    }

    /// The value itself, or [`OTHER`] beyond the bound of its label.
    fn admit_label<'a>(&mut self, label: &'static str, value: &'a str) -> &'a str {
        let values = self.0.entry(label).or_default();
        if values.contains(value) || value == UNROUTED {
            return value;
        }
        let most = match label {
            "skill_name" => SKILLS,
            "tenant_id" => TENANTS,
            _ => WORDS,
        };
        let fits = value.len() <= LONGEST && !value.chars().any(char::is_control);
        if !fits || values.len() >= most {
            return OTHER;
        }
        values.insert(value.to_owned());
        value
    }
}

impl Registry {
    /// Counts what was measured.
    pub(super) fn record(&mut self, measurement: &Measurement<'_>) {
        let Measurement { family, amount, .. } = *measurement;
        let labels = measurement
            .labels
            .iter()
            .map(|it| (*it).to_owned())
            .collect();
        let amounts = self.series.entry(Series { family, labels }).or_default();
        match family.describe().kind {
            MetricKind::Counter | MetricKind::Thousandths => amounts.add(Amount::Count, amount),
            MetricKind::Histogram => {
                let index = BOUNDS.partition_point(|bound| *bound < amount);
                amounts.add(Amount::Bucket(index), 1);
                amounts.add(Amount::Sum, amount);
            }
        }
    }

    /// Removes all amounts and returns them in stored form.
    pub(super) fn take(&mut self) -> Vec<Counter> {
        let series = std::mem::take(&mut self.series);
        series.into_iter().map(to_counter).collect()
    }

    /// The sums of stored counters. Those of metrics that this version does not know are
    /// left out. There is no bound: a name that moved to `other` would make a sum fall.
    pub(super) fn from_counters(counters: &[Counter]) -> Self {
        let mut registry = Self::default();
        for counter in counters {
            let Some(series) = read(&counter.series) else {
                continue;
            };
            let sums = registry.series.entry(series).or_default();
            for (name, amount) in &counter.amounts {
                if let Some(name) = Amount::from_name(name) {
                    sums.add(name, *amount);
                }
            }
        }
        registry
    }
}

impl Amounts {
    fn add(&mut self, name: Amount, amount: u64) {
        let sum = self.0.entry(name).or_default();
        *sum = sum.saturating_add(amount);
    }

    /// One of the numbers; 0 if nothing was added.
    pub(super) fn get(&self, name: Amount) -> u64 {
        self.0.get(&name).copied().unwrap_or_default()
    }
}

/// The stored form of a series: its name and its label values as a JSON array.
fn to_counter((series, amounts): (Series, Amounts)) -> Counter {
    let mut text = vec![series.family.describe().name.to_owned()];
    text.extend(series.labels);
    let amounts = amounts.0.into_iter();
    Counter {
        series: serde_json::Value::from(text).to_string(),
        amounts: amounts
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| (name.name(), amount))
            .collect(),
    }
}

fn read(text: &str) -> Option<Series> {
    let mut labels: Vec<String> = serde_json::from_str(text).ok()?;
    if labels.is_empty() {
        return None;
    }
    let family = Family::from_name(&labels.remove(0))?;
    let fits = labels.len() == family.describe().labels.len();
    fits.then_some(Series { family, labels })
}
