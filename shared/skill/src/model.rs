//! The interface to a language model, for skills and the router.

use super::{AgentError, AgentResult, Content};
use a2a_lambda_model::task::Part;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::sync::Arc;

/// A language model. An implementation maps these types to its provider. It maps the
/// provider's errors to the `model_…` constructors of [`AgentError`].
pub trait Model: Send + Sync {
    /// The id of the model at its provider, for the trace of a call. Empty where there is none.
    fn id(&self) -> &str {
        ""
    }

    /// Sends a request and returns the complete answer.
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>>;

    /// Sends a request and returns the answer in pieces, while the model produces it.
    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>>;
}

impl fmt::Debug for dyn Model + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn id(&self) -> &str {
        (**self).id()
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        (**self).converse(request)
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        (**self).converse_stream(request)
    }
}

/// A request to a model.
///
/// Its JSON form is stable: cassettes and workers store it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The messages, oldest first.
    pub messages: Vec<ModelMessage>,
    /// The tools the model may call.
    pub tools: Vec<ModelTool>,
    /// Whether the model must call a tool.
    pub tool_choice: ToolChoice,
    /// The schema that the text of the answer must have, for models that enforce one. Not
    /// together with a forced tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// The most output tokens; `None` means the default of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// More members of the provider's request, such as a temperature. Nothing is sent that is
    /// not named here: many models refuse sampling parameters.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

/// The ends of the names of options whose value is a secret.
const SECRET_ENDS: [&str; 5] = ["key", "token", "secret", "authorization", "password"];

impl ModelRequest {
    /// The files of the user's messages.
    pub fn files(&self) -> impl Iterator<Item = &ModelFile> {
        let parts = self.messages.iter().flat_map(|message| match message {
            ModelMessage::User(parts) => parts.as_slice(),
            ModelMessage::Model(_) | ModelMessage::ToolResults(_) => &[],
        });
        parts.filter_map(|part| match part {
            ModelPart::File(file) => Some(file),
            ModelPart::Text(_) | ModelPart::Data(_) => None,
        })
    }

    /// The request with `<redacted>` in the place of each option that is a secret by its name, at
    /// any depth.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        hide_options(&mut self.options);
        self
    }
}

fn hide_options(options: &mut Map<String, Value>) {
    for (name, value) in options.iter_mut() {
        let name = name.to_lowercase();
        if SECRET_ENDS.iter().any(|end| name.ends_with(end)) {
            *value = "<redacted>".into();
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

/// A JSON schema for the text of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// Its name: `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// The schema.
    pub schema: Value,
}

/// A message of the user, the model or its tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelMessage {
    /// What the user sends. The JSON form of one text is that text.
    #[serde(serialize_with = "write_parts", deserialize_with = "read_parts")]
    User(Vec<ModelPart>),
    /// Content that the model produced.
    Model(Vec<ModelContent>),
    /// Results of the tools that the model called.
    ToolResults(Vec<ToolResult>),
}

impl ModelMessage {
    /// A text of the user.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::User(vec![ModelPart::Text(text.into())])
    }

    /// The texts and data of a user's message, one below the other, as text; empty for other
    /// messages.
    #[must_use]
    pub fn user_text(&self) -> String {
        let Self::User(parts) = self else {
            return String::new();
        };
        let texts = parts.iter().filter_map(|part| match part {
            ModelPart::Text(text) => Some(text.clone()),
            ModelPart::Data(data) => Some(data.to_string()),
            ModelPart::File(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

fn write_parts<S: Serializer>(parts: &[ModelPart], serializer: S) -> Result<S::Ok, S::Error> {
    match parts {
        [ModelPart::Text(text)] => text.serialize(serializer),
        parts => parts.serialize(serializer),
    }
}

fn read_parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ModelPart>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Parts {
        Text(String),
        Several(Vec<ModelPart>),
    }
    Ok(match Parts::deserialize(deserializer)? {
        Parts::Text(text) => vec![ModelPart::Text(text)],
        Parts::Several(parts) => parts,
    })
}

/// A part of a user's message: one of the three kinds that A2A has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelPart {
    /// Text.
    Text(String),
    /// Data. A provider sends it as JSON.
    Data(Value),
    /// A file. A provider refuses one that its models do not read with `MODEL_INPUT`.
    File(ModelFile),
}

/// A file for a model.
///
/// Its JSON form has the digest in place of the bytes, so steps, traces and cassettes do not
/// grow with it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFile {
    /// The file name, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The media type, without parameters.
    pub media_type: String,
    /// The number of bytes.
    pub size: u64,
    /// The SHA-256 of the bytes, in lower-case hex.
    pub sha256: String,
    /// The bytes; empty until a request is sent.
    #[serde(skip)]
    pub bytes: Bytes,
}

impl ModelFile {
    /// A file with these bytes.
    pub fn new(
        name: Option<String>,
        media_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let bytes = bytes.into();
        Self {
            name,
            media_type: media_type.into(),
            size: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(&bytes)),
            bytes,
        }
    }

    /// Whether it is a picture.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// The most tokens that it counts before its request: 2,000 for a picture, and 2,000 for
    /// each page of another file, up to 100,000. A page has 50 KB if the file does not show
    /// where its pages begin.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        const PAGE: u64 = 50_000;
        let pages = if self.is_image() {
            1
        } else {
            pdf_pages(&self.bytes).unwrap_or_else(|| self.size.div_ceil(PAGE))
        };
        pages.saturating_mul(2_000).min(100_000)
    }
}

/// The objects of a PDF that are pages (ISO 32000-1, 7.7.3.3). `None` if there are none, or if
/// some may be in a compressed stream of objects.
fn pdf_pages(bytes: &[u8]) -> Option<u64> {
    let (mut pages, mut is_type) = (0, false);
    for name in bytes.split(|byte| *byte == b'/') {
        if name.starts_with(b"ObjStm") {
            return None;
        }
        let rest = name.strip_prefix(b"Page").filter(|_| is_type);
        let is_page = |rest: &[u8]| !rest.first().is_some_and(u8::is_ascii_alphanumeric);
        pages += u64::from(rest.is_some_and(is_page));
        is_type = name.trim_ascii() == b"Type";
    }
    (pages > 0).then_some(pages)
}

impl fmt::Debug for ModelFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            media_type,
            size,
            ..
        } = self;
        write!(f, "ModelFile({name:?}, {media_type}, {size} bytes)")
    }
}

/// What a function or a worker is asked: a value that serializes, or [`Content`].
pub trait ModelInput: Send {
    /// The parts of the question: a text as it is, another value as JSON.
    ///
    /// # Errors
    /// `SERIALIZATION`.
    fn to_parts(&self) -> AgentResult<Vec<Part>>;
}

impl<T: Serialize + Send> ModelInput for T {
    fn to_parts(&self) -> AgentResult<Vec<Part>> {
        let value = serde_json::to_value(self).map_err(AgentError::serialization)?;
        Ok(vec![match value {
            Value::String(text) => Part::text(text),
            value => Part::text(value.to_string()),
        }])
    }
}

impl ModelInput for &Content {
    fn to_parts(&self) -> AgentResult<Vec<Part>> {
        Ok(self.parts().to_vec())
    }
}

/// A piece of a model's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelContent {
    /// Text.
    Text(String),
    /// A tool call.
    ToolUse {
        /// The model's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments as the model wrote them; they are not validated. A text that is no
        /// JSON is a JSON string.
        input: Value,
    },
    /// A block of the provider that must return to it unchanged, such as reasoning with a
    /// signature. Only that provider reads it, and no client sees it.
    Provider(Value),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The model's id of the call.
    pub id: String,
    /// The result, or the error's public text.
    pub result: Result<Value, String>,
}

/// A tool offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
}

/// Whether the model must call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call at least one tool.
    Any,
    /// The model must call this tool.
    Tool(String),
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelReply {
    /// The content.
    pub content: Vec<ModelContent>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// The tokens it used.
    pub usage: Usage,
}

impl ModelReply {
    /// Whether the model waits for the results of tools.
    #[must_use]
    pub fn calls_tools(&self) -> bool {
        let is_call = |content: &ModelContent| matches!(content, ModelContent::ToolUse { .. });
        self.content.iter().any(is_call)
    }

    /// The text, without tool calls and blocks of the provider.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            ModelContent::Text(text) => Some(text.as_str()),
            ModelContent::ToolUse { .. } | ModelContent::Provider(_) => None,
        });
        texts.collect()
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The answer is complete.
    #[default]
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The answer reached the limit of tokens.
    MaxTokens,
    /// A filter or guardrail stopped it.
    Filtered,
    /// Another reason.
    Other,
}

impl StopReason {
    /// The word of its JSON form.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "endTurn",
            Self::ToolUse => "toolUse",
            Self::MaxTokens => "maxTokens",
            Self::Filtered => "filtered",
            Self::Other => "other",
        }
    }
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request, with those that the service had cached.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the request that the service had cached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delta {
    /// More text.
    Text(String),
    /// A tool call starts.
    ToolUse {
        /// The model's id of the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the arguments of the newest tool call, as JSON text.
    ToolInput(String),
    /// A complete block of the provider: see [`ModelContent::Provider`].
    Provider(Value),
    /// The answer ends.
    Stop {
        /// Why the model stopped.
        stop: StopReason,
        /// The tokens it used.
        usage: Usage,
    },
}
