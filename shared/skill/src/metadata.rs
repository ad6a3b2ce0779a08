//! How a skill describes itself.

use serde::Serialize;

/// What a skill does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillEffect {
    /// It changes nothing that outlives its task.
    Read,
    /// It changes something. A skill that does not say what it does counts as this.
    #[default]
    Write,
}

/// How a skill describes itself, for the Agent Card and the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillMetadata {
    /// The id: `[a-z0-9][a-z0-9._-]{0,63}`, unique within the agent.
    pub id: &'static str,
    /// The name shown to people. Empty means the id.
    pub name: &'static str,
    /// What the skill does; must not be empty.
    pub description: &'static str,
    /// Keywords; at least one is required.
    pub tags: &'static [&'static str],
    /// Example requests.
    pub examples: &'static [&'static str],
    /// Patterns of texts that go to the skill: `add {a} and {b}` is a whole message, with a
    /// place for each field of the input. Case, spacing and final punctuation do not count.
    #[serde(skip)]
    pub text: &'static [&'static str],
    /// Patterns of texts that refine a result of the skill: `make it {change}`. They count directly
    /// after a task of the skill, which the new task then refers to. A place takes any text.
    #[serde(skip)]
    pub refines: &'static [&'static str],
    /// Media types the skill accepts. Empty means those that the input type implies.
    pub input_modes: &'static [&'static str],
    /// Media types the skill produces. Empty means those that the output type implies.
    pub output_modes: &'static [&'static str],
    /// Whether the engine hands each turn to a worker immediately. Recommended for work of
    /// more than about 20 s.
    pub background: bool,
    /// What the skill does to the world. A model may call a skill that writes only if its user
    /// confirms the call: see [`Tool::trusted`](super::Tool::trusted).
    pub effect: SkillEffect,
    /// Whether a skill that writes also takes an input that the model of the router wrote, without
    /// a question to the user.
    #[serde(skip)]
    pub accepts_routed: bool,
    /// Whether the answer "cancel" or "never mind" to a question of the skill cancels its task. The
    /// word is not kept. An agent with a skill of that id or name has no such word.
    #[serde(skip)]
    pub cancel_words: bool,
    /// Whether the task keeps the messages to the skill. Otherwise each is sealed until its turn
    /// ends, and the history and the thread have a message that says so. Such a message has text and
    /// data, no files, and at most 32 KB.
    pub keeps_input: bool,
}

impl SkillMetadata {
    /// Creates metadata with the required fields only.
    #[must_use]
    pub const fn new(
        id: &'static str,
        description: &'static str,
        tags: &'static [&'static str],
    ) -> Self {
        Self {
            id,
            name: "",
            description,
            tags,
            examples: &[],
            text: &[],
            refines: &[],
            input_modes: &[],
            output_modes: &[],
            background: false,
            effect: SkillEffect::Write,
            accepts_routed: false,
            cancel_words: false,
            keeps_input: true,
        }
    }
}
