//! Describes how a request differs from the nearest recorded one.

use crate::skill::model::ModelRequest;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most differences that a description shows.
const SHOWN: usize = 3;
/// The most characters of a value that a description shows.
const EXCERPT: usize = 80;
/// The characters before the first difference that an excerpt shows.
const BEFORE: usize = 20;

/// The recorded request with the fewest differences, and the first of them.
pub(super) fn describe(recorded: &[&ModelRequest], asked: &ModelRequest) -> String {
    let asked = json(asked);
    let compared = recorded.iter().map(|request| {
        let mut found = Vec::new();
        compare(Some(&json(request)), Some(&asked), "", &mut found);
        found
    });
    let nearest = compared.enumerate().min_by_key(|(_, found)| found.len());
    let Some((at, found)) = nearest else {
        return "it has no recordings".to_owned();
    };
    let first: Vec<&str> = found.iter().take(SHOWN).map(String::as_str).collect();
    let (number, count, first) = (at + 1, recorded.len(), first.join("; at "));
    let more = match found.len().saturating_sub(SHOWN) {
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
fn compare(recorded: Option<&Value>, asked: Option<&Value>, path: &str, found: &mut Vec<String>) {
    match (recorded, asked) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let token = name.replace('~', "~0").replace('/', "~1");
                let path = format!("{path}/{token}");
                compare(left.get(name), right.get(name), &path, found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for at in 0..left.len().max(right.len()) {
                compare(left.get(at), right.get(at), &format!("{path}/{at}"), found);
            }
        }
        (recorded, asked) if recorded == asked => {}
        (recorded, asked) => found.push(shown(path, recorded, asked)),
    }
}

fn shown(path: &str, recorded: Option<&Value>, asked: Option<&Value>) -> String {
    let text = |value: &Value| value.to_string();
    let [recorded, asked] = [recorded, asked].map(|it| it.map_or("nothing".to_owned(), text));
    let equal = recorded.chars().zip(asked.chars());
    let equal = equal.take_while(|(left, right)| left == right).count();
    let from = equal.saturating_sub(BEFORE);
    let (recorded, asked) = (excerpt(&recorded, from), excerpt(&asked, from));
    format!("{path}: recorded {recorded}, asked {asked}")
}

/// A part of a text, with marks where it continues.
fn excerpt(text: &str, from: usize) -> String {
    let mut rest = text.chars().skip(from);
    let shown: String = rest.by_ref().take(EXCERPT).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if rest.next().is_some() { "…" } else { "" };
    format!("{before}{shown}{after}")
}
