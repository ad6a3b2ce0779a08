//! Describes how a request differs from the nearest recorded one.

use a2a_lambda_skill::model::ModelRequest;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most differences that a description shows.
const SHOWN: usize = 3;
/// The most characters of a value that a description shows.
const EXCERPT: usize = 80;
/// The characters before the first difference that an excerpt shows.
const BEFORE: usize = 20;

/// The recorded request with the fewest differences, and the first of them.
pub(super) fn describe(recordings: &[&ModelRequest], call: &ModelRequest) -> String {
    let call = json(call);
    let comparisons = recordings.iter().map(|request| {
        let mut differences = Vec::new();
        compare(Some(&json(request)), Some(&call), "", &mut differences);
        differences
    });
    let nearest = comparisons
        .enumerate()
        .min_by_key(|(_, differences)| differences.len());
    let Some((at, differences)) = nearest else {
        return "it has no recordings".to_owned();
    };
    let first: Vec<&str> = differences.iter().take(SHOWN).map(String::as_str).collect();
    let (number, count, first) = (at + 1, recordings.len(), first.join("; at "));
    let more = match differences.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and at {more} more places"),
    };
    format!("the nearest is recording {number} of {count}, which differs at {first}{more}")
}

fn json(request: &ModelRequest) -> Value {
    // A request is always JSON.
    serde_json::to_value(request).unwrap_or_default()
}

/// Adds the differences below a JSON pointer (RFC 6901), as they are shown.
fn compare(old: Option<&Value>, new: Option<&Value>, path: &str, differences: &mut Vec<String>) {
    match (old, new) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let token = name.replace('~', "~0").replace('/', "~1");
                let path = format!("{path}/{token}");
                compare(left.get(name), right.get(name), &path, differences);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for at in 0..left.len().max(right.len()) {
                compare(
                    left.get(at),
                    right.get(at),
                    &format!("{path}/{at}"),
                    differences,
                );
            }
        }
        (old, new) if old == new => {}
        (old, new) => differences.push(shown(path, old, new)),
    }
}

fn shown(path: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    let text = |value: &Value| value.to_string();
    let [old, new] = [old, new].map(|it| it.map_or("nothing".to_owned(), text));
    let equal = old.chars().zip(new.chars());
    let equal = equal.take_while(|(left, right)| left == right).count();
    let from = equal.saturating_sub(BEFORE);
    let (old, new) = (excerpt(&old, from), excerpt(&new, from));
    format!("{path}: recorded {old}, asked {new}")
}

/// A part of a text, with marks where it continues.
fn excerpt(text: &str, from: usize) -> String {
    let mut rest = text.chars().skip(from);
    let part: String = rest.by_ref().take(EXCERPT).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if rest.next().is_some() { "…" } else { "" };
    format!("{before}{part}{after}")
}
