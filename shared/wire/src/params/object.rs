//! Reads the members of an object of a request, and refuses the first that is malformed.

use super::{FieldCase, MAX_HISTORY, MAX_PARTS, ReadResult};
use crate::words::WordTable;
use a2a_lambda_model::task::{A2aError, IdError, Metadata};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;

const TOLERANT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, TOLERANT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, TOLERANT);

/// An object of the request with its path. Its members have the names of 1.0.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    /// Empty for the parameters themselves.
    pub(crate) path: String,
    map: &'a Map<String, Value>,
    case: FieldCase,
    words: WordTable,
}

impl<'a> Object<'a> {
    /// The parameters of a request.
    pub(crate) const fn new(
        map: &'a Map<String, Value>,
        case: FieldCase,
        words: WordTable,
    ) -> Self {
        Self {
            path: String::new(),
            map,
            case,
            words,
        }
    }

    /// The object, whose members have other words, and no zero values.
    pub(crate) fn in_words(self, words: WordTable) -> Self {
        let case = FieldCase::Json;
        Self {
            words,
            case,
            ..self
        }
    }

    fn inside(&self, path: String, value: &'a Value) -> ReadResult<Self> {
        match value {
            Value::Object(map) => Ok(Self { path, map, ..*self }),
            _ => Err(A2aError::invalid(path, "must be an object")),
        }
    }

    /// What the client calls `name`.
    fn words<'n>(&self, name: &'n &'n str) -> &'n [&'n str] {
        let row = self.words.iter().find(|(of_v10, _)| of_v10 == name);
        row.map_or(std::slice::from_ref(name), |(_, words)| words)
    }

    /// The words and values under which the client gives member `name`, each also as it is
    /// spelled; `null` counts as absent.
    fn values<'n>(
        &'n self,
        name: &'n &'n str,
    ) -> impl Iterator<Item = (&'n str, Cow<'n, str>, &'a Value)> {
        // A2A 1.0 §5.5: ProtoJSON readers take the name of the proto field too. The official
        // types of 0.3 read it in plain JSON.
        let proto = |word: &str| {
            let has_capital = word.bytes().any(|byte| byte.is_ascii_uppercase());
            has_capital.then(|| Cow::Owned(snake(word)))
        };
        let spellings = self.words(name).iter().flat_map(move |&word| {
            let both = std::iter::once(Cow::Borrowed(word)).chain(proto(word));
            both.map(move |it| (word, it))
        });
        spellings.filter_map(|(word, spelling)| {
            let value = self.map.get(spelling.as_ref())?;
            (!value.is_null()).then_some((word, spelling, value))
        })
    }

    /// The path of member `name`, as the client calls it.
    pub(crate) fn at(&self, name: &str) -> String {
        let first = self.values(&name).next().map(|it| it.0);
        let word = first.or(self.words(&name).first().copied()).unwrap_or(name);
        match self.path.as_str() {
            "" => word.to_owned(),
            path => format!("{path}.{word}"),
        }
    }

    /// The error that refuses member `name`.
    pub(crate) fn fault(&self, name: &str, description: impl Into<String>) -> A2aError {
        A2aError::invalid(self.at(name), description)
    }

    /// Member `name`, also if it is `null`.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    /// Member `name`; `null` counts as absent.
    pub(crate) fn member(&self, name: &str) -> ReadResult<Option<&'a Value>> {
        let mut values = self.values(&name);
        match (values.next(), values.next()) {
            (Some(_), Some((_, other, _))) => {
                Err(self.fault(name, format!("is given twice, also as `{other}`")))
            }
            (first, _) => Ok(first.map(|it| it.2)),
        }
    }

    /// The only one of the `contents` that there is, with its name.
    pub(crate) fn only<T, const N: usize>(
        &self,
        contents: [(&'static str, Option<T>); N],
    ) -> ReadResult<(&'static str, T)> {
        let names = contents.each_ref().map(|content| content.0);
        let mut contents = contents.into_iter().filter(|content| content.1.is_some());
        match (contents.next(), contents.next()) {
            (Some((name, Some(content))), None) => Ok((name, content)),
            _ => {
                let words = names.iter().flat_map(|name| self.words(name).first());
                let why = format!("must have exactly one of {}", quote_all(words.copied()));
                Err(A2aError::invalid(&self.path, why))
            }
        }
    }

    /// `value`, which member `name` holds; a fault if there is none.
    pub(crate) fn require<T>(&self, name: &str, value: Option<T>) -> ReadResult<T> {
        value.ok_or_else(|| match self.member(name) {
            Ok(Some(_)) => self.fault(name, "must not be empty"),
            _ => self.fault(name, "is required"),
        })
    }

    /// What `read` makes of an optional member; if it makes nothing, `rule` is what it must be.
    pub(crate) fn value_as<T>(
        &self,
        name: &str,
        rule: impl Display,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> ReadResult<Option<T>> {
        let read = |value| read(value).ok_or_else(|| self.fault(name, rule.to_string()));
        self.member(name)?.map(read).transpose()
    }

    /// What `read` makes of an optional text, as [`Object::value_as`].
    pub(crate) fn text_as<T>(
        &self,
        name: &str,
        rule: impl Display,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> ReadResult<Option<T>> {
        let read = |text| read(text).ok_or_else(|| self.fault(name, rule.to_string()));
        self.text(name)?.map(read).transpose()
    }

    /// An optional string, which may be empty.
    pub(crate) fn string(&self, name: &str) -> ReadResult<Option<&'a str>> {
        self.value_as(name, "must be a string", Value::as_str)
    }

    /// An optional string that is not empty. In `ProtoJSON` an empty string counts as
    /// absent; in plain JSON it is a fault.
    pub(crate) fn text(&self, name: &str) -> ReadResult<Option<&'a str>> {
        match self.string(name)? {
            Some("") if self.case == FieldCase::Json => Err(self.fault(name, "must not be empty")),
            text => Ok(text.filter(|text| !text.is_empty())),
        }
    }

    /// A required string that is not empty.
    pub(crate) fn required_text(&self, name: &str) -> ReadResult<&'a str> {
        self.require(name, self.text(name)?)
    }

    /// An optional string of 1 to `max` printable ASCII characters, which fits in a
    /// header.
    pub(crate) fn printable(&self, name: &str, max: usize) -> ReadResult<Option<&'a str>> {
        let rule = format_args!("must have at most {max} characters, all of them printable ASCII");
        let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
        self.text_as(name, rule, |text| {
            (text.len() <= max && text.bytes().all(is_printable)).then_some(text)
        })
    }

    /// An optional id.
    pub(crate) fn id<T>(&self, name: &str) -> ReadResult<Option<T>>
    where
        T: TryFrom<String, Error = IdError>,
    {
        let fault = |error: IdError| self.fault(name, format!("must be {}", error.rule));
        let read = |text: &str| T::try_from(text.to_owned()).map_err(fault);
        self.text(name)?.map(read).transpose()
    }

    /// A required id.
    pub(crate) fn required_id<T>(&self, name: &str) -> ReadResult<T>
    where
        T: TryFrom<String, Error = IdError>,
    {
        self.require(name, self.id(name)?)
    }

    /// An optional boolean.
    pub(crate) fn boolean(&self, name: &str) -> ReadResult<Option<bool>> {
        self.value_as(name, "must be `true` or `false`", Value::as_bool)
    }

    /// An optional whole number in `range`.
    pub(crate) fn integer<T>(&self, name: &str, range: RangeInclusive<T>) -> ReadResult<Option<T>>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let (start, end) = (range.start(), range.end());
        let rule = format_args!("must be a whole number from {start} to {end}");
        self.value_as(name, rule, |value| {
            let number = T::try_from(self.read_integer(value)?).ok();
            number.filter(|number| range.contains(number))
        })
    }

    /// The number of elements of a page.
    pub(crate) fn page_size(&self) -> ReadResult<usize> {
        // A2A 1.0 §3.1.4: a page has 1 to 100 tasks, 50 unless the client names a number.
        Ok(self.integer("pageSize", 1..=100)?.unwrap_or(50))
    }

    /// The number of messages of history that the client wants, at most
    /// [`MAX_HISTORY`]; `default` if it names none.
    pub(crate) fn history_length(&self, default: usize) -> ReadResult<usize> {
        let rule = "must be a whole number of at least 0";
        let read = |value| usize::try_from(self.read_integer(value)?).ok();
        let length = self.value_as("historyLength", rule, read)?;
        Ok(length.map_or(default, |length| length.min(MAX_HISTORY)))
    }

    fn read_integer(&self, value: &Value) -> Option<i128> {
        match value {
            Value::Number(number) => integer_of(number),
            // A2A 1.0 §5.5: ProtoJSON readers take an integer as a string too.
            Value::String(text) if self.case == FieldCase::ProtoJson => text.parse().ok(),
            _ => None,
        }
    }

    /// An optional word of a fixed list.
    pub(crate) fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> ReadResult<Option<T>> {
        // Protobuf enums: the zero value ends so. Without presence it means that it is absent.
        let is_zero =
            |text: &str| self.case == FieldCase::ProtoJson && text.ends_with("_UNSPECIFIED");
        let Some(text) = self.text(name)?.filter(|text| !is_zero(text)) else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => Err(self.fault(name, one_of(words.iter().map(|it| it.0)))),
        }
    }

    /// Checks the required member `role`: a client sends as the user only.
    pub(crate) fn role(&self) -> ReadResult<()> {
        let names = self.words(&"ROLE_USER");
        let is_user = |role: &Value| names.iter().any(|name| role == name).then_some(());
        let role = self.value_as("role", one_of(names.iter().copied()), is_user)?;
        self.require("role", role)
    }

    /// Optional bytes, in base64.
    pub(crate) fn base64(&self, name: &str) -> ReadResult<Option<Bytes>> {
        let read = |value: &Value| base64(value.as_str()?);
        self.value_as(name, "must be a base64 string", read)
    }

    /// An optional object.
    pub(crate) fn object(&self, name: &str) -> ReadResult<Option<Self>> {
        let read = |value| self.inside(self.at(name), value);
        self.member(name)?.map(read).transpose()
    }

    /// A required object.
    pub(crate) fn required_object(&self, name: &str) -> ReadResult<Self> {
        self.require(name, self.object(name)?)
    }

    /// An object with any members; empty if absent.
    pub(crate) fn metadata(&self, name: &str) -> ReadResult<Metadata> {
        let object = self.object(name)?;
        Ok(object.map(|it| it.map.clone()).unwrap_or_default())
    }

    /// An optional list, whose elements `read` reads with their paths.
    fn list<T>(
        &self,
        name: &str,
        rule: &str,
        read: impl Fn(String, &'a Value) -> ReadResult<T>,
    ) -> ReadResult<Option<Vec<T>>> {
        let read = |(index, value)| read(format!("{}[{index}]", self.at(name)), value);
        let list = self.value_as(name, rule, Value::as_array)?;
        list.map(|list| list.iter().enumerate().map(read).collect())
            .transpose()
    }

    /// A list of strings; empty if absent.
    pub(crate) fn strings(&self, name: &str) -> ReadResult<Vec<String>> {
        let read = |path, value: &Value| match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(A2aError::invalid(path, "must be a string")),
        };
        let texts = self.list(name, "must be a list of strings", read)?;
        Ok(texts.unwrap_or_default())
    }

    /// The parts of a message, 1 to [`MAX_PARTS`], each read by `read`.
    pub(crate) fn parts<T>(&self, read: impl Fn(&Self) -> ReadResult<T>) -> ReadResult<Vec<T>> {
        let read = |path, value| read(&self.inside(path, value)?);
        let parts = self.list("parts", "must be a list of parts", read)?;
        let parts = self.require("parts", parts)?;
        // A2A 1.0 §4.1.4; A2A 0.3 §6.4: a message has a part. The server sets the upper limit.
        match parts.len() {
            1..=MAX_PARTS => Ok(parts),
            _ => Err(self.fault("parts", format!("must have 1 to {MAX_PARTS} parts"))),
        }
    }

    /// The part with this index.
    pub(crate) fn part(&self, index: usize) -> Option<Self> {
        let value = self.member("parts").ok()??.get(index)?;
        let path = format!("{}[{index}]", self.at("parts"));
        self.inside(path, value).ok()
    }
}

fn quote_all<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words = words.into_iter().map(|word| format!("`{word}`"));
    words.collect::<Vec<_>>().join(", ")
}

fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    format!("must be one of {}", quote_all(words))
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

/// The bytes of base64, standard or URL-safe, padded or not; `None` for any other
/// text.
pub(crate) fn base64(text: &str) -> Option<Bytes> {
    // A2A 1.0 §5.5: ProtoJSON readers accept all four forms.
    let engine = match text.contains(['-', '_']) {
        true => URL_SAFE,
        false => STANDARD,
    };
    engine.decode(text).ok().map(Bytes::from)
}

/// A whole number, also one that is written as `2.0` or `1e1`, which `ProtoJSON` reads as an
/// integer.
fn integer_of(number: &Number) -> Option<i128> {
    /// The integers below this are exact in a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole = |it: &f64| it.fract() == 0.0 && it.abs() < EXACT;
    let double = || number.as_f64().filter(is_whole).map(|it| it as i128);
    number.as_i128().or_else(double)
}
