//! Skills whose reply text sets the state of the task.
//!
//! A reply that is one JSON object of a known form asks a question; any other reply is the
//! result. A model can then decide with its answer whether the task is finished.

use super::{
    AgentResult, AuthHint, Content, OnInputResult, OnRequestResult, Skill, SkillHandler,
    SkillMetadata, SkillSlot, TaskContext, Thread,
};
use a2a_lambda_model::task::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The meaning of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hybrid {
    /// The reply asks a question.
    InputRequired {
        /// The question.
        prompt: String,
    },
    /// The reply asks for credentials.
    AuthRequired {
        /// The text that asks for them.
        prompt: String,
        /// The kind of credentials.
        auth: AuthHint,
    },
    /// The reply is the result.
    Reply(String),
}

impl Hybrid {
    /// Parses a reply. It asks only if the **whole** trimmed text is one JSON object with
    /// `state` = `input-required` or `auth-required` and a non-empty `prompt` (`auth_type`
    /// and `service` are optional), which may be in one Markdown fence. Text around it, another
    /// state or a missing prompt make it an ordinary reply.
    ///
    /// ```
    /// use a2a_lambda::skill::Hybrid;
    ///
    /// let asks = Hybrid::parse(r#"{"state": "input-required", "prompt": "Which year?"}"#);
    /// assert_eq!(asks, Hybrid::InputRequired { prompt: "Which year?".to_owned() });
    /// assert_eq!(Hybrid::parse("42"), Hybrid::Reply("42".to_owned()));
    /// ```
    #[must_use]
    pub fn parse(reply: &str) -> Self {
        Self::asks(reply).unwrap_or_else(|| Self::Reply(reply.to_owned()))
    }

    fn asks(reply: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(without_fence(reply)).ok()?;
        let member = |name| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let prompt = member("prompt").filter(|prompt| !prompt.trim().is_empty())?;
        match member("state")?.as_str() {
            "input-required" => Some(Self::InputRequired { prompt }),
            "auth-required" => Some(Self::AuthRequired {
                prompt,
                auth: AuthHint {
                    auth_type: member("auth_type"),
                    service: member("service"),
                },
            }),
            _ => None,
        }
    }
}

/// A model's text without the Markdown fence that wraps the whole of it, such as
/// ```` ```json ````. Models fence JSON when nobody asks them to.
///
/// The text comes back trimmed. A text with words around its fence, or with more than one fence,
/// is not changed otherwise.
#[must_use]
pub fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let (info, rest) = text.strip_prefix("```")?.split_once('\n')?;
        let body = rest.strip_suffix("```")?;
        let is_whole = !info.contains('`') && !body.contains("```");
        (is_whole && body.trim_end_matches([' ', '\t']).ends_with('\n')).then(|| body.trim())
    };
    inner().unwrap_or(text)
}

/// A function that answers with the thread of the context: an `async fn(cx, thread)`.
pub trait HybridReply<'a>: Send + Sync {
    /// The future that the function returns.
    type Reply: Future<Output = AgentResult<String>> + Send + 'a;

    /// Calls the function.
    fn reply(&self, cx: &'a mut TaskContext<'a>, thread: &'a Thread) -> Self::Reply;
}

impl<'a, F, R> HybridReply<'a> for F
where
    F: Fn(&'a mut TaskContext<'a>, &'a Thread) -> R + Send + Sync,
    R: Future<Output = AgentResult<String>> + Send + 'a,
{
    type Reply = R;

    fn reply(&self, cx: &'a mut TaskContext<'a>, thread: &'a Thread) -> R {
        self(cx, thread)
    }
}

/// A skill whose replies are parsed with [`Hybrid::parse`]. One function handles the
/// request and every answer to its questions. A result becomes the artifact named after the
/// skill.
///
/// Use it only for an agent that is meant to set the state. With any other agent, an echo
/// of the caller's text could set it.
///
/// ```
/// use a2a_lambda::prelude::*;
/// use a2a_lambda::skill::HybridSkill;
///
/// /// Formats a report.
/// #[skill(id = "format-report", tags = ["reports"])]
/// struct FormatReport;
///
/// async fn reply(_: &mut TaskContext<'_>, thread: &Thread) -> AgentResult<String> {
///     Ok(match thread.len() {
///         1 => r#"{"state": "input-required", "prompt": "Which format?"}"#.to_owned(),
///         _ => "# Report".to_owned(),
///     })
/// }
///
/// let agent = Agent::builder("reports")
///     .skill(HybridSkill::new(FormatReport, reply))
///     .build()?;
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HybridSkill<M, F> {
    metadata: std::marker::PhantomData<fn() -> M>,
    reply: F,
}

impl<M: Skill, F> HybridSkill<M, F> {
    /// Creates a skill with the metadata of `metadata` and the function `reply`.
    #[must_use]
    pub fn new(metadata: M, reply: F) -> Self {
        drop(metadata);
        Self {
            metadata: std::marker::PhantomData,
            reply,
        }
    }
}

/// The slot of a hybrid skill: the question it asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    prompt: String,
    /// Whether the answer contains credentials. Such an answer is not in the stored thread.
    auth: bool,
}

impl SkillSlot for Asked {}

impl<M: Skill, F> Skill for HybridSkill<M, F> {
    const METADATA: SkillMetadata = M::METADATA;
    const SOURCES: &'static str = M::SOURCES;

    fn states() -> Vec<super::state::NeededState> {
        M::states()
    }
}

impl<M: Skill, F> HybridSkill<M, F>
where
    F: for<'a> HybridReply<'a>,
{
    async fn answer(
        &self,
        cx: &mut TaskContext<'_>,
        content: Content,
        has_credentials: bool,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        let mut thread = cx.thread().await?;
        // What a client says is in the thread already. Credentials and an input that is not kept
        // are never stored with it: the model function gets them in a copy of this turn.
        if has_credentials || !M::METADATA.keeps_input {
            thread = thread.add_event(Message::from_user("not-kept", content.into_parts()));
        }
        let reply = self.reply.reply(&mut cx.reborrow(), &thread).await?;
        match Hybrid::parse(&reply) {
            Hybrid::InputRequired { prompt } => {
                let auth = false;
                OnInputResult::ask(prompt.clone(), Asked { prompt, auth })
            }
            Hybrid::AuthRequired { prompt, auth } => {
                OnInputResult::ask_credentials(prompt.clone(), Asked { prompt, auth: true }, auth)
            }
            Hybrid::Reply(output) => OnInputResult::done(output),
        }
    }
}

impl<M, F> SkillHandler<Asked> for HybridSkill<M, F>
where
    M: Skill + 'static,
    F: for<'a> HybridReply<'a> + 'static,
{
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        content: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        self.answer(cx, content, false).await.map(Into::into)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        slot: Asked,
        content: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        self.answer(cx, content, slot.auth).await
    }
}

#[cfg(test)]
mod tests;
