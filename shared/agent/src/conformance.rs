//! The agent that conformance kits and client walks talk to.
//!
//! It has one skill that does what it is told: by the beginning of the
//! message's id (the kits' way), or by a command in the text (the walks' way).
//! It is for one's own machine and is in no deployed function.

mod command;

use a2a_lambda::prelude::*;
use a2a_lambda::skill::{FileContent, FileReader, ReferencedTask};
use a2a_lambda::task::{Part, PartContent};
use command::{Behaviour, Command};
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// The conformance agent. The kits wait `streaming_timeout` for a stream, so
/// the task they subscribe to again works twice as long.
///
/// # Errors
/// [`BuildError`] when the skill cannot be published; a test says that it can.
pub fn agent(streaming_timeout: Duration) -> Result<AgentDefinition, BuildError> {
    Agent::builder("conformance")
        .name("Conformance agent")
        .description("Does what the conformance kits and client walks tell it.")
        .version(env!("CARGO_PKG_VERSION"))
        .skill(Conformance { streaming_timeout })
        .build()
}

/// Does what it is told, by the message's id or its text.
// It takes any type of part: one kit sends a made-up one and wants success.
#[skill(
    id = "conformance",
    name = "Conformance",
    tags = ["test"],
    examples = ["echo hello", "wait 5", "chunks 10 100", "file 1000", "steps 2", "note it", "recall", "refer", "sum", "fail", "reject", "auth"],
    input_modes = ["*/*"],
    output_modes = ["text/plain", "application/json", "application/octet-stream"],
)]
#[derive(Debug)]
struct Conformance {
    streaming_timeout: Duration,
}

/// The bookmark of the one question.
#[derive(Debug, Serialize, Deserialize)]
struct Asked;

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
        _: Asked,
        content: Content,
    ) -> AgentResult<Ending> {
        let command = Command::of(cx.message_id(), content.first_text());
        self.obey(cx, command, &content).await
    }
}

/// What the message of a skill that makes no task says.
const DIRECT: &str = "Direct message response";
/// The name of every artifact that is no file.
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
            Command::Fail => Err(AgentError::domain("FAILED_AS_TOLD", "failed as told")),
            Command::Reject => rejected(),
            Command::Auth => Ok(OnInputResult::AuthRequired {
                message: "Who are you?".into(),
                slot: Asked,
                auth: AuthHint {
                    auth_type: Some("api_key".to_owned()),
                    service: Some("conformance".to_owned()),
                },
            }),
            Command::Unknown => OnInputResult::ask("What should I do?", Asked),
        }
    }

    /// What the kits expect of each kind of message id.
    async fn behave(&self, cx: &mut TaskContext<'_>, behaviour: Behaviour) -> AgentResult<Ending> {
        match behaviour {
            Behaviour::Complete => say("Hello from TCK"),
            // In a second turn the task is there, and the words end it.
            Behaviour::Message => say(DIRECT),
            Behaviour::Text(text) => deliver(Artifact::from_text(RESULT, text)),
            Behaviour::File => deliver(text_file()),
            Behaviour::FileUrl => deliver(text_file_elsewhere()),
            Behaviour::Data => deliver(Artifact::from_json(
                RESULT,
                &serde_json::json!({ "key": "value", "count": 42 }),
            )?),
            Behaviour::Ask => OnInputResult::ask("What should I do?", Asked),
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
        }
    }
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

async fn work_for(cx: &mut TaskContext<'_>, time: Duration) -> AgentResult<Ending> {
    // Said so that the task is stored and can be canceled meanwhile.
    cx.send_intermediate_update("working").await?;
    tokio::time::sleep(time).await;
    OnInputResult::done(())
}

async fn chunks(cx: &mut TaskContext<'_>, count: u32, pause: Duration) -> AgentResult<Ending> {
    let mut writer = cx.artifact_chunks(RESULT);
    for number in 1..count {
        writer.push(format!("chunk-{number} ")).await?;
        tokio::time::sleep(pause).await;
    }
    writer.finish_with(format!("chunk-{count} ")).await?;
    OnInputResult::done(())
}

/// Keeps words in the conversation, in both ways a skill has: as an event, and
/// as the last of the values.
fn note(cx: &mut TaskContext<'_>, words: &str) -> AgentResult<Ending> {
    cx.add_event(words)?;
    cx.save_session("noted", &words)?;
    deliver(Artifact::from_text(RESULT, format!("noted: {words}")))
}

/// The conversation as a skill sees it.
async fn recall(cx: &TaskContext<'_>) -> AgentResult<Ending> {
    let thread = cx.thread().await?;
    let said = thread.iter().flat_map(|message| &message.parts);
    let text = |part: &Part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        _ => None,
    };
    let said: Vec<String> = said.filter_map(text).collect();
    let noted = cx.load_session::<String>("noted").await?;
    let steps = cx.load_session::<u32>("steps").await?;
    deliver(Artifact::from_json(
        RESULT,
        &serde_json::json!({ "said": said, "noted": noted, "steps": steps }),
    )?)
}

/// The tasks that the message refers to, with the names of what they delivered;
/// and the ids of those it was not shown.
async fn refer(cx: &TaskContext<'_>) -> AgentResult<Ending> {
    let names = |task: &ReferencedTask| -> Vec<String> {
        let names = task.artifacts.iter().map(|artifact| artifact.name.clone());
        names.collect()
    };
    let shown = cx.references().await?.iter();
    let shown: Vec<_> = shown.map(|task| (task.id.as_str(), names(task))).collect();
    let others = cx.unresolved_references().await?;
    deliver(Artifact::from_json(
        RESULT,
        &serde_json::json!({ "shown": shown, "others": others }),
    )?)
}

/// Runs of steps in this process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Does steps one after the other, and keeps what it did in each of the ways a
/// skill has. A step's result names the run that made it, by process and number:
/// a step that is done again under another name was done twice, and the client
/// sees it in the updates and in the artifact. The conversation counts these
/// commands.
async fn steps(cx: &mut TaskContext<'_>, count: u32, time: Duration) -> AgentResult<Ending> {
    let mut done: Vec<String> = Vec::new();
    for number in 1..=count {
        let run = cx.step("step", async {
            tokio::time::sleep(time).await;
            let run = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(format!("run-{}-{run}", std::process::id()))
        });
        done.push(run.await?);
        cx.send_intermediate_update(format!("step {number}: {}", done.join(" ")))
            .await?;
        cx.save_data("done", &done).await?;
    }
    let before = cx.load_session::<u32>("steps").await?.unwrap_or(0);
    cx.save_session("steps", &(before + 1))?;
    deliver(Artifact::from_json(
        RESULT,
        &serde_json::json!({
            "steps": done,
            "saved": cx.load_data::<Vec<String>>("done")?,
            "inConversation": before + 1,
        }),
    )?)
}

/// A file whose byte i is i mod 251: a length that no power of two hides. A long
/// one is made while it is stored.
fn file(size: usize) -> Artifact {
    let content: FileContent = if size > AT_ONCE {
        FileReader::new(Pattern::of(size)).into()
    } else {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        bytes.into()
    };
    Artifact::from_file("file.bin", "application/octet-stream", content)
}

/// Bytes of a file that are made at once.
const AT_ONCE: usize = 8 * 1024 * 1024;

/// The bytes of such a file, as they are asked for.
struct Pattern {
    round: Vec<u8>,
    given: usize,
    size: usize,
}

impl Pattern {
    fn of(size: usize) -> Self {
        let round = (0..=250).cycle().take(251 * 251).collect();
        let given = 0;
        Self { round, given, size }
    }
}

impl AsyncRead for Pattern {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let count = space.remaining().min(self.size - self.given);
        let rest = self.round.iter().skip(self.given % 251);
        let bytes: Vec<u8> = rest.copied().take(count).collect();
        space.put_slice(&bytes);
        self.given += bytes.len();
        Poll::Ready(Ok(()))
    }
}

/// What `sum` adds, read as the input of a typed skill is.
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

/// The file that was sent, as it came.
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
