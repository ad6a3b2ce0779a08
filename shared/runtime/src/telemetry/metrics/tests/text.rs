//! Tests of the Prometheus text, with a parser that checks the rules of the format.

use super::{call, counted, refused, turn};
use crate::telemetry::events::{self, CallEnd};
use crate::telemetry::scope::{CallFacts, CallScope, TurnNote};
use a2a_lambda_rows::each_row;
use std::collections::BTreeMap;

/// The value of each sample by its name and labels.
type Samples = BTreeMap<(String, Vec<(String, String)>), f64>;

/// Reads the text format 0.0.4.
///
/// # Panics
/// Where the text breaks a rule: a sample without HELP and TYPE before it, a metric in two
/// groups, a wrong name, an open quote, a repeated sample, or a histogram whose buckets
/// fall, or do not end with its count.
pub(super) fn parsed(text: &str) -> Samples {
    assert!(text.ends_with('\n'), "no line end at the end");
    let mut kinds = BTreeMap::new();
    let mut helped = None;
    let mut current = String::new();
    let mut samples = Samples::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty());
            helped = Some(name.to_owned());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(helped.as_deref(), Some(name), "no HELP before TYPE");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            let before = kinds.insert(name.to_owned(), kind.to_owned());
            assert_eq!(before, None, "{name} is described twice");
            current = name.to_owned();
        } else {
            let (name, labels, value) = sample(line);
            let base = match kinds.get(&current).map(String::as_str) {
                Some("histogram") => ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| name.strip_suffix(end))
                    .unwrap(),
                _ => &name,
            };
            assert_eq!(base, current, "a sample outside its group");
            let again = samples.insert((name, labels), value);
            assert_eq!(again, None, "{line} is there twice");
        }
    }
    histograms(&samples);
    samples
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    assert!(is_name(name), "{name}");
    let mut labels = Vec::new();
    let mut rest = rest.chars().peekable();
    if rest.next_if_eq(&'{').is_some() {
        while rest.next_if_eq(&'}').is_none() {
            let mut label = String::new();
            while let Some(c) = rest.next_if(|c| *c != '=') {
                label.push(c);
            }
            assert!(is_name(&label), "{label}");
            assert_eq!((rest.next(), rest.next()), (Some('='), Some('"')));
            let mut value = String::new();
            loop {
                match rest.next().expect("an open quote") {
                    '"' => break,
                    '\\' => value.push(match rest.next().unwrap() {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        c => panic!("\\{c} is no escape"),
                    }),
                    c => value.push(c),
                }
            }
            labels.push((label, value));
            rest.next_if_eq(&',');
        }
    }
    assert_eq!(rest.next(), Some(' '));
    let value: String = rest.collect();
    (name.to_owned(), labels, value.parse().unwrap())
}

fn histograms(samples: &Samples) {
    let mut last: BTreeMap<(String, Vec<_>), (f64, f64)> = BTreeMap::new();
    let mut buckets: Vec<_> = Vec::new();
    for ((name, labels), value) in samples {
        if let Some(base) = name.strip_suffix("_bucket") {
            let (le, others): (Vec<_>, Vec<_>) =
                labels.iter().cloned().partition(|(label, _)| label == "le");
            let bound: f64 = le[0].1.replace("+Inf", "inf").parse().unwrap();
            buckets.push((base.to_owned(), others, bound, *value));
        }
    }
    buckets.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)).then(a.2.total_cmp(&b.2)));
    for (base, others, bound, value) in buckets {
        let before = last.insert((base.clone(), others), (bound, value));
        assert!(before.is_none_or(|(_, less)| less <= value), "{base} falls");
    }
    for ((base, labels), (bound, value)) in last {
        assert!(bound.is_infinite(), "{base} has no last bucket");
        assert_eq!(samples[&(format!("{base}_count"), labels.clone())], value);
        assert!(samples.contains_key(&(format!("{base}_sum"), labels)));
    }
}

/// The value of the sample with these labels.
pub(super) fn value(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> f64 {
    let labels = labels
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    let key = (name.to_owned(), labels.collect());
    *samples
        .get(&key)
        .unwrap_or_else(|| panic!("no {key:?} in {samples:?}"))
}

#[test]
fn calls_and_turns_are_counted_whatever_the_log_shows() {
    let metrics = counted(|| {
        call("acme", "echo", 20);
        call("acme", "echo", 31_000);
        turn("echo", "completed", 400);
        refused("acme", Some("echo"), "TASK_BUSY");
    });
    let samples = parsed(&metrics.text());
    let of_echo = [("method", "SendMessage"), ("skill_name", "echo")];
    let requests = [of_echo[0], of_echo[1], ("status", "200")];
    assert_eq!(value(&samples, "a2a_requests_total", &requests), 2.0);
    let bucket = |le| [of_echo[0], of_echo[1], ("le", le)];
    let duration = "a2a_request_duration_seconds";
    let rows = [
        ("0.01", 1.0),
        ("0.025", 2.0),
        ("30", 2.0),
        ("60", 3.0),
        ("+Inf", 3.0),
    ];
    each_row(rows, |(le, count)| {
        assert_eq!(
            value(&samples, &format!("{duration}_bucket"), &bucket(le)),
            count,
            "{le}"
        );
    });
    assert_eq!(
        value(&samples, &format!("{duration}_sum"), &of_echo),
        31.021
    );
    let turns = [("skill_name", "echo"), ("state", "completed")];
    assert_eq!(value(&samples, "a2a_turns_total", &turns), 1.0);
    let errors = [
        ("skill_name", "echo"),
        ("reason", "TASK_BUSY"),
        ("class", "caller"),
    ];
    assert_eq!(value(&samples, "a2a_errors_total", &errors), 1.0);
    let tokens = [("model", "m"), ("skill_name", "echo")];
    assert_eq!(value(&samples, "a2a_model_tokens_total", &tokens), 7.0);
    let units = |kind| value(&samples, "a2a_dynamodb_units_total", &[("kind", kind)]);
    assert_eq!((units("read"), units("write")), (1.0, 4.0));
}

#[test]
fn a_refusal_by_a_rate_limit_counts_for_its_tenant() {
    let metrics = counted(|| {
        refused("acme", None, "RATE_LIMITED");
        refused("acme", Some("echo"), "RATE_LIMITED");
        refused("globex", Some("echo"), "TASK_BUSY");
    });
    let samples = parsed(&metrics.text());
    for skill in ["unrouted", "echo"] {
        let labels = [("tenant_id", "acme"), ("skill_name", skill)];
        assert_eq!(value(&samples, "a2a_rate_limited_total", &labels), 1.0);
    }
    let of_limit = samples
        .keys()
        .filter(|(name, _)| name == "a2a_rate_limited_total");
    assert_eq!(of_limit.count(), 2);
}

#[test]
fn a_call_that_ran_a_turn_counts_as_a_call_and_as_a_turn() {
    let turn = TurnNote {
        state: Some("failed"),
        attempt: 1,
        error: Some("OUT_OF_STOCK".to_owned()),
        class: Some("caller"),
        ms: 7,
    };
    let scope = CallScope::of_call(None, CallFacts::default());
    let _first = scope.names().skill.set("echo".to_owned());
    assert_eq!(scope.note_turn(turn), Ok(()));
    let end = CallEnd {
        status: 200,
        class: Some("ok"),
        ms: 9,
    };
    let metrics = counted(|| events::call(&scope, end));
    let samples = parsed(&metrics.text());
    let turns = [("skill_name", "echo"), ("state", "failed")];
    assert_eq!(value(&samples, "a2a_turns_total", &turns), 1.0);
    let took = "a2a_turn_duration_seconds_sum";
    assert_eq!(value(&samples, took, &[("skill_name", "echo")]), 0.007);
    let call = [("method", "none"), ("skill_name", "echo")];
    let took = "a2a_request_duration_seconds_sum";
    assert_eq!(value(&samples, took, &call), 0.009);
    // The call succeeded: its task failed.
    let failed = [
        ("skill_name", "echo"),
        ("reason", "OUT_OF_STOCK"),
        ("class", "caller"),
    ];
    assert_eq!(value(&samples, "a2a_errors_total", &failed), 1.0);
}

#[test]
fn refusals_without_a_line_of_their_own_are_counted() {
    let metrics = counted(|| {
        let scope = CallScope::of_call(None, CallFacts::default());
        let _first = scope.names().tenant.set("acme".to_owned());
        let end = CallEnd {
            status: 429,
            class: Some("caller"),
            ms: 1,
        };
        events::call_error(&scope, end, "RATE_LIMITED", Some(0));
        events::call_error(&scope, end, "RATE_LIMITED", None);
        // The event before has counted the one that this line mentions.
        events::call_error(&scope, end, "RATE_LIMITED", Some(1));
    });
    let samples = parsed(&metrics.text());
    for (name, labels) in [
        (
            "a2a_rate_limited_total",
            [("tenant_id", "acme"), ("skill_name", "unrouted")].as_slice(),
        ),
        (
            "a2a_errors_total",
            &[
                ("skill_name", "unrouted"),
                ("reason", "RATE_LIMITED"),
                ("class", "caller"),
            ],
        ),
        (
            "a2a_requests_total",
            &[
                ("method", "none"),
                ("skill_name", "unrouted"),
                ("status", "429"),
            ],
        ),
    ] {
        assert_eq!(value(&samples, name, labels), 3.0, "{name}");
    }
}

#[test]
fn a_label_value_with_quotes_reads_back() {
    let skill = "a \"quoted\\\" name";
    let metrics = counted(|| turn(skill, "failed", 1));
    let samples = parsed(&metrics.text());
    let labels = [("skill_name", skill), ("state", "failed")];
    assert_eq!(value(&samples, "a2a_turns_total", &labels), 1.0);
}

#[test]
fn names_beyond_the_bounds_count_as_other() {
    let metrics = counted(|| {
        for number in 0..600 {
            turn(&format!("skill-{number}"), "completed", 1);
        }
        turn("a\nskill with a line end", "completed", 1);
        for number in 0..1_005 {
            refused(&format!("tenant-{number}"), None, "RATE_LIMITED");
        }
    });
    let samples = parsed(&metrics.text());
    let others = [("skill_name", "other"), ("state", "completed")];
    assert_eq!(value(&samples, "a2a_turns_total", &others), 101.0);
    let others = [("tenant_id", "other"), ("skill_name", "unrouted")];
    assert_eq!(value(&samples, "a2a_rate_limited_total", &others), 5.0);
}

#[test]
fn a_sweep_and_a_start_are_counted() {
    let metrics = counted(|| {
        tracing::info!(
            target: "a2a_lambda::sweep",
            {
                a2a_states_cleaned_total = 3_usize,
                sweep.tasks_removed = 2_usize,
                sweep.resent = 4_usize
            },
            "swept"
        );
        tracing::info!(target: "a2a_lambda::start", { ms = 40_u64, function = "rpc" }, "cold start");
        tracing::info!(target: "another", { ms = 40_u64 }, "call");
    });
    let samples = parsed(&metrics.text());
    assert_eq!(value(&samples, "a2a_states_cleaned_total", &[]), 3.0);
    assert_eq!(value(&samples, "a2a_tasks_cleaned_total", &[]), 2.0);
    assert_eq!(value(&samples, "a2a_turns_resent_total", &[]), 4.0);
    assert_eq!(
        value(&samples, "a2a_cold_starts_total", &[("function", "rpc")]),
        1.0
    );
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(value(&samples, "a2a_build_info", &version), 1.0);
    assert!(!samples.keys().any(|(name, _)| name == "a2a_requests_total"));
}
