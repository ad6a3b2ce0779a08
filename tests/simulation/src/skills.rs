//! The agent of the simulation. Its skills follow their message letter by letter, and mark
//! their output with the number of the first run of their turn: a run again says the same.

use crate::hub::Hub;
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// The letters of a program; a letter that occurs more often is drawn more often.
pub(crate) const LETTERS: &[u8] = b"UUCCCSSSDGGTTHWBQQPXLRU";

/// The id of the skill with turns that run inside the call.
pub(crate) const SCRIPT: &str = "script";
/// The id of the skill with turns that a worker runs.
pub(crate) const SLOW: &str = "slow";
/// The id of the skill without tasks.
pub(crate) const ECHO: &str = "echo";

/// The agent.
pub(crate) fn agent(hub: &Arc<Hub>) -> Result<AgentDefinition, BuildError> {
    Agent::builder("simulated")
        .skill(Script::<false>(Arc::clone(hub)))
        .skill(Script::<true>(Arc::clone(hub)))
        .skill(Echo(Arc::clone(hub)))
        .build()
}

struct Echo(Arc<Hub>);

impl Skill for Echo {
    const METADATA: SkillMetadata = SkillMetadata::new(ECHO, "Says it again.", &["simulation"]);
}

impl SkillHandler for Echo {
    type Input = Content;
    type Output = NoOutput;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<NoOutput>> {
        self.0.pause().await;
        Ok(OnRequestResult::Message { message: input })
    }
}

/// A skill that follows a program, in the background or inside the call.
struct Script<const BACKGROUND: bool>(Arc<Hub>);

impl<const BACKGROUND: bool> Skill for Script<BACKGROUND> {
    const METADATA: SkillMetadata = SkillMetadata {
        background: BACKGROUND,
        ..SkillMetadata::new(
            if BACKGROUND { SLOW } else { SCRIPT },
            "Follows a program.",
            &["simulation"],
        )
    };
}

/// The rest of the program.
#[derive(Debug, Serialize, Deserialize)]
struct Rest(String);

impl SkillSlot for Rest {}

/// The result: the run that made it.
#[derive(Debug, Serialize, JsonSchema)]
struct Done {
    run: u64,
}

impl<const BACKGROUND: bool> SkillHandler<Rest> for Script<BACKGROUND> {
    type Input = Content;
    type Output = Done;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<Done, Rest>> {
        let program = input.text()?.to_owned();
        self.follow(cx, &program).await.map(Into::into)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        slot: Rest,
        _: Content,
    ) -> AgentResult<OnInputResult<Done, Rest>> {
        self.follow(cx, &slot.0).await
    }
}

impl<const BACKGROUND: bool> Script<BACKGROUND> {
    async fn follow(
        &self,
        cx: &mut TaskContext<'_>,
        program: &str,
    ) -> AgentResult<OnInputResult<Done, Rest>> {
        let hub = &self.0;
        let (task, turn) = (cx.task_id().clone(), cx.turn());
        let message = cx.message_id().to_owned();
        let (run, mark) = hub
            .world()
            .oracle
            .run_begins(&task, turn, &message, program);
        let mut steps = 0;
        let mut letters = program.chars();
        while let Some(letter) = letters.next() {
            let place = letters.as_str().len();
            hub.pause().await;
            match letter {
                'U' => {
                    cx.send_intermediate_update(format!("run {mark} {place}"))
                        .await?
                }
                'C' => self.chunks(cx, run, mark).await?,
                'B' => {
                    let artifact = Artifact::from_file("blob", "image/png", bytes_of(mark));
                    hub.world().oracle.run_makes(run, "blob");
                    cx.send_partial_artifact(artifact).await?;
                }
                'S' => {
                    steps += 1;
                    let work = async {
                        hub.pause().await;
                        Ok(hub.world().oracle.effect())
                    };
                    let result: u64 = cx.step("s", work).await?;
                    hub.world().oracle.step_returned(&message, steps, result);
                }
                'D' => cx.save_data("k", &run).await?,
                'G' => self.guarded(cx, run, mark).await?,
                'T' => self.remember(cx, run).await?,
                'H' => {
                    let thread = cx.thread().await?;
                    let mut world = hub.world();
                    world.oracle.heard(run, thread.iter());
                }
                'W' => self.wait(Duration::from_secs(run % 9)).await,
                'L' => self.wait(Duration::from_secs(70)).await,
                'Q' => {
                    let rest = Rest(letters.as_str().to_owned());
                    return OnInputResult::ask(format!("run {mark} {place}"), rest);
                }
                'P' => std::panic::resume_unwind(Box::new("simulated")),
                // During an outage nothing else fails.
                'X' if hub.world().away.is_none() => hub.die().await,
                'R' => return Err(AgentError::domain("SIMULATED", "the program says so")),
                _ => {}
            }
        }
        Ok(OnInputResult::Completed {
            message: None,
            output: Done { run },
            artifacts: Vec::new(),
        })
    }

    /// Reads its value in the thread, and writes its own.
    async fn remember(&self, cx: &mut TaskContext<'_>, run: u64) -> AgentResult<()> {
        let key = format!("{}-{}", cx.task_id(), cx.turn());
        let before: Option<u64> = cx.load_session(&key).await?;
        let keeper = before.unwrap_or_default();
        self.0.world().oracle.remembers(run, keeper);
        cx.save_session(&key, &run)?;
        self.0.world().oracle.run_keeps(run, key);
        Ok(())
    }

    async fn chunks(&self, cx: &mut TaskContext<'_>, run: u64, mark: u64) -> AgentResult<()> {
        self.0.world().oracle.run_makes(run, "report");
        let mut report = cx.artifact_chunks("report");
        for n in 0..2 {
            report.push(format!("{mark}:{n}")).await?;
            self.0.pause().await;
        }
        report.finish_with(format!("{mark}:end")).await
    }

    /// Makes an artifact once per task. A run that finds it made does nothing.
    async fn guarded(&self, cx: &mut TaskContext<'_>, run: u64, mark: u64) -> AgentResult<()> {
        if cx.load_data::<u64>("kept")?.is_none() {
            let mut kept = cx.artifact_chunks("kept");
            kept.push(format!("{mark}:0")).await?;
            kept.finish_with(format!("{mark}:end")).await?;
            cx.save_data("kept", &run).await?;
        }
        Ok(())
    }

    async fn wait(&self, time: Duration) {
        let now = self.0.world().now;
        let time = i64::try_from(time.as_millis()).unwrap_or_default();
        self.0.sleep_until(now + time).await;
    }
}

/// Bytes that only one run makes, larger than the limit of a value inside the record.
pub(crate) fn bytes_of(run: u64) -> Vec<u8> {
    run.to_be_bytes().repeat(16)
}

/// Their SHA-256 in hex, as a pointer has it.
pub(crate) fn digest_of(run: u64) -> String {
    let digest = Sha256::digest(bytes_of(run));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
