//! What 0.1 and 0.3 cannot say as we mean it, and how it is said there: the
//! one table of down-conversion, with the shapes these generations share.
//!
//! | Ours | 0.3 | 0.1 |
//! |---|---|---|
//! | `rejected` | same | `failed`, the reason stays in the status message |
//! | `auth-required` | same | `input-required` |
//! | data that is no object | `{"value": ..}`, marked in the part's metadata | same; an array stays |
//! | bytes, URL | `file.bytes`, `file.uri` | same |
//! | artifact id | same | `index`, the id in the artifact's metadata |
//! | context id, message id | same | `sessionId`, none |

use super::read::{self, Object, SCHEME_RULE, Spelling, is_scheme};
use super::write::Members;
use crate::task::names::STATE_TRANSITIONS;
use crate::task::{
    CancelCommand, EventId, Generation, GetQuery, MAX_PUSH_CONFIGS, MAX_PUSH_CREDENTIALS,
    MAX_PUSH_TOKEN, MAX_PUSH_URL, Metadata, Part, PartContent, PushConfig, PushId, PushOffer,
    Refusal, Secret, Status, SubscribeCommand, Task, TaskState,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

/// Part metadata: the data is wrapped. The official SDKs use the same mark.
const WRAPPED: &str = "data_part_compat";
/// The member that holds wrapped data.
const VALUE: &str = "value";

/// The names of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateNames {
    /// In 0.1.
    pub(crate) v01: &'static str,
    /// In 0.3, JSON-RPC.
    pub(crate) v03: &'static str,
    /// In 0.3, REST.
    pub(crate) rest: &'static str,
}

/// What `state` is called. The REST names are those of the 0.3 proto, which
/// spells `CANCELLED` with two `L`.
pub(crate) const fn state_names(state: TaskState) -> StateNames {
    let (v01, rest) = match state {
        TaskState::Submitted => ("submitted", "TASK_STATE_SUBMITTED"),
        TaskState::Working => ("working", "TASK_STATE_WORKING"),
        TaskState::InputRequired => ("input-required", "TASK_STATE_INPUT_REQUIRED"),
        TaskState::AuthRequired => ("input-required", "TASK_STATE_AUTH_REQUIRED"),
        TaskState::Completed => ("completed", "TASK_STATE_COMPLETED"),
        TaskState::Failed => ("failed", "TASK_STATE_FAILED"),
        TaskState::Canceled => ("canceled", "TASK_STATE_CANCELLED"),
        TaskState::Rejected => ("failed", "TASK_STATE_REJECTED"),
    };
    StateNames {
        v01,
        v03: state.as_str(),
        rest,
    }
}

/// How a generation writes tagged parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tagged {
    /// The member that names the kind of content.
    pub(crate) tag: &'static str,
    /// Whether data may be an array, too.
    pub(crate) arrays: bool,
}

/// Parts of 0.1.
pub(crate) const V01: Tagged = Tagged {
    tag: "type",
    arrays: true,
};
/// Parts of 0.3.
pub(crate) const V03: Tagged = Tagged {
    tag: "kind",
    arrays: false,
};

/// The three kinds of content; each is the name of its member as well.
const KINDS: [(&str, &str); 3] = [("text", "text"), ("file", "file"), ("data", "data")];

/// Reads a tagged part. The tag may be missing; the content tells it.
pub(crate) fn read_part(part: &Object<'_>, shape: Tagged) -> Option<Part> {
    let tag = part.choice(shape.tag, &KINDS);
    let metadata = part.metadata("metadata");
    let kind = match tag {
        Some(tag) if KINDS.iter().all(|(kind, _)| part.member(kind).is_none()) => {
            part.refuse(tag, "is required");
            return None;
        }
        _ => part.exactly_one(&KINDS.map(|(kind, _)| kind), None)?,
    };
    if tag.is_some_and(|tag| tag != kind) {
        part.refuse(shape.tag, format!("does not fit the content `{kind}`"));
    }
    match kind {
        "text" => Some(Part {
            metadata,
            ..Part::text(part.required_string("text")?)
        }),
        "file" => Some(Part {
            metadata,
            ..read_file(&part.required_object("file")?, ["bytes", "uri"])?
        }),
        _ => {
            let data = part.member("data")?;
            if !(data.is_object() || shape.arrays && data.is_array()) {
                let allowed = if shape.arrays {
                    "must be an object or an array"
                } else {
                    "must be an object"
                };
                part.refuse("data", allowed);
                return None;
            }
            Some(unwrap_data(data, metadata))
        }
    }
}

/// Reads a file whose bytes and URI are members of these names.
pub(crate) fn read_file(file: &Object<'_>, [bytes, uri]: [&'static str; 2]) -> Option<Part> {
    let filename = file.string("name").filter(|text| !text.is_empty());
    let media_type = file.string("mimeType").filter(|text| !text.is_empty());
    let given = file.exactly_one(&[bytes, uri], None)?;
    let content = if given == bytes {
        PartContent::Raw(file.required_base64(bytes)?)
    } else {
        PartContent::Url(file.required_text(uri)?.to_owned())
    };
    Some(Part {
        filename: filename.map(str::to_owned),
        media_type: media_type.map(str::to_owned),
        ..Part::new(content)
    })
}

/// The data part which a client wrote as `data` with `metadata`.
pub(crate) fn unwrap_data(data: &Value, mut metadata: Metadata) -> Part {
    let inner = wrapped(data, metadata.get(WRAPPED));
    if inner.is_some() {
        metadata.remove(WRAPPED);
    }
    Part {
        metadata,
        ..Part::data(inner.unwrap_or(data).clone())
    }
}

/// What `data` wraps; `mark` is the member of the part's metadata that says so.
fn wrapped<'v>(data: &'v Value, mark: Option<&Value>) -> Option<&'v Value> {
    match data.as_object() {
        Some(object) if mark == Some(&Value::Bool(true)) && object.len() == 1 => object.get(VALUE),
        _ => None,
    }
}

/// What stands between `data` and the data it means, in a part as a client wrote
/// it: the member of the wrapping, or nothing.
pub(crate) fn wrapping(part: &Value, data: &Value) -> &'static str {
    let mark = part.get("metadata").and_then(|it| it.get(WRAPPED));
    match wrapped(data, mark) {
        Some(_) => ".value",
        None => "",
    }
}

/// How `data` is written, and the part's metadata with it.
pub(crate) fn wrap_data(data: &Value, arrays: bool, metadata: &Metadata) -> (Value, Metadata) {
    let mut metadata = metadata.clone();
    if data.is_object() || arrays && data.is_array() {
        return (data.clone(), metadata);
    }
    metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
    let wrapped = Map::from_iter([(VALUE.to_owned(), data.clone())]);
    (Value::Object(wrapped), metadata)
}

/// Writes a tagged part.
pub(crate) fn write_part(part: &Part, shape: Tagged) -> Value {
    let Tagged { tag, arrays } = shape;
    let members = match &part.content {
        PartContent::Text(text) => Members::new().with(tag, "text").with("text", text.as_str()),
        PartContent::Data(data) => {
            let (data, metadata) = wrap_data(data, arrays, &part.metadata);
            return Members::new()
                .with(tag, "data")
                .with("data", data)
                .metadata(metadata)
                .build();
        }
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Stored(_) => Members::new()
            .with(tag, "file")
            .with("file", write_file(part, ["bytes", "uri"])),
    };
    members.metadata(part.metadata.clone()).build()
}

/// Writes a file with members of these names for its bytes and its URI.
pub(crate) fn write_file(part: &Part, [bytes, uri]: [&str; 2]) -> Value {
    let file = Members::new()
        .maybe("name", part.filename.as_deref())
        .maybe("mimeType", part.media_type.as_deref());
    match &part.content {
        PartContent::Raw(raw) => file.with(bytes, STANDARD.encode(raw)),
        PartContent::Url(url) => file.with(uri, url.as_str()),
        // INVARIANT: stored bytes are loaded, or replaced by a URL, before a
        // task is shown; the other contents are no files.
        PartContent::Stored(_) | PartContent::Text(_) | PartContent::Data(_) => file,
    }
    .build()
}

/// Writes a status whose state and message are already spelled out.
pub(crate) fn write_status(status: &Status, state: &str, message: Option<Value>) -> Value {
    Members::new()
        .with("state", state)
        .maybe("message", message)
        .with("timestamp", status.timestamp.to_rfc3339())
        .build()
}

/// The metadata of `task` with its state changes.
pub(crate) fn task_metadata(task: &Task, name: impl Fn(TaskState) -> &'static str) -> Metadata {
    let mut metadata = task.metadata.clone();
    let changes: Vec<Value> = task
        .transitions
        .iter()
        .map(|change| {
            Members::new()
                .with("state", name(change.state))
                .with("timestamp", change.at.to_rfc3339())
                .build()
        })
        .collect();
    if !changes.is_empty() {
        metadata.insert(STATE_TRANSITIONS.to_owned(), Value::Array(changes));
    }
    metadata
}

/// Reads a push configuration, alone or inside a send.
pub(crate) fn read_push(config: &Object<'_>, generation: Generation) -> Option<PushOffer> {
    let id = config.push_id("id");
    let url = config.required_text("url");
    config.printable("url", MAX_PUSH_URL);
    let token = config.printable("token", MAX_PUSH_TOKEN).map(Secret::new);
    let authentication = config.object("authentication");
    let (mut schemes, mut credentials) = (Vec::new(), None);
    if let Some(it) = &authentication {
        schemes = it.strings("schemes");
        for (index, scheme) in schemes.iter().enumerate() {
            if !is_scheme(scheme) {
                it.refuse(&format!("schemes[{index}]"), SCHEME_RULE);
            }
        }
        if schemes.len() > MAX_PUSH_CONFIGS {
            it.refuse(
                "schemes",
                format!("must have at most {MAX_PUSH_CONFIGS} elements"),
            );
        }
        credentials = it.printable("credentials", MAX_PUSH_CREDENTIALS);
    }
    Some(PushOffer {
        at: config.path().to_owned(),
        id,
        url: url?.to_owned(),
        token,
        schemes,
        credentials: credentials.map(Secret::new),
        generation,
    })
}

/// Writes a push configuration, without its secrets.
pub(crate) fn write_push(config: &PushConfig, id: Option<&PushId>) -> Members {
    let schemes = config.schemes.iter().map(String::as_str);
    let authentication =
        (!config.schemes.is_empty()).then(|| Members::new().list("schemes", schemes));
    Members::new()
        .maybe("id", id.map(PushId::as_str))
        .with("url", config.url.as_str())
        .maybe("authentication", authentication)
}

/// Reads the parameters of `tasks/get`.
///
/// # Errors
/// [`Refusal::InvalidParams`] naming each faulty field.
pub(crate) fn read_get(params: &Value, history_default: usize) -> Result<GetQuery, Refusal> {
    read::read(params, Spelling::Json, |params| {
        let history_length = params.history_length("historyLength", history_default);
        Some(GetQuery {
            id: params.required_task_id("id")?,
            history_length,
        })
    })
}

/// Reads the parameters of `tasks/cancel`.
///
/// # Errors
/// [`Refusal::InvalidParams`] naming each faulty field.
pub(crate) fn read_cancel(params: &Value) -> Result<CancelCommand, Refusal> {
    read::read(params, Spelling::Json, |params| {
        let metadata = params.metadata("metadata");
        Some(CancelCommand {
            id: params.required_task_id("id")?,
            metadata,
        })
    })
}

/// Reads the parameters of `tasks/resubscribe`.
///
/// # Errors
/// [`Refusal::InvalidParams`] naming each faulty field.
pub(crate) fn read_subscribe(
    params: &Value,
    last_event: Option<EventId>,
) -> Result<SubscribeCommand, Refusal> {
    read::read(params, Spelling::Json, |params| {
        Some(SubscribeCommand {
            id: params.required_task_id("id")?,
            last_event,
        })
    })
}
