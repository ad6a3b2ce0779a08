//! How models of Bedrock differ, as data.

/// Whether a model can be made to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BedrockToolChoice {
    /// It takes every `toolChoice`.
    Tool,
    /// It takes `auto` and `any`.
    Any,
    /// It takes `auto` alone.
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
