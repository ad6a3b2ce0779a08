//! Writes the Prometheus text format, version 0.0.4.

use super::family::{BOUNDS, Description, Family, MetricKind};
use super::registry::{Amount, Amounts, Registry, Series};
use std::fmt::Write as _;

/// All series of `registry`, and the version of this build.
pub(super) fn write(registry: &Registry) -> String {
    let mut text = String::new();
    for &family in Family::ALL {
        let mut series = registry.series.iter();
        let mut own_series = series
            .by_ref()
            .filter(|(series, _)| series.family == family)
            .peekable();
        if own_series.peek().is_none() {
            continue;
        }
        let description = family.describe();
        let kind = match description.kind {
            MetricKind::Counter | MetricKind::Thousandths => "counter",
            MetricKind::Histogram => "histogram",
        };
        head(&mut text, description.name, description.help, kind);
        for (series, amounts) in own_series {
            samples(&mut text, &description, series, amounts);
        }
    }
    head(
        &mut text,
        "a2a_build_info",
        "The version of the agent's runtime.",
        "gauge",
    );
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    sample(&mut text, "a2a_build_info", &version, "1");
    text
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    line(text, format_args!("# HELP {name} {help}"));
    line(text, format_args!("# TYPE {name} {kind}"));
}

fn samples(text: &mut String, description: &Description, series: &Series, amounts: &Amounts) {
    let name = description.name;
    let values = series.labels.iter().map(String::as_str);
    let labels: Vec<_> = description.labels.iter().copied().zip(values).collect();
    let count = amounts.get(Amount::Count);
    match description.kind {
        MetricKind::Counter => sample(text, name, &labels, &count.to_string()),
        MetricKind::Thousandths => sample(text, name, &labels, &decimal(count)),
        MetricKind::Histogram => histogram(text, name, &labels, amounts),
    }
}

/// The buckets, each with the values of all smaller ones, then sum and count.
fn histogram(text: &mut String, name: &str, labels: &[(&str, &str)], amounts: &Amounts) {
    let mut count = 0_u64;
    let bounds = BOUNDS.iter().map(|bound| decimal(*bound));
    let bounds = bounds.chain(["+Inf".to_owned()]).enumerate();
    for (index, bound) in bounds {
        count = count.saturating_add(amounts.get(Amount::Bucket(index)));
        let mut labels = labels.to_vec();
        labels.push(("le", &bound));
        sample(text, &format!("{name}_bucket"), &labels, &count.to_string());
    }
    let sum = decimal(amounts.get(Amount::Sum));
    sample(text, &format!("{name}_sum"), labels, &sum);
    sample(text, &format!("{name}_count"), labels, &count.to_string());
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: &str) {
    let labels: Vec<_> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
        .collect();
    if labels.is_empty() {
        line(text, format_args!("{name} {value}"));
    } else {
        line(text, format_args!("{name}{{{}}} {value}", labels.join(",")));
    }
}

/// A label value with its backslashes, quotes and line ends escaped.
fn escape(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// A number of thousandths as a decimal without zeros at its end.
fn decimal(thousandths: u64) -> String {
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{line}");
}
