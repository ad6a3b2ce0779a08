//! What is looked at before a body becomes a [`serde_json::Value`].
//!
//! A small body can hold millions of nodes, and a `Value` costs dozens of
//! bytes a node. So the bytes are walked once without building anything:
//! nodes and depth are counted, and members that stand twice in one object are
//! remembered with their path (a `Value` would silently keep the last).

use crate::task::{FieldViolation, Refusal};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Values a body may hold: objects, arrays and scalars, each counted once.
pub(super) const MAX_NODES: usize = 20_000;
/// Objects and arrays that may stand inside each other.
pub(super) const MAX_DEPTH: usize = 32;
/// Duplicates worth naming in an answer.
const MAX_DUPLICATES: usize = 16;
/// Characters of a client's member name that are repeated to it.
const MAX_NAME: usize = 64;

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Into the member of this name.
    Name(String),
    /// Into the element at this place.
    Index(usize),
}

/// What the walk saw.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// How many values there are.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the limit is checked inside the walk")
    )]
    pub(super) nodes: usize,
    /// Where a member stands a second time in its object.
    pub(super) duplicates: Vec<Vec<Step>>,
}

/// Walks `bytes` without keeping them.
///
/// # Errors
/// [`Refusal::Parse`] when they are not one JSON text;
/// [`Refusal::InvalidRequest`] when it holds too many nodes or is too deep.
pub(super) fn scan(bytes: &[u8]) -> Result<Scan, Refusal> {
    let mut walk = Walk::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let result = Node(&mut walk)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match (result, walk.over) {
        (_, Some(why)) => Err(Refusal::InvalidRequest { why }),
        (Err(_), None) => Err(Refusal::Parse),
        (Ok(()), None) => Ok(Scan {
            nodes: walk.nodes,
            duplicates: walk.duplicates,
        }),
    }
}

/// The value of bytes that [`scan`] has let pass.
///
/// # Errors
/// [`Refusal::Parse`] when they are not one JSON text.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes).map_err(|_| Refusal::Parse)
}

/// A path as violations name it: `message.parts[0].text`.
pub(super) fn render(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.extend(name.chars().take(MAX_NAME));
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The violation of a member that stands twice.
pub(super) fn duplicate(path: &[Step]) -> FieldViolation {
    FieldViolation::new(render(path), "must stand only once in its object")
}

#[derive(Default)]
struct Walk {
    nodes: usize,
    path: Vec<Step>,
    duplicates: Vec<Vec<Step>>,
    over: Option<String>,
}

impl Walk {
    fn count<E: de::Error>(&mut self) -> Result<(), E> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return self.stop(format!("more than {MAX_NODES} JSON values"));
        }
        Ok(())
    }

    fn enter<E: de::Error>(&mut self) -> Result<(), E> {
        // The path has one step for each container around this one.
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

struct Node<'a>(&'a mut Walk);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
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
        self.0.path.push(Step::Index(0));
        let mut next = 0;
        while elements.next_element_seed(Node(self.0))?.is_some() {
            next += 1;
            if let Some(step) = self.0.path.last_mut() {
                *step = Step::Index(next);
            }
        }
        self.0.path.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.enter()?;
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            // A name without its value is not counted by the seed below, so a
            // huge object is stopped by its values, one a name.
            self.0.path.push(Step::Name(name.clone()));
            if !names.insert(name) && self.0.duplicates.len() < MAX_DUPLICATES {
                self.0.duplicates.push(self.0.path.clone());
            }
            members.next_value_seed(Node(self.0))?;
            self.0.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
