//! Reads and writes the parts of JSON that both APIs share.

use super::quirks::OpenAiQuirks;
use a2a_lambda_skill::model::{
    ModelFile, ModelPart, ModelRequest, ModelTool, OutputSchema, ToolChoice, Usage,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The keywords of a schema that OpenAI accepts in its strict mode.
const STRICT_KEYWORDS: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "title",
    "type",
];

/// The member `name` if it is a text that is not empty.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    let member = value.get(name).and_then(Value::as_str);
    member.filter(|text| !text.is_empty())
}

/// The elements of the member `name`; none if it is not an array.
pub(super) fn elements<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let member = value.get(name).and_then(Value::as_array);
    member.map(Vec::as_slice).unwrap_or_default()
}

/// The tokens of the member `usage`, whose counts have these names.
pub(super) fn usage(value: &Value, input: &str, output: &str) -> Option<Usage> {
    let member = value.get("usage").filter(|usage| usage.is_object())?;
    let count = |name| member.get(name).and_then(Value::as_u64).unwrap_or_default();
    let cache = member.pointer(&format!("/{input}_details/cached_tokens"));
    Some(Usage {
        input_tokens: count(input),
        output_tokens: count(output),
        cached_tokens: cache.and_then(Value::as_u64).unwrap_or_default(),
    })
}

/// The arguments of a tool call, or a piece of them, as JSON text. Servers send a text, an
/// object, or nothing.
pub(super) fn arguments_piece(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// The types of files that the models of OpenAI read.
const FILE_TYPES: [&str; 5] = [
    "application/pdf",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
];

/// The most bytes of a file: 50 MB, for each of the types.
pub(super) fn file_limit(file: &ModelFile) -> Option<u64> {
    let is_known = FILE_TYPES.contains(&file.media_type.as_str());
    is_known.then_some(50_000_000)
}

/// Whether a message has a file.
pub(super) fn has_file(parts: &[ModelPart]) -> bool {
    parts.iter().any(|part| matches!(part, ModelPart::File(_)))
}

/// A file as the APIs take it.
pub(super) fn data_url(file: &ModelFile) -> String {
    let mut url = format!("data:{};base64,", file.media_type);
    STANDARD.encode_string(&file.bytes, &mut url);
    url
}

/// The name of a file, which the APIs require.
pub(super) fn file_name(file: &ModelFile) -> &str {
    file.name.as_deref().unwrap_or("file.pdf")
}

/// The text of a tool's result. The APIs have no member for a failure.
pub(super) fn result_text(result: &Result<Value, String>) -> String {
    match result {
        Ok(Value::String(text)) => text.clone(),
        Ok(value) => value.to_string(),
        Err(text) => format!("error: {text}"),
    }
}

/// The options of the configuration and those of the request, which win. The members `own_names`
/// belong to the provider.
pub(super) fn merge_options(
    defaults: &Map<String, Value>,
    request: &Map<String, Value>,
    own_names: &[&str],
) -> Map<String, Value> {
    let both = defaults.iter().chain(request);
    let members = both.filter(|(name, _)| !own_names.contains(&name.as_str()));
    let pair = |(name, value): (&String, &Value)| (name.clone(), value.clone());
    members.map(pair).collect()
}

/// Sets `member` of the object `name` of `body`, and keeps its other members.
pub(super) fn set_in(body: &mut Map<String, Value>, name: &str, member: &str, value: Value) {
    let mut members = match body.remove(name) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    members.insert(member.to_owned(), value);
    body.insert(name.to_owned(), members.into());
}

/// Sets the tools of a request, and which of them is forced, in the forms of an API.
pub(super) fn set_tools(
    body: &mut Map<String, Value>,
    request: &ModelRequest,
    quirks: &OpenAiQuirks,
    tool: fn(&ModelTool) -> Value,
    choice_of: fn(&str) -> Value,
) {
    if request.tools.is_empty() {
        return;
    }
    let tools = request.tools.iter().map(tool).collect();
    body.insert("tools".to_owned(), tools);
    // The default of the APIs is that the model decides.
    let choice = match &request.tool_choice {
        ToolChoice::Auto => return,
        ToolChoice::Any => Value::from("required"),
        ToolChoice::Tool(name) => choice_of(name),
    };
    if quirks.forced_tools {
        body.insert("tool_choice".to_owned(), choice);
    }
}

/// The schema of the answer's text, in the form that both APIs share.
pub(super) fn output_schema(output: &OutputSchema) -> Map<String, Value> {
    let strict = Value::Bool(is_strict(&output.schema));
    Map::from_iter([
        ("name".to_owned(), Value::from(output.name.as_str())),
        ("schema".to_owned(), output.schema.clone()),
        ("strict".to_owned(), strict),
    ])
}

/// Whether OpenAI accepts the schema in its strict mode. It answers 400 to other schemas.
fn is_strict(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("anyOf").is_none()
        && is_strict_part(schema)
}

fn is_strict_part(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else {
        return false;
    };
    let is_known = |name: &String| STRICT_KEYWORDS.contains(&name.as_str());
    if !members.keys().all(is_known) {
        return false;
    }
    // A reference has no other keyword beside it.
    if members.contains_key("$ref") {
        return members.len() == 1;
    }
    let within = ["properties", "$defs"].into_iter();
    let mut within = within.filter_map(|name| members.get(name).and_then(Value::as_object));
    let mut parts = elements(schema, "anyOf").iter().chain(members.get("items"));
    is_closed(schema)
        && within.all(|parts| parts.values().all(is_strict_part))
        && parts.all(is_strict_part)
}

/// Whether an object has only the members that it names, and requires all of them.
fn is_closed(schema: &Value) -> bool {
    let object = Value::from("object");
    let is_object = schema.get("type") == Some(&object)
        || elements(schema, "type").contains(&object)
        || schema.get("properties").is_some();
    let names = schema.get("properties").and_then(Value::as_object);
    let mut names = names.into_iter().flat_map(Map::keys);
    let mandatory = elements(schema, "required");
    !is_object
        || schema.get("additionalProperties") == Some(&Value::Bool(false))
            && names.all(|name| mandatory.iter().any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_closed_schemas_with_known_keywords_are_strict() {
        let closed = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "a name"},
                "kind": {"$ref": "#/$defs/Kind"},
                "more": {"type": ["array", "null"], "items": {"type": "integer"}},
            },
            "required": ["name", "kind", "more"],
            "additionalProperties": false,
            "$defs": {"Kind": {"anyOf": [{"const": "a"}, {"type": "null"}]}},
        });
        assert!(is_strict(&closed));
        let changed = |path: &str, value: Value| {
            let mut schema = closed.clone();
            *schema.pointer_mut(path).unwrap() = value;
            schema
        };
        assert!(!is_strict(&changed("/required", json!(["name", "kind"]))));
        assert!(!is_strict(&changed("/additionalProperties", json!(true))));
        assert!(!is_strict(&changed("/type", json!("array"))));
        let text = json!({"type": "string", "minLength": 1});
        assert!(!is_strict(&changed("/properties/name", text)));
        let open = json!({"type": "object", "properties": {}});
        assert!(!is_strict(&changed("/$defs/Kind/anyOf/1", open)));
        assert!(!is_strict(&json!(true)));
    }
}
