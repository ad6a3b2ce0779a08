//! Requests of Converse and `ConverseStream`.

use super::kept;
use super::quirks::BedrockToolChoice;
use crate::provider::arguments;
use a2a_lambda_skill::model::{
    ModelContent, ModelMessage, ModelRequest, ModelTool, OutputSchema, ToolChoice, ToolResult,
};
use aws_sdk_bedrockruntime::operation::converse::ConverseInput;
use aws_sdk_bedrockruntime::operation::converse::builders::ConverseInputBuilder;
use aws_sdk_bedrockruntime::types::{
    AnyToolChoice, AutoToolChoice, ContentBlock, ConversationRole, InferenceConfiguration,
    JsonSchemaDefinition, Message, OutputConfig, OutputFormat, OutputFormatStructure,
    OutputFormatType, SpecificToolChoice, SystemContentBlock, Tool, ToolChoice as Choice,
    ToolConfiguration, ToolInputSchema, ToolResultBlock, ToolResultContentBlock, ToolResultStatus,
    ToolSpecification, ToolUseBlock,
};
use aws_smithy_json::deserialize::json_token_iter;
use aws_smithy_json::deserialize::token::expect_document;
use aws_smithy_types::Document;
use aws_smithy_types::error::operation::BuildError;
use serde_json::{Map, Value};

/// The input of Converse, which `ConverseStream` takes too.
pub(super) fn input(
    request: &ModelRequest,
    options: &Map<String, Value>,
    choice: BedrockToolChoice,
) -> Result<ConverseInputBuilder, BuildError> {
    let mut more = options.clone();
    more.extend(request.options.clone());
    let more = (!more.is_empty()).then(|| document(&Value::Object(more)));
    let system = (!request.system.is_empty())
        .then(|| vec![SystemContentBlock::Text(request.system.clone())]);
    let inference = request.max_tokens.map(|most| {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        InferenceConfiguration::builder().max_tokens(most).build()
    });
    Ok(ConverseInput::builder()
        .set_system(system)
        .set_messages(Some(messages(&request.messages)?))
        .set_tool_config(tools(&request.tools, &request.tool_choice, choice)?)
        .set_inference_config(inference)
        .set_output_config(request.output.as_ref().map(output).transpose()?)
        .set_additional_model_request_fields(more.transpose()?))
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
        let schema = ToolInputSchema::Json(document(&tool.input_schema)?);
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

/// The value as the SDK has it.
fn document(value: &Value) -> Result<Document, BuildError> {
    let text = value.to_string();
    let mut tokens = json_token_iter(text.as_bytes()).peekable();
    expect_document(&mut tokens).map_err(BuildError::other)
}
