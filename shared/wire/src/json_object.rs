//! Builds JSON objects for responses; absent and empty values add no member.

use a2a_lambda_model::task::Metadata;
use serde_json::{Map, Value};

/// An object under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonObject(Map<String, Value>);

impl JsonObject {
    /// An object without members.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the member `name`.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the member `name`, if there is a value.
    pub(crate) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the list `name`, unless it is empty.
    pub(crate) fn list<T: Into<Value>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        if values.is_empty() {
            return self;
        }
        self.with(name, values)
    }

    /// Adds `metadata`, unless it is empty.
    pub(crate) fn metadata(self, metadata: Metadata) -> Self {
        if metadata.is_empty() {
            return self;
        }
        self.with("metadata", metadata)
    }

    /// The finished object.
    pub(crate) fn build(self) -> Value {
        Value::Object(self.0)
    }
}

impl From<JsonObject> for Value {
    fn from(members: JsonObject) -> Self {
        members.build()
    }
}
