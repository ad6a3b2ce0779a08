//! Reads a body into a [`serde_json::Value`], and checks it on the way.
//!
//! A body of 1 MiB can hold half a million JSON values, and a `Value` takes dozens of bytes
//! for each. So [`read`] counts values and depth, and stops at a limit. It also marks the
//! objects with duplicate members, of which a `Value` would silently keep the last (RFC 8259
//! §4 leaves their meaning open). [`duplicate`] finds the mark.

use a2a_lambda_model::task::A2aError;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::{Map, Value};
use std::fmt;

/// The most values in a body: objects, arrays and scalars, each counted once.
pub(super) const MAX_NODES: usize = 20_000;
/// The most levels of objects and arrays inside each other.
pub(super) const MAX_DEPTH: usize = 32;
/// `serde_json` reads an object whose first member has this name as JSON inside a text, and
/// members are stored in the order of their names. As no client can give such a member, it
/// holds the name of the first duplicate of its object.
const RESERVED: &str = "$serde_json::private::RawValue";
/// The most characters of a client's member name that an error repeats.
const MAX_NAME: usize = 64;

/// Reads `bytes`.
///
/// # Errors
/// [`A2aError::Parse`] when they are not one JSON text, [`A2aError::LoneSurrogate`] when it
/// has half of a character;
/// [`A2aError::InvalidRequest`] when it has more than [`MAX_NODES`] values, more than
/// [`MAX_DEPTH`] levels or a member with a reserved name.
pub(super) fn read(bytes: &[u8]) -> Result<Value, A2aError> {
    let mut reader = JsonReader::default();
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let value = reader.deserialize(&mut text);
    let value = value.and_then(|value| text.end().map(|()| value));
    match (value, reader.over) {
        (_, Some(why)) => Err(A2aError::InvalidRequest { why }),
        (Err(error), None) => Err(fault(&error)),
        (Ok(value), None) => Ok(value),
    }
}

/// A text that was cut inside a character is well-formed by the grammar of JSON
/// (RFC 8259 §8.2), so its sender would search for another fault.
fn fault(error: &serde_json::Error) -> A2aError {
    let text = error.to_string();
    let signs = ["surrogate", "unexpected end of hex escape"];
    match signs.iter().any(|it| text.contains(it)) {
        true => A2aError::LoneSurrogate,
        false => A2aError::Parse,
    }
}

/// The path of the first member inside `value` that repeats a name of its object, as errors
/// name it: `message.parts[0].text`.
pub(super) fn duplicate(value: &Value) -> Option<String> {
    let shorten = |name: &str| name.chars().take(MAX_NAME).collect::<String>();
    let (step, inside) = match value {
        Value::Object(members) => match members.get(RESERVED) {
            Some(name) => return name.as_str().map(shorten),
            None => members
                .iter()
                .find_map(|(name, value)| duplicate(value).map(|inside| (shorten(name), inside)))?,
        },
        Value::Array(elements) => elements.iter().enumerate().find_map(|(index, value)| {
            duplicate(value).map(|inside| (format!("[{index}]"), inside))
        })?,
        _ => return None,
    };
    let dot = if inside.starts_with('[') { "" } else { "." };
    Some(format!("{step}{dot}{inside}"))
}

/// Reads a value, and those inside it.
#[derive(Default)]
struct JsonReader {
    /// The values so far.
    nodes: usize,
    /// The objects and arrays around the value.
    depth: usize,
    /// Which limit the body is over.
    over: Option<String>,
}

impl JsonReader {
    fn enter<E: de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => self.stop(format!("JSON nested deeper than {MAX_DEPTH}")),
            false => Ok(()),
        }
    }

    fn stop<E: de::Error>(&mut self, why: String) -> Result<(), E> {
        self.over = Some(why);
        Err(E::custom("over a limit"))
    }
}

impl<'de> DeserializeSeed<'de> for &mut JsonReader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.stop(format!("more than {MAX_NODES} JSON values"))?;
        }
        deserializer.deserialize_any(self)
    }
}

/// The visits of scalars.
macro_rules! visit {
    ($($visit:ident: $scalar:ty),*) => {
        $(fn $visit<E>(self, value: $scalar) -> Result<Value, E> {
            Ok(value.into())
        })*
    };
}

impl<'de> Visitor<'de> for &mut JsonReader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    visit!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut values = Vec::new();
        while let Some(value) = elements.next_element_seed(&mut *self)? {
            values.push(value);
        }
        self.depth -= 1;
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut values = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name == RESERVED {
                let why = format!("the member name `{RESERVED}` is reserved");
                self.stop(why)?;
            }
            // Names are not counted. Each has a value, which the seed below counts, so
            // a huge object reaches the limit too.
            let value = members.next_value_seed(&mut *self)?;
            if values.contains_key(&name) {
                values.entry(RESERVED).or_insert(name.as_str().into());
            }
            values.insert(name, value);
        }
        self.depth -= 1;
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests;
