//! Skills whose agent writes its own state: a reply that is one JSON object
//! asks, any other reply is the result.

use super::{
    AgentResult, AuthHint, Content, OnInputResult, OnRequestResult, Skill, SkillHandler,
    SkillMetadata, SkillSlot, TaskContext, Thread,
};
use crate::task::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hybrid {
    /// It asks.
    InputRequired {
        /// The question.
        prompt: String,
    },
    /// It needs credentials.
    AuthRequired {
        /// What is needed.
        prompt: String,
        /// Which credentials.
        auth: AuthHint,
    },
    /// It is the result.
    Reply(String),
}

impl Hybrid {
    /// Reads a reply. It asks only if the **whole** trimmed text is one JSON
    /// object with `state` = `input-required` or `auth-required` and a `prompt`
    /// that is not empty (`auth_type` and `service` are optional). Words around
    /// it, another state or no prompt make it an ordinary reply.
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
        let value: Value = serde_json::from_str(reply.trim()).ok()?;
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

/// A function that answers a conversation: an `async fn(cx, thread)`.
pub trait HybridReply<'a>: Send + Sync {
    /// Its future.
    type Reply: Future<Output = AgentResult<String>> + Send + 'a;

    /// Answers.
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

/// A skill whose replies are read with [`Hybrid::parse`]. The same function
/// answers the request and every answer to its questions; a result becomes the
/// artifact named after the skill.
///
/// Use it only around an agent that means to steer: with any other, an echo of
/// the caller's words could set the state.
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
    /// A skill with the metadata of `metadata` that answers with `reply`.
    #[must_use]
    pub fn new(metadata: M, reply: F) -> Self {
        drop(metadata);
        Self {
            metadata: std::marker::PhantomData,
            reply,
        }
    }
}

/// What a hybrid skill has asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    prompt: String,
    /// The answer holds credentials: it is not in the stored thread.
    auth: bool,
}

impl SkillSlot for Asked {}

impl<M: Skill, F> Skill for HybridSkill<M, F> {
    const METADATA: SkillMetadata = M::METADATA;
}

impl<M, F> HybridSkill<M, F>
where
    F: for<'a> HybridReply<'a>,
{
    async fn answer(
        &self,
        cx: &mut TaskContext<'_>,
        thread: &Thread,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        let mut cx = cx.reborrow();
        let reply = self.reply.reply(&mut cx, thread).await?;
        Ok(match Hybrid::parse(&reply) {
            Hybrid::InputRequired { prompt } => OnInputResult::InputRequired {
                message: Content::from_text(prompt.clone()),
                slot: Asked {
                    prompt,
                    auth: false,
                },
            },
            Hybrid::AuthRequired { prompt, auth } => OnInputResult::AuthRequired {
                message: Content::from_text(prompt.clone()),
                slot: Asked { prompt, auth: true },
                auth,
            },
            Hybrid::Reply(output) => OnInputResult::Completed {
                message: None,
                output,
                artifacts: Vec::new(),
            },
        })
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
        _: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        let thread = cx.thread().await?;
        self.answer(cx, &thread).await.map(Into::into)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        slot: Asked,
        content: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        let mut thread = cx.thread().await?;
        if slot.auth {
            // Credentials never reach the stored thread, so the function sees
            // them in a copy that ends with the turn.
            thread = thread.add_event(Message::from_user("credentials", content.into_parts()));
        }
        self.answer(cx, &thread).await
    }
}

#[cfg(test)]
mod tests;
