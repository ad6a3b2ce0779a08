//! Typed readers over JSON, shared by the decoders of all generations.
//!
//! A reader never stops at the first fault: each one is noted with the path of
//! its field, and the whole list is the refusal. So a decoder reads every
//! member first and puts the values together last. Unknown members are
//! ignored; `null` counts as absent.

use crate::task::{
    ContextId, FieldViolation, InvalidId, MAX_PUSH_SCHEME, Metadata, PushId, Refusal, TaskId,
    Timestamp,
};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::ops::RangeInclusive;

#[cfg(test)]
mod tests;

/// The most messages of history an answer carries (protocol.md section 8).
pub(crate) const MAX_HISTORY: usize = 100;
/// The most parts a message may have.
pub(crate) const MAX_PARTS: usize = 64;
/// Faults listed in one refusal; a hostile request must not make a long answer.
const MAX_VIOLATIONS: usize = 100;

const TOLERANT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, TOLERANT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, TOLERANT);

/// How names and scalars are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Plain JSON.
    Json,
    /// `ProtoJSON`: a member may come under its snake-case proto name, an
    /// integer as a string, and an empty optional string means absent.
    ProtoJson,
    /// Query parameters: as `ProtoJSON`, and a boolean is a string too.
    Query,
}

/// The faults found so far.
#[derive(Debug, Default)]
struct Problems(RefCell<Vec<FieldViolation>>);

impl Problems {
    fn add(&self, violation: FieldViolation) {
        let mut list = self.0.borrow_mut();
        if list.len() < MAX_VIOLATIONS && !list.contains(&violation) {
            list.push(violation);
        }
    }

    /// The value, unless something was wrong.
    fn settle<T>(self, value: Option<T>) -> Result<T, Refusal> {
        let violations = self.0.into_inner();
        match value {
            Some(value) if violations.is_empty() => Ok(value),
            None if violations.is_empty() => Err(Refusal::invalid(ROOT, "is not valid")),
            _ => Err(Refusal::InvalidParams { violations }),
        }
    }
}

/// What the parameters as a whole are called in a violation.
const ROOT: &str = "params";

/// Reads an object with `decode`.
///
/// # Errors
/// [`Refusal::InvalidParams`] with everything that is wrong, also when
/// `params` is no object.
pub(crate) fn read<T>(
    params: &Value,
    spelling: Spelling,
    decode: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<T, Refusal> {
    let Value::Object(map) = params else {
        return Err(Refusal::invalid(ROOT, "must be an object"));
    };
    read_map(map, spelling, decode)
}

/// Reads query parameters with `decode`.
///
/// # Errors
/// [`Refusal::InvalidParams`] with everything that is wrong, also when a
/// parameter is given twice.
pub(crate) fn read_query<T>(
    pairs: &[(String, String)],
    decode: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<T, Refusal> {
    let mut map = Map::new();
    for (name, value) in pairs {
        let earlier = map.insert(name.clone(), Value::String(value.clone()));
        if earlier.is_some() {
            return Err(Refusal::invalid(name.as_str(), "is given twice"));
        }
    }
    read_map(&map, Spelling::Query, decode)
}

/// Reads a task id that stands in a path.
///
/// # Errors
/// [`Refusal::InvalidParams`] when it has not the form of one.
pub(crate) fn task_id(text: &str) -> Result<TaskId, Refusal> {
    TaskId::parse(text).map_err(|error| Refusal::invalid("id", rule(&error)))
}

/// Reads the id of a push configuration that stands in a path.
///
/// # Errors
/// [`Refusal::InvalidParams`] when it has not the form of one.
pub(crate) fn push_id(text: &str) -> Result<PushId, Refusal> {
    PushId::parse(text).map_err(|error| Refusal::invalid("id", rule(&error)))
}

/// Whether a text has 1 to `max` printable ASCII characters.
pub(crate) fn is_printable(text: &str, max: usize) -> bool {
    let printable = |byte: u8| (b' '..=b'~').contains(&byte);
    (1..=max).contains(&text.len()) && text.bytes().all(printable)
}

/// What [`is_printable`] asks for.
pub(crate) fn printable_rule(max: usize) -> String {
    format!("must have at most {max} characters, all of them printable ASCII")
}

/// Whether a text is the name of an authentication scheme (RFC 9110 §11.1).
pub(crate) fn is_scheme(text: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_PUSH_SCHEME).contains(&text.len()) && text.bytes().all(token)
}

/// What [`is_scheme`] asks for.
pub(crate) const SCHEME_RULE: &str = "must be the name of an HTTP authentication scheme";

fn read_map<T>(
    map: &Map<String, Value>,
    spelling: Spelling,
    decode: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<T, Refusal> {
    let problems = Problems::default();
    let value = decode(&Object {
        path: String::new(),
        map,
        spelling,
        problems: &problems,
    });
    problems.settle(value)
}

fn rule(error: &InvalidId) -> String {
    format!("must be {}", error.rule)
}

/// An object of the request with its path.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a> {
    path: String,
    map: &'a Map<String, Value>,
    spelling: Spelling,
    problems: &'a Problems,
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

    /// Member `name` as it stands, `null` included.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a Value> {
        let given = self.map.get(name);
        if self.spelling == Spelling::Json {
            return given;
        }
        let proto = snake(name);
        let other = self.map.get(&proto).filter(|_| proto != name);
        if given.is_some() && other.is_some() {
            self.refuse(name, format!("is given twice, also as `{proto}`"));
        }
        given.or(other)
    }

    /// Member `name`; `null` is absent.
    pub(crate) fn member(&self, name: &str) -> Option<&'a Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// Which of two spellings of one member is used; the first if none.
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

    /// The one of `names` that is there. `nullable` is there even as `null`.
    pub(crate) fn exactly_one(
        &self,
        names: &[&'static str],
        nullable: Option<&str>,
    ) -> Option<&'static str> {
        let there = |name: &&'static str| match nullable {
            Some(nullable) if nullable == *name => self.raw(name).is_some(),
            _ => self.member(name).is_some(),
        };
        let mut found = names.iter().copied().filter(there);
        match (found.next(), found.next()) {
            (Some(name), None) => Some(name),
            _ => {
                self.refuse_self(format!("must have exactly one of {}", quoted(names)));
                None
            }
        }
    }

    fn required_member<T>(&self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && self.member(name).is_none() {
            self.refuse(name, "is required");
        }
        value
    }

    /// An optional string, which may be empty.
    pub(crate) fn string(&self, name: &str) -> Option<&'a str> {
        let text = self.member(name)?.as_str();
        if text.is_none() {
            self.refuse(name, "must be a string");
        }
        text
    }

    /// A string that must be there and may be empty.
    pub(crate) fn required_string(&self, name: &str) -> Option<&'a str> {
        self.required_member(name, self.string(name))
    }

    /// An optional string that says something: where scalars are spelled as in
    /// `ProtoJSON`, an empty one is absent; in plain JSON it is a fault.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let text = self.string(name)?;
        if !text.is_empty() {
            return Some(text);
        }
        if self.spelling == Spelling::Json {
            self.refuse(name, "must not be empty");
        }
        None
    }

    /// A string that must be there and not be empty.
    pub(crate) fn required_text(&self, name: &str) -> Option<&'a str> {
        let text = self.required_string(name)?;
        if text.is_empty() {
            self.refuse(name, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// Its own path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// An optional string of at most `max` printable ASCII characters, such as
    /// a header can carry; it is not empty.
    pub(crate) fn printable(&self, name: &str, max: usize) -> Option<&'a str> {
        let text = self.text(name)?;
        if !is_printable(text, max) {
            self.refuse(name, printable_rule(max));
            return None;
        }
        Some(text)
    }

    /// An optional id of a push configuration.
    pub(crate) fn push_id(&self, name: &str) -> Option<PushId> {
        self.id(name, PushId::parse(self.text(name)?))
    }

    /// The id of a push configuration that must be there.
    pub(crate) fn required_push_id(&self, name: &str) -> Option<PushId> {
        self.id(name, PushId::parse(self.required_text(name)?))
    }

    /// An optional boolean.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        let value = self.member(name)?;
        let read = match (value, self.spelling) {
            (Value::Bool(value), _) => Some(*value),
            (Value::String(text), Spelling::Query) => text.parse().ok(),
            _ => None,
        };
        if read.is_none() {
            self.refuse(name, "must be `true` or `false`");
        }
        read
    }

    /// An optional whole number of `range`.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let read = self
            .whole(self.member(name)?)
            .and_then(|number| i64::try_from(number).ok())
            .filter(|number| range.contains(number));
        if read.is_none() {
            let (start, end) = (range.start(), range.end());
            self.refuse(
                name,
                format!("must be a whole number from {start} to {end}"),
            );
        }
        read
    }

    /// How many messages of history are asked for: `default` if nothing is
    /// said, never more than [`MAX_HISTORY`].
    pub(crate) fn history_length(&self, name: &str, default: usize) -> usize {
        let Some(value) = self.member(name) else {
            return default;
        };
        match self.whole(value).map(usize::try_from) {
            Some(Ok(length)) => length.min(MAX_HISTORY),
            _ => {
                self.refuse(name, "must be a whole number, zero or more");
                default
            }
        }
    }

    fn whole(&self, value: &Value) -> Option<i128> {
        match value {
            Value::Number(number) => number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from)),
            Value::String(text) if self.spelling != Spelling::Json => {
                text.parse::<i64>().ok().map(i128::from)
            }
            _ => None,
        }
    }

    /// An optional word of a closed list.
    pub(crate) fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.refuse(name, format!("must be one of {}", quoted(&allowed)));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A word of a closed list that must be there.
    pub(crate) fn required_choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<T> {
        if self.member(name).and_then(Value::as_str) == Some("") {
            self.refuse(name, "must not be empty");
            return None;
        }
        self.required_member(name, self.choice(name, words))
    }

    /// An optional RFC 3339 time.
    pub(crate) fn timestamp(&self, name: &str) -> Option<Timestamp> {
        let time = Timestamp::parse_rfc3339(self.text(name)?);
        if time.is_none() {
            self.refuse(name, "must be an RFC 3339 time");
        }
        time
    }

    /// An optional task id.
    pub(crate) fn task_id(&self, name: &str) -> Option<TaskId> {
        self.id(name, TaskId::parse(self.text(name)?))
    }

    /// A task id that must be there.
    pub(crate) fn required_task_id(&self, name: &str) -> Option<TaskId> {
        self.id(name, TaskId::parse(self.required_text(name)?))
    }

    /// An optional context id.
    pub(crate) fn context_id(&self, name: &str) -> Option<ContextId> {
        self.id(name, ContextId::parse(self.text(name)?))
    }

    fn id<T>(&self, name: &str, id: Result<T, InvalidId>) -> Option<T> {
        id.map_err(|error| self.refuse(name, rule(&error))).ok()
    }

    /// Bytes that must be there, in base64: standard or URL-safe, padded or
    /// not (A2A 1.0 §5.6 asks readers to take them all).
    pub(crate) fn required_base64(&self, name: &str) -> Option<Bytes> {
        let text = self.required_string(name)?;
        let engine = if text.contains(['-', '_']) {
            &URL_SAFE
        } else {
            &STANDARD
        };
        let bytes = engine.decode(text);
        if bytes.is_err() {
            self.refuse(name, "must be base64");
        }
        bytes.ok().map(Bytes::from)
    }

    /// An optional object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.element(self.member(name)?, self.at(name))
    }

    /// An object that must be there.
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

    /// Free members; none if absent.
    pub(crate) fn metadata(&self, name: &str) -> Metadata {
        self.object(name)
            .map(|object| object.map.clone())
            .unwrap_or_default()
    }

    fn array(&self, name: &str) -> Option<&'a [Value]> {
        let list = self.member(name)?.as_array();
        if list.is_none() {
            self.refuse(name, "must be an array");
        }
        list.map(Vec::as_slice)
    }

    /// A list of strings; empty if absent.
    pub(crate) fn strings(&self, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, value) in self.array(name).unwrap_or_default().iter().enumerate() {
            match value.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.refuse(&format!("{name}[{index}]"), "must be a string"),
            }
        }
        texts
    }

    /// The parts of a message, 1 to [`MAX_PARTS`], each read by `decode`.
    /// Nothing if one of them has a fault.
    pub(crate) fn parts<T>(
        &self,
        name: &str,
        decode: impl Fn(&Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.required_member(name, self.array(name))?;
        if list.is_empty() || list.len() > MAX_PARTS {
            self.refuse(name, format!("must have 1 to {MAX_PARTS} elements"));
            return None;
        }
        // Every part is read before one of them can spoil the list.
        let read: Vec<Option<T>> = list
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let part = self.element(value, self.at(&format!("{name}[{index}]")))?;
                decode(&part)
            })
            .collect();
        read.into_iter().collect()
    }
}

fn quoted(words: &[&str]) -> String {
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
