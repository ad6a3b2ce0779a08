//! JSON as the AWS SDK has it.

use aws_smithy_types::{Document, Number};
use serde_json::Value;

/// The value as a document.
pub(super) fn document(value: &Value) -> Document {
    match value {
        Value::Null => Document::Null,
        Value::Bool(value) => Document::Bool(*value),
        Value::String(text) => Document::String(text.clone()),
        Value::Array(items) => Document::Array(items.iter().map(document).collect()),
        Value::Object(members) => {
            let members = members.iter();
            Document::Object(
                members
                    .map(|(name, value)| (name.clone(), document(value)))
                    .collect(),
            )
        }
        Value::Number(number) => Document::Number(match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Number::PosInt(number),
            (None, Some(number)) => Number::NegInt(number),
            (None, None) => Number::Float(number.as_f64().unwrap_or_default()),
        }),
    }
}

/// The document as a value. A number that JSON cannot have is `null`.
pub(super) fn value(document: &Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Bool(value) => Value::Bool(*value),
        Document::String(text) => Value::String(text.clone()),
        Document::Array(items) => items.iter().map(value).collect(),
        Document::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, item)| (name.clone(), value(item)))
                    .collect(),
            )
        }
        Document::Number(Number::PosInt(number)) => Value::from(*number),
        Document::Number(Number::NegInt(number)) => Value::from(*number),
        Document::Number(Number::Float(number)) => Value::from(*number),
    }
}
