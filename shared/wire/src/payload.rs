//! What a response or an event of a stream holds.

use super::v1::View;
use a2a_lambda_model::task::ContextPage;
use serde::Serialize;
use serde_json::{Map, Value};

/// What is written: a value, or in 1.0 what the engine replied, which is then written
/// without a copy.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Payload<'a> {
    View(View<'a>),
    Contexts(&'a ContextPage),
    Value(Value),
}

/// The members of an object under construction.
pub(super) type Members = Map<String, Value>;

/// Adds a member.
pub(super) fn put(members: &mut Members, name: &str, value: impl Into<Value>) {
    members.insert(name.to_owned(), value.into());
}

/// Keeps the members with these names, which spaces divide.
pub(super) fn keep(members: &mut Members, names: &str) {
    members.retain(|name, _| names.split(' ').any(|it| it == name));
}

impl<T: Into<Value>> From<T> for Payload<'_> {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// Appends the JSON text of `value`.
pub(super) fn write(text: &mut Vec<u8>, value: &impl Serialize) {
    // Infallible: what we write has text keys, and a vector takes every byte.
    let _ = serde_json::to_writer(text, value);
}

/// The JSON text of a response. Most fit into the first KB.
pub(super) fn text(value: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(1024);
    write(&mut text, value);
    text
}
