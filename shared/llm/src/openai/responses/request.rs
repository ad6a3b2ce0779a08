//! The body of a request.

use super::ITEM;
use crate::openai::quirks::OpenAiQuirks;
use crate::openai::values::{
    data_url, elements, file_name, has_file, merge_options, output_schema, result_text, set_in,
    set_tools, text,
};
use crate::provider::arguments;
use a2a_lambda_skill::model::{ModelContent, ModelMessage, ModelPart, ModelRequest, ModelTool};
use serde_json::{Map, Value, json};

/// The members that no option sets.
const OWN: &[&str] = &["input", "instructions", "model", "store", "stream", "tools"];

/// The body of a request; `options` are those of the configuration.
pub(crate) fn body(
    request: &ModelRequest,
    model: &str,
    options: &Map<String, Value>,
    quirks: &OpenAiQuirks,
    streams: bool,
) -> Map<String, Value> {
    let mut body = merge_options(options, &request.options, OWN);
    set_tools(&mut body, request, quirks, tool, tool_choice);
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    set("model", Value::from(model));
    set("store", Value::Bool(false));
    if !request.system.is_empty() {
        set("instructions", Value::from(request.system.as_str()));
    }
    set("input", request.messages.iter().flat_map(items).collect());
    if let Some(limit) = request.max_tokens {
        set("max_output_tokens", Value::from(limit));
    }
    if streams {
        set("stream", Value::Bool(true));
    }
    if let Some(output) = &request.output {
        let mut format = output_schema(output);
        format.insert("type".to_owned(), Value::from("json_schema"));
        // An option may set another member of `text`, such as `verbosity`.
        set_in(&mut body, "text", "format", format.into());
    }
    body
}

fn items(message: &ModelMessage) -> Vec<Value> {
    match message {
        ModelMessage::User(parts) => vec![of_user(message, parts)],
        ModelMessage::Model(content) => content.iter().filter_map(of_model).collect(),
        ModelMessage::ToolResults(results) => {
            let item = |id: &str, output: String| json!({"type": "function_call_output", "call_id": id, "output": output});
            let results = results.iter();
            results
                .map(|result| item(&result.id, result_text(&result.result)))
                .collect()
        }
    }
}

fn of_user(message: &ModelMessage, parts: &[ModelPart]) -> Value {
    if !has_file(parts) {
        return of_text("user", &message.user_text());
    }
    let part = |part: &ModelPart| match part {
        ModelPart::Text(text) => json!({"type": "input_text", "text": text}),
        ModelPart::Data(data) => json!({"type": "input_text", "text": data.to_string()}),
        ModelPart::File(file) if file.is_image() => {
            json!({"type": "input_image", "image_url": data_url(file)})
        }
        ModelPart::File(file) => {
            json!({"type": "input_file", "filename": file_name(file), "file_data": data_url(file)})
        }
    };
    let content: Value = parts.iter().map(part).collect();
    json!({"type": "message", "role": "user", "content": content})
}

fn of_text(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

/// An item of the model. Blocks of other providers are left out.
fn of_model(content: &ModelContent) -> Option<Value> {
    match content {
        ModelContent::Text(text) => Some(of_text("assistant", text)),
        ModelContent::ToolUse { id, name, input } => Some(json!({
            "type": "function_call",
            "call_id": id,
            "name": name,
            "arguments": arguments(input).to_string(),
        })),
        ModelContent::Provider(block) => block.get(ITEM).filter(|item| is_taken(item)).cloned(),
    }
}

/// Whether the service takes an item back. It does not store responses, so it does not know
/// reasoning by its id alone.
fn is_taken(item: &Value) -> bool {
    text(item, "type") != Some("reasoning")
        || text(item, "encrypted_content").is_some()
        || !elements(item, "content").is_empty()
}

/// A tool. Without `strict` the service would treat its schema as strict.
fn tool(tool: &ModelTool) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": false,
    })
}

fn tool_choice(name: &str) -> Value {
    json!({"type": "function", "name": name})
}
