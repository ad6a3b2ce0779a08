//! The agent of the scenarios. Each skill behaves the same in every attempt, so the test
//! knows the finished task in advance, whatever faults occur.

use a2a_lambda::skill::{
    Agent, AgentDefinition, AgentResult, Artifact, Content, OnInputResult, OnRequestResult, Skill,
    SkillHandler, SkillMetadata, SkillSlot, TaskContext,
};
use a2a_lambda::task::TaskId;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The number of chunks of the skill `chunks`.
pub(crate) const CHUNKS: usize = 12;
/// The text of a chunk. All chunks together are larger than what the task's DynamoDB item
/// may hold.
pub(crate) fn chunk(n: usize) -> String {
    format!("{n:0600} ")
}

/// The size in bytes of the artifact that is stored in the bucket.
pub(crate) const BIG: usize = 40_000;

/// Shared state of a case and its skills.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Set when skills no longer have to wait.
    pub(crate) free: watch::Sender<bool>,
    /// The task whose output is stored while its skill waits.
    pub(crate) waiting: watch::Sender<Option<TaskId>>,
    /// Whether the first invocation has waited.
    held: AtomicBool,
    /// The names of the steps that ran, one entry per run.
    pub(crate) steps: Mutex<Vec<&'static str>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            free: watch::Sender::new(false),
            waiting: watch::Sender::new(None),
            held: AtomicBool::new(false),
            steps: Mutex::default(),
        }
    }
}

impl Signals {
    async fn freed(&self) {
        self.free.subscribe().wait_for(|free| *free).await.unwrap();
    }
}

pub(crate) fn agent(signals: &Arc<Signals>) -> AgentDefinition {
    Agent::builder("faults")
        .description("One skill a scenario.")
        .version("1.0.0")
        .skill(Short)
        .skill(Steps(Arc::clone(signals)))
        .skill(Chunks)
        .skill(Ask)
        .skill(Big(Arc::clone(signals)))
        .build()
        .unwrap()
}

macro_rules! metadata {
    ($($skill:ident => $id:literal;)*) => {
        $(impl Skill for $skill {
            const METADATA: SkillMetadata =
                SkillMetadata::new($id, concat!("The test skill ", $id, "."), &["test"]);
        })*
    };
}

metadata! {
    Short => "short";
    Steps => "steps";
    Chunks => "chunks";
    Ask => "ask";
    Big => "big";
}

type Done = AgentResult<OnRequestResult<String>>;

struct Short;

impl SkillHandler for Short {
    type Input = Content;
    type Output = String;

    async fn on_request(&self, _: &mut TaskContext<'_>, _: Content) -> Done {
        OnRequestResult::done("short".to_owned())
    }
}

/// Runs two steps; the first invocation runs out of time between them.
struct Steps(Arc<Signals>);

impl SkillHandler for Steps {
    type Input = Content;
    type Output = String;

    async fn on_request(&self, cx: &mut TaskContext<'_>, _: Content) -> Done {
        let did = |name| {
            self.0.steps.lock().unwrap().push(name);
            async move { Ok(name.to_owned()) }
        };
        let one: String = cx.step("one", async { did("one").await }).await?;
        cx.send_intermediate_update("half of it").await?;
        if !self.0.held.swap(true, Ordering::SeqCst) {
            self.0.freed().await;
        }
        let two: String = cx.step("two", async { did("two").await }).await?;
        OnRequestResult::done(format!("{one} {two}"))
    }
}

struct Chunks;

impl SkillHandler for Chunks {
    type Input = Content;
    type Output = String;

    async fn on_request(&self, cx: &mut TaskContext<'_>, _: Content) -> Done {
        cx.send_intermediate_update("on it").await?;
        let mut letters = cx.artifact_chunks("letters");
        for n in 0..CHUNKS {
            letters.push(chunk(n)).await?;
            if n % 4 == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        letters.finish_with("end").await?;
        OnRequestResult::done("done".to_owned())
    }
}

#[derive(Serialize, Deserialize)]
struct Asked {}

impl SkillSlot for Asked {}

/// Asks once, and counts its turns in a session value.
struct Ask;

async fn count(cx: &mut TaskContext<'_>) -> AgentResult<u32> {
    let turns = cx.load_session::<u32>("turns").await?.unwrap_or(0) + 1;
    cx.save_session("turns", &turns)?;
    Ok(turns)
}

impl SkillHandler<Asked> for Ask {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        count(cx).await?;
        OnRequestResult::ask("which one?", Asked {})
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        OnInputResult::done(format!("{} turns", count(cx).await?))
    }
}

/// Stores an artifact in the bucket and waits. Its later output must not appear in a
/// canceled task.
struct Big(Arc<Signals>);

impl SkillHandler for Big {
    type Input = Content;
    type Output = String;

    async fn on_request(&self, cx: &mut TaskContext<'_>, _: Content) -> Done {
        cx.send_partial_artifact(Artifact::from_file(
            "big",
            "application/x-test",
            "b".repeat(BIG),
        ))
        .await?;
        cx.save_data("stored", &true).await?;
        self.0.waiting.send_replace(Some(cx.task_id().clone()));
        self.0.freed().await;
        cx.send_partial_artifact(Artifact::from_text("late", "too late"))
            .await?;
        cx.save_data("late", &true).await?;
        OnRequestResult::done("big".to_owned())
    }
}
