//! A language model that answers from a script.

use super::lock;
use crate::skill::model::{
    Delta, Model, ModelContent, ModelReply, ModelRequest, StopReason, ToolChoice, Usage,
};
use crate::skill::{AgentError, AgentResult};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The tool of an answer when the request forces none.
const ANSWER: &str = "answer";

/// A language model for tests. It gives the answers of its script in their order, and records
/// what it was asked. Clones are the same model, so a test keeps one and the agent gets another.
///
/// ```
/// use a2a_lambda::llm::LlmFunction;
/// use a2a_lambda::skill::AgentResult;
/// use a2a_lambda::testing::ScriptedModel;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> AgentResult<()> {
/// let model = ScriptedModel::new().answer(json!({"value": [3, 4]}));
/// let numbers = LlmFunction::<Vec<u32>>::new("Find the numbers.");
/// assert_eq!(numbers.run_with(&model, "three, four").await?, [3, 4]);
/// assert_eq!(model.requests()[0].system, "Find the numbers.");
/// assert_eq!(model.left(), 0);
/// # Ok(())
/// # }
/// ```
///
/// A call beyond the script fails with `MODEL_PROVIDER`. Its private cause has the last message
/// of the request.
#[derive(Debug, Clone, Default)]
pub struct ScriptedModel(Arc<Script>);

#[derive(Debug, Default)]
struct Script {
    entries: Mutex<VecDeque<ScriptEntry>>,
    requests: Mutex<Vec<ModelRequest>>,
}

#[derive(Debug)]
enum ScriptEntry {
    Content(Vec<ModelContent>),
    /// A call of the tool that the request forces.
    Answer(Value),
    Reply(ModelReply),
    Error(AgentError),
    /// The answer after this one takes so long.
    Wait(Duration),
}

impl ScriptedModel {
    /// A model with an empty script. Nothing may ask it yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn then(self, entry: ScriptEntry) -> Self {
        lock(&self.0.entries).push_back(entry);
        self
    }

    /// The next answer is a text. A stream has one piece for each word.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.content([ModelContent::Text(text.into())])
    }

    /// The next answer calls one tool. The id of the call is `call-1`.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, input: Value) -> Self {
        self.tools([(name.into(), input)])
    }

    /// The next answer calls several tools. The ids of the calls are `call-1`, `call-2` and so
    /// on.
    #[must_use]
    pub fn tools(self, calls: impl IntoIterator<Item = (impl Into<String>, Value)>) -> Self {
        let calls = calls.into_iter().zip(1_u32..);
        self.content(calls.map(|((name, input), number)| ModelContent::ToolUse {
            id: format!("call-{number}"),
            name: name.into(),
            input,
        }))
    }

    /// The next answer calls the tool that the request forces, and otherwise `answer`. Where a
    /// request offers no tool, it is the JSON as text.
    #[must_use]
    pub fn answer(self, input: Value) -> Self {
        self.then(ScriptEntry::Answer(input))
    }

    /// The next answer has this content.
    #[must_use]
    pub fn content(self, content: impl IntoIterator<Item = ModelContent>) -> Self {
        self.then(ScriptEntry::Content(content.into_iter().collect()))
    }

    /// The next answer.
    #[must_use]
    pub fn reply(self, reply: ModelReply) -> Self {
        self.then(ScriptEntry::Reply(reply))
    }

    /// The next call fails.
    #[must_use]
    pub fn error(self, error: AgentError) -> Self {
        self.then(ScriptEntry::Error(error))
    }

    /// The next answer takes so long. Under `#[tokio::test(start_paused = true)]` the wait
    /// takes no real time.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.then(ScriptEntry::Wait(time))
    }

    /// The requests so far, in their order.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.0.requests).clone()
    }

    /// How many answers of the script nothing has asked for.
    #[must_use]
    pub fn left(&self) -> usize {
        let entries = lock(&self.0.entries);
        let is_answer = |entry: &&ScriptEntry| !matches!(entry, ScriptEntry::Wait(_));
        entries.iter().filter(is_answer).count()
    }

    async fn next(&self, request: ModelRequest) -> AgentResult<ModelReply> {
        let (wait, entry) = {
            let mut entries = lock(&self.0.entries);
            match entries.pop_front() {
                Some(ScriptEntry::Wait(time)) => (time, entries.pop_front()),
                entry => (Duration::ZERO, entry),
            }
        };
        tokio::time::sleep(wait).await;
        let reply = match entry {
            Some(ScriptEntry::Content(content)) => Ok(reply(content)),
            Some(ScriptEntry::Answer(input)) => Ok(reply(vec![answer(&request, input)])),
            Some(ScriptEntry::Reply(reply)) => Ok(reply),
            Some(ScriptEntry::Error(error)) => Err(error),
            Some(ScriptEntry::Wait(_)) | None => {
                let last = request.messages.last();
                let cause = format!("the script has no answer to {last:?}");
                Err(AgentError::model_provider(cause))
            }
        };
        lock(&self.0.requests).push(request);
        reply
    }
}

fn answer(request: &ModelRequest, input: Value) -> ModelContent {
    if request.tools.is_empty() {
        return ModelContent::Text(input.to_string());
    }
    let name = match &request.tool_choice {
        ToolChoice::Tool(name) => name.clone(),
        ToolChoice::Auto | ToolChoice::Any => ANSWER.to_owned(),
    };
    ModelContent::ToolUse {
        id: "call-1".to_owned(),
        name,
        input,
    }
}

/// An answer of 10 tokens to a request of 20.
fn reply(content: Vec<ModelContent>) -> ModelReply {
    let mut reply = ModelReply {
        content,
        stop: StopReason::EndTurn,
        usage: Usage {
            input_tokens: 20,
            output_tokens: 10,
        },
    };
    if reply.calls_tools() {
        reply.stop = StopReason::ToolUse;
    }
    reply
}

/// The pieces of an answer.
pub(super) fn deltas(reply: ModelReply) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for content in reply.content {
        match content {
            ModelContent::Text(text) => {
                let words = text.split_inclusive(' ').map(str::to_owned);
                deltas.extend(words.map(Delta::Text));
            }
            ModelContent::ToolUse { id, name, input } => {
                deltas.push(Delta::ToolUse { id, name });
                // A text is arguments that are no JSON.
                let written = match input {
                    Value::String(text) => text,
                    input => input.to_string(),
                };
                deltas.push(Delta::ToolInput(written));
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

impl Model for ScriptedModel {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(self.next(request))
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let reply = self.next(request).await?;
            Ok(stream::iter(deltas(reply)).map(Ok).boxed())
        })
    }
}
