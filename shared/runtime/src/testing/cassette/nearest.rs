//! Describes how a request differs from the nearest recorded one.

use super::entry::{RecordedCall, asked};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most differences that a description shows.
const SHOWN: usize = 3;
/// The most characters of a value that a description shows.
const EXCERPT: usize = 80;
/// The characters before the first difference that an excerpt shows.
const BEFORE: usize = 20;

/// A place where two requests differ.
struct Difference {
    /// Its JSON pointer (RFC 6901).
    path: String,
    recorded: Option<Value>,
    asked: Option<Value>,
}

/// The recorded call with the fewest differences, and the first of them.
pub(super) fn describe(calls: &[RecordedCall], request: &Value) -> String {
    let compared = calls.iter().map(|call| {
        let mut found = Vec::new();
        let recorded = asked(call.kind(), &call.request);
        compare(Some(&recorded), Some(request), "", &mut found);
        found
    });
    let nearest = compared.enumerate().min_by_key(|(_, found)| found.len());
    let Some((at, found)) = nearest else {
        return "it has no recordings".to_owned();
    };
    let shown: Vec<String> = found.iter().take(SHOWN).map(Difference::shown).collect();
    let mut text = format!(
        "the nearest is recording {} of {}, which differs at {}",
        at + 1,
        calls.len(),
        shown.join("; at ")
    );
    if found.len() > SHOWN {
        text.push_str(&format!("; and at {} more places", found.len() - SHOWN));
    }
    text
}

fn compare(
    recorded: Option<&Value>,
    asked: Option<&Value>,
    path: &str,
    found: &mut Vec<Difference>,
) {
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
        (recorded, asked) => found.push(Difference {
            path: path.to_owned(),
            recorded: recorded.cloned(),
            asked: asked.cloned(),
        }),
    }
}

impl Difference {
    fn shown(&self) -> String {
        let (recorded, asked) = (text(self.recorded.as_ref()), text(self.asked.as_ref()));
        let equal = recorded.chars().zip(asked.chars());
        let equal = equal.take_while(|(left, right)| left == right).count();
        let from = equal.saturating_sub(BEFORE);
        format!(
            "{}: recorded {}, asked {}",
            self.path,
            excerpt(&recorded, from),
            excerpt(&asked, from)
        )
    }
}

fn text(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// A part of a text, with marks where it continues.
fn excerpt(text: &str, from: usize) -> String {
    let mut rest = text.chars().skip(from);
    let shown: String = rest.by_ref().take(EXCERPT).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if rest.next().is_some() { "…" } else { "" };
    format!("{before}{shown}{after}")
}
