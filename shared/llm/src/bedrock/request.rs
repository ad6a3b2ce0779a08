//! Requests of Converse and `ConverseStream`.

use super::document::document;
use super::kept;
use super::quirks::BedrockToolChoice;
use a2a_lambda_skill::model::{
    ModelContent, ModelMessage, ModelRequest, ModelTool, OutputSchema, ToolChoice, ToolResult,
};
use aws_sdk_bedrockruntime::types::{
    AnyToolChoice, AutoToolChoice, ContentBlock, ConversationRole, InferenceConfiguration,
    JsonSchemaDefinition, Message, OutputConfig, OutputFormat, OutputFormatStructure,
    OutputFormatType, SpecificToolChoice, SystemContentBlock, Tool, ToolChoice as Choice,
    ToolConfiguration, ToolInputSchema, ToolResultBlock, ToolResultContentBlock, ToolResultStatus,
    ToolSpecification, ToolUseBlock,
};
use aws_smithy_types::Document;
use aws_smithy_types::error::operation::BuildError;
use serde_json::{Map, Value, json};

/// The member with arguments that are no JSON object, when they return to the model.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// The parts of a request, which both operations take.
#[derive(Debug)]
pub(super) struct ConverseParts {
    pub(super) system: Option<Vec<SystemContentBlock>>,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Option<ToolConfiguration>,
    pub(super) inference: Option<InferenceConfiguration>,
    pub(super) output: Option<OutputConfig>,
    pub(super) more: Option<Document>,
}

impl ConverseParts {
    pub(super) fn of(
        request: &ModelRequest,
        options: &Map<String, Value>,
        choice: BedrockToolChoice,
    ) -> Result<Self, BuildError> {
        let mut more = options.clone();
        more.extend(request.options.clone());
        let system = (!request.system.is_empty())
            .then(|| vec![SystemContentBlock::Text(request.system.clone())]);
        let inference = request.max_tokens.map(|most| {
            let most = i32::try_from(most).unwrap_or(i32::MAX);
            InferenceConfiguration::builder().max_tokens(most).build()
        });
        Ok(Self {
            system,
            messages: messages(&request.messages)?,
            tools: tools(&request.tools, &request.tool_choice, choice)?,
            inference,
            output: request.output.as_ref().map(output).transpose()?,
            more: (!more.is_empty()).then(|| document(&Value::Object(more))),
        })
    }
}

/// The messages. The service wants the two sides in turn, so messages of one side that follow
/// each other are one message.
fn messages(messages: &[ModelMessage]) -> Result<Vec<Message>, BuildError> {
    let mut sides: Vec<(ConversationRole, Vec<ContentBlock>)> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            ModelMessage::User(text) => (
                ConversationRole::User,
                vec![ContentBlock::Text(text.clone())],
            ),
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
    let messages = sides.into_iter().map(|(role, content)| {
        let builder = Message::builder().role(role);
        builder.set_content(Some(content)).build()
    });
    messages.collect()
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
                let input = match input {
                    Value::Object(_) => document(input),
                    other => document(&json!({ INVALID_ARGUMENTS: other })),
                };
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
    let (status, content) = match &result.result {
        // JSON content has to be an object.
        Ok(value @ Value::Object(_)) => (
            ToolResultStatus::Success,
            ToolResultContentBlock::Json(document(value)),
        ),
        Ok(Value::String(text)) => (
            ToolResultStatus::Success,
            ToolResultContentBlock::Text(text.clone()),
        ),
        Ok(value) => (
            ToolResultStatus::Success,
            ToolResultContentBlock::Text(value.to_string()),
        ),
        Err(text) => (
            ToolResultStatus::Error,
            ToolResultContentBlock::Text(text.clone()),
        ),
    };
    let block = ToolResultBlock::builder().tool_use_id(&result.id);
    let block = block.status(status).content(content).build()?;
    Ok(ContentBlock::ToolResult(block))
}

fn tools(
    tools: &[ModelTool],
    tool_choice: &ToolChoice,
    possible: BedrockToolChoice,
) -> Result<Option<ToolConfiguration>, BuildError> {
    if tools.is_empty() {
        return Ok(None);
    }
    let choice = match (tool_choice, possible) {
        (ToolChoice::Tool(name), BedrockToolChoice::Tool) => {
            Choice::Tool(SpecificToolChoice::builder().name(name).build()?)
        }
        (ToolChoice::Auto, _) | (_, BedrockToolChoice::Auto) => {
            Choice::Auto(AutoToolChoice::builder().build())
        }
        (ToolChoice::Any | ToolChoice::Tool(_), _) => Choice::Any(AnyToolChoice::builder().build()),
    };
    let specifications = tools.iter().map(|tool| {
        let schema = ToolInputSchema::Json(document(&tool.input_schema));
        let specification = ToolSpecification::builder().name(&tool.name);
        // The service refuses an empty description.
        let description = Some(&tool.description).filter(|text| !text.is_empty());
        let specification = specification.set_description(description.cloned());
        Ok(Tool::ToolSpec(specification.input_schema(schema).build()?))
    });
    let specifications: Vec<Tool> = specifications.collect::<Result<_, BuildError>>()?;
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
