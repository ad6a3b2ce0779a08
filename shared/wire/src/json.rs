//! Checks a body before it becomes a [`serde_json::Value`].
//!
//! A body of 1 MiB can hold half a million JSON values, and a `Value` takes dozens
//! of bytes for each. So [`scan`] walks the bytes once and builds nothing. It counts
//! values and depth, and records the paths of duplicate members, of which a `Value`
//! would silently keep the last (RFC 8259 §4 leaves their meaning open).

use a2a_lambda_model::task::{A2aError, FieldViolation};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// The most values in a body: objects, arrays and scalars, each counted once.
pub(super) const MAX_NODES: usize = 20_000;
/// The most levels of objects and arrays inside each other.
pub(super) const MAX_DEPTH: usize = 32;
/// The most duplicates that an error names.
const MAX_DUPLICATES: usize = 16;
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

/// The result of a walk over a body.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The number of values.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the limit is checked inside the walk")
    )]
    pub(super) nodes: usize,
    /// The paths of members that repeat a name of their object.
    pub(super) duplicates: Vec<Vec<PathStep>>,
}

/// Walks `bytes` without building a value.
///
/// # Errors
/// [`A2aError::Parse`] when they are not one JSON text;
/// [`A2aError::InvalidRequest`] when it has more than [`MAX_NODES`] values or more
/// than [`MAX_DEPTH`] levels.
pub(super) fn scan(bytes: &[u8]) -> Result<Scan, A2aError> {
    let mut walk = DepthWalk::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let result = JsonNode(&mut walk)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match (result, walk.over) {
        (_, Some(why)) => Err(A2aError::InvalidRequest { why }),
        (Err(_), None) => Err(A2aError::Parse),
        (Ok(()), None) => Ok(Scan {
            nodes: walk.nodes,
            duplicates: walk.duplicates,
        }),
    }
}

/// The value of bytes that [`scan`] accepted.
///
/// # Errors
/// [`A2aError::Parse`] when they are not one JSON text.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, A2aError> {
    serde_json::from_slice(bytes).map_err(|_| A2aError::Parse)
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
struct DepthWalk {
    nodes: usize,
    path: Vec<PathStep>,
    duplicates: Vec<Vec<PathStep>>,
    over: Option<String>,
}

impl DepthWalk {
    fn count<E: de::Error>(&mut self) -> Result<(), E> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return self.stop(format!("more than {MAX_NODES} JSON values"));
        }
        Ok(())
    }

    fn enter<E: de::Error>(&mut self) -> Result<(), E> {
        // The path has one step for each object or array around this one.
        if self.path.len() >= MAX_DEPTH {
            return self.stop(format!("JSON nested deeper than {MAX_DEPTH}"));
        }
        Ok(())
    }

    fn stop<E: de::Error>(&mut self, why: String) -> Result<(), E> {
        self.over = Some(why);
        Err(E::custom("over a limit"))
    }
}

struct JsonNode<'a>(&'a mut DepthWalk);

impl<'de> DeserializeSeed<'de> for JsonNode<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.0.enter()?;
        self.0.path.push(PathStep::Index(0));
        let mut next = 0;
        while elements.next_element_seed(JsonNode(self.0))?.is_some() {
            next += 1;
            if let Some(step) = self.0.path.last_mut() {
                *step = PathStep::Index(next);
            }
        }
        self.0.path.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.enter()?;
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            // Names are not counted. Each has a value, which the seed below counts, so
            // a huge object reaches the limit too.
            self.0.path.push(PathStep::Name(name.clone()));
            if !names.insert(name) && self.0.duplicates.len() < MAX_DUPLICATES {
                self.0.duplicates.push(self.0.path.clone());
            }
            members.next_value_seed(JsonNode(self.0))?;
            self.0.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
