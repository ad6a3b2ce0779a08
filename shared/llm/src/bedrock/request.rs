//! Requests of Converse and `ConverseStream`.

use super::kept;
use crate::provider::arguments;
use a2a_lambda_skill::model::{
    ModelContent, ModelFile, ModelMessage, ModelPart, ModelRequest, OutputSchema, ToolChoice,
    ToolResult,
};
use aws_sdk_bedrockruntime::operation::converse::ConverseInput;
use aws_sdk_bedrockruntime::operation::converse::builders::ConverseInputBuilder;
use aws_sdk_bedrockruntime::types::{
    AnyToolChoice, AutoToolChoice, CachePointBlock, CachePointType, ContentBlock, ConversationRole,
    DocumentBlock, DocumentSource, ImageBlock, ImageSource, InferenceConfiguration,
    JsonSchemaDefinition, Message, OutputConfig, OutputFormat, OutputFormatStructure,
    OutputFormatType, SpecificToolChoice, SystemContentBlock, Tool, ToolChoice as Choice,
    ToolConfiguration, ToolInputSchema, ToolResultBlock, ToolResultContentBlock, ToolResultStatus,
    ToolSpecification, ToolUseBlock,
};
use aws_smithy_json::deserialize::json_token_iter;
use aws_smithy_json::deserialize::token::expect_document;
use aws_smithy_types::error::operation::BuildError;
use aws_smithy_types::{Blob, Document};
use serde_json::{Map, Value};

/// Whether a model can be made to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BedrockToolChoice {
    /// It takes every `toolChoice`.
    Tool,
    /// It takes `auto` and `any`.
    Any,
    /// It takes only `auto`.
    Auto,
}

/// Models that take less than every `toolChoice`, by a part of their id (Amazon Bedrock API
/// reference, `ToolChoice`).
const LIMITED: &[(&str, BedrockToolChoice)] = &[
    ("mistral.", BedrockToolChoice::Any),
    ("meta.", BedrockToolChoice::Auto),
    ("cohere.", BedrockToolChoice::Auto),
    ("ai21.", BedrockToolChoice::Auto),
    ("deepseek.", BedrockToolChoice::Auto),
    ("writer.", BedrockToolChoice::Auto),
];

impl BedrockToolChoice {
    /// What is known of a model.
    #[must_use]
    pub fn of_model(id: &str) -> Self {
        let entry = LIMITED.iter().find(|(part, _)| id.contains(part));
        entry.map_or(Self::Tool, |(_, choice)| *choice)
    }
}

/// The input of Converse, which `ConverseStream` takes too.
pub(super) fn input(
    request: &ModelRequest,
    options: &Map<String, Value>,
    choice: BedrockToolChoice,
    caches: bool,
) -> Result<ConverseInputBuilder, BuildError> {
    let point = CachePointBlock::builder().r#type(CachePointType::Default);
    let point = caches.then(|| point.build()).transpose()?;
    let mut more = options.clone();
    more.extend(request.options.clone());
    let more = (!more.is_empty()).then(|| document(&Value::Object(more)));
    let system = (!request.system.is_empty()).then(|| {
        let text = SystemContentBlock::Text(request.system.clone());
        let point = point.clone().map(SystemContentBlock::CachePoint);
        [text].into_iter().chain(point).collect()
    });
    let inference = request.max_tokens.map(|most| {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        InferenceConfiguration::builder().max_tokens(most).build()
    });
    Ok(ConverseInput::builder()
        .set_system(system)
        .set_messages(Some(messages(&request.messages, point.as_ref())?))
        .set_tool_config(tools(request, choice, point)?)
        .set_inference_config(inference)
        .set_output_config(request.output.as_ref().map(output).transpose()?)
        .set_additional_model_request_fields(more.transpose()?))
}

/// The messages. The service wants the two sides in turn, so messages of one side that follow
/// each other are one message.
fn messages(
    messages: &[ModelMessage],
    point: Option<&CachePointBlock>,
) -> Result<Vec<Message>, BuildError> {
    let mut sides: Vec<(ConversationRole, Vec<ContentBlock>)> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            ModelMessage::User(parts) => (ConversationRole::User, of_user(parts)?),
            ModelMessage::Model(content) => (ConversationRole::Assistant, contents(content)?),
            ModelMessage::ToolResults(results) => {
                let results = results.iter().map(result);
                (ConversationRole::User, results.collect::<Result<_, _>>()?)
            }
        };
        match sides.last_mut() {
            Some((last, before)) if *last == role => before.extend(content),
            _ => sides.push((role, content)),
        }
    }
    if let Some((_, content)) = sides.last_mut() {
        content.extend(point.cloned().map(ContentBlock::CachePoint));
    }
    let messages = sides.into_iter().map(|(role, content)| {
        let builder = Message::builder().role(role);
        builder.set_content(Some(content)).build()
    });
    messages.collect()
}

/// The formats of files that Converse takes, and the most bytes of each: the limits of
/// `ImageBlock` and `DocumentBlock` in the API reference.
const FORMATS: [(&str, &str, u64); 9] = [
    ("image/gif", "gif", 3_750_000),
    ("image/jpeg", "jpeg", 3_750_000),
    ("image/png", "png", 3_750_000),
    ("image/webp", "webp", 3_750_000),
    ("application/pdf", "pdf", 4_500_000),
    ("application/msword", "doc", 4_500_000),
    ("application/vnd.ms-excel", "xls", 4_500_000),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
        4_500_000,
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
        4_500_000,
    ),
];

fn format_of(file: &ModelFile) -> Option<(&'static str, u64)> {
    let mut rows = FORMATS.iter();
    let row = rows.find(|(media_type, ..)| *media_type == file.media_type);
    row.map(|(_, format, limit)| (*format, *limit))
}

/// The most bytes of a file, if the service takes its type.
pub(super) fn file_limit(file: &ModelFile) -> Option<u64> {
    format_of(file).map(|(_, limit)| limit)
}

/// What the user has sent. The service refuses a document without a text beside it.
fn of_user(parts: &[ModelPart]) -> Result<Vec<ContentBlock>, BuildError> {
    let mut blocks = Vec::new();
    for part in parts {
        blocks.push(match part {
            ModelPart::Text(text) => ContentBlock::Text(text.clone()),
            ModelPart::Data(data) => ContentBlock::Text(data.to_string()),
            ModelPart::File(file) => of_file(file)?,
        });
    }
    if !blocks.iter().any(ContentBlock::is_text) {
        blocks.push(ContentBlock::Text("The user has sent this.".to_owned()));
    }
    Ok(blocks)
}

fn of_file(file: &ModelFile) -> Result<ContentBlock, BuildError> {
    let format = format_of(file).map_or("", |(format, _)| format);
    let bytes = Blob::new(file.bytes.clone());
    if file.is_image() {
        let image = ImageBlock::builder().format(format.into());
        let image = image.source(ImageSource::Bytes(bytes)).build()?;
        return Ok(ContentBlock::Image(image));
    }
    // The service takes letters, digits, single spaces, hyphens, and some brackets.
    let name = file.name.as_deref().unwrap_or("document");
    let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let document = DocumentBlock::builder().format(format.into()).name(name);
    let document = document.source(DocumentSource::Bytes(bytes)).build()?;
    Ok(ContentBlock::Document(document))
}

/// What the model has produced. Blocks of other APIs are left out.
fn contents(content: &[ModelContent]) -> Result<Vec<ContentBlock>, BuildError> {
    let mut blocks = Vec::new();
    for part in content {
        match part {
            // The service refuses an empty text.
            ModelContent::Text(text) if text.trim().is_empty() => {}
            ModelContent::Text(text) => blocks.push(ContentBlock::Text(text.clone())),
            ModelContent::ToolUse { id, name, input } => {
                let input = document(&arguments(input))?;
                let used = ToolUseBlock::builder().tool_use_id(id).name(name);
                blocks.push(ContentBlock::ToolUse(used.input(input).build()?));
            }
            ModelContent::Provider(block) => {
                blocks.extend(kept::content(block).map(ContentBlock::ReasoningContent));
            }
        }
    }
    Ok(blocks)
}

fn result(result: &ToolResult) -> Result<ContentBlock, BuildError> {
    let status = match &result.result {
        Ok(_) => ToolResultStatus::Success,
        Err(_) => ToolResultStatus::Error,
    };
    let content = match &result.result {
        // JSON content has to be an object.
        Ok(value @ Value::Object(_)) => ToolResultContentBlock::Json(document(value)?),
        Ok(Value::String(text)) | Err(text) => ToolResultContentBlock::Text(text.clone()),
        Ok(value) => ToolResultContentBlock::Text(value.to_string()),
    };
    let block = ToolResultBlock::builder().tool_use_id(&result.id);
    let block = block.status(status).content(content).build()?;
    Ok(ContentBlock::ToolResult(block))
}

fn tools(
    request: &ModelRequest,
    possible: BedrockToolChoice,
    point: Option<CachePointBlock>,
) -> Result<Option<ToolConfiguration>, BuildError> {
    if request.tools.is_empty() {
        return Ok(None);
    }
    let choice = match (&request.tool_choice, possible) {
        (ToolChoice::Tool(name), BedrockToolChoice::Tool) => {
            Choice::Tool(SpecificToolChoice::builder().name(name).build()?)
        }
        (ToolChoice::Auto, _) | (_, BedrockToolChoice::Auto) => {
            Choice::Auto(AutoToolChoice::builder().build())
        }
        (ToolChoice::Any | ToolChoice::Tool(_), _) => Choice::Any(AnyToolChoice::builder().build()),
    };
    let specifications = request.tools.iter().map(|tool| {
        let schema = ToolInputSchema::Json(document(&tool.input_schema)?);
        let specification = ToolSpecification::builder().name(&tool.name);
        // The service refuses an empty description.
        let description = Some(&tool.description).filter(|text| !text.is_empty());
        let specification = specification.set_description(description.cloned());
        Ok(Tool::ToolSpec(specification.input_schema(schema).build()?))
    });
    let mut specifications: Vec<Tool> = specifications.collect::<Result<_, BuildError>>()?;
    specifications.extend(point.map(Tool::CachePoint));
    let configuration = ToolConfiguration::builder().tool_choice(choice);
    let configuration = configuration.set_tools(Some(specifications)).build()?;
    Ok(Some(configuration))
}

/// The schema of the answer's text.
fn output(schema: &OutputSchema) -> Result<OutputConfig, BuildError> {
    let definition = JsonSchemaDefinition::builder()
        .name(&schema.name)
        .schema(schema.schema.to_string())
        .build()?;
    let format = OutputFormat::builder()
        .r#type(OutputFormatType::JsonSchema)
        .structure(OutputFormatStructure::JsonSchema(definition))
        .build()?;
    Ok(OutputConfig::builder().text_format(format).build())
}

/// The value as the SDK has it.
fn document(value: &Value) -> Result<Document, BuildError> {
    let text = value.to_string();
    let mut tokens = json_token_iter(text.as_bytes()).peekable();
    expect_document(&mut tokens).map_err(BuildError::other)
}
