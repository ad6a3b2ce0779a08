//! How services and models with the same API differ, as data.

/// How a service or a model differs from others with the same API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiQuirks {
    /// Chat Completions: the member with the limit of output tokens, `max_tokens` or
    /// `max_completion_tokens`.
    pub token_limit: String,
    /// Whether it takes a `tool_choice` that forces a tool. If not, the model decides.
    pub forced_tools: bool,
    /// Chat Completions: whether a stream takes `stream_options.include_usage`. If not, the
    /// usage of a stream may be 0.
    pub stream_usage: bool,
    /// Chat Completions: the members of a model's message that return to it unchanged.
    pub returned_members: Vec<String>,
}

impl Default for OpenAiQuirks {
    fn default() -> Self {
        Self {
            token_limit: "max_tokens".to_owned(),
            forced_tools: true,
            stream_usage: true,
            returned_members: RETURNED_MEMBERS.map(str::to_owned).to_vec(),
        }
    }
}

/// Reasoning, as services name it: DeepSeek and vLLM; Ollama, Groq and vLLM; OpenRouter;
/// LiteLLM. A service that sends a member takes it back, and some require it.
const RETURNED_MEMBERS: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
];

/// The member with the limit of output tokens, by the end of the host's name.
const TOKEN_LIMITS: &[(&str, &str)] = &[
    // OpenAI: `max_tokens` is deprecated, and its reasoning models refuse it.
    ("api.openai.com", "max_completion_tokens"),
    (".openai.azure.com", "max_completion_tokens"),
];

impl OpenAiQuirks {
    /// What is known of the services at `host`.
    #[must_use]
    pub fn of_host(host: &str) -> Self {
        let host = host.to_ascii_lowercase();
        let mut quirks = Self::default();
        let mut entries = TOKEN_LIMITS.iter();
        if let Some((_, member)) = entries.find(|(end, _)| host.ends_with(end)) {
            (*member).clone_into(&mut quirks.token_limit);
        }
        quirks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_follow_the_host() {
        let limit = |host| OpenAiQuirks::of_host(host).token_limit;
        assert_eq!(limit("API.openai.com"), "max_completion_tokens");
        assert_eq!(limit("x.openai.azure.com"), "max_completion_tokens");
        assert_eq!(limit("127.0.0.1"), "max_tokens");
    }
}
