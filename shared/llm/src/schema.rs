//! The JSON schemas that a model gets: of the arguments of a tool, and of an answer.

use serde_json::{Map, Value, json};

/// The member that holds a value whose schema is not that of an object.
const VALUE: &str = "value";

/// Words of JSON Schema that services refuse or ignore in tools and in answers. The decoded
/// value is checked by serde, so nothing depends on them.
const LEFT_OUT: [&str; 15] = [
    "$schema",
    "title",
    "format",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// The schema of an object: services take no other at the root of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObjectSchema {
    pub(super) schema: Value,
    /// Whether the value is the member [`VALUE`] of the object.
    is_wrapped: bool,
}

impl ObjectSchema {
    /// The schema of an object that holds a value of `schema`.
    pub(super) fn of(schema: &Value) -> Self {
        let mut schema = reduce(schema);
        if is_object(&schema) {
            return Self {
                schema,
                is_wrapped: false,
            };
        }
        // References in the schema begin at the root.
        let definitions = schema.as_object_mut().and_then(|root| root.remove("$defs"));
        let mut root = json!({
            "type": "object",
            "properties": { VALUE: schema },
            "required": [VALUE],
            "additionalProperties": false,
        });
        if let (Some(definitions), Some(root)) = (definitions, root.as_object_mut()) {
            root.insert("$defs".to_owned(), definitions);
        }
        Self {
            schema: root,
            is_wrapped: true,
        }
    }

    /// The value in what a model wrote.
    pub(super) fn value(&self, object: &Value) -> Value {
        match object.get(VALUE) {
            Some(value) if self.is_wrapped => value.clone(),
            _ => object.clone(),
        }
    }
}

/// Whether the schema is that of one object, without a choice at its root.
fn is_object(schema: &Value) -> bool {
    let choices = ["oneOf", "anyOf", "allOf", "enum", "const", "$ref"];
    schema.get("type") == Some(&Value::from("object"))
        && !choices.iter().any(|choice| schema.get(choice).is_some())
}

/// The schema without [`LEFT_OUT`], whose objects take no unknown members.
fn reduce(schema: &Value) -> Value {
    let Value::Object(words) = schema else {
        return schema.clone();
    };
    let mut members = Map::new();
    for (word, value) in words {
        if !LEFT_OUT.contains(&word.as_str()) {
            members.insert(word.clone(), reduce_word(word, value));
        }
    }
    let joins = ["allOf", "anyOf", "oneOf", "$ref"];
    let closes = members.contains_key("properties")
        && !members.contains_key("additionalProperties")
        && !joins.iter().any(|word| members.contains_key(*word));
    if closes {
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(members)
}

/// The value of one word. Only places of schemas are reduced: `title` may be the name of a
/// member, and `enum` may hold any value.
fn reduce_word(word: &str, value: &Value) -> Value {
    match (word, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(members)) => {
            let parts = members
                .iter()
                .map(|(name, schema)| (name.clone(), reduce(schema)));
            Value::Object(parts.collect())
        }
        ("items" | "additionalProperties" | "not", schema) => reduce(schema),
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
            schemas.iter().map(reduce).collect()
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_of_an_object_loses_limits_and_takes_no_unknown_members() {
        let schema = json!({
            "$schema": "x", "title": "Order", "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "title": "T"},
                "count": {"type": "integer", "format": "uint8", "minimum": 0},
                "kind": {"enum": [{"title": "kept"}]},
                "lines": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/Line"}},
            },
            "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        });
        let expected = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "title": {"type": "string"},
                "count": {"type": "integer"},
                "kind": {"enum": [{"title": "kept"}]},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
            },
            "$defs": {"Line": {
                "type": "object", "properties": {"sku": {"type": "string"}},
                "additionalProperties": false,
            }},
        });
        let object = ObjectSchema::of(&schema);
        assert_eq!(object.schema, expected);
        let value = json!({"value": 1, "title": "x"});
        assert_eq!(object.value(&value), value);
    }

    #[test]
    fn value_that_is_no_object_is_a_member_of_one() {
        let schema = json!({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {}}});
        let object = ObjectSchema::of(&schema);
        let inner = json!({"type": "array", "items": {"$ref": "#/$defs/A"}});
        assert_eq!(object.schema["properties"]["value"], inner);
        assert_eq!(object.schema["$defs"], json!({"A": {}}));
        assert_eq!(object.value(&json!({"value": [1]})), json!([1]));
        // A model that forgets the wrapper is understood.
        assert_eq!(object.value(&json!([1])), json!([1]));
    }

    #[test]
    fn choice_is_a_member_of_an_object() {
        let schema = json!({"oneOf": [{"type": "object", "properties": {"a": {"minimum": 1}}}]});
        let object = ObjectSchema::of(&schema);
        let choice =
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        assert_eq!(
            object.schema["properties"]["value"],
            json!({"oneOf": [choice]})
        );
    }
}
