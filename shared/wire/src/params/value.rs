//! Reads the values of a request, and notes the fault of a malformed one.

use super::object::quoted;
use super::{FieldCase, MAX_HISTORY, Object, is_printable, printable_rule, rule};
use a2a_lambda_model::task::{ContextId, IdError, PushId, TaskId, Timestamp};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde_json::{Number, Value};
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

const TOLERANT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, TOLERANT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, TOLERANT);

/// The bytes of base64, standard or URL-safe, padded or not; `None` for any other
/// text.
pub(crate) fn base64(text: &str) -> Option<Bytes> {
    // A2A 1.0 §5.5: ProtoJSON readers accept all four forms.
    let engine = if text.contains(['-', '_']) {
        &URL_SAFE
    } else {
        &STANDARD
    };
    engine.decode(text).ok().map(Bytes::from)
}

/// A whole number, also one that is written as `2.0` or `1e1`, which `ProtoJSON` reads as an
/// integer.
fn whole(number: &Number) -> Option<i128> {
    /// The integers below this are exact in a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let double = || {
        number
            .as_f64()
            .filter(|it| it.fract() == 0.0 && it.abs() < EXACT)
    };
    let integer = number.as_i64().map(i128::from);
    let integer = integer.or_else(|| number.as_u64().map(i128::from));
    integer.or_else(|| double().map(|double| double as i128))
}

impl<'a> Object<'a> {
    /// What `read` makes of an optional member; if it makes nothing, the member is noted as
    /// wrong, and `rule` is what it must be.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        rule: impl Display,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = read(self.member(name)?);
        if value.is_none() {
            self.refuse(name, rule.to_string());
        }
        value
    }

    /// An optional string, which may be empty.
    pub(crate) fn string(&self, name: &str) -> Option<&'a str> {
        self.parsed(name, "must be a string", Value::as_str)
    }

    /// A required string, which may be empty.
    pub(crate) fn required_string(&self, name: &str) -> Option<&'a str> {
        self.required_member(name, self.string(name))
    }

    /// An optional string that is not empty. In `ProtoJSON` an empty string counts as
    /// absent; in plain JSON it is a fault.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let text = self.string(name)?;
        if !text.is_empty() {
            return Some(text);
        }
        if self.spelling == FieldCase::Json {
            self.refuse(name, "must not be empty");
        }
        None
    }

    /// A required string that is not empty.
    pub(crate) fn required_text(&self, name: &str) -> Option<&'a str> {
        let text = self.required_string(name)?;
        if text.is_empty() {
            self.refuse(name, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// An optional string of 1 to `max` printable ASCII characters, which fits in a
    /// header.
    pub(crate) fn printable(&self, name: &str, max: usize) -> Option<&'a str> {
        let text = self.text(name)?;
        if !is_printable(text, max) {
            self.refuse(name, printable_rule(max));
            return None;
        }
        Some(text)
    }

    /// An optional id of a push config.
    pub(crate) fn push_id(&self, name: &str) -> Option<PushId> {
        self.id(name, PushId::parse(self.text(name)?))
    }

    /// A required id of a push config.
    pub(crate) fn required_push_id(&self, name: &str) -> Option<PushId> {
        self.id(name, PushId::parse(self.required_text(name)?))
    }

    /// An optional boolean.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        self.parsed(name, "must be `true` or `false`", Value::as_bool)
    }

    /// An optional whole number in `range`.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let (start, end) = (range.start(), range.end());
        let rule = format_args!("must be a whole number from {start} to {end}");
        self.parsed(name, rule, |value| {
            let number = u64::try_from(self.whole(value)?).ok();
            number.filter(|number| range.contains(number))
        })
    }

    /// The number of elements of a page, if the client names one.
    pub(crate) fn page_size(&self) -> Option<usize> {
        // A2A 1.0 §3.1.4: a page has 1 to 100 tasks.
        let size = self.integer("pageSize", 1..=100)?;
        usize::try_from(size).ok()
    }

    /// The number of push configs of a page, at most 100; `None` for 0.
    pub(crate) fn config_page_size(&self) -> Option<usize> {
        // A2A 1.0 §3.1.9, a2a.proto: an `int32` without presence. Only `ListTasks` has a range.
        let size = self.integer("pageSize", 0..=i32::MAX.unsigned_abs().into())?;
        usize::try_from(size.min(100)).ok().filter(|size| *size > 0)
    }

    /// The number of messages of history that the client wants, at most
    /// [`MAX_HISTORY`]; `default` if it names none.
    pub(crate) fn history_length(&self, name: &str, default: usize) -> usize {
        let length = self.parsed(name, "must be a whole number of at least 0", |value| {
            usize::try_from(self.whole(value)?).ok()
        });
        length.map_or(default, |length| length.min(MAX_HISTORY))
    }

    fn whole(&self, value: &Value) -> Option<i128> {
        match value {
            Value::Number(number) => whole(number),
            // A2A 1.0 §5.5: ProtoJSON readers take an integer as a string too.
            Value::String(text) if self.spelling != FieldCase::Json => text.parse().ok(),
            _ => None,
        }
    }

    /// An optional word of a fixed list.
    pub(crate) fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        // Protobuf enums: the zero value ends so. Without presence it means that it is absent.
        let is_zero = self.spelling != FieldCase::Json && text.ends_with("_UNSPECIFIED");
        (!is_zero).then(|| self.word(name, words)).flatten()
    }

    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let choices = fmt::from_fn(|f| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            f.write_str(&quoted(&words))
        });
        self.parsed(name, format_args!("must be one of {choices}"), |value| {
            let word = words.iter().find(|(word, _)| value == word);
            word.map(|(_, meaning)| *meaning)
        })
    }

    /// A required word of a fixed list.
    pub(crate) fn required_choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<T> {
        if self.member(name).and_then(Value::as_str) == Some("") {
            self.refuse(name, "must not be empty");
            return None;
        }
        self.required_member(name, self.word(name, words))
    }

    /// An optional RFC 3339 time. Another text is noted as wrong.
    pub(crate) fn timestamp(&self, name: &str) -> Option<Timestamp> {
        self.text(name)?;
        let read = |value: &Value| Timestamp::parse_rfc3339(value.as_str()?);
        self.parsed(name, "must be an RFC 3339 time", read)
    }

    /// An optional task id.
    pub(crate) fn task_id(&self, name: &str) -> Option<TaskId> {
        self.id(name, TaskId::parse(self.text(name)?))
    }

    /// A required task id.
    pub(crate) fn required_task_id(&self, name: &str) -> Option<TaskId> {
        self.id(name, TaskId::parse(self.required_text(name)?))
    }

    /// An optional context id.
    pub(crate) fn context_id(&self, name: &str) -> Option<ContextId> {
        self.id(name, ContextId::parse(self.text(name)?))
    }

    fn id<T>(&self, name: &str, id: Result<T, IdError>) -> Option<T> {
        id.map_err(|error| self.refuse(name, rule(&error))).ok()
    }

    /// Optional bytes, in base64.
    pub(crate) fn base64(&self, name: &str) -> Option<Bytes> {
        let text = self.parsed(name, "must be a base64 string", Value::as_str)?;
        self.parsed(name, "must be base64", |_| base64(text))
    }
}
