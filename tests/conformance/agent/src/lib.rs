//! The agent for conformance kits and for the tests that run real clients.
//!
//! It has one skill that executes commands. The kit `a2a-tck` puts the command into the beginning
//! of the message id; ACTS and the other clients put it into the text. It runs on local machines only:
//! under `cargo run`, and on the emulator of `tests/stack`. No deployed function contains it.

mod command;

use a2a_lambda::prelude::*;
use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::skill::{
    AgentBuilder, FileContent, FileReader, ReferencedTask, Skill, SkillMetadata,
};
use a2a_lambda::task::{Part, PartContent};
use command::{Behaviour, Command};
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// Builds the conformance agent. A kit reads a stream for `streaming_timeout`; the task
/// that it subscribes to again works twice as long.
///
/// # Errors
/// [`BuildError`] when the skill cannot be published. A test checks that it can.
pub fn agent(streaming_timeout: Duration) -> Result<AgentDefinition, BuildError> {
    builder(streaming_timeout).build()
}

/// The conformance agent, to which more can be added.
pub fn builder(streaming_timeout: Duration) -> AgentBuilder {
    let agent = Agent::builder("conformance")
        .name("Conformance agent")
        .description("Does what the conformance kits and client walks tell it.")
        .version(env!("CARGO_PKG_VERSION"));
    let skill = Conformance { streaming_timeout };
    match (Environment.get(STEP), Environment.get(FORGETS)) {
        (_, Some(_)) => agent.skill(Edited::<false>(skill)),
        (Some(_), None) => agent.skill(Edited::<true>(skill)),
        (None, None) => agent.skill(skill),
    }
}

/// The setting with the name that an edit gives to the steps.
const STEP: &str = "STEP_OF_TEST";
/// The setting with which the skill keeps none of its input.
const FORGETS: &str = "FORGETS_OF_TEST";

/// The skill of another build: its sources were edited.
struct Edited<const KEEPS_INPUT: bool>(Conformance);

impl<const KEEPS_INPUT: bool> Skill for Edited<KEEPS_INPUT> {
    const METADATA: SkillMetadata = SkillMetadata {
        keeps_input: KEEPS_INPUT,
        ..Conformance::METADATA
    };
    const SOURCES: &'static str = "edited";
}

impl<const KEEPS_INPUT: bool> SkillHandler<Asked> for Edited<KEEPS_INPUT> {
    type Input = Content;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        content: Content,
    ) -> AgentResult<OnRequestResult<(), Asked>> {
        self.0.on_request(cx, content).await
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        asked: Asked,
        content: Content,
    ) -> AgentResult<Ending> {
        self.0.on_input_received(cx, asked, content).await
    }
}

/// Does what it is told, by the message's id or its text.
// It accepts any media type: one kit sends an invented type and expects success.
#[skill(
    id = "conformance",
    name = "Conformance",
    tags = ["test"],
    examples = ["echo hello", "wait 5", "chunks 10 100", "file 1000", "steps 2", "note it", "recall", "refer", "sum", "fail", "reject", "auth", "panic"],
    input_modes = ["*/*"],
    output_modes = ["text/plain", "application/json", "application/octet-stream"],
)]
#[derive(Debug)]
struct Conformance {
    streaming_timeout: Duration,
}

/// What the task waits for. The behaviours of ACTS that take several turns belong to the task:
/// the messages that follow name none.
///
/// Without a behaviour it waits for a command.
#[derive(Debug, Serialize, Deserialize)]
struct Asked(Option<Awaited>);

/// What a behaviour waits for.
#[derive(Debug, Serialize, Deserialize)]
enum Awaited {
    /// A message that says `done`.
    Done,
    /// Credentials.
    Credentials,
}

const A_COMMAND: Asked = Asked(None);
const TO_BE_DONE: Asked = Asked(Some(Awaited::Done));
const CREDENTIALS: Asked = Asked(Some(Awaited::Credentials));

impl SkillSlot for Asked {}

type Ending = OnInputResult<(), Asked>;

impl SkillHandler<Asked> for Conformance {
    type Input = Content;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        content: Content,
    ) -> AgentResult<OnRequestResult<(), Asked>> {
        match Command::of(cx.message_id(), content.first_text()) {
            Command::Kit(Behaviour::Message) => Ok(OnRequestResult::Message {
                message: DIRECT.into(),
            }),
            command => self.obey(cx, command, &content).await.map(Into::into),
        }
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        Asked(awaited): Asked,
        content: Content,
    ) -> AgentResult<Ending> {
        let text = content.first_text();
        match awaited {
            Some(Awaited::Done) if text.is_some_and(|text| text.trim() == "done") => say("Done"),
            Some(Awaited::Done) => self.behave(cx, Behaviour::AskUntilDone).await,
            Some(Awaited::Credentials) => say("Thank you"),
            None => {
                let command = Command::of(cx.message_id(), text);
                self.obey(cx, command, &content).await
            }
        }
    }
}

/// The text of a reply that makes no task.
const DIRECT: &str = "Direct message response";
/// The name of every artifact that is not a file.
const RESULT: &str = "result";

impl Conformance {
    async fn obey(
        &self,
        cx: &mut TaskContext<'_>,
        command: Command<'_>,
        content: &Content,
    ) -> AgentResult<Ending> {
        match command {
            Command::Kit(behaviour) => self.behave(cx, behaviour).await,
            Command::Echo(said) => deliver(Artifact::from_text(RESULT, format!("echo: {said}"))),
            Command::Wait(time) => work_for(cx, time).await,
            Command::Chunks { count, pause } => chunks(cx, count, pause).await,
            Command::Back => deliver(given_back(content)?),
            Command::Sum => deliver(sum(content)?),
            Command::Note(words) => note(cx, words),
            Command::Recall => recall(cx).await,
            Command::Refer => refer(cx).await,
            Command::File { size, pause } if pause.is_zero() => deliver(file(size)),
            Command::File { size, pause } => {
                cx.send_partial_artifact(file(size)).await?;
                tokio::time::sleep(pause).await;
                OnInputResult::done(())
            }
            Command::Steps { count, time } => steps(cx, count, time).await,
            Command::Fail => failed(),
            Command::Reject => rejected(),
            Command::Panic => panics(),
            Command::Auth => credentials(A_COMMAND),
            Command::Unknown => OnInputResult::ask("What should I do?", A_COMMAND),
        }
    }

    /// Does what the kits expect for each kind of message id.
    async fn behave(&self, cx: &mut TaskContext<'_>, behaviour: Behaviour) -> AgentResult<Ending> {
        match behaviour {
            Behaviour::Complete => say("Hello from TCK"),
            // In a later turn the task exists, so the text completes it.
            Behaviour::Message => say(DIRECT),
            Behaviour::Text(text) => deliver(Artifact::from_text(RESULT, text)),
            Behaviour::File => deliver(text_file()),
            Behaviour::FileUrl => deliver(text_file_elsewhere()),
            Behaviour::Data => deliver(Artifact::from_json(
                RESULT,
                &serde_json::json!({ "key": "value", "count": 42 }),
            )?),
            Behaviour::Ask => OnInputResult::ask("What should I do?", A_COMMAND),
            Behaviour::AskUntilDone => OnInputResult::ask("What else?", TO_BE_DONE),
            Behaviour::AskForCredentials => credentials(CREDENTIALS),
            Behaviour::Fail => failed(),
            Behaviour::Reject => rejected(),
            Behaviour::CompleteAtOnce => OnInputResult::done(()),
            Behaviour::StreamText(text) => {
                cx.send_intermediate_update("working").await?;
                deliver(Artifact::from_text(RESULT, text))
            }
            Behaviour::StreamFile => {
                cx.send_intermediate_update("working").await?;
                deliver(text_file())
            }
            Behaviour::StreamChunks => {
                cx.send_intermediate_update("working").await?;
                let mut chunks = cx.artifact_chunks(RESULT);
                chunks.push("chunk-1 ").await?;
                chunks.finish_with("chunk-2").await?;
                OnInputResult::done(())
            }
            Behaviour::OutliveStream => work_for(cx, self.streaming_timeout * 2).await,
            Behaviour::WorkForSeconds => {
                cx.send_intermediate_update("working").await?;
                tokio::time::sleep(LONG).await;
                deliver(Artifact::from_text(RESULT, "Worked for seconds"))
            }
            Behaviour::WorkUntilCanceled => work_for(cx, UNTIL_CANCELED).await,
        }
    }
}

/// How long a long-running task works: clients that poll see it working.
const LONG: Duration = Duration::from_secs(2);
/// How long a task waits for its cancellation.
const UNTIL_CANCELED: Duration = Duration::from_secs(600);

fn failed() -> AgentResult<Ending> {
    Err(AgentError::domain("FAILED_AS_TOLD", "failed as told"))
}

fn credentials(slot: Asked) -> AgentResult<Ending> {
    let hint = AuthHint::new("api_key", "conformance");
    OnInputResult::ask_credentials("Who are you?", slot, hint)
}

fn say(text: &str) -> AgentResult<Ending> {
    Ok(OnInputResult::Completed {
        message: Some(text.into()),
        output: (),
        artifacts: Vec::new(),
    })
}

fn deliver(artifact: Artifact) -> AgentResult<Ending> {
    Ok(OnInputResult::Completed {
        message: None,
        output: (),
        artifacts: vec![artifact],
    })
}

fn rejected() -> AgentResult<Ending> {
    Ok(OnInputResult::Rejected {
        reason: "rejected".to_owned(),
    })
}

#[expect(
    clippy::panic,
    reason = "shows what becomes of the task and of the process"
)]
fn panics() -> AgentResult<Ending> {
    panic!("panicked as told")
}

async fn work_for(cx: &mut TaskContext<'_>, time: Duration) -> AgentResult<Ending> {
    // The update stores the task, so that a client can cancel it meanwhile.
    cx.send_intermediate_update("working").await?;
    tokio::time::sleep(time).await;
    OnInputResult::done(())
}

async fn chunks(cx: &mut TaskContext<'_>, count: u32, pause: Duration) -> AgentResult<Ending> {
    let mut writer = cx.artifact_chunks(RESULT);
    for number in 1..count {
        writer.push(format!("chunk-{number} ")).await?;
        // A timer waits a millisecond, even for no time.
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    writer.finish_with(format!("chunk-{count} ")).await?;
    OnInputResult::done(())
}

/// Stores the text in the context in both ways a skill has: as an event of the thread, and
/// as a session value.
fn note(cx: &mut TaskContext<'_>, words: &str) -> AgentResult<Ending> {
    cx.add_event(words)?;
    cx.save_session("noted", &words)?;
    deliver(Artifact::from_text(RESULT, format!("noted: {words}")))
}

/// Delivers the thread and the session values as a skill sees them.
async fn recall(cx: &TaskContext<'_>) -> AgentResult<Ending> {
    let thread = cx.thread().await?;
    let texts = thread.iter().flat_map(|message| &message.parts);
    let text = |part: &Part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        _ => None,
    };
    let texts: Vec<String> = texts.filter_map(text).collect();
    let note = cx.load_session::<String>("noted").await?;
    let steps = cx.load_session::<u32>("steps").await?;
    deliver(Artifact::from_json(
        RESULT,
        &serde_json::json!({ "said": texts, "noted": note, "steps": steps }),
    )?)
}

/// Delivers the ids of the tasks that the message refers to, with the names of their
/// artifacts; and the ids that could not be resolved.
async fn refer(cx: &TaskContext<'_>) -> AgentResult<Ending> {
    let names = |task: &ReferencedTask| -> Vec<String> {
        let names = task.artifacts.iter().map(|artifact| artifact.name.clone());
        names.collect()
    };
    let references = cx.references().await?.iter();
    let references: Vec<_> = references
        .map(|task| (task.id.as_str(), names(task)))
        .collect();
    let others = cx.unresolved_references().await?;
    deliver(Artifact::from_json(
        RESULT,
        &serde_json::json!({ "shown": references, "others": others }),
    )?)
}

/// The number of steps that this process has run.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs steps one after the other, and saves their results in each way a skill has.
///
/// The result of a step names its run: process id and number. If a step ran twice, the
/// client sees two names for it in the updates and in the artifact. A session value counts
/// these commands.
async fn steps(cx: &mut TaskContext<'_>, count: u32, time: Duration) -> AgentResult<Ending> {
    let mut results: Vec<String> = Vec::new();
    // An edit may rename the step under a running turn.
    let name = Environment.get(STEP);
    let name = name.unwrap_or_else(|| "step".to_owned());
    for number in 1..=count {
        let run = cx.step(&name, async {
            tokio::time::sleep(time).await;
            let run = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(format!("run-{}-{run}", std::process::id()))
        });
        results.push(run.await?);
        cx.send_intermediate_update(format!("step {number}: {}", results.join(" ")))
            .await?;
        cx.save_data("done", &results).await?;
    }
    cx.update_session("steps", |steps: Option<u32>| steps.unwrap_or(0) + 1)?;
    let steps = cx.load_session::<u32>("steps").await?;
    deliver(Artifact::from_json(
        RESULT,
        &serde_json::json!({
            "steps": results,
            "saved": cx.load_data::<Vec<String>>("done")?,
            "inConversation": steps,
        }),
    )?)
}

/// A file in which byte i is i mod 251. The period is a prime, so it does not align with
/// buffers of a power of two. A file of more than [`AT_ONCE`] bytes is generated while it
/// is stored.
fn file(size: usize) -> Artifact {
    let content: FileContent = if size > AT_ONCE {
        FileReader::new(Pattern::of(size)).into()
    } else {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        bytes.into()
    };
    Artifact::from_file("file.bin", "application/octet-stream", content)
}

/// The most bytes of a file that are generated in memory: 8 MiB.
const AT_ONCE: usize = 8 * 1024 * 1024;

/// Generates the bytes of such a file while they are read.
struct Pattern {
    round: Vec<u8>,
    offset: usize,
    size: usize,
}

impl Pattern {
    fn of(size: usize) -> Self {
        let round = (0..=250).cycle().take(251 * 251).collect();
        let offset = 0;
        Self {
            round,
            offset,
            size,
        }
    }
}

impl AsyncRead for Pattern {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let count = space.remaining().min(self.size - self.offset);
        let rest = self.round.iter().skip(self.offset % 251);
        let bytes: Vec<u8> = rest.copied().take(count).collect();
        space.put_slice(&bytes);
        self.offset += bytes.len();
        Poll::Ready(Ok(()))
    }
}

/// The input of `sum`, decoded like the input of a typed skill.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Terms {
    a: i32,
    b: i32,
}

fn sum(content: &Content) -> AgentResult<Artifact> {
    let Terms { a, b } = content.parse()?;
    let sum = i64::from(a) + i64::from(b);
    Ok(Artifact::from_text(RESULT, format!("sum: {sum}")))
}

/// The file of the message, unchanged.
fn given_back(content: &Content) -> AgentResult<Artifact> {
    let file = content.first_file();
    let file = file.ok_or_else(|| AgentError::missing_input("a file part is needed"))?;
    let name = file.name.clone().unwrap_or_else(|| "file".to_owned());
    Ok(Artifact::from_parts(name, vec![file.into_part()]))
}

fn text_file() -> Artifact {
    Artifact::from_file("output.txt", "text/plain", "Generated text content")
}

fn text_file_elsewhere() -> Artifact {
    let part = Part {
        filename: Some("output.txt".to_owned()),
        media_type: Some("text/plain".to_owned()),
        ..Part::new(PartContent::Url(
            "https://example.com/output.txt".to_owned(),
        ))
    };
    Artifact::from_parts("output.txt", vec![part])
}

#[cfg(test)]
mod tests;
