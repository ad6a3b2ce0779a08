//! The conversation of a function or a worker with its model.
//!
//! In a task, each answer of the model is a step, and each call of a tool is one, in a scope of
//! its own. So a turn that runs again finds the answers that it has, and asks for the next one.

use super::call::converse;
use super::files::FileCache;
use super::setup::{ANSWER, AnswerForm, LlmSetup, TextArtifact};
use super::tool::OfferedTool;
use a2a_lambda_skill::model::{
    Model, ModelContent, ModelMessage, ModelPart, ModelReply, ModelRequest, ToolResult,
};
use a2a_lambda_skill::step_hash;
use a2a_lambda_skill::turn_host::{StepInput, TryPolicy};
use a2a_lambda_skill::{
    AgentError, AgentResult, ArtifactChunks, CallNames, CallTokens, Consent, Content, ErrorCode,
    FilePart, LoggedModel, TaskContext, TokenHold, without_fence,
};
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a model reads at the end of the last request of a budget.
const LAST: &str =
    "There is no room for more calls: answer with what you have, and say what is missing.";

/// The name of the question for more tokens.
const MORE: &str = "use more tokens";

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
    more_tokens: MoreTokens,
}

/// What the user says about more tokens than the budget of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MoreTokens {
    #[default]
    Unasked,
    Asked,
    Granted,
    Refused,
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
    /// Whether there was no room for tools and a call after them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_last: bool,
    /// Whether the user has to be asked for more tokens, in place of the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    needs_more: bool,
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
    /// The user has to confirm tools, or more tokens, first.
    Confirm(Conversation),
}

/// What an answer of the model means.
enum ReplyAction {
    Answer(Value),
    /// The model has to try again; it gets this text as the result of the calls, if it has called.
    Repair(Vec<ToolCall>, String),
    Calls(Vec<ToolCall>),
}

/// Where a conversation runs.
#[derive(Clone, Copy)]
pub(super) enum ModelHost<'a> {
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

    /// The question for more tokens as a call, if it is open.
    pub(super) fn call_for_more(&self, setup: &LlmSetup) -> Option<ToolCall> {
        let most = setup.more_tokens.unwrap_or_default();
        (self.more_tokens == MoreTokens::Asked).then(|| ToolCall {
            id: String::new(),
            name: MORE.to_owned(),
            input: json!({"used": self.tokens, "most": most}),
        })
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

impl<'a> ModelHost<'a> {
    pub(super) const fn turn(&self) -> Option<&'a TaskContext<'a>> {
        match self {
            Self::Program(_) => None,
            Self::Turn(cx) => Some(cx),
        }
    }
}

/// A function or worker that talks with its model.
pub(super) struct ModelSession<'a> {
    setup: &'a LlmSetup,
    /// The first part of the names of its steps.
    name: &'a str,
    host: ModelHost<'a>,
    form: AnswerForm,
    /// Whether a value is an answer. The text of its error is for the model.
    check: &'a (dyn Fn(&Value) -> AgentResult<()> + Sync),
    system: String,
    /// A hash of what the author asks.
    input_hash: String,
    files: FileCache,
    /// The room for a call after the one that runs, or has run.
    hold: Mutex<Option<TokenHold<'a>>>,
}

impl<'a> ModelSession<'a> {
    pub(super) async fn new(
        setup: &'a LlmSetup,
        host: ModelHost<'a>,
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
            files: FileCache::default(),
            hold: Mutex::default(),
        })
    }

    /// The same session with the files that its messages name.
    pub(super) fn with_files(self, sources: Vec<FilePart>) -> Self {
        let files = FileCache::new(sources);
        Self { files, ..self }
    }

    /// Talks with the model until it has answered, or the user has to confirm tools or more tokens.
    /// `approval` is about the open question of `conversation`.
    pub(super) async fn run(
        &self,
        mut conversation: Conversation,
        approval: Option<Approval>,
    ) -> AgentResult<ConversationEnd> {
        let mut since = Instant::now();
        if let (Some(approval), MoreTokens::Asked) = (approval, conversation.more_tokens) {
            conversation.more_tokens = match approval {
                Approval::Given(_) => MoreTokens::Granted,
                Approval::Refused => MoreTokens::Refused,
            };
        } else if let Some(approval) = approval {
            let calls = conversation.open_calls();
            self.call_tools(&mut conversation, &calls, Some(&approval))
                .await?;
        }
        loop {
            self.check_budget(&conversation)?;
            let answer = self.ask(&conversation, since).await?;
            // What is spent is part of the answer, which another run may have got.
            (conversation.spent_ms, since) = (answer.spent_ms, Instant::now());
            if answer.needs_more {
                conversation.more_tokens = MoreTokens::Asked;
                return Ok(ConversationEnd::Confirm(conversation));
            }
            conversation.add(answer.reply);
            match self.meaning(&conversation) {
                ReplyAction::Calls(_) if answer.is_last => {
                    return Err(AgentError::budget_exceeded("tools in the last call"));
                }
                ReplyAction::Answer(value) => {
                    if let (true, Some(cx)) = (answer.is_last, self.host.turn()) {
                        cx.note_partial();
                    }
                    self.add_event(&conversation, &value)?;
                    return Ok(ConversationEnd::Answer(value));
                }
                ReplyAction::Repair(calls, text) if !conversation.repaired => {
                    conversation.repaired = true;
                    let results = calls.iter().map(|call| tool_error(call, &text)).collect();
                    conversation.messages.push(match calls.as_slice() {
                        [] => ModelMessage::from_text(text),
                        _ => ModelMessage::ToolResults(results),
                    });
                }
                // Wrong even after its repair.
                ReplyAction::Repair(_, text) => return Err(AgentError::model_output(text)),
                ReplyAction::Calls(calls) if self.confirms(&calls) => {
                    return Ok(ConversationEnd::Confirm(conversation));
                }
                ReplyAction::Calls(calls) => {
                    self.call_tools(&mut conversation, &calls, None).await?
                }
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
        Ok(())
    }

    /// The request within what the budgets of the worker and of the task have left, and whether
    /// it is the last one; `None` if the user has to be asked for more. One with tools needs room
    /// for a call after it, with its request and both answers. That room is held until this is
    /// called for the next request.
    fn fit(
        &self,
        conversation: &Conversation,
        mut request: ModelRequest,
    ) -> AgentResult<Option<(ModelRequest, bool)>> {
        let extra = self.setup.more_tokens;
        let extra = extra.filter(|_| conversation.more_tokens == MoreTokens::Granted);
        let most = extra.or(self.setup.budget.tokens);
        let worker = most.map(|most| most.saturating_sub(conversation.tokens));
        let mut hold = self.hold();
        *hold = None;
        let task = self.host.turn().and_then(TaskContext::tokens_left);
        let Some(rest) = worker.into_iter().chain(task).min() else {
            return Ok(Some((request, false)));
        };
        let need = CallTokens::of(&mut request.clone(), u64::MAX).unwrap_or_default();
        let two = need.tokens().saturating_mul(2).saturating_add(need.output);
        let is_last = !self.setup.tools.is_empty() && rest < two;
        if is_last && self.may_ask_for_more(conversation) && task.is_none_or(|rest| rest >= two) {
            return Ok(None);
        }
        if is_last {
            let form = self.setup.request(&self.form, true);
            request.tool_choice = form.tool_choice;
            hand_back(&mut request, rest.saturating_sub(need.output.min(rest / 2)));
        } else if let (Some(cx), false) = (self.host.turn(), self.setup.tools.is_empty()) {
            *hold = Some(cx.hold_tokens(two.saturating_sub(need.tokens())));
        }
        match CallTokens::of(&mut request, rest) {
            Some(_) => Ok(Some((request, is_last))),
            None => Err(AgentError::budget_exceeded(format!("{rest} tokens left"))),
        }
    }

    /// Holds the room for a call after `reply` in a run that has found the reply, and so has not
    /// sent its request.
    fn keep_hold(&self, cx: &'a TaskContext<'a>, mut request: ModelRequest, reply: &TimedReply) {
        let has_next = !reply.is_last && !reply.needs_more && !self.setup.tools.is_empty();
        let mut hold = self.hold();
        if hold.is_none() && has_next {
            let need = CallTokens::of(&mut request, u64::MAX).unwrap_or_default();
            *hold = Some(cx.hold_tokens(need.tokens().saturating_add(need.output)));
        }
    }

    fn hold(&self) -> MutexGuard<'_, Option<TokenHold<'a>>> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the worker has another budget, which its user was not asked for.
    fn may_ask_for_more(&self, conversation: &Conversation) -> bool {
        let most = self.setup.more_tokens.zip(self.setup.budget.tokens);
        conversation.more_tokens == MoreTokens::Unasked
            && most.is_some_and(|(more, budget)| more > budget)
    }

    fn request(&self, conversation: &Conversation) -> ModelRequest {
        let last = conversation.turns.saturating_add(1) >= self.setup.budget.turns;
        ModelRequest {
            system: self.system.clone(),
            messages: conversation.messages.clone(),
            ..self.setup.request(&self.form, last)
        }
    }

    /// Asks the model within what the budget has left, unless the user has to be asked for more.
    /// In a turn this is the work of a step: a run that finds its answer has another rest.
    async fn ask_once(
        &self,
        conversation: &Conversation,
        since: Instant,
        mut request: ModelRequest,
        model: &dyn Model,
        chunks: Option<ArtifactChunks<'_>>,
    ) -> AgentResult<TimedReply> {
        let before = Duration::from_millis(conversation.spent_ms);
        let elapsed = || before.saturating_add(since.elapsed());
        let time = self.setup.budget.time;
        self.files.attach(&mut request, self.host.turn()).await?;
        let fit = self.fit(conversation, request)?;
        let needs_more = fit.is_none();
        let (reply, is_last) = match fit {
            Some((request, is_last)) => {
                // A future is moved with room for all that it awaits.
                let answer = Box::pin(converse(model, request, chunks));
                let remaining = time.map_or(Duration::MAX, |time| time.saturating_sub(elapsed()));
                let reply = tokio::time::timeout(remaining, answer).await;
                (reply.map_err(|_| AgentError::deadline())??, is_last)
            }
            None => Default::default(),
        };
        let run_time = time.map_or(Duration::ZERO, |_| elapsed());
        Ok(TimedReply {
            reply,
            spent_ms: u64::try_from(run_time.as_millis()).unwrap_or(u64::MAX),
            is_last,
            needs_more,
        })
    }

    /// Asks the model, in a turn as a step. The conversation has run `since` its last answer.
    async fn ask(&self, conversation: &Conversation, since: Instant) -> AgentResult<TimedReply> {
        let request = self.request(conversation);
        let own_model = self.setup.model.as_deref();
        let ask_once = async |model: &dyn Model, chunks| {
            let request = request.clone();
            self.ask_once(conversation, since, request, model, chunks)
                .await
        };
        match self.host {
            ModelHost::Program(model) => {
                let mut tries = 1;
                loop {
                    let answer = ask_once(&LoggedModel(model), None).await;
                    let error = answer.as_ref().err();
                    match error.and_then(|error| TryPolicy::MODEL.wait_after(tries, error)) {
                        Some(wait) => tokio::time::sleep(wait).await,
                        None => return answer,
                    }
                    tries += 1;
                }
            }
            ModelHost::Turn(cx) => {
                let name = format!("{}/model", self.name);
                let input = StepInput {
                    hash: Some(self.input_hash.clone()),
                    circumstances: Some(hash(&name, &request)?),
                    row: CallNames::row_of("model", None::<&()>),
                };
                let work = async || {
                    let own_model = own_model.map(|model| cx.meter(model));
                    let model: &dyn Model = match &own_model {
                        Some(model) => model,
                        None => cx.model()?,
                    };
                    let artifact = self.setup.artifact.as_ref().map(|name| match name {
                        TextArtifact::Named(name) => cx.artifact_chunks(name),
                        TextArtifact::Result => cx.result_chunks(),
                    });
                    ask_once(model, artifact.map(ArtifactChunks::of_model)).await
                };
                let step = cx.run_step(&name, input, TryPolicy::MODEL, || Some(work()));
                let reply: TimedReply = step.await?;
                self.keep_hold(cx, request, &reply);
                Ok(reply)
            }
        }
    }

    /// Reads the newest answer of the model.
    fn meaning(&self, conversation: &Conversation) -> ReplyAction {
        let Some(ModelMessage::Model(content)) = conversation.messages.last() else {
            return ReplyAction::Repair(Vec::new(), "Give your answer.".to_owned());
        };
        let calls = calls_of(content);
        match (&self.form, calls.as_slice()) {
            (AnswerForm::Text, []) => match text_of(content) {
                text if text.trim().is_empty() => {
                    ReplyAction::Repair(calls, "Write your answer.".to_owned())
                }
                text => self.read(Value::String(text), calls),
            },
            // Models fence JSON also when nobody asks them to.
            (AnswerForm::Object(object), []) => {
                match serde_json::from_str(without_fence(&text_of(content))) {
                    Ok(value) => self.read(object.value(&value), calls),
                    Err(_) => ReplyAction::Repair(calls, self.repair_text()),
                }
            }
            (AnswerForm::Object(object), [only]) if only.name == ANSWER => {
                self.read(object.value(&only.input), calls)
            }
            // A function has no tools.
            _ if self.setup.tools.is_empty() => ReplyAction::Repair(calls, self.repair_text()),
            _ => ReplyAction::Calls(calls),
        }
    }

    /// What the model should have done.
    fn repair_text(&self) -> String {
        match &self.form {
            AnswerForm::Text => "There is no tool. Write your answer.".to_owned(),
            AnswerForm::Object(_) if self.setup.native => {
                "Answer with JSON of the required schema.".to_owned()
            }
            AnswerForm::Object(_) => format!("Call the tool `{ANSWER}` with your answer."),
        }
    }

    fn read(&self, value: Value, calls: Vec<ToolCall>) -> ReplyAction {
        match (self.check)(&value) {
            Ok(()) => ReplyAction::Answer(value),
            Err(error) => ReplyAction::Repair(calls, error.text().to_owned()),
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
            return Ok(tool_error(call, &self.no_such_tool(call)));
        };
        let consent = match approval {
            Some(Approval::Refused) if tool.confirm => {
                return Ok(tool_error(call, "the user refused"));
            }
            Some(Approval::Given(consent)) => Some(*consent),
            _ => None,
        };
        let run = || tool.run(self.host.turn(), &call.input, consent);
        let result = match self.host {
            ModelHost::Program(_) => run().await,
            ModelHost::Turn(cx) => {
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

/// Makes the last request of a budget: without tools, so what was called is text, and within
/// `tokens`. What does not fit of the newest results is cut.
fn hand_back(request: &mut ModelRequest, tokens: u64) {
    request.tools.retain(|tool| tool.name == ANSWER);
    let has_results = matches!(request.messages.last(), Some(ModelMessage::ToolResults(_)));
    for message in &mut request.messages {
        match message {
            ModelMessage::User(_) => {}
            ModelMessage::Model(content) => {
                let texts = content.iter().filter_map(|content| match content {
                    ModelContent::Text(text) => Some(text.clone()),
                    ModelContent::ToolUse { name, input, .. } => Some(format!("{name}: {input}")),
                    ModelContent::Provider(_) => None,
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                *content = vec![ModelContent::Text(text)];
            }
            ModelMessage::ToolResults(results) => {
                let texts = results.iter().map(|it| match &it.result {
                    Ok(value) => value.to_string(),
                    Err(text) => text.clone(),
                });
                *message = ModelMessage::from_text(texts.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    request.messages.push(ModelMessage::from_text(LAST));
    let need = CallTokens::of(&mut request.clone(), u64::MAX).unwrap_or_default();
    let excess = need.input.saturating_sub(tokens).saturating_mul(2);
    let mut messages = request.messages.iter_mut().rev().skip(1);
    if let (true, Some(ModelMessage::User(parts))) = (has_results, messages.next())
        && let [ModelPart::Text(text)] = parts.as_mut_slice()
    {
        let excess = usize::try_from(excess).unwrap_or(usize::MAX);
        text.truncate(text.floor_char_boundary(text.len().saturating_sub(excess)));
    }
}

fn tool_error(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        result: Err(text.to_owned()),
    }
}
