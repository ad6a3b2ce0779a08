//! The input types of skills, decoded from a message before the task exists.

use super::media;
use super::{AgentError, AgentResult, Content, FilePart};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value, json};
use serde_path_to_error::Segment;

/// The input of a skill. These types implement it:
///
/// - every `DeserializeOwned + JsonSchema` type: decoded from the first data part,
///   otherwise from the first text part as a JSON string (so `String` is the text)
/// - [`TextOr`]: the first text part or the first data part
/// - [`Content`]: all parts, unchanged
/// - [`FilePart`]: the first file part
///
/// An integer below 2^53 may also arrive as a double (`2.0`), since some clients have no
/// integers.
///
/// Put `#[serde(deny_unknown_fields)]` on your input types. A misspelled member is then an
/// error; otherwise serde ignores it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the input of a skill",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it, or use `String`, \
            `Content`, `FilePart` or `TextOr<_>`"
)]
pub trait SkillInput: Sized + Send + 'static {
    /// Decodes the input from the content of a message.
    ///
    /// # Errors
    /// `MISSING_INPUT`, or `INVALID_INPUT` with a JSON pointer in its details.
    fn decode(content: &Content) -> AgentResult<Self>;

    /// The JSON schema of the data part; `{}` if every value is accepted, as by default.
    fn schema() -> Value {
        json!({})
    }

    /// The media types this type implies; by default all.
    fn modes() -> &'static [&'static str] {
        media::ANY
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> SkillInput for T {
    fn decode(content: &Content) -> AgentResult<Self> {
        read(content)
    }

    fn schema() -> Value {
        schema_of::<T>(SchemaSettings::default().for_deserialize())
    }

    fn modes() -> &'static [&'static str] {
        if takes_text(&<T as SkillInput>::schema()) {
            media::TEXT_AND_JSON
        } else {
            media::JSON
        }
    }
}

impl SkillInput for Content {
    fn decode(content: &Content) -> AgentResult<Self> {
        Ok(content.clone())
    }
}

impl SkillInput for FilePart {
    fn decode(content: &Content) -> AgentResult<Self> {
        content
            .first_file()
            .ok_or_else(|| AgentError::missing_input("a file part is needed"))
    }
}

/// Text, or the same request as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextOr<T> {
    /// The first text part, when there is no data part.
    Text(String),
    /// The first data part.
    Data(T),
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> SkillInput for TextOr<T> {
    fn decode(content: &Content) -> AgentResult<Self> {
        match content.first_data() {
            Some(_) => read(content).map(Self::Data),
            None => content.text().map(|text| Self::Text(text.to_owned())),
        }
    }

    fn schema() -> Value {
        <T as SkillInput>::schema()
    }

    fn modes() -> &'static [&'static str] {
        media::TEXT_AND_JSON
    }
}

/// Decodes a value from the first data part, otherwise from the first text part.
pub(super) fn read<T: DeserializeOwned>(content: &Content) -> AgentResult<T> {
    let text;
    let value = if let Some(data) = content.first_data() {
        data
    } else if let Some(words) = content.first_text() {
        text = Value::String(words.to_owned());
        &text
    } else {
        return Err(AgentError::missing_input("a data or text part is needed"));
    };
    let result = match serde_path_to_error::deserialize(value) {
        Ok(value) => Ok(value),
        // The second attempt is for integers that arrived as doubles. The first error stays
        // if there were none.
        Err(error) => {
            let mut value = value.clone();
            match integers(&mut value) {
                true => serde_path_to_error::deserialize(&value),
                false => Err(error),
            }
        }
    };
    result.map_err(|error| {
        let pointer = pointer(error.path());
        let wrong = public(&error.into_inner().to_string());
        AgentError::invalid_input(format!("invalid input at `{pointer}`: {wrong}"))
            .with_detail("pointer", pointer)
    })
}

/// Replaces whole doubles by integers in place; returns whether it replaced one.
///
/// Clients whose JSON passes through protobuf or JavaScript have doubles only. From 2^53 on
/// a double can mean more than one integer, so it stays unchanged.
fn integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let integer = integer(number);
            integer.map(|it| *number = it.into()).is_some()
        }
        // `|` and not `any`, which would stop at the first replacement.
        Value::Array(items) => items.iter_mut().fold(false, |is, item| is | integers(item)),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |is, member| is | integers(member)),
        _ => false,
    }
}

fn integer(number: &Number) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let double = number.as_f64().filter(|_| number.is_f64())?;
    (double.fract() == 0.0 && double.abs() < LIMIT).then_some(double as i64)
}

/// The location of an error as a JSON pointer (RFC 6901); empty means the whole value.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let step = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&step);
    }
    pointer
}

/// The message of serde without the names of Rust types. A client has no use for `expected
/// struct Flight`, and little for `expected i64`.
fn public(message: &str) -> String {
    const INTEGERS: [&str; 12] = [
        "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
    ];
    const KINDS: [&str; 7] = [
        "struct ",
        "enum ",
        "tuple ",
        "unit ",
        "newtype ",
        "internally tagged ",
        "adjacently tagged ",
    ];
    match message.split_once("expected ") {
        Some((before, type_name)) if KINDS.iter().any(|kind| type_name.starts_with(kind)) => {
            format!("{before}expected the form of the published schema")
        }
        Some((before, type_name)) if INTEGERS.contains(&type_name) => {
            format!("{before}expected a whole number in the range of the published schema")
        }
        Some((before, "f32" | "f64")) => format!("{before}expected a number"),
        _ => match message.split_once(" of untagged enum ") {
            Some((before, _)) => before.to_owned(),
            None => message.to_owned(),
        },
    }
}

/// The schema of a type, without `$schema` and `title`.
pub(super) fn schema_of<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Value {
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(members) = schema.as_object_mut() {
        // Every schema repeats `$schema`; `title` is the name of the Rust type.
        members.remove("$schema");
        members.remove("title");
    }
    schema
}

/// Whether a JSON string can match the schema.
pub(super) fn takes_text(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else {
        return schema == &Value::Bool(true);
    };
    if let Some(types) = members.get("type") {
        return types == "string"
            || types
                .as_array()
                .is_some_and(|types| types.iter().any(|one| one == "string"));
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = members.get(choice).and_then(Value::as_array) {
            return choices.iter().any(takes_text);
        }
    }
    match members.get("const") {
        Some(value) => value.is_string(),
        None => !members.contains_key("$ref") && !members.contains_key("enum"),
    }
}
