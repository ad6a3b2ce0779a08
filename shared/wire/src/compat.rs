//! Reads the parts that 0.1 and 0.3 share.
//!
//! 0.1 and 0.3 cannot express every internal value. This table says what they get
//! instead:
//!
//! | Internal | 0.3 | 0.1 |
//! |---|---|---|
//! | `rejected` | same | `failed`, the reason stays in the status message |
//! | `auth-required` | same | `input-required` |
//! | data that is not an object | `{"value": ..}`, marked in the part's metadata | same; an array stays |
//! | bytes, URL | `file.bytes`, `file.uri` | same |
//! | artifact id | same | `index`, the id in the artifact's metadata |
//! | context id, message id | same | `sessionId`, none |

use super::params::{Object, ReadResult};
use a2a_lambda_model::task::{Part, PartContent};
use serde_json::Value;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

/// The key in a part's metadata that marks wrapped data. The official SDKs use the
/// same key.
pub(crate) const WRAPPED: &str = "data_part_compat";
/// The member that holds wrapped data.
pub(crate) const VALUE: &str = "value";

/// How a dialect writes a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartForm {
    /// The member that names the kind of content. `ProtoJSON` has none.
    pub(crate) tag: Option<&'static str>,
    /// Whether data may be an array, too.
    pub(crate) arrays: bool,
    /// The members of a file for its bytes and its URI.
    pub(crate) file: [&'static str; 2],
}

/// Parts of 0.1 (A2A 0.1 §6.5).
pub(crate) const V01: PartForm = PartForm {
    tag: Some("type"),
    arrays: true,
    file: ["bytes", "uri"],
};
/// Parts of 0.3 (A2A 0.3 §6.5).
pub(crate) const V03: PartForm = PartForm {
    tag: Some("kind"),
    arrays: false,
    file: ["bytes", "uri"],
};
/// Parts of 0.3 over REST, as its proto has them: the member `data` holds a `DataPart`, whose
/// member `data` is the data.
pub(crate) const PROTO: PartForm = PartForm {
    tag: None,
    arrays: false,
    file: ["fileWithBytes", "fileWithUri"],
};

/// The three kinds of content; each is also the name of the member that holds it.
pub(crate) const KINDS: [(&str, &str); 3] = [("text", "text"), ("file", "file"), ("data", "data")];

/// Reads a part. If the tag is missing, the content gives the kind.
pub(crate) fn read_part(part: &Object<'_>, form: PartForm) -> ReadResult<Part> {
    let tag = match form.tag {
        Some(name) => part.choice(name, &KINDS)?,
        None => None,
    };
    let metadata = part.metadata("metadata")?;
    let file = part.object("file")?;
    let contents = [
        ("text", part.string("text")?.map(Part::text)),
        ("file", file.map(|it| read_file(&it, form)).transpose()?),
        ("data", read_data(part, form)?),
    ];
    if let Some(tag) = tag
        && contents.iter().all(|(_, content)| content.is_none())
    {
        return Err(part.fault(tag, "is required"));
    }
    let (kind, content) = part.only(contents)?;
    match form.tag {
        Some(name) if tag.is_some_and(|tag| tag != kind) => {
            Err(part.fault(name, format!("does not fit the content `{kind}`")))
        }
        _ => Ok(unwrap_data(Part {
            metadata,
            ..content
        })),
    }
}

fn read_data(part: &Object<'_>, form: PartForm) -> ReadResult<Option<Part>> {
    // A2A 0.3 §6.5.3: an object. A2A 0.1 §6.5.3: an object or an array.
    let rule = match form.arrays {
        true => "must be an object or an array",
        false => "must be an object",
    };
    let is_proto = form == PROTO;
    part.value_as("data", rule, |data| {
        let is_data = data.is_object() || form.arrays && data.is_array();
        let inner = if is_proto { proto_data(data) } else { data };
        is_data.then(|| Part::data(inner.clone()))
    })
}

/// Reads a part of 0.3 over REST: one with `kind` follows the prose (A2A 0.3 §6.5), any other
/// the proto.
pub(crate) fn read_rest_part(part: &Object<'_>) -> ReadResult<Part> {
    let is_prose = part.member("kind")?.is_some();
    read_part(part, if is_prose { V03 } else { PROTO })
}

/// The data of a `DataPart`, which the proto puts in a member `data`. A client that
/// follows the prose leaves that level out.
fn proto_data(data: &Value) -> &Value {
    let object = data.as_object().filter(|it| it.len() == 1);
    let inner = object.and_then(|it| it.get("data"));
    inner.filter(|it| it.is_object()).unwrap_or(data)
}

fn read_file(file: &Object<'_>, form: PartForm) -> ReadResult<Part> {
    let [mut bytes, mut uri] = form.file;
    if form == PROTO {
        (bytes, uri) = (file.either(bytes, "bytes")?, file.either(uri, "uri")?);
    }
    let filename = file.string("name")?.filter(|text| !text.is_empty());
    let media_type = file.string("mimeType")?.filter(|text| !text.is_empty());
    let url = file.string(uri)?.map(str::to_owned);
    let (member, content) = file.only([
        (bytes, file.base64(bytes)?.map(PartContent::Raw)),
        (uri, url.map(PartContent::Url)),
    ])?;
    if content == PartContent::Url(String::new()) {
        return Err(file.fault(member, "must not be empty"));
    }
    Ok(Part {
        filename: filename.map(str::to_owned),
        media_type: media_type.map(str::to_owned),
        ..Part::new(content)
    })
}

/// The part with the data that a client wrapped.
fn unwrap_data(mut part: Part) -> Part {
    if let PartContent::Data(data) = &part.content
        && let Some(inner) = wrapped(data, part.metadata.get(WRAPPED))
    {
        part.content = PartContent::Data(inner.clone());
        part.metadata.remove(WRAPPED);
    }
    part
}

/// The value that `data` wraps, if any; `mark` is the mark in the part's metadata.
fn wrapped<'v>(data: &'v Value, mark: Option<&Value>) -> Option<&'v Value> {
    let is_marked = mark == Some(&Value::Bool(true));
    let object = data.as_object().filter(|it| is_marked && it.len() == 1)?;
    object.get(VALUE)
}

/// The path from the member `data` of a part, as the client wrote it, to the data that it
/// wraps: `.value`, `.data`, `.data.value` or empty.
pub(crate) fn wrapping(part: &Value, data: &Value, is_rest: bool) -> String {
    let is_proto = is_rest && part.get("kind").is_none();
    let inner = if is_proto { proto_data(data) } else { data };
    let level = if std::ptr::eq(inner, data) {
        ""
    } else {
        ".data"
    };
    let mark = part.get("metadata").and_then(|it| it.get(WRAPPED));
    let value = wrapped(inner, mark).map_or("", |_| ".value");
    format!("{level}{value}")
}
