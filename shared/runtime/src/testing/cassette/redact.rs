//! Takes secrets out of what a cassette records and compares.

use super::entry::RecordedAnswer;
use crate::skill::model::{Delta, ModelRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a cassette has in the place of a secret.
const REDACTED: &str = "<redacted>";
/// Words in the name of an option whose value is a secret.
const SECRET_WORDS: [&str; 6] = [
    "key",
    "apikey",
    "token",
    "secret",
    "authorization",
    "password",
];

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
        let quoted = Value::from(secret.as_str()).to_string();
        let inside = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        self.secrets.extend(inside.map(str::to_owned));
        self.secrets.push(secret);
        self.secrets
            .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.secrets.dedup();
    }

    /// Whether a text holds a secret.
    pub(super) fn finds_in(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| text.contains(secret))
    }

    /// The request without secrets; `None` if it then is not a request.
    pub(super) fn request(&self, request: &ModelRequest) -> Option<ModelRequest> {
        let mut request: ModelRequest = self.rewritten(request)?;
        hide_options(&mut request.options);
        Some(request)
    }

    /// The answer without secrets; `None` if it then is not an answer.
    pub(super) fn answer(&self, answer: RecordedAnswer) -> Option<RecordedAnswer> {
        let answer = match answer {
            RecordedAnswer::Stream { deltas, error } => RecordedAnswer::Stream {
                deltas: self.joined(&deltas),
                error,
            },
            answer => answer,
        };
        self.rewritten(&answer)
    }

    fn rewritten<T: Serialize + DeserializeOwned>(&self, value: &T) -> Option<T> {
        let value = serde_json::to_value(value).ok()?;
        serde_json::from_value(self.value(value)).ok()
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, member)| (self.text(name), self.value(member)))
                        .collect(),
                )
            }
            scalar => scalar,
        }
    }

    fn text(&self, text: String) -> String {
        let secrets = self.secrets.iter();
        secrets.fold(text, |text, secret| text.replace(secret, REDACTED))
    }

    /// The pieces of a stream, with those joined that together hold a secret.
    fn joined(&self, deltas: &[Delta]) -> Vec<Delta> {
        let mut joined = Vec::new();
        for run in deltas.chunk_by(continues) {
            let text: String = run.iter().filter_map(piece).collect();
            match run.first() {
                Some(Delta::Text(_)) if self.finds_in(&text) => joined.push(Delta::Text(text)),
                Some(Delta::ToolInput(_)) if self.finds_in(&text) => {
                    joined.push(Delta::ToolInput(text));
                }
                _ => joined.extend_from_slice(run),
            }
        }
        joined
    }
}

/// Whether two pieces belong to one text.
const fn continues(one: &Delta, next: &Delta) -> bool {
    matches!(
        (one, next),
        (Delta::Text(_), Delta::Text(_)) | (Delta::ToolInput(_), Delta::ToolInput(_))
    )
}

fn piece(delta: &Delta) -> Option<&str> {
    match delta {
        Delta::Text(text) | Delta::ToolInput(text) => Some(text),
        Delta::ToolUse { .. } | Delta::Provider(_) | Delta::Stop { .. } => None,
    }
}

/// Hides the options that are secrets by their name, at any depth.
fn hide_options(options: &mut Map<String, Value>) {
    for (name, value) in options.iter_mut() {
        if is_secret(name) {
            *value = REDACTED.into();
        } else {
            hide_inside(value);
        }
    }
}

fn hide_inside(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_inside),
        Value::Object(members) => hide_options(members),
        _ => {}
    }
}

/// Whether a name has one of the words: `apiKey` and `x-api-key` have, `max_tokens` has not.
fn is_secret(name: &str) -> bool {
    let mut split = String::new();
    let mut lower = false;
    for letter in name.chars() {
        if lower && letter.is_uppercase() {
            split.push(' ');
        }
        lower = letter.is_lowercase();
        split.extend(letter.to_lowercase());
    }
    let mut words = split.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| SECRET_WORDS.contains(&word))
}
