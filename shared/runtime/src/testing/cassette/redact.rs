//! Takes secrets out of what a cassette records and compares.

use a2a_lambda_skill::model::{ModelReply, ModelRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a cassette has in the place of a secret.
const REDACTED: &str = "<redacted>";

/// The secrets of a cassette.
#[derive(Default)]
pub(super) struct Redactor {
    /// The longest first: one secret can be a part of another.
    secrets: Vec<String>,
}

impl Redactor {
    /// Adds a secret, also as it is written inside a JSON text.
    pub(super) fn add(&mut self, secret: String) {
        if secret.is_empty() {
            return;
        }
        let json = Value::from(secret.as_str()).to_string();
        let inside = json.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        self.secrets.extend(inside.map(str::to_owned));
        self.secrets.push(secret);
        self.secrets
            .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Whether a text holds a secret.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| text.contains(secret))
    }

    /// The request without secrets; `None` if it then is not a request.
    pub(super) fn request(&self, request: &ModelRequest) -> Option<ModelRequest> {
        let request: Option<ModelRequest> = self.rewritten(request);
        request.map(ModelRequest::without_secrets)
    }

    /// The reply without secrets; `None` if it then is not a reply.
    pub(super) fn reply(&self, reply: &ModelReply) -> Option<ModelReply> {
        self.rewritten(reply)
    }

    fn rewritten<T: Serialize + DeserializeOwned>(&self, value: &T) -> Option<T> {
        let value = serde_json::to_value(value).ok()?;
        serde_json::from_value(self.value(value)).ok()
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, member)| (self.text(name), self.value(member)))
                .collect(),
            scalar => scalar,
        }
    }

    fn text(&self, text: String) -> String {
        let secrets = self.secrets.iter();
        secrets.fold(text, |text, secret| text.replace(secret, REDACTED))
    }
}
