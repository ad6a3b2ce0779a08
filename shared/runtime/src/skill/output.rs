//! What a skill gives.

use super::input::{schema_of, takes_text};
use super::{AgentError, AgentResult, Artifact, Content, NoSlot, OnRequestResult, media};
use crate::task::Part;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::Value;

/// The output of a skill: every `Serialize + JsonSchema` type. It becomes the
/// last artifact: none for `null`, a text part for a string, else a data part.
/// `()` where the artifacts say it all; [`NoOutput`] where there is no task.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a skill",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it"
)]
pub trait SkillOutput: Send + 'static {
    /// Whether a skill with this output can complete a task.
    const MAKES_TASK: bool = true;

    /// The JSON schema of the artifact; none where there is no artifact.
    fn schema() -> Option<Value>;

    /// The media types it implies.
    fn modes() -> &'static [&'static str];

    /// The output as JSON.
    ///
    /// # Errors
    /// `SERIALIZATION` when it cannot be written.
    fn encode(self) -> AgentResult<Value>;
}

impl<T: Serialize + JsonSchema + Send + 'static> SkillOutput for T {
    fn schema() -> Option<Value> {
        let schema = schema_of::<T>(SchemaSettings::default().for_serialize());
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

/// The output of a skill that replies and makes no task. It has no value, so
/// such a skill cannot complete one.
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

/// The artifact of an output.
pub(super) fn artifact(skill: &str, output: impl SkillOutput) -> AgentResult<Option<Artifact>> {
    let part = match output.encode()? {
        Value::Null => return Ok(None),
        Value::String(text) => Part::text(text),
        value => Part::data(value),
    };
    Ok(Some(Artifact::from_parts(skill, vec![part])))
}

/// What an `async fn` under `#[skill]` may give in its [`AgentResult`]: an
/// output (the task completes with it), [`Content`] (a reply without a task)
/// or an [`OnRequestResult`] as it is.
#[diagnostic::on_unimplemented(
    message = "a skill cannot give `{Self}`",
    note = "give `Content`, an `OnRequestResult`, or a type with `serde::Serialize` and \
            `schemars::JsonSchema`"
)]
pub trait IntoReply {
    /// The output of the skill.
    type Output: SkillOutput;

    /// How the request ends.
    fn into_reply(self) -> OnRequestResult<Self::Output>;
}

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

/// What an `async fn` under `#[skill]` returns: an [`AgentResult`].
#[diagnostic::on_unimplemented(
    message = "a skill returns `AgentResult<_>`, and this one returns `{Self}`"
)]
pub trait SkillReturn {
    /// What is in it.
    type Reply: IntoReply;

    /// It, as the result it is.
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
