//! Reads a body into a [`serde_json::Value`], and checks it on the way.
//!
//! A body of 1 MiB can hold half a million JSON values, and a `Value` takes dozens of bytes
//! for each. So [`read`] counts values and depth, and stops at a limit. It also records the
//! paths of duplicate members, of which a `Value` would silently keep the last (RFC 8259 §4
//! leaves their meaning open).

use a2a_lambda_model::task::{A2aError, FieldViolation};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::{Map, Value};
use std::fmt;

/// The most values in a body: objects, arrays and scalars, each counted once.
pub(super) const MAX_NODES: usize = 20_000;
/// The most levels of objects and arrays inside each other.
pub(super) const MAX_DEPTH: usize = 32;
/// The most duplicates that an error names.
const MAX_DUPLICATES: usize = 16;
/// `serde_json` reads an object whose first member has this name as JSON inside a text, and
/// members are stored in the order of their names.
const RESERVED: &str = "$serde_json::private::RawValue";
/// The most characters of a client's member name that an error repeats.
const MAX_NAME: usize = 64;

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into the member of this name.
    Name(String),
    /// Into the element at this index.
    Index(usize),
}

/// A body that keeps the limits.
#[derive(Debug)]
pub(super) struct JsonBody {
    pub(super) value: Value,
    /// The paths of members that repeat a name of their object.
    pub(super) duplicates: Vec<Vec<PathStep>>,
}

/// Reads `bytes`.
///
/// # Errors
/// [`A2aError::Parse`] when they are not one JSON text, [`A2aError::LoneSurrogate`] when it
/// has half of a character;
/// [`A2aError::InvalidRequest`] when it has more than [`MAX_NODES`] values, more than
/// [`MAX_DEPTH`] levels or a member with a reserved name.
pub(super) fn read(bytes: &[u8]) -> Result<JsonBody, A2aError> {
    let mut limits = JsonLimits::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let node = JsonNode {
        limits: &mut limits,
        parent: None,
    };
    let result = node
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    match (result, limits.over) {
        (_, Some(why)) => Err(A2aError::InvalidRequest { why }),
        (Err(error), None) => Err(fault(&error)),
        (Ok(value), None) => Ok(JsonBody {
            value,
            duplicates: limits.duplicates,
        }),
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

/// A path as violations name it: `message.parts[0].text`.
pub(super) fn render(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.extend(name.chars().take(MAX_NAME));
            }
            PathStep::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The violation of a duplicate member.
pub(super) fn duplicate(path: &[PathStep]) -> FieldViolation {
    FieldViolation::new(render(path), "must stand only once in its object")
}

#[derive(Default)]
struct JsonLimits {
    nodes: usize,
    duplicates: Vec<Vec<PathStep>>,
    over: Option<String>,
}

impl JsonLimits {
    fn count<E: de::Error>(&mut self) -> Result<(), E> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return self.stop(format!("more than {MAX_NODES} JSON values"));
        }
        Ok(())
    }

    fn stop<E: de::Error>(&mut self, why: String) -> Result<(), E> {
        self.over = Some(why);
        Err(E::custom("over a limit"))
    }
}

/// Where a value is: its step, and the place of the value around it.
struct JsonPlace<'p> {
    around: Option<&'p JsonPlace<'p>>,
    name: Option<&'p str>,
    index: usize,
    depth: usize,
}

impl<'p> JsonPlace<'p> {
    fn inside(around: Option<&'p JsonPlace<'p>>, name: Option<&'p str>, index: usize) -> Self {
        Self {
            around,
            name,
            index,
            depth: depth(around) + 1,
        }
    }

    fn path(&self) -> Vec<PathStep> {
        let mut path = self.around.map(Self::path).unwrap_or_default();
        path.push(match self.name {
            Some(name) => PathStep::Name(name.to_owned()),
            None => PathStep::Index(self.index),
        });
        path
    }
}

/// The number of objects and arrays around a value.
fn depth(parent: Option<&JsonPlace<'_>>) -> usize {
    parent.map_or(0, |parent| parent.depth)
}

struct JsonNode<'l, 'p> {
    limits: &'l mut JsonLimits,
    parent: Option<&'p JsonPlace<'p>>,
}

impl JsonNode<'_, '_> {
    fn enter<E: de::Error>(&mut self) -> Result<(), E> {
        if depth(self.parent) >= MAX_DEPTH {
            let why = format!("JSON nested deeper than {MAX_DEPTH}");
            return self.limits.stop(why);
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for JsonNode<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.limits.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut values = Vec::new();
        loop {
            let here = JsonPlace::inside(self.parent, None, values.len());
            let node = JsonNode {
                limits: self.limits,
                parent: Some(&here),
            };
            match elements.next_element_seed(node)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut values = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name == RESERVED {
                let why = format!("the member name `{RESERVED}` is reserved");
                self.limits.stop(why)?;
            }
            // Names are not counted. Each has a value, which the seed below counts, so
            // a huge object reaches the limit too.
            let here = JsonPlace::inside(self.parent, Some(&name), 0);
            if values.contains_key(&name) && self.limits.duplicates.len() < MAX_DUPLICATES {
                self.limits.duplicates.push(here.path());
            }
            let value = members.next_value_seed(JsonNode {
                limits: self.limits,
                parent: Some(&here),
            })?;
            values.insert(name, value);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests;
