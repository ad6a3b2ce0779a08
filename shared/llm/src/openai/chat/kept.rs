//! The parts of a model's message that return to the service unchanged.
//!
//! A block names its API, so that the other API skips it. `{"chatMessage": {…}}` has members
//! of the message, `{"chatPart": {…}}` an element of its content.

use serde_json::{Map, Value};

pub(super) const MESSAGE: &str = "chatMessage";
pub(super) const PART: &str = "chatPart";

/// The text members of a piece of reasoning that grow in a stream; others are replaced.
const GROWING: &[&str] = &["text", "summary", "data", "thinking"];

/// Copies the members `names` of `from` to `into`. Pieces of one member are joined.
pub(super) fn collect(from: &Value, names: &[String], into: &mut Map<String, Value>) {
    for name in names {
        match from.get(name) {
            None | Some(Value::Null) => {}
            Some(piece) => join(into.entry(name.as_str()).or_insert(Value::Null), piece),
        }
    }
}

/// Adds a piece to a member: texts and arrays grow, other values are replaced.
pub(super) fn join(member: &mut Value, piece: &Value) {
    match (member, piece) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(elements), Value::Array(more)) => {
            for element in more {
                join_element(elements, element);
            }
        }
        (member, piece) => *member = piece.clone(),
    }
}

/// Adds an element, or a piece of the element with the same type and `index`, as OpenRouter
/// streams `reasoning_details`.
fn join_element(elements: &mut Vec<Value>, piece: &Value) {
    let is_same = |element: &Value| {
        let same = |name| {
            element
                .get(name)
                .is_some_and(|value| piece.get(name) == Some(value))
        };
        same("index") && same("type")
    };
    let element = elements.iter_mut().rfind(|element| is_same(element));
    let (Some(Value::Object(members)), Value::Object(pieces)) = (element, piece) else {
        elements.push(piece.clone());
        return;
    };
    for (name, piece) in pieces.iter().filter(|(_, piece)| !piece.is_null()) {
        match members.get_mut(name) {
            Some(member) if GROWING.contains(&name.as_str()) => join(member, piece),
            _ => {
                members.insert(name.clone(), piece.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_of_reasoning_are_joined_by_index() {
        let names = ["reasoning".to_owned(), "reasoning_details".to_owned()];
        let detail = |index: u8, text: &str, signature: Value| {
            let kind = "reasoning.text";
            json!({"type": kind, "index": index, "text": text, "signature": signature})
        };
        let mut members = Map::new();
        for piece in [
            json!({"reasoning": "a", "reasoning_details": [detail(0, "a", Value::Null)]}),
            json!({"reasoning": null, "reasoning_details": [detail(0, "b", json!("S"))]}),
            json!({"reasoning": "c", "reasoning_details": [detail(1, "c", Value::Null)]}),
        ] {
            collect(&piece, &names, &mut members);
        }
        let details = [detail(0, "ab", json!("S")), detail(1, "c", Value::Null)];
        let expected = json!({"reasoning": "ac", "reasoning_details": details});
        assert_eq!(Value::Object(members), expected);
    }
}
