//! Converts between the internal values and the formats that 0.1 and 0.3 share.
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

use super::json_object::JsonObject;
use super::params::{self, FieldCase, Object, SCHEME_RULE, is_scheme};
use a2a_lambda_model::task::metadata_keys::STATE_TRANSITIONS;
use a2a_lambda_model::task::{
    A2aError, CancelCommand, EventId, Generation, GetQuery, MAX_PUSH_CONFIGS, MAX_PUSH_CREDENTIALS,
    MAX_PUSH_TOKEN, MAX_PUSH_URL, Metadata, Part, PartContent, PushConfig, PushId, PushOffer,
    Secret, Status, SubscribeCommand, Task, TaskState,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

/// The key in a part's metadata that marks wrapped data. The official SDKs use the
/// same key.
const WRAPPED: &str = "data_part_compat";
/// The member that holds wrapped data.
const VALUE: &str = "value";

/// The names of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateNames {
    /// In 0.1.
    pub(crate) v01: &'static str,
    /// In 0.3 over JSON-RPC.
    pub(crate) v03: &'static str,
    /// In 0.3 over REST.
    pub(crate) rest: &'static str,
}

/// The names of `state`.
pub(crate) const fn state_names(state: TaskState) -> StateNames {
    // A2A 0.1 §6.3; A2A 0.3 §6.3. The REST names are those of the 0.3 proto, which
    // spells `CANCELLED` with two `L`.
    let (v01, rest) = match state {
        TaskState::Submitted => ("submitted", "TASK_STATE_SUBMITTED"),
        TaskState::Working => ("working", "TASK_STATE_WORKING"),
        TaskState::InputRequired => ("input-required", "TASK_STATE_INPUT_REQUIRED"),
        // 0.1 has neither `auth-required` nor `rejected`.
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
pub(crate) struct PartTags {
    /// The member that names the kind of content.
    pub(crate) tag: &'static str,
    /// Whether data may be an array, too.
    pub(crate) arrays: bool,
}

/// Parts of 0.1 (A2A 0.1 §6.5).
pub(crate) const V01: PartTags = PartTags {
    tag: "type",
    arrays: true,
};
/// Parts of 0.3 (A2A 0.3 §6.5).
pub(crate) const V03: PartTags = PartTags {
    tag: "kind",
    arrays: false,
};

/// The three kinds of content; each is also the name of the member that holds it.
const KINDS: [(&str, &str); 3] = [("text", "text"), ("file", "file"), ("data", "data")];

/// Reads a tagged part. If the tag is missing, the content gives the kind.
pub(crate) fn read_part(part: &Object<'_>, shape: PartTags) -> Option<Part> {
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
            // A2A 0.3 §6.5.3: an object. A2A 0.1 §6.5.3: an object or an array.
            if !(data.is_object() || shape.arrays && data.is_array()) {
                let why = if shape.arrays {
                    "must be an object or an array"
                } else {
                    "must be an object"
                };
                part.refuse("data", why);
                return None;
            }
            Some(unwrap_data(data, metadata))
        }
    }
}

/// Reads a file; the names are those of the members for its bytes and its URI.
pub(crate) fn read_file(file: &Object<'_>, [bytes, uri]: [&'static str; 2]) -> Option<Part> {
    let filename = file.string("name").filter(|text| !text.is_empty());
    let media_type = file.string("mimeType").filter(|text| !text.is_empty());
    let name = file.exactly_one(&[bytes, uri], None)?;
    let content = if name == bytes {
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

/// The data part that a client wrote as `data` with `metadata`, unwrapped.
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

/// The value that `data` wraps, if any; `mark` is the mark in the part's metadata.
fn wrapped<'v>(data: &'v Value, mark: Option<&Value>) -> Option<&'v Value> {
    match data.as_object() {
        Some(object) if mark == Some(&Value::Bool(true)) && object.len() == 1 => object.get(VALUE),
        _ => None,
    }
}

/// The path from `data` to the data that it wraps, in a part as the client wrote
/// it: `.value`, or empty.
pub(crate) fn wrapping(part: &Value, data: &Value) -> &'static str {
    let mark = part.get("metadata").and_then(|it| it.get(WRAPPED));
    match wrapped(data, mark) {
        Some(_) => ".value",
        None => "",
    }
}

/// `data` as it is written, and the part's metadata with the mark if it is wrapped.
pub(crate) fn wrap_data(data: &Value, arrays: bool, metadata: &Metadata) -> (Value, Metadata) {
    let mut metadata = metadata.clone();
    if data.is_object() || arrays && data.is_array() {
        return (data.clone(), metadata);
    }
    metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
    let members = Map::from_iter([(VALUE.to_owned(), data.clone())]);
    (Value::Object(members), metadata)
}

/// Writes a tagged part.
pub(crate) fn write_part(part: &Part, shape: PartTags) -> Value {
    let PartTags { tag, arrays } = shape;
    let members = match &part.content {
        PartContent::Text(text) => JsonObject::new()
            .with(tag, "text")
            .with("text", text.as_str()),
        PartContent::Data(data) => {
            let (data, metadata) = wrap_data(data, arrays, &part.metadata);
            return JsonObject::new()
                .with(tag, "data")
                .with("data", data)
                .metadata(metadata)
                .build();
        }
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Stored(_) => JsonObject::new()
            .with(tag, "file")
            .with("file", write_file(part, ["bytes", "uri"])),
    };
    members.metadata(part.metadata.clone()).build()
}

/// Writes a file; the names are those of the members for its bytes and its URI.
pub(crate) fn write_file(part: &Part, [bytes, uri]: [&str; 2]) -> Value {
    let file = JsonObject::new()
        .maybe("name", part.filename.as_deref())
        .maybe("mimeType", part.media_type.as_deref());
    match &part.content {
        PartContent::Raw(raw) => file.with(bytes, STANDARD.encode(raw)),
        PartContent::Url(url) => file.with(uri, url.as_str()),
        // INVARIANT: the engine loads stored bytes, or replaces them with a URL,
        // before it shows a task. The other contents are not files.
        PartContent::Stored(_) | PartContent::Text(_) | PartContent::Data(_) => file,
    }
    .build()
}

/// Writes a status; `state` and `message` are already in the target format.
pub(crate) fn write_status(status: &Status, state: &str, message: Option<Value>) -> Value {
    JsonObject::new()
        .with("state", state)
        .maybe("message", message)
        .with("timestamp", status.timestamp.to_rfc3339())
        .build()
}

/// The metadata of `task` with its state changes.
pub(crate) fn task_metadata(task: &Task, name: impl Fn(TaskState) -> &'static str) -> Metadata {
    // A2A 0.3 §5.5.2: the card announces `stateTransitionHistory`, but the task has no
    // member for it.
    let mut metadata = task.metadata.clone();
    let changes: Vec<Value> = task
        .transitions
        .iter()
        .map(|change| {
            JsonObject::new()
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

/// Reads a push config, alone or inside a send (A2A 0.3 §6.8; A2A 0.1 §6.8).
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
        signs: false,
    })
}

/// Writes a push config. `token` and `credentials` are write-only and left out.
pub(crate) fn write_push(config: &PushConfig, id: Option<&PushId>) -> JsonObject {
    let schemes = config.schemes.iter().map(String::as_str);
    let authentication =
        (!config.schemes.is_empty()).then(|| JsonObject::new().list("schemes", schemes));
    JsonObject::new()
        .maybe("id", id.map(PushId::as_str))
        .with("url", config.url.as_str())
        .maybe("authentication", authentication)
}

/// Reads the parameters of `tasks/get` (A2A 0.3 §7.3.1; A2A 0.1 §7.3.1).
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn read_get(params: &Value, history_default: usize) -> Result<GetQuery, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let history_length = params.history_length("historyLength", history_default);
        Some(GetQuery {
            id: params.required_task_id("id")?,
            history_length,
        })
    })
}

/// Reads the parameters of `tasks/cancel` (A2A 0.3 §7.4.1; A2A 0.1 §7.4.1).
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn read_cancel(params: &Value) -> Result<CancelCommand, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        let metadata = params.metadata("metadata");
        Some(CancelCommand {
            id: params.required_task_id("id")?,
            metadata,
        })
    })
}

/// Reads the parameters of `tasks/resubscribe` (A2A 0.3 §7.9; A2A 0.1 §7.7).
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(crate) fn read_subscribe(
    params: &Value,
    last_event: Option<EventId>,
) -> Result<SubscribeCommand, A2aError> {
    params::read(params, FieldCase::Json, |params| {
        Some(SubscribeCommand {
            id: params.required_task_id("id")?,
            last_event,
        })
    })
}
