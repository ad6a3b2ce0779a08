//! The error type of skills: a public part for the client, and a private cause for the log.

use a2a_lambda_model::task::{Metadata, StepError, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// The result of a skill's functions.
pub type AgentResult<T> = Result<T, AgentError>;

/// The error of a skill.
///
/// Code, text and details are public: they become the status of the failed task. The cause
/// is private: it is logged once and never sent.
///
/// `?` converts any [`std::error::Error`] to `INTERNAL_ERROR` with a fixed text. This type
/// does not implement [`std::error::Error`], because that conversion would then overlap
/// with `From<T> for T`.
///
/// `anyhow::Error` and boxed errors do not implement it either. Convert them with
/// `.map_err(AgentError::internal)?`, or with another constructor that takes a cause. The log
/// then has the whole chain of causes.
///
/// ```
/// use a2a_lambda::skill::{AgentError, AgentResult};
///
/// fn port(text: &str) -> AgentResult<u16> {
///     Ok(text.parse()?)
/// }
/// let error = port("none").unwrap_err();
/// assert_eq!(error.code().as_str(), "INTERNAL_ERROR");
/// assert_eq!(error.text(), "internal error");
/// ```
///
/// In a program of your own, `?` converts it to a boxed error, which has code, text and cause:
///
/// ```
/// use a2a_lambda::skill::{AgentError, AgentResult};
/// use std::error::Error;
///
/// fn answer() -> AgentResult<u32> {
///     Ok(42)
/// }
///
/// fn main() -> Result<(), Box<dyn Error>> {
///     assert_eq!(answer()?, 42);
///     let error: Box<dyn Error + Send + Sync> = AgentError::network("no route").into();
///     assert_eq!(error.to_string(), "NETWORK: a service the agent needs did not answer: no route");
///     Ok(())
/// }
/// ```
///
/// For `anyhow` it is `answer().map_err(|error| anyhow::Error::from_boxed(error.into()))?`.
#[derive(Clone, PartialEq)]
pub struct AgentError(Box<ErrorParts>);

#[derive(Clone, PartialEq)]
struct ErrorParts {
    code: ErrorCode,
    text: String,
    details: Metadata,
    cause: Option<String>,
    is_transient: bool,
    is_after_answer: bool,
}

/// The most bytes of details that the error of a step keeps.
const DETAILS_MAX: usize = 4 * 1024;

/// The codes of the runtime, each with the text that a client sees.
macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $text:literal;)*) => {
        /// The kind of a failure: `a2a-lambda/errorCode` of a failed task.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $code,)*
            /// An error code that the agent defines.
            #[serde(untagged)]
            Domain(Cow<'static, str>),
        }

        impl ErrorCode {
            /// The code as the client sees it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$code => $text,)*
                    Self::Domain(code) => code,
                }
            }
        }
    };
}

codes! {
    /// The model service failed.
    ModelProvider = "MODEL_PROVIDER";
    /// The model service rejected the agent's credentials.
    ModelAuth = "MODEL_AUTH";
    /// The model service rejected the call because of too many requests.
    ModelRateLimited = "MODEL_RATE_LIMITED";
    /// A filter of the model withheld its answer.
    ContentFiltered = "CONTENT_FILTERED";
    /// The input is longer than the model's context.
    ContextLengthExceeded = "CONTEXT_LENGTH_EXCEEDED";
    /// The model's answer does not have the required form, even after one retry to repair
    /// it.
    ModelOutput = "MODEL_OUTPUT";
    /// The model used up its budget before it had an answer.
    BudgetExceeded = "BUDGET_EXCEEDED";
    /// The model does not read a file that it was sent.
    ModelInput = "MODEL_INPUT";
    /// No model is configured.
    ModelUnavailable = "MODEL_UNAVAILABLE";
    /// The task does not exist for this caller.
    TaskNotFound = "TASK_NOT_FOUND";
    /// The session does not exist for this caller.
    SessionNotFound = "SESSION_NOT_FOUND";
    /// The state of the task does not allow the operation.
    InvalidTaskStateTransition = "INVALID_TASK_STATE_TRANSITION";
    /// The skill does not exist.
    SkillNotFound = "SKILL_NOT_FOUND";
    /// The input does not have the required form.
    InvalidInput = "INVALID_INPUT";
    /// A required part of the input is missing.
    MissingInput = "MISSING_INPUT";
    /// The state saved for the task is not what the skill needs.
    ContextError = "CONTEXT_ERROR";
    /// The context has expired.
    ContextExpired = "CONTEXT_EXPIRED";
    /// The saved state comes from an incompatible version of the skill.
    StateIncompatible = "STATE_INCOMPATIBLE";
    /// The skill has other steps, or asks them something else, than when its turn began.
    StepChanged = "STEP_CHANGED";
    /// The saved state would exceed its limit.
    StateTooLarge = "STATE_TOO_LARGE";
    /// A file is larger than the agent delivers.
    ArtifactTooLarge = "ARTIFACT_TOO_LARGE";
    /// The skill does not accept or produce the media type.
    ContentTypeNotSupported = "CONTENT_TYPE_NOT_SUPPORTED";
    /// Too many requests.
    RateLimited = "RATE_LIMITED";
    /// The task was canceled.
    Canceled = "CANCELED";
    /// The work did not fit into the available time.
    Deadline = "DEADLINE";
    /// Another service did not respond.
    Network = "NETWORK";
    /// A value could not be written as JSON or read back.
    Serialization = "SERIALIZATION";
    /// Any other error inside the agent.
    InternalError = "INTERNAL_ERROR";
}

impl PartialEq<ErrorCode> for &ErrorCode {
    fn eq(&self, other: &ErrorCode) -> bool {
        **self == *other
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Constructors with a fixed public text. The argument of most is the private cause: an error, a
/// boxed error, or a text.
macro_rules! fixed_text {
    ($($name:ident($($cause:ident)?) => $code:ident, $text:literal;)*) => {
        impl AgentError {
            $(
                #[doc = concat!("[`ErrorCode::", stringify!($code), "`]: \"", $text, "\".")]
                $(
                    ///
                    #[doc = concat!("`", stringify!($cause), "` is private and logged with its")]
                    /// own causes.
                )?
                #[must_use]
                pub fn $name($($cause: impl Into<Box<dyn Error + Send + Sync>>)?) -> Self {
                    Self::new(ErrorCode::$code, $text)$(.with_cause(&*$cause.into()))?
                }
            )*
        }
    };
}

fixed_text! {
    model_provider(cause) => ModelProvider, "the model service failed";
    model_auth(cause) => ModelAuth, "the model service refused the agent's credentials";
    model_rate_limited(cause) => ModelRateLimited, "the model service has too many requests; try again later";
    content_filtered(cause) => ContentFiltered, "the model's content filter withheld the answer";
    model_refused_files(cause) => ModelInput, "the model does not read the files of the message";
    context_length_exceeded(cause) => ContextLengthExceeded, "the conversation is too long for the model";
    model_output(cause) => ModelOutput, "the model's answer has the wrong form";
    budget_exceeded(cause) => BudgetExceeded, "the model used up its budget before it had an answer";
    internal(cause) => InternalError, "internal error";
    network(cause) => Network, "a service the agent needs did not answer";
    serialization(cause) => Serialization, "a value could not be written or read";
    step_changed(cause) => StepChanged, "the skill did not ask for the same steps when it ran again";
    state_incompatible(cause) => StateIncompatible, "the saved state belongs to another version of the skill";
    model_unavailable() => ModelUnavailable, "no model is configured";
    context_expired() => ContextExpired, "the context has expired";
    canceled() => Canceled, "the task was canceled";
    deadline() => Deadline, "there was not enough time";
}

/// Constructors whose argument is the public text.
macro_rules! public_text {
    ($($name:ident => $code:ident;)*) => {
        impl AgentError {
            $(
                #[doc = concat!("[`ErrorCode::", stringify!($code), "`]. `text` is public.")]
                #[must_use]
                pub fn $name(text: impl Into<String>) -> Self {
                    Self::new(ErrorCode::$code, text)
                }
            )*
        }
    };
}

public_text! {
    invalid_transition => InvalidTaskStateTransition;
    invalid_input => InvalidInput;
    missing_input => MissingInput;
    model_input => ModelInput;
    context => ContextError;
    content_type_not_supported => ContentTypeNotSupported;
}

impl AgentError {
    fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self(Box::new(ErrorParts {
            is_transient: matches!(code, ErrorCode::ModelRateLimited),
            is_after_answer: false,
            code,
            text: text.into(),
            details: Metadata::new(),
            cause: None,
        }))
    }

    /// The error of a step that another run of the turn has stored.
    pub fn of_step(step_error: StepError) -> Self {
        let code = serde_json::from_value(Value::String(step_error.code));
        let code = code.unwrap_or(ErrorCode::InternalError);
        let mut error = Self::new(code, step_error.text);
        error.0.details = step_error.details;
        error.settle()
    }

    /// What another run of the turn needs to get this error of a step.
    pub fn to_step(&self) -> StepError {
        StepError {
            code: self.code().to_string(),
            text: self.text().to_owned(),
            details: self.details().clone(),
        }
    }

    /// Makes this the result of a step: its tries are over, and its largest details are removed
    /// until the rest has at most 4 KB.
    #[must_use]
    pub fn settle(mut self) -> Self {
        self.0.is_transient = false;
        let details = &mut self.0.details;
        let size = |it: &Value| it.to_string().len();
        while size(&Value::Object(details.clone())) > DETAILS_MAX {
            let largest = details.iter().max_by_key(|(key, it)| key.len() + size(it));
            let Some(key) = largest.map(|(key, _)| key.clone()) else {
                break;
            };
            details.remove(&key);
        }
        self
    }

    /// An error with a code that the agent defines; `text` is public.
    ///
    /// A code that begins with `TOOL_` says that a service failed which the skill uses. Alarms count
    /// such a turn, and no other code of an agent.
    ///
    /// ```
    /// # use a2a_lambda::skill::AgentError;
    /// let error = AgentError::domain("STALE_COMMIT", "the document has changed");
    /// assert_eq!(error.code().as_str(), "STALE_COMMIT");
    /// ```
    #[must_use]
    pub fn domain(code: &'static str, text: impl Into<String>) -> Self {
        Self::new(ErrorCode::Domain(code.into()), text)
    }

    /// The task does not exist for this caller: `TASK_NOT_FOUND`.
    #[must_use]
    pub fn task_not_found(id: impl fmt::Display) -> Self {
        Self::new(ErrorCode::TaskNotFound, format!("task `{id}` not found"))
    }

    /// The session does not exist for this caller: `SESSION_NOT_FOUND`.
    #[must_use]
    pub fn session_not_found(id: impl fmt::Display) -> Self {
        let text = format!("session `{id}` not found");
        Self::new(ErrorCode::SessionNotFound, text)
    }

    /// The skill does not exist: `SKILL_NOT_FOUND`.
    #[must_use]
    pub fn skill_not_found(id: impl fmt::Display) -> Self {
        Self::new(ErrorCode::SkillNotFound, format!("skill `{id}` not found"))
    }

    /// The saved state would have `current` bytes and may have `limit` bytes:
    /// `STATE_TOO_LARGE`.
    #[must_use]
    pub fn state_too_large(current: u64, limit: u64) -> Self {
        let text = format!("the state would be {current} bytes; {limit} are allowed");
        Self::new(ErrorCode::StateTooLarge, text)
            .with_detail("current", current)
            .with_detail("allowed", limit)
    }

    /// The file of an artifact has `size` bytes, or more than allowed, and may have `limit`:
    /// `ARTIFACT_TOO_LARGE`.
    #[must_use]
    pub fn artifact_too_large(name: &str, size: Option<usize>, limit: usize) -> Self {
        let bytes = size.map_or_else(|| "more".to_owned(), |size| format!("{size} bytes"));
        let text = format!("the artifact `{name}` has {bytes}; {limit} bytes are allowed");
        let mut error = Self::new(ErrorCode::ArtifactTooLarge, text);
        let current = size.map(|size| ("current".to_owned(), size.into()));
        error.0.details.extend(current);
        error.with_detail("allowed", limit)
    }

    /// Too many requests; the client may retry after `retry_after` whole seconds:
    /// `RATE_LIMITED`.
    #[must_use]
    pub fn rate_limited(retry_after: u64) -> Self {
        Self::new(ErrorCode::RateLimited, "too many requests; try again later")
            .with_detail("retryAfter", retry_after)
    }

    /// The tenant has used the tokens of its day up. The next one begins then: `BUDGET_EXCEEDED`.
    #[must_use]
    pub fn day_is_used_up(until: Timestamp) -> Self {
        let until = until.to_rfc3339();
        let text = format!("the tokens of this day are used up; the next day begins at {until}");
        Self::new(ErrorCode::BudgetExceeded, text)
    }

    /// Adds a public detail: a member of `a2a-lambda/errorDetails`.
    #[must_use]
    pub fn with_detail(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.details.insert(key.into(), value.into());
        self
    }

    /// Sets the private cause, including its own chain of causes.
    #[must_use]
    pub fn with_cause(mut self, cause: &(dyn Error + 'static)) -> Self {
        self.0.cause = Some(chain(cause));
        self
    }

    /// Says that the call may succeed a moment later: a step with tries left is tried again. An
    /// error with `MODEL_RATE_LIMITED` is transient from the start.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.0.is_transient = true;
        self
    }

    /// Whether the call may succeed a moment later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.is_transient
    }

    /// Says that a model service may have begun its answer, which is lost: the call costs what it
    /// has reserved. A call that the service has refused costs nothing.
    #[must_use]
    pub fn after_answer(mut self) -> Self {
        self.0.is_after_answer = true;
        self
    }

    /// Whether a model service may have begun its answer.
    #[must_use]
    pub fn is_after_answer(&self) -> bool {
        self.0.is_after_answer
    }

    /// The error code.
    #[must_use]
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// The public text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The public details.
    #[must_use]
    pub fn details(&self) -> &Metadata {
        &self.0.details
    }

    /// The private cause, for the one log line that reports the error.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }
}

/// An error and its causes, joined with colons.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl<E: Error + 'static> From<E> for AgentError {
    fn from(error: E) -> Self {
        Self::internal(String::new()).with_cause(&error)
    }
}

/// Has the private cause: it is for the program that calls a model, not for a client.
impl From<AgentError> for Box<dyn Error + Send + Sync> {
    fn from(error: AgentError) -> Self {
        let cause = error.cause().map(|cause| format!(": {cause}"));
        format!("{error:?}{}", cause.unwrap_or_default()).into()
    }
}

impl From<AgentError> for Box<dyn Error> {
    fn from(error: AgentError) -> Self {
        Box::<dyn Error + Send + Sync>::from(error)
    }
}

/// Writes the public text.
impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// Writes the code and the public text. It leaves the cause out, so that `{:?}` in a
/// skill cannot show it to a client.
impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.text)
    }
}
