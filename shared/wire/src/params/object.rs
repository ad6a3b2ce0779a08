//! Reads the members of an object of a request.

use super::{FieldCase, MAX_PARTS, Problems, ROOT};
use a2a_lambda_model::task::{FieldViolation, Metadata};
use serde_json::{Map, Value};

/// An object of the request with its path.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a> {
    pub(super) path: String,
    pub(super) map: &'a Map<String, Value>,
    pub(super) spelling: FieldCase,
    pub(super) problems: &'a Problems,
}

impl<'a> Object<'a> {
    /// The path of member `name`.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Notes a fault of member `name`.
    pub(crate) fn refuse(&self, name: &str, description: impl Into<String>) {
        self.problems
            .add(FieldViolation::new(self.at(name), description));
    }

    /// Notes a fault of the object itself.
    pub(crate) fn refuse_self(&self, description: impl Into<String>) {
        let path = if self.path.is_empty() {
            ROOT
        } else {
            &self.path
        };
        self.problems.add(FieldViolation::new(path, description));
    }

    /// Member `name`, also if it is `null`.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a Value> {
        let value = self.map.get(name);
        // A2A 1.0 §5.5: ProtoJSON readers take the name of the proto field too. The official
        // types of 0.3 read it in plain JSON.
        let proto = snake(name);
        let other = self.map.get(&proto).filter(|_| proto != name);
        if value.is_some() && other.is_some() {
            self.refuse(name, format!("is given twice, also as `{proto}`"));
        }
        value.or(other)
    }

    /// Member `name`; `null` counts as absent.
    pub(crate) fn member(&self, name: &str) -> Option<&'a Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// The one of two names of a member that the object has; the first if neither.
    pub(crate) fn either(&self, first: &'static str, second: &'static str) -> &'static str {
        match (self.member(first), self.member(second)) {
            (Some(_), Some(_)) => {
                self.refuse(first, format!("is given twice, also as `{second}`"));
                first
            }
            (None, Some(_)) => second,
            _ => first,
        }
    }

    /// The only one of `names` that is present.
    pub(crate) fn exactly_one(&self, names: &[&'static str]) -> Option<&'static str> {
        self.exactly_one_by(names, |name| self.member(name).is_some())
    }

    /// The only one of `names` that `is_given`.
    pub(crate) fn exactly_one_by(
        &self,
        names: &[&'static str],
        is_given: impl Fn(&str) -> bool,
    ) -> Option<&'static str> {
        let mut members = names.iter().copied().filter(|name| is_given(name));
        match (members.next(), members.next()) {
            (Some(name), None) => Some(name),
            _ => {
                self.refuse_self(format!("must have exactly one of {}", quoted(names)));
                None
            }
        }
    }

    /// `value`, which `name` holds; a fault if there is no such member.
    pub(crate) fn required_member<T>(&self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && self.member(name).is_none() {
            self.refuse(name, "is required");
        }
        value
    }

    /// The path of the object.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// An optional object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.aliased(name, name)
    }

    /// An optional object in the member `alias`. Its faults have the path of `name`.
    pub(crate) fn aliased(&self, name: &str, alias: &str) -> Option<Self> {
        self.element(self.member(alias)?, self.at(name))
    }

    /// A required object.
    pub(crate) fn required_object(&self, name: &str) -> Option<Self> {
        self.required_member(name, self.object(name))
    }

    fn element(&self, value: &'a Value, path: String) -> Option<Self> {
        let Value::Object(map) = value else {
            self.problems
                .add(FieldViolation::new(path, "must be an object"));
            return None;
        };
        Some(Self {
            path,
            map,
            spelling: self.spelling,
            problems: self.problems,
        })
    }

    /// An object with any members; empty if absent.
    pub(crate) fn metadata(&self, name: &str) -> Metadata {
        self.object(name)
            .map(|object| object.map.clone())
            .unwrap_or_default()
    }

    fn array(&self, name: &str, elements: &str) -> Option<&'a [Value]> {
        let read = |value: &'a Value| value.as_array().map(Vec::as_slice);
        self.parsed(name, format_args!("must be a list of {elements}"), read)
    }

    /// A list of strings; empty if absent.
    pub(crate) fn strings(&self, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, value) in self
            .array(name, "strings")
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            match value.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.refuse(&format!("{name}[{index}]"), "must be a string"),
            }
        }
        texts
    }

    /// The parts of a message, 1 to [`MAX_PARTS`], each read by `decode`. `None` if
    /// one of them has a fault.
    pub(crate) fn parts<T>(
        &self,
        name: &str,
        decode: impl Fn(&Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.required_member(name, self.array(name, "parts"))?;
        // A2A 1.0 §4.1.4; A2A 0.3 §6.4: a message has a part. The server sets the upper limit.
        if list.is_empty() || list.len() > MAX_PARTS {
            self.refuse(name, format!("must have 1 to {MAX_PARTS} parts"));
            return None;
        }
        // Every part is read first, so that the faults of all parts are noted.
        let values: Vec<Option<T>> = list
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let part = self.element(value, self.at(&format!("{name}[{index}]")))?;
                decode(&part)
            })
            .collect();
        values.into_iter().collect()
    }
}

pub(super) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// `taskId` as `task_id`.
pub(crate) fn snake(name: &str) -> String {
    let mut proto = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            proto.push('_');
        }
        proto.push(letter.to_ascii_lowercase());
    }
    proto
}
