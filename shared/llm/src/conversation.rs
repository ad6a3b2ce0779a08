//! The conversation of a function or a worker with its model.
//!
//! In a task, each answer of the model is a step, and each call of a tool is one, in a scope of
//! its own. So a turn that runs again finds the answers that it has, and asks for the next one.

use super::call::converse;
use super::setup::{ANSWER, AnswerForm, LlmSetup, TextArtifact};
use super::tool::OfferedTool;
use a2a_lambda_skill::model::{
    Model, ModelContent, ModelMessage, ModelReply, ModelRequest, ToolResult,
};
use a2a_lambda_skill::step_hash;
use a2a_lambda_skill::turn_host::{StepInput, TryPolicy};
use a2a_lambda_skill::{
    AgentError, AgentResult, ArtifactChunks, CallNames, Consent, Content, ErrorCode, LoggedModel,
    TaskContext, without_fence,
};
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// A conversation as far as it got. A worker that asks its user stores it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<ModelMessage>,
    turns: u32,
    tokens: u64,
    /// Whether the model has had its second attempt at a right answer.
    repaired: bool,
    /// How long it has run, in milliseconds, if its time is limited. Between two runs of a turn
    /// and while the user is asked it does not run.
    #[serde(skip_serializing_if = "is_zero")]
    spent_ms: u64,
    /// Whether the thread of the context gets the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_chat: bool,
}

/// An answer of the model as the result of a step.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TimedReply {
    #[serde(flatten)]
    reply: ModelReply,
    /// How long the conversation has run then, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    spent_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(spent_ms: &u64) -> bool {
    *spent_ms == 0
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ToolCall {
    id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

/// What the user said about the tools to confirm.
#[derive(Debug, Clone, Copy)]
pub(super) enum Approval {
    Given(Consent),
    Refused,
}

/// The end of a conversation.
#[derive(Debug)]
pub(super) enum ConversationEnd {
    Answer(Value),
    /// The user has to confirm tools first.
    Confirm(Conversation),
}

/// What an answer of the model means.
enum Meaning {
    Answer(Value),
    /// The model has to try again; it gets this message.
    Repair(ModelMessage),
    Calls(Vec<ToolCall>),
}

/// Where a conversation runs.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In a program without a task.
    Program(&'a dyn Model),
    /// In a turn.
    Turn(&'a TaskContext<'a>),
}

impl Conversation {
    pub(super) fn of(messages: Vec<ModelMessage>, is_chat: bool) -> Self {
        Self {
            messages,
            is_chat,
            ..Self::default()
        }
    }

    /// The calls that have no results yet.
    pub(super) fn open_calls(&self) -> Vec<ToolCall> {
        match self.messages.last() {
            Some(ModelMessage::Model(content)) => calls_of(content),
            _ => Vec::new(),
        }
    }

    fn add(&mut self, reply: ModelReply) {
        self.turns = self.turns.saturating_add(1);
        let used = reply
            .usage
            .input_tokens
            .saturating_add(reply.usage.output_tokens);
        self.tokens = self.tokens.saturating_add(used);
        self.messages.push(ModelMessage::Model(reply.content));
    }
}

fn calls_of(content: &[ModelContent]) -> Vec<ToolCall> {
    let calls = content.iter().filter_map(|content| match content {
        ModelContent::ToolUse { id, name, input } => Some(ToolCall {
            id: id.clone(),
            name: name.clone(),
            input: input.clone(),
        }),
        ModelContent::Text(_) | ModelContent::Provider(_) => None,
    });
    calls.collect()
}

impl<'a> Place<'a> {
    pub(super) const fn turn(&self) -> Option<&'a TaskContext<'a>> {
        match self {
            Self::Program(_) => None,
            Self::Turn(cx) => Some(cx),
        }
    }
}

/// A function or worker that talks with its model.
pub(super) struct Talk<'a> {
    setup: &'a LlmSetup,
    /// The first part of the names of its steps.
    name: &'a str,
    host: Place<'a>,
    form: AnswerForm,
    /// Whether a value is an answer. The text of its error is for the model.
    check: &'a (dyn Fn(&Value) -> AgentResult<()> + Sync),
    system: String,
    /// A hash of what the author asks.
    input_hash: String,
}

impl<'a> Talk<'a> {
    pub(super) async fn new(
        setup: &'a LlmSetup,
        host: Place<'a>,
        form: AnswerForm,
        input: &Value,
        check: &'a (dyn Fn(&Value) -> AgentResult<()> + Sync),
    ) -> AgentResult<Self> {
        setup.check()?;
        let id = || host.turn().map_or("result", TaskContext::result_name);
        let name = setup.name.as_deref().unwrap_or_else(id);
        Ok(Self {
            setup,
            name,
            host,
            form,
            check,
            system: setup.system(host.turn()).await?,
            input_hash: hash(name, input)?,
        })
    }

    /// Talks with the model until it has answered, or the user has to confirm tools. `approval`
    /// is about the open calls of `conversation`.
    pub(super) async fn run(
        &self,
        mut conversation: Conversation,
        approval: Option<Approval>,
    ) -> AgentResult<ConversationEnd> {
        let mut since = Instant::now();
        if let Some(approval) = approval {
            let calls = conversation.open_calls();
            self.call_tools(&mut conversation, &calls, Some(&approval))
                .await?;
        }
        loop {
            self.check_budget(&conversation)?;
            let request = self.request(&conversation);
            let answer = self.ask(request, conversation.spent_ms, since).await?;
            // What is spent is part of the answer, which another run may have got.
            (conversation.spent_ms, since) = (answer.spent_ms, Instant::now());
            conversation.add(answer.reply);
            match self.meaning(&conversation) {
                Meaning::Answer(value) => {
                    self.add_event(&conversation, &value)?;
                    return Ok(ConversationEnd::Answer(value));
                }
                Meaning::Repair(message) if !conversation.repaired => {
                    conversation.repaired = true;
                    conversation.messages.push(message);
                }
                Meaning::Repair(message) => return Err(wrong_answer(&message)),
                Meaning::Calls(calls) if self.confirms(&calls) => {
                    return Ok(ConversationEnd::Confirm(conversation));
                }
                Meaning::Calls(calls) => self.call_tools(&mut conversation, &calls, None).await?,
            }
        }
    }

    /// Adds the answer of a chat to the thread: an artifact is no message, and the next question
    /// must find the answer there.
    fn add_event(&self, conversation: &Conversation, answer: &Value) -> AgentResult<()> {
        match (self.host.turn(), answer) {
            (Some(cx), Value::String(text)) if conversation.is_chat => cx.add_event(text.as_str()),
            (Some(cx), data) if conversation.is_chat => cx.add_event(Content::from_data(data)?),
            _ => Ok(()),
        }
    }

    /// Checks that the model may be asked once more.
    ///
    /// # Errors
    /// `BUDGET_EXCEEDED`.
    fn check_budget(&self, conversation: &Conversation) -> AgentResult<()> {
        let budget = &self.setup.budget;
        if conversation.turns >= budget.turns {
            let cause = format!("{} turns", conversation.turns);
            return Err(AgentError::budget_exceeded(cause));
        }
        if budget
            .tokens
            .is_some_and(|most| conversation.tokens >= most)
        {
            let cause = format!("{} tokens", conversation.tokens);
            return Err(AgentError::budget_exceeded(cause));
        }
        Ok(())
    }

    fn request(&self, conversation: &Conversation) -> ModelRequest {
        let last = conversation.turns.saturating_add(1) >= self.setup.budget.turns;
        ModelRequest {
            system: self.system.clone(),
            messages: conversation.messages.clone(),
            ..self.setup.request(&self.form, last)
        }
    }

    /// Asks the model, in a turn as a step. The conversation has run for `spent_ms`, and again
    /// `since` then.
    async fn ask(
        &self,
        request: ModelRequest,
        spent_ms: u64,
        since: Instant,
    ) -> AgentResult<TimedReply> {
        let own_model = self.setup.model.as_deref();
        let elapsed = || Duration::from_millis(spent_ms).saturating_add(since.elapsed());
        let converse = async |model: &dyn Model, chunks| {
            // A future is moved with room for all that it awaits.
            let answer = Box::pin(converse(model, request.clone(), chunks));
            let Some(time) = self.setup.budget.time else {
                let reply = answer.await?;
                return Ok(TimedReply { reply, spent_ms: 0 });
            };
            let remaining = time.saturating_sub(elapsed());
            let reply = tokio::time::timeout(remaining, answer).await;
            let reply = reply.map_err(|_| AgentError::deadline())??;
            let spent_ms = u64::try_from(elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(TimedReply { reply, spent_ms })
        };
        match self.host {
            Place::Program(model) => {
                let mut tries = 1;
                loop {
                    let answer = converse(&LoggedModel(model), None).await;
                    let error = answer.as_ref().err();
                    match error.and_then(|error| TryPolicy::MODEL.wait_after(tries, error)) {
                        Some(wait) => tokio::time::sleep(wait).await,
                        None => return answer,
                    }
                    tries += 1;
                }
            }
            Place::Turn(cx) => {
                let name = format!("{}/model", self.name);
                let input = StepInput {
                    hash: Some(self.input_hash.clone()),
                    circumstances: Some(hash(&name, &request)?),
                    row: CallNames::row_of("model", None::<&()>),
                };
                let work = async || {
                    let model = own_model.map_or_else(|| cx.model(), Ok)?;
                    let artifact = self.setup.artifact.as_ref().map(|name| match name {
                        TextArtifact::Named(name) => cx.artifact_chunks(name),
                        TextArtifact::Result => cx.result_chunks(),
                    });
                    let answer = converse(model, artifact.map(ArtifactChunks::of_model));
                    cx.model_call(answer).await
                };
                cx.run_step(&name, input, TryPolicy::MODEL, || Some(work()))
                    .await
            }
        }
    }

    /// Reads the newest answer of the model.
    fn meaning(&self, conversation: &Conversation) -> Meaning {
        let Some(ModelMessage::Model(content)) = conversation.messages.last() else {
            return Meaning::Repair(again("Give your answer."));
        };
        let calls = calls_of(content);
        match (&self.form, calls.as_slice()) {
            (AnswerForm::Text, []) => match text_of(content) {
                text if text.trim().is_empty() => Meaning::Repair(again("Write your answer.")),
                text => self.read(Value::String(text), again),
            },
            // Models fence JSON also when nobody asks them to.
            (AnswerForm::Object(object), []) => {
                match serde_json::from_str(without_fence(&text_of(content))) {
                    Ok(value) => self.read(object.value(&value), again),
                    Err(_) => Meaning::Repair(again(&self.wanted())),
                }
            }
            (AnswerForm::Object(object), [only]) if only.name == ANSWER => {
                let repair = |text: &str| failed(&calls, text);
                self.read(object.value(&only.input), repair)
            }
            // A function has no tools.
            (_, calls) if self.setup.tools.is_empty() => {
                Meaning::Repair(failed(calls, &self.wanted()))
            }
            (_, calls) => Meaning::Calls(calls.to_vec()),
        }
    }

    /// What the model should have done.
    fn wanted(&self) -> String {
        match &self.form {
            AnswerForm::Text => "There is no tool. Write your answer.".to_owned(),
            AnswerForm::Object(_) if self.setup.native => {
                "Answer with JSON of the required schema.".to_owned()
            }
            AnswerForm::Object(_) => format!("Call the tool `{ANSWER}` with your answer."),
        }
    }

    fn read(&self, value: Value, repair: impl FnOnce(&str) -> ModelMessage) -> Meaning {
        match (self.check)(&value) {
            Ok(()) => Meaning::Answer(value),
            Err(error) => Meaning::Repair(repair(error.text())),
        }
    }

    fn tool(&self, call: &ToolCall) -> Option<&OfferedTool> {
        self.setup.tools.iter().find(|tool| tool.name == call.name)
    }

    /// Whether the user has to confirm one of the calls.
    fn confirms(&self, calls: &[ToolCall]) -> bool {
        let mut tools = calls.iter().filter_map(|call| self.tool(call));
        tools.any(|tool| tool.confirm)
    }

    /// Calls the tools and adds their results, in the order of the calls. Functions run at the
    /// same time, then skills one after the other.
    async fn call_tools(
        &self,
        conversation: &mut Conversation,
        calls: &[ToolCall],
        approval: Option<&Approval>,
    ) -> AgentResult<()> {
        let is_skill = |call: &ToolCall| self.tool(call).is_some_and(OfferedTool::is_skill);
        // The calls of an answer may run at the same time, so each has a scope of its own.
        let (name, turns) = (self.name, conversation.turns);
        let scope_of = |number: usize| format!("{name}/call/{turns}.{number}");
        let functions = (1..).zip(calls).map(async |(number, call)| {
            if is_skill(call) {
                return Ok(None);
            }
            let result = self.call_tool(&scope_of(number), call, approval).await?;
            Ok(Some(result))
        });
        let results = join_all(functions).await.into_iter();
        let mut results = results.collect::<AgentResult<Vec<_>>>()?;
        for ((number, call), result) in (1..).zip(calls).zip(&mut results) {
            if is_skill(call) {
                *result = Some(self.call_tool(&scope_of(number), call, approval).await?);
            }
        }
        let results = results.into_iter().flatten().collect();
        conversation
            .messages
            .push(ModelMessage::ToolResults(results));
        Ok(())
    }

    /// Calls a tool, in a turn as a step in a scope of its own. An error of the tool is a result
    /// for the model.
    async fn call_tool(
        &self,
        scope: &str,
        call: &ToolCall,
        approval: Option<&Approval>,
    ) -> AgentResult<ToolResult> {
        let Some(tool) = self.tool(call) else {
            return Ok(refused(call, &self.no_such_tool(call)));
        };
        let consent = match approval {
            Some(Approval::Refused) if tool.confirm => {
                return Ok(refused(call, "the user refused"));
            }
            Some(Approval::Given(consent)) => Some(*consent),
            _ => None,
        };
        let run = || tool.run(self.host.turn(), &call.input, consent);
        let result = match self.host {
            Place::Program(_) => run().await,
            Place::Turn(cx) => {
                let input = StepInput {
                    hash: Some(hash(&tool.name, &call.input)?),
                    circumstances: None,
                    row: CallNames::row_of("tool", Some(&call.input)),
                };
                let step = cx.run_step(&tool.name, input, TryPolicy::ONCE, || Some(run()));
                cx.scope(scope, step).await
            }
        };
        let result = match result {
            Err(error) if error.code() == ErrorCode::Canceled => return Err(error),
            result => result.map_err(|error| format!("{}: {}", error.code(), error.text())),
        };
        Ok(ToolResult {
            id: call.id.clone(),
            result,
        })
    }

    fn no_such_tool(&self, call: &ToolCall) -> String {
        if call.name == ANSWER && matches!(self.form, AnswerForm::Object(_)) {
            return format!("Call `{ANSWER}` alone, after the results of the other tools.");
        }
        let names: Vec<_> = self.setup.tools.iter().map(|tool| &*tool.name).collect();
        format!(
            "There is no such tool. The tools are: {}.",
            names.join(", ")
        )
    }
}

fn hash(name: &str, input: &impl Serialize) -> AgentResult<String> {
    step_hash(name, input).map_err(AgentError::serialization)
}

fn text_of(content: &[ModelContent]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        ModelContent::Text(text) => Some(text.as_str()),
        ModelContent::ToolUse { .. } | ModelContent::Provider(_) => None,
    });
    texts.collect()
}

fn again(text: &str) -> ModelMessage {
    ModelMessage::User(text.to_owned())
}

fn refused(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        result: Err(text.to_owned()),
    }
}

fn failed(calls: &[ToolCall], text: &str) -> ModelMessage {
    ModelMessage::ToolResults(calls.iter().map(|call| refused(call, text)).collect())
}

/// The error of an answer that is wrong even after its repair.
fn wrong_answer(message: &ModelMessage) -> AgentError {
    let cause = match message {
        ModelMessage::User(text) => Some(text.clone()),
        ModelMessage::ToolResults(results) => results
            .first()
            .and_then(|result| result.result.clone().err()),
        ModelMessage::Model(_) => None,
    };
    AgentError::model_output(cause.unwrap_or_default())
}
