//! A model for tests that answers from a script.

use crate::clock::lock;
use a2a_lambda_skill::model::{
    Delta, Model, ModelContent, ModelReply, ModelRequest, StopReason, ToolChoice, Usage,
};
use a2a_lambda_skill::{AgentError, AgentResult};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The tool that [`ScriptedModel::answer`] calls if the request forces none.
const ANSWER: &str = "answer";
/// The tokens of an answer, until the script sets others.
const USAGE: Usage = Usage {
    input_tokens: 10,
    output_tokens: 5,
    cached_tokens: 0,
};
/// The characters of a streamed piece of a text.
const PIECE: usize = 4;

/// A model that gives the answers of a script, in order, and keeps the requests.
///
/// It is a handle: the test keeps one clone, the agent gets another. A stream has the same
/// answer in pieces of a few characters.
///
/// A request after the end of the script fails with `MODEL_PROVIDER`. A skill could hide that
/// error, so a test ends with [`ScriptedModel::finish`].
///
/// ```
/// use a2a_lambda::SkillTest;
/// use a2a_lambda::prelude::*;
/// use a2a_lambda::skill::model::{ModelMessage, ModelRequest};
/// use a2a_lambda::testing::ScriptedModel;
/// use std::sync::Arc;
///
/// /// Says whether a text is kind.
/// #[skill(id = "tone", tags = ["example"])]
/// async fn tone(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
///     let request = ModelRequest {
///         system: "Is the text kind?".to_owned(),
///         messages: vec![ModelMessage::from_text(text)],
///         ..ModelRequest::default()
///     };
///     let reply = cx.model()?.converse(request).await?;
///     Ok(format!("{:?}", reply.content))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let agent = Agent::builder("critic").skill(tone).build()?;
/// let model = ScriptedModel::new().text("It is kind.");
/// let mut client = SkillTest::new(&agent, "tone");
/// client.model(Arc::new(model.clone())).send("Thank you.").await?;
/// assert_eq!(model.requests()[0].system, "Is the text kind?");
/// model.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScriptedModel(Arc<Mutex<ModelScript>>);

/// The script of a model was not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script has {left} answers left, and {beyond} requests came after its end")]
pub struct ScriptError {
    /// The answers that no request asked for.
    pub left: usize,
    /// The requests after the end of the script.
    pub beyond: usize,
}

#[derive(Debug)]
struct ModelScript {
    /// The answers, and how long each takes.
    answers: VecDeque<(Duration, ScriptedAnswer)>,
    /// How long the next answer takes that the script gets.
    wait: Duration,
    requests: Vec<ModelRequest>,
    /// The requests after the end of the script.
    beyond: usize,
    /// The tool calls made so far: their ids count from 1.
    calls: u64,
    usage: Usage,
}

#[derive(Debug)]
enum ScriptedAnswer {
    Calls(Vec<(String, Value)>, Usage),
    Answer(Value, Usage),
    Reply(ModelReply),
    Error(AgentError),
}

impl Default for ModelScript {
    fn default() -> Self {
        Self {
            answers: VecDeque::new(),
            wait: Duration::ZERO,
            requests: Vec::new(),
            beyond: 0,
            calls: 0,
            usage: USAGE,
        }
    }
}

impl ScriptedModel {
    /// A model without answers. The methods below add them, also while the test runs:
    /// `model.clone().text("…")`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A model that must not be asked. A request fails, and so does
    /// [`ScriptedModel::finish`] afterwards.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// Then it answers with a text.
    pub fn text(self, text: impl Into<String>) -> Self {
        let usage = lock(&self.0).usage;
        self.reply(text_reply(text.into(), usage))
    }

    /// Then it calls a tool. The ids of all calls are `call-1`, `call-2`, …
    pub fn tool_call(self, tool: impl Into<String>, input: Value) -> Self {
        self.tool_calls([(tool.into(), input)])
    }

    /// Then it calls several tools in one answer.
    pub fn tool_calls<T: Into<String>>(self, calls: impl IntoIterator<Item = (T, Value)>) -> Self {
        let calls = calls.into_iter();
        let calls = calls.map(|(tool, input)| (tool.into(), input)).collect();
        let usage = lock(&self.0).usage;
        self.then(ScriptedAnswer::Calls(calls, usage))
    }

    /// Then it answers with a value: with a call of the tool that the request forces, or of the
    /// tool `answer` if the request offers one. Without either it writes the value as JSON text.
    /// A request that forces a call and offers one tool forces that tool.
    pub fn answer(self, value: Value) -> Self {
        let usage = lock(&self.0).usage;
        self.then(ScriptedAnswer::Answer(value, usage))
    }

    /// Then it gives exactly this reply.
    pub fn reply(self, reply: ModelReply) -> Self {
        self.then(ScriptedAnswer::Reply(reply))
    }

    /// Then it answers with this content.
    pub fn content(self, content: impl IntoIterator<Item = ModelContent>) -> Self {
        let mut reply = ModelReply {
            content: content.into_iter().collect(),
            stop: StopReason::EndTurn,
            usage: lock(&self.0).usage,
        };
        if reply.calls_tools() {
            reply.stop = StopReason::ToolUse;
        }
        self.reply(reply)
    }

    /// The next answer of the script takes this time. Under
    /// `#[tokio::test(start_paused = true)]` it takes no real time.
    pub fn wait(self, time: Duration) -> Self {
        lock(&self.0).wait = time;
        self
    }

    /// Then it fails. A stream fails before its first piece.
    pub fn error(self, error: AgentError) -> Self {
        self.then(ScriptedAnswer::Error(error))
    }

    /// Sets the tokens of the answers that the script gets after this: 10 of the request and 5
    /// of the answer without it.
    pub fn usage(self, usage: Usage) -> Self {
        lock(&self.0).usage = usage;
        self
    }

    /// The requests so far, oldest first, also those after the end of the script.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.0).requests.clone()
    }

    /// The number of answers that no request has asked for yet.
    #[must_use]
    pub fn left(&self) -> usize {
        lock(&self.0).answers.len()
    }

    /// Checks that each answer was asked for, and nothing else.
    ///
    /// # Errors
    /// [`ScriptError`] when answers are left, or requests came after the end of the script.
    pub fn finish(&self) -> Result<(), ScriptError> {
        let script = lock(&self.0);
        let (answers_left, beyond) = (script.answers.len(), script.beyond);
        if answers_left == 0 && beyond == 0 {
            return Ok(());
        }
        Err(ScriptError {
            left: answers_left,
            beyond,
        })
    }

    async fn answered(&self, request: ModelRequest) -> AgentResult<ModelReply> {
        let (wait, reply) = lock(&self.0).next(request);
        tokio::time::sleep(wait).await;
        reply
    }

    fn then(self, answer: ScriptedAnswer) -> Self {
        let mut script = lock(&self.0);
        let wait = std::mem::take(&mut script.wait);
        script.answers.push_back((wait, answer));
        drop(script);
        self
    }
}

impl ModelScript {
    fn next(&mut self, request: ModelRequest) -> (Duration, AgentResult<ModelReply>) {
        let forced_tool = tool_of(&request).map(str::to_owned);
        self.requests.push(request);
        let (wait, answer) = match self.answers.pop_front() {
            Some((wait, answer)) => (wait, Some(answer)),
            None => (Duration::ZERO, None),
        };
        (wait, self.reply(answer, forced_tool))
    }

    fn reply(
        &mut self,
        answer: Option<ScriptedAnswer>,
        forced_tool: Option<String>,
    ) -> AgentResult<ModelReply> {
        match answer {
            Some(ScriptedAnswer::Reply(reply)) => Ok(reply),
            Some(ScriptedAnswer::Error(error)) => Err(error),
            Some(ScriptedAnswer::Calls(calls, usage)) => Ok(self.calls(calls, usage)),
            Some(ScriptedAnswer::Answer(value, usage)) => Ok(match forced_tool {
                Some(tool) => self.calls(vec![(tool, value)], usage),
                None => text_reply(value.to_string(), usage),
            }),
            None => {
                self.beyond += 1;
                let number = self.requests.len();
                let had = number - self.beyond;
                Err(AgentError::model_provider(format!(
                    "request {number} of a scripted model with {had} answers"
                )))
            }
        }
    }

    fn calls(&mut self, calls: Vec<(String, Value)>, usage: Usage) -> ModelReply {
        let content = calls.into_iter().map(|(name, input)| {
            self.calls += 1;
            let id = format!("call-{}", self.calls);
            ModelContent::ToolUse { id, name, input }
        });
        ModelReply {
            content: content.collect(),
            stop: StopReason::ToolUse,
            usage,
        }
    }
}

/// The tool in which the model has to give its answer.
fn tool_of(request: &ModelRequest) -> Option<&str> {
    let mut names = request.tools.iter().map(|tool| tool.name.as_str());
    match &request.tool_choice {
        ToolChoice::Tool(name) => Some(name),
        ToolChoice::Any if request.tools.len() == 1 => names.next(),
        ToolChoice::Any | ToolChoice::Auto => names.find(|name| *name == ANSWER),
    }
}

fn text_reply(text: String, usage: Usage) -> ModelReply {
    ModelReply {
        content: vec![ModelContent::Text(text)],
        stop: StopReason::EndTurn,
        usage,
    }
}

/// A reply as a model streams it.
pub(super) fn deltas(reply: ModelReply) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for content in reply.content {
        match content {
            ModelContent::Text(text) => deltas.extend(pieces(&text).map(Delta::Text)),
            ModelContent::ToolUse { id, name, input } => {
                deltas.push(Delta::ToolUse { id, name });
                deltas.extend(pieces(&written(&input)).map(Delta::ToolInput));
            }
            ModelContent::Provider(block) => deltas.push(Delta::Provider(block)),
        }
    }
    deltas.push(Delta::Stop {
        stop: reply.stop,
        usage: reply.usage,
    });
    deltas
}

fn pieces(text: &str) -> impl Iterator<Item = String> + use<> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(PIECE).map(String::from_iter).collect();
    pieces.into_iter()
}

/// The arguments of a call as the model wrote them: a JSON string that holds no JSON is a text
/// that is no JSON.
fn written(input: &Value) -> String {
    match input {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        input => input.to_string(),
    }
}

impl Model for ScriptedModel {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(self.answered(request))
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let reply = self.answered(request).await?;
            Ok(stream::iter(deltas(reply)).map(Ok).boxed())
        })
    }
}
