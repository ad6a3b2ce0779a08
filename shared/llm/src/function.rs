//! A typed call of a model.

use super::conversation::{Conversation, ConversationEnd, ModelHost, ModelSession};
use super::setup::{AnswerForm, LlmBudget, LlmSetup, TextArtifact};
use super::tool::decode;
use super::transcript::{self, LlmInput};
use a2a_lambda_model::thread::Thread;
use a2a_lambda_skill::model::{Model, ModelInput};
use a2a_lambda_skill::{AgentError, AgentResult, FilePart, LoggedModel, TaskContext};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A question to a model whose answer is a `T`.
///
/// The model must call one tool that takes a `T`. An answer that does not decode goes back to
/// the model once, with the error. For a `T` that is a text, the answer is the model's text.
///
/// ```
/// use a2a_lambda::llm::LlmFunction;
/// use a2a_lambda::prelude::*;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Order {
///     article: String,
///     pieces: u32,
/// }
///
/// /// Reads an order from a letter.
/// #[skill(id = "read-order", tags = ["orders"])]
/// async fn read_order(cx: &mut TaskContext<'_>, letter: String) -> AgentResult<Order> {
///     LlmFunction::new("Extract the order.").run(cx, &letter).await
/// }
/// ```
///
/// An input is any value that serializes: a text is sent as it is, and anything else as JSON.
/// So several inputs are a tuple or a struct. A [`Content`](a2a_lambda_skill::Content) is sent with
/// its files: see [`LlmFunction::file`].
pub struct LlmFunction<T> {
    setup: LlmSetup,
    answer: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> LlmFunction<T> {
    /// A function with the instructions for the model.
    pub fn new(instructions: impl Into<String>) -> Self {
        let mut setup = LlmSetup::new(instructions.into());
        // An answer and its repair.
        setup.budget = LlmBudget::default().turns(2);
        Self {
            setup,
            answer: PhantomData,
        }
    }

    calls!();

    /// Lets the service enforce the schema of the answer, in place of a tool. Not every model
    /// can, and the first use of a schema may take minutes.
    #[must_use]
    pub fn native(mut self) -> Self {
        self.setup.native = true;
        self
    }
}

/// Talks with the model until there is a `T`.
pub(super) async fn answer_of<T: DeserializeOwned + JsonSchema + Send + 'static>(
    setup: &LlmSetup,
    host: ModelHost<'_>,
    input: LlmInput,
) -> AgentResult<ConversationEnd> {
    let check = |value: &Value| decode::<T>(value).map(drop);
    let form = AnswerForm::of::<T>();
    let talk = ModelSession::new(setup, host, form, &input.value, &check).await?;
    let talk = talk.with_files(input.files);
    let memories = setup.memories(host.turn()).await?;
    let messages = memories.into_iter().chain(input.messages).collect();
    let conversation = Conversation::of(messages, input.is_chat);
    talk.run(conversation, None).await
}

/// How functions, and workers that never ask, are called.
macro_rules! calls {
    () => {
        /// Asks the model of the agent, in the turn of `cx`. Each answer of the model is stored as
        /// a step, so a turn that runs again does not ask again. The instructions of the agent
        /// come before the own ones.
        ///
        /// A skill that replies without a task has no steps: use `run_with` there.
        ///
        /// # Errors
        /// `MODEL_OUTPUT` when the second answer does not decode either, or ends at the limit of
        /// tokens. `BUDGET_EXCEEDED` or `DEADLINE` when the budget is used up.
        /// `MODEL_UNAVAILABLE` without a model. The errors of the model, and of a step.
        pub async fn run(&self, cx: &TaskContext<'_>, input: impl ModelInput) -> AgentResult<T> {
            self.answer(
                ModelHost::Turn(cx),
                transcript::prompt(&self.setup, &input)?,
            )
            .await
        }

        /// As `run`, with the conversation of the task as its input. The answer becomes an event
        /// of its thread.
        ///
        /// # Errors
        /// As `run`.
        pub async fn chat(&self, cx: &TaskContext<'_>, thread: &Thread) -> AgentResult<T> {
            self.answer(ModelHost::Turn(cx), transcript::chat(&self.setup, thread))
                .await
        }

        /// Asks `model`, without a task, an agent or a runtime. Nothing is stored. A tool that is a
        /// skill runs in a task only: here its call is an error for the model.
        ///
        /// # Errors
        /// As `run`.
        pub async fn run_with(&self, model: &dyn Model, input: impl ModelInput) -> AgentResult<T> {
            self.answer(
                ModelHost::Program(model),
                transcript::prompt(&self.setup, &input)?,
            )
            .await
        }

        /// As `run_with`, with a conversation that the caller holds: the caller adds the answer to
        /// the thread.
        ///
        /// # Errors
        /// As `run`.
        pub async fn chat_with(&self, model: &dyn Model, thread: &Thread) -> AgentResult<T> {
            self.answer(
                ModelHost::Program(model),
                transcript::chat(&self.setup, thread),
            )
            .await
        }

        /// How many of the oldest messages of the thread [`chat`](Self::chat) leaves out, because
        /// they do not fit into the window.
        #[must_use]
        pub fn left_out(&self, thread: &Thread) -> usize {
            transcript::left_out(&self.setup, thread)
        }

        async fn answer(&self, host: ModelHost<'_>, input: LlmInput) -> AgentResult<T> {
            match answer_of::<T>(&self.setup, host, input).await? {
                ConversationEnd::Answer(value) => decode(&value),
                ConversationEnd::Confirm(_) => {
                    Err(AgentError::internal("a tool to confirm, and nobody to ask"))
                }
            }
        }
    };
}
pub(super) use calls;

/// What functions and workers set in the same way.
macro_rules! setters {
    () => {
        /// Sets the name of its steps. Default: the id of the skill.
        #[must_use]
        pub fn named(mut self, name: impl Into<String>) -> Self {
            self.setup.name = Some(name.into());
            self
        }

        /// Sets a model in place of the agent's.
        #[must_use]
        pub fn model(mut self, model: impl Model + 'static) -> Self {
            self.setup.model = Some(Arc::new(LoggedModel(Box::new(model))));
            self
        }

        /// Sets the most tokens of one answer. Default: that of the model.
        #[must_use]
        pub const fn max_tokens(mut self, tokens: u32) -> Self {
            self.setup.max_tokens = Some(tokens);
            self
        }

        /// Sends the model a file, beside those of its input or, in a chat, those of the newest
        /// message of the user. Other files of a conversation are named only.
        ///
        /// A request has files of 4 MB, 20 pictures and 5 documents; of what is left out the model
        /// gets the name, its type and the reason. A model that does not read a type fails with
        /// `MODEL_INPUT`. The file is read once in a turn, and only if the model is asked.
        #[must_use]
        pub fn file(mut self, file: FilePart) -> Self {
            self.setup.files.push(file);
            self
        }

        /// Sets the most tokens of a conversation, of which a text of two bytes counts one.
        /// Default: 100,000. Older messages are left out, a multiple of 16 of them, so that
        /// requests keep their beginning; the model is told how many.
        #[must_use]
        pub const fn window(mut self, tokens: u64) -> Self {
            self.setup.window = tokens;
            self
        }

        /// Adds a member to the provider's request, such as a temperature. Many models refuse
        /// sampling parameters.
        #[must_use]
        pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
            self.setup.options.insert(name.into(), value.into());
            self
        }

        /// Shows the text of the model as the artifact `name` while it is written. Each answer
        /// replaces the one before it.
        #[must_use]
        pub fn stream_to(mut self, name: impl Into<String>) -> Self {
            self.setup.artifact = Some(TextArtifact::Named(name.into()));
            self
        }

        /// Shows the text of the model as the result of the skill while it is written. A skill
        /// that returns this text does not send it again. It is for a skill whose result is text,
        /// and not for one that a worker calls as a tool: the result is that of the turn.
        #[must_use]
        pub fn stream_to_result(mut self) -> Self {
            self.setup.artifact = Some(TextArtifact::Result);
            self
        }
    };
}
pub(super) use setters;

impl<T> LlmFunction<T> {
    setters!();
}

impl<T> Clone for LlmFunction<T> {
    fn clone(&self) -> Self {
        Self {
            setup: self.setup.clone(),
            answer: PhantomData,
        }
    }
}

impl<T> fmt::Debug for LlmFunction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.setup.fmt(f)
    }
}
