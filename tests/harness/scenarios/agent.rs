//! The agent that the suite `faults` runs in its own process.
//!
//! It behaves the same in every attempt, so the scenarios know the finished task in advance.
//! Where the conformance agent waits for time, this one waits for a signal.

use super::{LATE, file};
use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The name of every artifact that is not a file.
const RESULT: &str = "result";

/// The number of parts in which the agent sends a chunk.
const PIECES: usize = 4;

/// A part of a chunk. All parts of a stream together are larger than what the task's
/// DynamoDB item may hold.
fn piece(n: usize) -> String {
    format!("{n:0600} ")
}

/// The text of a chunk, from number 1.
#[must_use]
pub fn chunk(number: usize) -> String {
    let end = number * PIECES;
    (end.saturating_sub(PIECES)..end).map(piece).collect()
}

/// The shared state of a case and its skill.
#[derive(Debug)]
pub struct Signals {
    /// Set when the skill no longer has to wait.
    pub free: watch::Sender<bool>,
    /// The task whose file is stored while its skill waits.
    pub delivered: watch::Sender<Option<String>>,
    /// Whether the first invocation has waited.
    held: AtomicBool,
    /// The number of steps that ran.
    runs: AtomicUsize,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            free: watch::Sender::new(false),
            delivered: watch::Sender::new(None),
            held: AtomicBool::new(false),
            runs: AtomicUsize::new(0),
        }
    }
}

impl Signals {
    /// How often a step ran.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// The name of the next run of a step.
    fn next_run(&self) -> String {
        format!("run-{}", self.runs.fetch_add(1, Ordering::SeqCst) + 1)
    }

    async fn freed(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        self.free.subscribe().wait_for(|free| *free).await.ok();
    }
}

/// The agent of a case.
///
/// # Errors
/// Never, unless the runtime's rules for agents have changed.
pub fn agent(signals: &Arc<Signals>) -> Result<AgentDefinition, BuildError> {
    Agent::builder("scenarios")
        .description("Obeys the commands of the scenarios.")
        .version("1.0.0")
        .skill(Obeys(Arc::clone(signals)))
        .build()
}

/// The slot of the only question. It needs no data.
#[derive(Serialize, Deserialize)]
struct Asked {}

impl SkillSlot for Asked {}

type Ending = OnInputResult<(), Asked>;

/// Obeys the text of a message.
#[skill(id = "obeys", tags = ["test"])]
struct Obeys(Arc<Signals>);

impl SkillHandler<Asked> for Obeys {
    type Input = Content;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        content: Content,
    ) -> AgentResult<OnRequestResult<(), Asked>> {
        self.obey(cx, &content).await.map(Into::into)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: Asked,
        content: Content,
    ) -> AgentResult<Ending> {
        self.obey(cx, &content).await
    }
}

impl Obeys {
    async fn obey(&self, cx: &mut TaskContext<'_>, content: &Content) -> AgentResult<Ending> {
        let text = content.first_text().unwrap_or_default();
        let words: Vec<&str> = text.split(' ').collect();
        match words.as_slice() {
            ["echo", said] => deliver(Artifact::from_text(RESULT, format!("echo: {said}"))),
            ["steps", count] => self.steps(cx, count.parse()?).await,
            ["chunks", count, _] => chunks(cx, count.parse()?).await,
            ["file", _] => deliver(delivered_file()),
            ["file", ..] => self.file_and_more(cx).await,
            _ => {
                raised(cx, "asked").await?;
                OnInputResult::ask("which one?", Asked {})
            }
        }
    }

    /// Runs steps; the first invocation runs out of time between two of them.
    async fn steps(&self, cx: &mut TaskContext<'_>, count: u32) -> AgentResult<Ending> {
        let mut runs: Vec<String> = Vec::new();
        for number in 1..=count {
            let run = cx.step("step", async { Ok(self.0.next_run()) });
            runs.push(run.await?);
            if number == count {
                break;
            }
            cx.send_intermediate_update("half of it").await?;
            if !self.0.held.swap(true, Ordering::SeqCst) {
                self.0.freed().await;
            }
        }
        let mut report = json!({ "steps": runs });
        // Only in answers, because the suite repeats each store call a dozen times.
        if cx.turn() > 1 {
            let counted = raised(cx, "steps").await?;
            report = json!({ "steps": runs, "inConversation": counted });
        }
        deliver(Artifact::from_json(RESULT, &report)?)
    }

    /// Stores a file in the bucket and waits. The later output must not appear in a canceled
    /// task.
    async fn file_and_more(&self, cx: &mut TaskContext<'_>) -> AgentResult<Ending> {
        cx.send_partial_artifact(delivered_file()).await?;
        cx.save_data("stored", &true).await?;
        let id = cx.task_id().to_string();
        self.0.delivered.send_replace(Some(id));
        self.0.freed().await;
        cx.send_partial_artifact(Artifact::from_text(LATE, "too late"))
            .await?;
        cx.save_data("late", &true).await?;
        OnInputResult::done(())
    }
}

/// Sends the parts of the chunks in groups, with a pause after each group.
async fn chunks(cx: &mut TaskContext<'_>, count: usize) -> AgentResult<Ending> {
    cx.send_intermediate_update("on it").await?;
    let mut letters = cx.artifact_chunks(RESULT);
    let last = (count * PIECES).saturating_sub(1);
    for n in 0..last {
        letters.push(piece(n)).await?;
        if n % PIECES == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    letters.finish_with(piece(last)).await?;
    OnInputResult::done(())
}

fn delivered_file() -> Artifact {
    Artifact::from_file("file.bin", "application/octet-stream", file())
}

fn deliver(artifact: Artifact) -> AgentResult<Ending> {
    Ok(OnInputResult::Completed {
        message: None,
        output: (),
        artifacts: vec![artifact],
    })
}

/// Raises a number that the context keeps, and returns it.
async fn raised(cx: &mut TaskContext<'_>, key: &str) -> AgentResult<u32> {
    let number = cx.load_session::<u32>(key).await?.unwrap_or(0) + 1;
    cx.save_session(key, &number)?;
    Ok(number)
}
