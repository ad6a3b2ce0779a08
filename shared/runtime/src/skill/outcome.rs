//! What a turn ends with. Only these values end a task.

use super::{AgentError, AgentResult, Artifact, Content, NoSlot};

/// Which credentials a skill needs. It is a hint for the client's user
/// interface and no proof of anything; prefer credentials that come out of
/// band.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthHint {
    /// For example `oauth2`.
    pub auth_type: Option<String>,
    /// The service they are for.
    pub service: Option<String>,
}

/// How a request ends.
#[derive(Debug)]
pub enum OnRequestResult<O, S = NoSlot> {
    /// A reply, without a task.
    Message {
        /// The reply.
        message: Content,
    },
    /// A question. The answer comes to `on_input_received`, with the slot.
    InputRequired {
        /// The question.
        message: Content,
        /// The bookmark.
        slot: S,
    },
    /// A demand for credentials. The answer is never stored.
    AuthRequired {
        /// What is needed.
        message: Content,
        /// The bookmark.
        slot: S,
        /// Which credentials.
        auth: AuthHint,
    },
    /// The work is done.
    Completed {
        /// Closing words.
        message: Option<Content>,
        /// The result: the last artifact, named after the skill.
        output: O,
        /// More artifacts.
        artifacts: Vec<Artifact>,
    },
    /// The work failed.
    Failed {
        /// Why.
        error: AgentError,
    },
    /// The skill declines.
    Rejected {
        /// Why, in public words.
        reason: String,
    },
}

/// How the turn after an answer ends: like [`OnRequestResult`], but the task
/// exists, so there is no bare message any more.
#[derive(Debug)]
pub enum OnInputResult<O, S = NoSlot> {
    /// Another question.
    InputRequired {
        /// The question.
        message: Content,
        /// The bookmark.
        slot: S,
    },
    /// A demand for credentials. The answer is never stored.
    AuthRequired {
        /// What is needed.
        message: Content,
        /// The bookmark.
        slot: S,
        /// Which credentials.
        auth: AuthHint,
    },
    /// The work is done.
    Completed {
        /// Closing words.
        message: Option<Content>,
        /// The result: the last artifact, named after the skill.
        output: O,
        /// More artifacts.
        artifacts: Vec<Artifact>,
    },
    /// The work failed.
    Failed {
        /// Why.
        error: AgentError,
    },
    /// The skill declines.
    Rejected {
        /// Why, in public words.
        reason: String,
    },
}

impl<O, S> OnRequestResult<O, S> {
    /// The work is done, and `output` is the result.
    ///
    /// # Errors
    /// Never: it is a result so that it can be a handler's last line.
    pub fn done(output: O) -> AgentResult<Self> {
        Ok(Self::Completed {
            message: None,
            output,
            artifacts: Vec::new(),
        })
    }

    /// Asks; `slot` comes back with the answer.
    ///
    /// # Errors
    /// Never: it is a result so that it can be a handler's last line.
    pub fn ask(message: impl Into<Content>, slot: S) -> AgentResult<Self> {
        Ok(Self::InputRequired {
            message: message.into(),
            slot,
        })
    }
}

impl<O, S> OnInputResult<O, S> {
    /// The work is done, and `output` is the result.
    ///
    /// # Errors
    /// Never: it is a result so that it can be a handler's last line.
    pub fn done(output: O) -> AgentResult<Self> {
        Ok(Self::Completed {
            message: None,
            output,
            artifacts: Vec::new(),
        })
    }

    /// Asks; `slot` comes back with the answer.
    ///
    /// # Errors
    /// Never: it is a result so that it can be a handler's last line.
    pub fn ask(message: impl Into<Content>, slot: S) -> AgentResult<Self> {
        Ok(Self::InputRequired {
            message: message.into(),
            slot,
        })
    }
}

/// After an answer everything is possible that was possible before it.
impl<O, S> From<OnInputResult<O, S>> for OnRequestResult<O, S> {
    fn from(result: OnInputResult<O, S>) -> Self {
        match result {
            OnInputResult::InputRequired { message, slot } => Self::InputRequired { message, slot },
            OnInputResult::AuthRequired {
                message,
                slot,
                auth,
            } => Self::AuthRequired {
                message,
                slot,
                auth,
            },
            OnInputResult::Completed {
                message,
                output,
                artifacts,
            } => Self::Completed {
                message,
                output,
                artifacts,
            },
            OnInputResult::Failed { error } => Self::Failed { error },
            OnInputResult::Rejected { reason } => Self::Rejected { reason },
        }
    }
}
