//! Values with placeholders.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The values of the placeholders.
pub(crate) type Names = BTreeMap<String, Value>;

/// Replaces placeholders: `$task` is the whole value, `${task}` its text. `{"$times": [n,
/// x]}` is a list of n times x; `{"$long": n}` is a text of n letters.
pub(crate) fn fill(value: &Value, names: &Names) -> Value {
    match value {
        Value::String(text) => filled(text, names),
        Value::Array(items) => items.iter().map(|item| fill(item, names)).collect(),
        Value::Object(members) => {
            if let Some(Value::Array(times)) = members.get("$times") {
                let count = usize::try_from(times[0].as_u64().unwrap()).unwrap();
                return vec![fill(&times[1], names); count].into();
            }
            if let Some(length) = members.get("$long").and_then(Value::as_u64) {
                return "a".repeat(usize::try_from(length).unwrap()).into();
            }
            let members = members.iter();
            members
                .map(|(name, value)| (name.clone(), fill(value, names)))
                .collect::<Map<_, _>>()
                .into()
        }
        other => other.clone(),
    }
}

/// Replaces placeholders in a text; the result may be any value.
pub(crate) fn filled(text: &str, names: &Names) -> Value {
    if let Some(value) = text.strip_prefix('$').and_then(|name| names.get(name)) {
        return value.clone();
    }
    in_text(text, names).into()
}

/// Replaces placeholders in a text; the result is always a text.
pub(crate) fn in_text(text: &str, names: &Names) -> String {
    let mut text = text.to_owned();
    for (name, value) in names {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text = text.replace(&format!("${{{name}}}"), &value);
    }
    text
}

/// Compares a value, or its absence, with a pattern.
///
/// # Errors
/// The first difference with its location.
pub(crate) fn compare(
    place: &str,
    pattern: &Value,
    found: Option<&Value>,
    names: &Names,
) -> Result<(), String> {
    let wrong = || {
        let found = found.map_or("nothing".to_owned(), Value::to_string);
        Err(format!("{place} is {found} and not {pattern}"))
    };
    if let Value::String(text) = pattern
        && let Some(fits) = special(text, found)
    {
        return if fits { Ok(()) } else { wrong() };
    }
    match (pattern, found) {
        (Value::Object(wanted), Some(found)) => match wanted.get("$exact") {
            Some(exact) if fill(exact, names) == *found => Ok(()),
            Some(_) => wrong(),
            None if found.is_object() => members(place, wanted, found, names),
            None => wrong(),
        },
        (Value::Array(wanted), Some(Value::Array(found))) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            for (index, (wanted, found)) in pairs {
                compare(&format!("{place}/{index}"), wanted, Some(found), names)?;
            }
            Ok(())
        }
        (wanted, Some(found)) if fill(wanted, names) == *found => Ok(()),
        _ => wrong(),
    }
}

fn members(
    place: &str,
    wanted: &Map<String, Value>,
    found: &Value,
    names: &Names,
) -> Result<(), String> {
    wanted.iter().try_for_each(|(name, wanted)| {
        compare(&format!("{place}/{name}"), wanted, found.get(name), names)
    })
}

/// Whether a value matches a special pattern; `None` for an ordinary text.
fn special(text: &str, found: Option<&Value>) -> Option<bool> {
    let said = found.and_then(Value::as_str);
    Some(match text {
        "$absent" => found.is_none(),
        "$any" => found.is_some_and(|found| !found.is_null()),
        "$string" => said.is_some_and(|said| !said.is_empty()),
        "$time" => said.is_some_and(is_time),
        _ => {
            let start = text.strip_prefix("$starts:")?;
            said.is_some_and(|said| said.starts_with(start))
        }
    })
}

/// Whether a text is a UTC time with `Z` and milliseconds: `2026-05-28T10:00:00.000Z`.
fn is_time(text: &str) -> bool {
    let form = "0000-00-00T00:00:00.000Z";
    text.len() == form.len()
        && text
            .chars()
            .zip(form.chars())
            .all(|(found, form)| match form {
                '0' => found.is_ascii_digit(),
                form => found == form,
            })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(pattern: &Value, found: &Value) -> bool {
        compare("", pattern, Some(found), &Names::new()).is_ok()
    }

    #[test]
    fn patterns_distinguish_numbers_nulls_and_missing_members() {
        assert!(fits(&json!({"a": 42}), &json!({"a": 42, "b": 1})));
        assert!(!fits(&json!({"a": 42}), &json!({"a": 42.0})));
        assert!(!fits(
            &json!({"a": 9_007_199_254_740_993_u64}),
            &json!({"a": 9_007_199_254_740_992_u64})
        ));
        assert!(!fits(&json!({"a": null}), &json!({})));
        assert!(fits(&json!({"a": "$absent"}), &json!({})));
        assert!(!fits(&json!({"a": "$absent"}), &json!({"a": null})));
        assert!(!fits(
            &json!({"$exact": {"a": 1}}),
            &json!({"a": 1, "b": 2})
        ));
        assert!(!fits(&json!([1]), &json!([1, 2])));
        assert!(fits(&json!("$time"), &json!("2026-05-28T10:00:00.000Z")));
        assert!(!fits(&json!("$time"), &json!("2026-05-28T10:00:00Z")));
    }
}
