//! The output types of skills.

use super::input::{schema_of, takes_text};
use super::{AgentError, AgentResult, Artifact, Content, NoSlot, OnRequestResult, media};
use a2a_lambda_model::task::Part;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::Value;

/// The output of a skill: every `Serialize + JsonSchema` type. It becomes the last artifact
/// of the task: no artifact for `null`, a text part for a string, otherwise a data part.
/// Use `()` when the artifacts are the whole result, and [`NoOutput`] for a skill that
/// makes no task.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a skill",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it, and for the types in it"
)]
pub trait SkillOutput: Send + 'static {
    /// Whether a skill with this output can complete a task.
    const MAKES_TASK: bool = true;

    /// The JSON schema of the output artifact; `None` if there is no artifact.
    fn schema() -> Option<Value>;

    /// The media types this type implies.
    fn modes() -> &'static [&'static str];

    /// Encodes the output as JSON.
    ///
    /// # Errors
    /// `SERIALIZATION` when serde cannot serialize it.
    fn encode(self) -> AgentResult<Value>;
}

// The compiler then shows the notes of the trait, and not the bounds of this impl.
#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> SkillOutput for T {
    fn schema() -> Option<Value> {
        let schema = schema_of::<T>(SchemaSettings::default().for_serialize());
        // `()` has the schema `null` and makes no artifact.
        (schema.get("type") != Some(&Value::from("null"))).then_some(schema)
    }

    fn modes() -> &'static [&'static str] {
        match <T as SkillOutput>::schema() {
            None => media::TEXT_AND_JSON,
            Some(schema) if schema.get("type") == Some(&Value::from("string")) => media::TEXT,
            Some(schema) if takes_text(&schema) => media::TEXT_AND_JSON,
            Some(_) => media::JSON,
        }
    }

    fn encode(self) -> AgentResult<Value> {
        serde_json::to_value(self).map_err(AgentError::serialization)
    }
}

/// The output of a skill that replies and makes no task. It has no value, so such a skill
/// cannot complete a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOutput {}

impl SkillOutput for NoOutput {
    const MAKES_TASK: bool = false;

    fn schema() -> Option<Value> {
        None
    }

    fn modes() -> &'static [&'static str] {
        media::TEXT
    }

    fn encode(self) -> AgentResult<Value> {
        match self {}
    }
}

/// The artifact of an output, named after the skill.
pub(super) fn artifact(skill: &str, output: impl SkillOutput) -> AgentResult<Option<Artifact>> {
    let part = match output.encode()? {
        Value::Null => return Ok(None),
        Value::String(text) => Part::text(text),
        value => Part::data(value),
    };
    Ok(Some(Artifact::from_parts(skill, vec![part])))
}

/// What an `async fn` under `#[skill]` may return in its [`AgentResult`]: an output
/// (completes the task), [`Content`] (a reply without a task), or an [`OnRequestResult`]
/// (used unchanged).
#[diagnostic::on_unimplemented(
    message = "a skill cannot give `{Self}`",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it and for the types in \
            it, or give `Content` or an `OnRequestResult`"
)]
pub trait IntoReply {
    /// The output of the skill.
    type Output: SkillOutput;

    /// Converts the value to the result of the request.
    fn into_reply(self) -> OnRequestResult<Self::Output>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> IntoReply for T {
    type Output = T;

    fn into_reply(self) -> OnRequestResult<T> {
        OnRequestResult::Completed {
            message: None,
            output: self,
            artifacts: Vec::new(),
        }
    }
}

impl IntoReply for Content {
    type Output = NoOutput;

    fn into_reply(self) -> OnRequestResult<NoOutput> {
        OnRequestResult::Message { message: self }
    }
}

impl<O: SkillOutput> IntoReply for OnRequestResult<O, NoSlot> {
    type Output = O;

    fn into_reply(self) -> Self {
        self
    }
}

/// The return type of an `async fn` under `#[skill]`: an [`AgentResult`].
#[diagnostic::on_unimplemented(
    message = "a skill returns `AgentResult<_>`, and this one returns `{Self}`"
)]
pub trait SkillReturn {
    /// The type inside the [`AgentResult`].
    type Reply: IntoReply;

    /// Returns the value unchanged. The trait exists for its error message: it names the
    /// expected return type.
    ///
    /// # Errors
    /// The error of the skill.
    fn into_result(self) -> AgentResult<Self::Reply>;
}

impl<R: IntoReply> SkillReturn for AgentResult<R> {
    type Reply = R;

    fn into_result(self) -> AgentResult<R> {
        self
    }
}
