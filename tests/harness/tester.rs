//! The agent of the in-process suites: one skill for each course a turn can take.

use a2a_lambda::prelude::*;
use a2a_lambda::skill::AgentBuilder;
use a2a_lambda::task::{Part, PartContent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// A private text of a skill. No response may contain it.
pub const SKILL_CANARY: &str = "canary-skill-secret-0002";

/// Blocks the skill `slow` until it is opened.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Gate {
    /// Lets the skill continue.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn pass(&self) {
        let mut open = self.0.subscribe();
        // The gate owns the sender, so waiting cannot fail.
        open.wait_for(|open| *open).await.ok();
    }
}

/// The agent; its skill `slow` waits at `gate`.
///
/// # Errors
/// Never, unless the runtime's rules for agents have changed.
pub fn agent(gate: Gate) -> Result<AgentDefinition, BuildError> {
    builder(gate).build()
}

/// The same agent with an extended card: authenticated callers see another description and
/// one more skill.
///
/// # Errors
/// Never, unless the runtime's rules for agents have changed.
pub fn extended_agent(gate: Gate) -> Result<AgentDefinition, BuildError> {
    builder(gate)
        .extended_description("What only known callers are told.")
        .extended_skill(hidden)
        .build()
}

fn builder(gate: Gate) -> AgentBuilder {
    Agent::builder("tester")
        .description("One skill for each way a turn can go.")
        .version("3.2.1")
        .skill(echo)
        .skill(Ask)
        .skill(chunks)
        .skill(greet)
        .skill(add)
        .skill(broken)
        .skill(refused)
        .skill(panics)
        .skill(declines)
        .skill(Login)
        .skill(Slow(gate.clone()))
        .skill(refers)
        .skill(Notes(gate))
}

type Done = AgentResult<OnRequestResult<String>>;

/// Stores values and events in its context: `set <key> <value>`, `fill <key> <size>`, `add
/// <text>`, and `get <key>`. A leading `wait` waits for the gate. It returns the texts of
/// the thread, with `cut` first if the thread is cut.
#[skill(id = "notes", tags = ["test"])]
struct Notes(Gate);

impl SkillHandler for Notes {
    type Input = String;
    type Output = String;

    async fn on_request(&self, cx: &mut TaskContext<'_>, input: String) -> Done {
        let mut words: Vec<&str> = input.split(' ').collect();
        if words.first() == Some(&"wait") {
            self.0.pass().await;
            words.remove(0);
        }
        for order in words.chunks(3) {
            match order {
                ["set", key, value] => cx.save_session(key, value)?,
                ["add", text, ..] => cx.add_event(*text)?,
                ["fill", key, size] => {
                    let size = size.parse().unwrap_or_default();
                    cx.save_session(key, &"x".repeat(size))?;
                }
                ["get", key, ..] => {
                    let value: Option<String> = cx.load_session(key).await?;
                    return OnRequestResult::done(value.unwrap_or_else(|| "nothing".to_owned()));
                }
                _ => {}
            }
        }
        let thread = cx.thread().await?;
        let said = thread.iter().flat_map(|message| &message.parts);
        let text = |part: &Part| match &part.content {
            PartContent::Text(text) => Some(text.clone()),
            _ => None,
        };
        let cut = thread.is_cut().then(|| "cut".to_owned());
        let said: Vec<String> = cut.into_iter().chain(said.filter_map(text)).collect();
        OnRequestResult::done(said.join("|"))
    }
}

/// Only the extended card shows this skill.
#[skill(id = "hidden", tags = ["test"])]
async fn hidden(Terms { a, b }: Terms) -> AgentResult<String> {
    Ok(format!("{a} and {b}"))
}

/// Returns the ids of the referenced tasks, and the ids that could not be resolved.
#[skill(id = "refers", tags = ["test"])]
async fn refers(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    let shown = cx.references().await?;
    let shown: Vec<&str> = shown.iter().map(|task| task.id.as_str()).collect();
    let others = cx.unresolved_references().await?.join(" ");
    Ok(format!("shown: {}; not: {others}", shown.join(" ")))
}

/// Returns the first text.
#[skill(id = "echo", tags = ["test"])]
async fn echo(input: Content) -> AgentResult<String> {
    Ok(format!("echo: {}", input.first_text().unwrap_or("-")))
}

/// Asks again until the answer is not `again`.
#[skill(id = "ask", tags = ["test"])]
#[derive(Debug)]
pub struct Ask;

/// How often a skill has asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Asked {
    times: u32,
}

impl SkillSlot for Asked {}

impl SkillHandler<Asked> for Ask {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        OnRequestResult::ask("which one?", Asked { times: 1 })
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        Asked { times }: Asked,
        content: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        match content.text()? {
            "again" => OnInputResult::ask("which one now?", Asked { times: times + 1 }),
            "chunks" => {
                send_chunks(cx).await?;
                OnInputResult::done("done".to_owned())
            }
            answer => OnInputResult::done(format!("{answer} after {times}")),
        }
    }
}

async fn send_chunks(cx: &mut TaskContext<'_>) -> AgentResult<()> {
    cx.send_intermediate_update("on it").await?;
    let mut letters = cx.artifact_chunks("letters");
    letters.push("a").await?;
    letters.push("b").await?;
    letters.finish_with("c").await
}

/// Sends an update, an artifact in three chunks, and a result.
#[skill(id = "chunks", tags = ["test"])]
async fn chunks(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    send_chunks(cx).await?;
    Ok("done".to_owned())
}

/// Makes no task. Stores the text after `note ` in the context.
#[skill(id = "greet", tags = ["test"])]
async fn greet(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<Content> {
    let noted = input.first_text().and_then(|it| it.strip_prefix("note "));
    if let Some(noted) = noted {
        cx.save_session("noted", &noted)?;
        cx.add_event(noted)?;
    }
    Ok(Content::from_text("hello there"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Terms {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Takes typed data.
#[skill(id = "add", tags = ["test"])]
async fn add(Terms { a, b }: Terms) -> AgentResult<Sum> {
    let sum = a.wrapping_add(b);
    Ok(Sum { sum })
}

/// Fails with a private cause after it has sent an artifact.
#[skill(id = "broken", tags = ["test"])]
async fn broken(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    cx.send_partial_artifact(Artifact::from_text("draft", "half of it"))
        .await?;
    Err(AgentError::internal(SKILL_CANARY))
}

/// Fails with an error code of its own.
#[skill(id = "refused", tags = ["test"])]
async fn refused(_: Content) -> AgentResult<String> {
    let cause = std::io::Error::other(SKILL_CANARY);
    Err(AgentError::domain("OUT_OF_STOCK", "nothing left")
        .with_detail("left", 0)
        .with_cause(&cause))
}

/// Panics.
#[skill(id = "panics", tags = ["test"])]
#[expect(clippy::panic, reason = "a skill that panics is what is tested")]
async fn panics(_: Content) -> AgentResult<String> {
    panic!("{SKILL_CANARY}")
}

/// Rejects its task.
#[skill(id = "declines", tags = ["test"])]
async fn declines(_: Content) -> Done {
    Ok(OnRequestResult::Rejected {
        reason: "not today".to_owned(),
    })
}

/// Asks for a sign-in until the answer is not `again`.
#[skill(id = "login", tags = ["test"])]
struct Login;

impl SkillHandler<Asked> for Login {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        Ok(OnRequestResult::AuthRequired {
            message: Content::from_text("sign in first"),
            slot: Asked { times: 1 },
            auth: AuthHint::default(),
        })
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        Asked { times }: Asked,
        content: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        if content.first_text() == Some("again") {
            return Ok(OnInputResult::AuthRequired {
                message: Content::from_text("sign in once more"),
                slot: Asked { times: times + 1 },
                auth: AuthHint::default(),
            });
        }
        OnInputResult::done("signed in".to_owned())
    }
}

/// Works until the gate opens. With `for <seconds>` it works for that time; with `steps
/// <count> <milliseconds>` it sends a chunk per step.
#[skill(id = "slow", tags = ["test"])]
struct Slow(Gate);

impl SkillHandler for Slow {
    type Input = Content;
    type Output = String;

    async fn on_request(&self, cx: &mut TaskContext<'_>, input: Content) -> Done {
        let words = input.first_text().unwrap_or_default().to_owned();
        let number = |text: &str| text.parse::<u64>().map_err(AgentError::from);
        match words.split(' ').collect::<Vec<_>>().as_slice() {
            ["for", seconds] => sleep(Duration::from_secs(number(seconds)?)).await,
            ["steps", count, millis] => {
                let mut letters = cx.artifact_chunks("letters");
                for step in 0..number(count)? {
                    letters.push(&format!("{words}: {step}")).await?;
                    sleep(Duration::from_millis(number(millis)?)).await;
                }
                letters.finish().await?;
            }
            _ => {
                self.0.pass().await;
                return OnRequestResult::done("at last".to_owned());
            }
        }
        OnRequestResult::done(format!("after {words}"))
    }
}
