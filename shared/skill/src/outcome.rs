use super::{AgentError, AgentResult, Artifact, Content, NoSlot};
use a2a_lambda_model::task::SavedSlot;
use std::convert::Infallible;

/// Describes the credentials a skill needs. It is a hint for the client's user interface;
/// the server does not verify anything with it. Prefer credentials that reach the agent on
/// another channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthHint {
    /// The kind of credentials, for example `oauth2`.
    pub auth_type: Option<String>,
    /// The service that takes them.
    pub service: Option<String>,
}

impl AuthHint {
    /// Credentials of the kind `auth_type` for `service`.
    #[must_use]
    pub fn new(auth_type: impl Into<String>, service: impl Into<String>) -> Self {
        Self {
            auth_type: Some(auth_type.into()),
            service: Some(service.into()),
        }
    }
}

/// The result of [`SkillHandler::on_request`](super::SkillHandler::on_request).
#[derive(Debug)]
pub enum OnRequestResult<O, S = NoSlot, M = Content> {
    /// A reply; no task is made. An [`OnInputResult`] cannot be one.
    Message {
        /// The reply.
        message: M,
    },
    /// A question: the task becomes `input-required`. The engine passes the answer and the
    /// slot to `on_input_received`.
    InputRequired {
        /// The question.
        message: Content,
        /// The state to continue with.
        slot: S,
    },
    /// A request for credentials: the task becomes `auth-required`. The answer is never
    /// stored.
    AuthRequired {
        /// The text that asks for them.
        message: Content,
        /// The state to continue with.
        slot: S,
        /// The kind of credentials.
        auth: AuthHint,
    },
    /// The task is completed.
    Completed {
        /// The message of the last status: words for people beside the output.
        message: Option<Content>,
        /// The result. It becomes the last artifact, named after the skill.
        output: O,
        /// Further artifacts; they come before the result.
        artifacts: Vec<Artifact>,
    },
    /// The task failed.
    Failed {
        /// The error. Its code, text and details are public.
        error: AgentError,
    },
    /// The skill rejects the task.
    Rejected {
        /// The reason; the client sees it.
        reason: String,
    },
}

/// The result of
/// [`SkillHandler::on_input_received`](super::SkillHandler::on_input_received). It is never a
/// `Message`, since the task already exists.
pub type OnInputResult<O, S = NoSlot> = OnRequestResult<O, S, Infallible>;

/// The end of a turn, without the types of its skill. The output is already the last artifact.
pub type SkillOutcome = OnRequestResult<(), SavedSlot>;

impl<O, S, M> OnRequestResult<O, S, M> {
    /// Completes the task with `output` as its result.
    ///
    /// # Errors
    /// Never. It returns a `Result` so that it can be the last expression of a handler.
    pub fn done(output: O) -> AgentResult<Self> {
        Ok(Self::Completed {
            message: None,
            output,
            artifacts: Vec::new(),
        })
    }

    /// Asks a question; `slot` comes back with the answer.
    ///
    /// # Errors
    /// Never. It returns a `Result` so that it can be the last expression of a handler.
    pub fn ask(message: impl Into<Content>, slot: S) -> AgentResult<Self> {
        Ok(Self::InputRequired {
            message: message.into(),
            slot,
        })
    }

    /// Asks for credentials; `slot` comes back with them. They are sealed until the turn that
    /// gets them ends, and are in no history.
    ///
    /// # Errors
    /// Never. It returns a `Result` so that it can be the last expression of a handler.
    pub fn ask_credentials(
        message: impl Into<Content>,
        slot: S,
        auth: AuthHint,
    ) -> AgentResult<Self> {
        Ok(Self::AuthRequired {
            message: message.into(),
            slot,
            auth,
        })
    }

    /// Rejects the task; the client sees the reason.
    ///
    /// # Errors
    /// Never. It returns a `Result` so that it can be the last expression of a handler.
    pub fn reject(reason: impl Into<String>) -> AgentResult<Self> {
        Ok(Self::Rejected {
            reason: reason.into(),
        })
    }

    /// The same result with another reply, slot and output; the first error of the three.
    pub(super) fn try_map<P, T, N, E>(
        self,
        reply: impl FnOnce(M) -> N,
        save: impl FnOnce(S) -> Result<T, E>,
        write: impl FnOnce(O) -> Result<P, E>,
    ) -> Result<OnRequestResult<P, T, N>, E> {
        use OnRequestResult as To;
        Ok(match self {
            Self::Message { message } => To::Message {
                message: reply(message),
            },
            Self::InputRequired { message, slot } => To::InputRequired {
                message,
                slot: save(slot)?,
            },
            Self::AuthRequired {
                message,
                slot,
                auth,
            } => To::AuthRequired {
                message,
                slot: save(slot)?,
                auth,
            },
            Self::Completed {
                message,
                output,
                artifacts,
            } => To::Completed {
                message,
                output: write(output)?,
                artifacts,
            },
            Self::Failed { error } => To::Failed { error },
            Self::Rejected { reason } => To::Rejected { reason },
        })
    }
}

/// Words for people beside a result for programs.
///
/// ```
/// use a2a_lambda::prelude::*;
///
/// fn sum(a: u32, b: u32) -> AgentResult<OnRequestResult<u32>> {
///     OnRequestResult::done(a + b).saying(format!("The sum is {}.", a + b))
/// }
/// ```
pub trait Saying {
    /// Makes `line` the message of the last status of a completed task. The artifacts stay as they
    /// are. A result that does not complete the task stays too.
    #[must_use]
    fn saying(self, line: impl Into<Content>) -> Self;
}

impl<O, S, M> Saying for AgentResult<OnRequestResult<O, S, M>> {
    fn saying(mut self, line: impl Into<Content>) -> Self {
        if let Ok(OnRequestResult::Completed { message, .. }) = &mut self {
            *message = Some(line.into());
        }
        self
    }
}

/// Every result of a later turn is also a result of a first turn.
impl<O, S> From<OnInputResult<O, S>> for OnRequestResult<O, S> {
    fn from(result: OnInputResult<O, S>) -> Self {
        let Ok(result) = result.try_map(|never| match never {}, Ok::<_, Infallible>, Ok);
        result
    }
}
