//! The body of a request.

use super::kept;
use crate::openai::quirks::OpenAiQuirks;
use crate::openai::values::{
    data_url, file_name, has_file, merge_options, output_schema, result_text, set_in, set_tools,
};
use crate::provider::arguments;
use a2a_lambda_skill::model::{ModelContent, ModelMessage, ModelPart, ModelRequest, ModelTool};
use serde_json::{Map, Value, json};

/// The members that no option sets.
const OWN: &[&str] = &["messages", "model", "stream", "tools"];

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
    set("messages", Value::Array(messages(request)));
    if let Some(output) = &request.output {
        let schema = output_schema(output);
        let format = json!({"type": "json_schema", "json_schema": schema});
        set("response_format", format);
    }
    if let Some(limit) = request.max_tokens {
        set(&quirks.token_limit, Value::from(limit));
    }
    if streams {
        set("stream", Value::Bool(true));
        if quirks.stream_usage {
            set_in(
                &mut body,
                "stream_options",
                "include_usage",
                Value::Bool(true),
            );
        }
    }
    body
}

fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        match message {
            ModelMessage::User(parts) => {
                messages.push(json!({"role": "user", "content": of_user(message, parts)}));
            }
            ModelMessage::Model(content) => messages.push(of_model(content)),
            ModelMessage::ToolResults(results) => {
                messages.extend(results.iter().map(|result| {
                    let content = result_text(&result.result);
                    json!({"role": "tool", "tool_call_id": result.id, "content": content})
                }));
            }
        }
    }
    messages
}

/// The content of a user's message. Many servers take only a text where there is no file.
fn of_user(message: &ModelMessage, parts: &[ModelPart]) -> Value {
    if !has_file(parts) {
        return message.user_text().into();
    }
    let part = |part: &ModelPart| match part {
        ModelPart::Text(text) => json!({"type": "text", "text": text}),
        ModelPart::Data(data) => json!({"type": "text", "text": data.to_string()}),
        ModelPart::File(file) if file.is_image() => {
            json!({"type": "image_url", "image_url": {"url": data_url(file)}})
        }
        ModelPart::File(file) => {
            let file = json!({"filename": file_name(file), "file_data": data_url(file)});
            json!({"type": "file", "file": file})
        }
    };
    parts.iter().map(part).collect()
}

/// A message of the model. Blocks of other providers are left out.
fn of_model(content: &[ModelContent]) -> Value {
    let (mut members, mut parts, mut calls) = (Map::new(), Vec::new(), Vec::new());
    let mut text = String::new();
    for piece in content {
        match piece {
            ModelContent::Text(piece) => {
                text.push_str(piece);
                parts.push(json!({"type": "text", "text": piece}));
            }
            ModelContent::ToolUse { id, name, input } => {
                let function = json!({"name": name, "arguments": arguments(input).to_string()});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            ModelContent::Provider(block) => {
                let pieces = block.get(kept::MESSAGE).and_then(Value::as_object);
                for (name, piece) in pieces.into_iter().flatten() {
                    kept::join(members.entry(name.as_str()).or_insert(Value::Null), piece);
                }
                parts.extend(block.get(kept::PART).cloned());
            }
        }
    }
    let is_text = |part: &Value| part.get("type") == Some(&Value::from("text"));
    let content = if !parts.iter().all(is_text) {
        Value::Array(parts)
    } else if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        Value::String(text)
    };
    members.insert("role".to_owned(), Value::from("assistant"));
    members.insert("content".to_owned(), content);
    if !calls.is_empty() {
        members.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(members)
}

fn tool(tool: &ModelTool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        },
    })
}

fn tool_choice(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}
