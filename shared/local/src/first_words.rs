//! The words with which the banner calls the agent.

use a2a_lambda::skill::AgentManifest;
use serde_json::{Map, Value, json};

/// How deep a made value goes: a schema may contain itself.
const DEPTH: usize = 6;

/// What the first skill takes: its first example, or a value that fits its schema.
pub(crate) struct FirstWords {
    /// `text` or `data`.
    kind: &'static str,
    value: Value,
}

impl FirstWords {
    pub(crate) fn of(agent: &AgentManifest) -> Self {
        let skill = agent.skills.first();
        let example = skill.and_then(|skill| skill.metadata.examples.first());
        let value = match (skill, example) {
            (_, Some(example)) => json!(example),
            (Some(skill), None) => sample(skill.input_schema(), skill.input_schema(), DEPTH),
            (None, None) => json!("hello"),
        };
        let kind = if value.is_string() { "text" } else { "data" };
        Self { kind, value }
    }

    /// The part of a message, as A2A 1.0 writes it and a shell quotes it.
    pub(crate) fn part(&self) -> String {
        quoted(&json!({ self.kind: self.value }))
    }

    /// The same part, as A2A 0.1 writes it.
    pub(crate) fn first_generation_part(&self) -> String {
        quoted(&json!({ "type": self.kind, self.kind: self.value }))
    }
}

/// JSON for a place between single quotes. A single quote can be in a string of it alone.
fn quoted(json: &Value) -> String {
    json.to_string().replace('\'', "\\u0027")
}

/// A value that fits `schema`, a part of `root`. Of an object it has the required members.
fn sample(schema: &Value, root: &Value, depth: usize) -> Value {
    let first = |name: &str| {
        let choices = schema.get(name)?.as_array()?.iter();
        choices.into_iter().find(|one| one["type"] != "null")
    };
    let constant = schema.get("const").or_else(|| first("examples"));
    if let Some(value) = constant.or_else(|| first("enum")) {
        return value.clone();
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Value::Null;
    };
    let target = schema["$ref"].as_str();
    let target = target.and_then(|path| root.pointer(path.strip_prefix('#')?));
    let choices = || ["anyOf", "oneOf", "allOf"].into_iter().find_map(first);
    if let Some(inner) = target.or_else(choices) {
        return sample(inner, root, depth);
    }
    let kind = first("type").or_else(|| schema.get("type"));
    match kind.and_then(Value::as_str) {
        Some("object") => {
            let names = schema["required"].as_array().into_iter().flatten();
            let members = names.filter_map(|name| {
                let name = name.as_str()?;
                let member = schema.get("properties")?.get(name)?;
                Some((name.to_owned(), sample(member, root, depth)))
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Some("array") => json!([sample(&schema["items"], root, depth)]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => json!("hello"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_value_has_what_its_schema_requires() {
        let schema = json!({
            "type": "object",
            "required": ["when", "guests", "dishes", "kind", "place"],
            "properties": {
                "when": {"type": "string", "examples": ["Friday, 19:00"]},
                "guests": {"type": ["integer", "null"]},
                "dishes": {"type": "array", "items": {"$ref": "#/$defs/Dish"}},
                "kind": {"enum": ["in", "out"]},
                "place": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
                "note": {"type": "string"}
            },
            "$defs": {"Dish": {"oneOf": [{"const": "soup"}, {"const": "cake"}]}}
        });
        let value = json!({
            "when": "Friday, 19:00", "guests": 1, "dishes": ["soup"], "kind": "in", "place": true
        });
        assert_eq!(sample(&schema, &schema, DEPTH), value);
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let schema =
            json!({"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}});
        assert!(sample(&schema, &schema, DEPTH)["next"]["next"].is_object());
    }

    #[test]
    fn a_single_quote_does_not_end_the_words_of_the_shell() {
        let words = FirstWords {
            kind: "text",
            value: json!("what's for lunch?"),
        };
        assert_eq!(words.part(), r#"{"text":"what\u0027s for lunch?"}"#);
        let old = r#"{"text":"what\u0027s for lunch?","type":"text"}"#;
        let part: Value = serde_json::from_str(&words.first_generation_part()).unwrap();
        assert_eq!(part, serde_json::from_str::<Value>(old).unwrap());
    }
}
