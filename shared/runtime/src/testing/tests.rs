mod documents;
mod invocations;
mod llm;
mod output;
mod replay;
mod scripted_model;
mod session;
mod state;
mod turn;

use super::*;
use crate::prelude::*;
use crate::task::{A2aError, TaskState};
use serde::{Deserialize, Serialize};

/// Sends two updates and ends without waiting.
#[skill(id = "chatty", tags = ["test"])]
async fn chatty(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<()> {
    cx.send_intermediate_update("one").await?;
    cx.send_partial_artifact(Artifact::from_text("two", "two"))
        .await?;
    Ok(())
}

/// Sends one update and ends without waiting.
#[skill(id = "brief", tags = ["test"])]
async fn brief(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<()> {
    cx.send_intermediate_update("one").await
}

/// Declares text as its output mode and returns data.
#[skill(id = "liar", tags = ["test"], output_modes = ["text/plain"])]
async fn liar(_: Content) -> AgentResult<Vec<u32>> {
    Ok(vec![1])
}

/// Sleeps by Tokio's clock.
#[skill(id = "sleeper", tags = ["test"])]
async fn sleeper(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    cx.send_intermediate_update("sleeping").await?;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Ok("awake".to_owned())
}

/// Saves data and a slot, and returns both with the next message.
#[skill(id = "counter", tags = ["test"])]
struct Counter;

/// A slot that loses its member in the stored form.
#[derive(Serialize, Deserialize)]
struct Count {
    #[serde(skip)]
    lost: u32,
}

impl SkillSlot for Count {}

impl SkillHandler<Count> for Counter {
    type Input = Content;
    type Output = u32;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<u32, Count>> {
        cx.save_data("kept", &1).await?;
        OnRequestResult::ask("more?", Count { lost: 1 })
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        slot: Count,
        _: Content,
    ) -> AgentResult<OnInputResult<u32, Count>> {
        let kept: u32 = cx.load_data("kept")?.unwrap_or_default();
        OnInputResult::done(10 * kept + slot.lost)
    }
}

/// Runs a step in each turn, and returns the messages of its thread.
#[skill(id = "stepper", tags = ["test"])]
struct Stepper;

impl Stepper {
    async fn turn(cx: &TaskContext<'_>) -> AgentResult<String> {
        let turn = cx.turn();
        let step = cx.step("step", async move { Ok(turn) }).await?;
        let thread = cx.thread().await?;
        let said = thread.iter().filter_map(|message| {
            let content = Content::from_parts(message.parts.clone());
            content.first_text().map(str::to_owned)
        });
        Ok(format!("{step}: {}", said.collect::<Vec<_>>().join(", ")))
    }
}

#[derive(Serialize, Deserialize)]
struct More;

impl SkillSlot for More {}

impl SkillHandler<More> for Stepper {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, More>> {
        OnRequestResult::ask(Self::turn(cx).await?, More)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: More,
        _: Content,
    ) -> AgentResult<OnInputResult<String, More>> {
        OnInputResult::done(Self::turn(cx).await?)
    }
}

/// Replies without a task, and counts the messages of its context.
#[skill(id = "greeter", tags = ["test"])]
async fn greeter(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<Content> {
    let before: u32 = cx.load_session("times").await?.unwrap_or_default();
    cx.save_session("times", &(before + 1))?;
    Ok(Content::from_text(format!("hello, number {}", before + 1)))
}

fn agent() -> AgentDefinition {
    Agent::builder("agent")
        .skill(greeter)
        .skill(chatty)
        .skill(brief)
        .skill(liar)
        .skill(sleeper)
        .skill(Counter)
        .skill(Stepper)
        .build()
        .unwrap()
}

fn skill_test(skill: &str) -> SkillTest {
    SkillTest::new(&agent(), skill)
}

fn shown(skill_test: &SkillTest) -> Vec<String> {
    let events = skill_test.events().iter();
    events
        .map(|event| match event {
            Event::Status(update) => update.status.state.to_string(),
            Event::Artifact(update) => update.artifact.name.clone().unwrap_or_default(),
        })
        .collect()
}

#[tokio::test]
async fn the_bench_sees_events_of_a_skill_that_ends_without_waiting() {
    let mut two = skill_test("chatty");
    two.send("go").await.unwrap();
    assert_eq!(shown(&two), ["working", "two", "completed"]);
    let mut one = skill_test("brief");
    one.send("go").await.unwrap();
    assert_eq!(shown(&one), ["working", "completed"]);
}

#[tokio::test]
async fn an_output_outside_the_output_modes_is_an_error() {
    let error = skill_test("liar").send("go").await.unwrap_err();
    let text =
        "skill `liar` gave `application/json` in `liar`, which is not among its output modes";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_message_to_an_unknown_skill_is_refused() {
    let error = skill_test("unknown").send("go").await.unwrap_err();
    assert!(
        matches!(error.refusal(), Some(A2aError::InvalidParams { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn slots_and_saved_data_pass_through_their_stored_form() {
    let mut skill_test = skill_test("counter");
    skill_test.send("go").await.unwrap();
    let reply = skill_test.send("more").await.unwrap();
    // The data is there; the skipped member of the slot is not.
    assert_eq!(reply.artifact_data("counter"), Some(10.into()));
}

#[tokio::test]
async fn each_turn_has_its_own_steps_and_sees_the_newest_messages() {
    let mut skill_test = skill_test("stepper");
    let asked = skill_test.send("one").await.unwrap();
    assert_eq!(asked.text(), "1: one");
    let done = skill_test.send("two").await.unwrap();
    assert_eq!(
        done.artifact_text("stepper").as_deref(),
        Some("2: one, 1: one, two")
    );
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_sleeps_takes_no_time_under_a_paused_clock() {
    let mut skill_test = skill_test("sleeper");
    let reply = skill_test.send("go").await.unwrap();
    assert_eq!(reply.artifact_text("sleeper").as_deref(), Some("awake"));
}

#[tokio::test(start_paused = true)]
async fn cancel_after_cancels_after_that_many_events() {
    let mut skill_test = skill_test("sleeper");
    let reply = skill_test.cancel_after(1).send("go").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Canceled));
    assert_eq!(shown(&skill_test), ["working", "canceled"]);
    let reply = skill_test.send("again").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn a_task_expires_a_month_after_its_last_turn() {
    let mut skill_test = skill_test("counter");
    skill_test.send("go").await.unwrap();
    let month = Duration::from_secs(31 * 24 * 3600);
    let error = skill_test.advance(month).send("more").await.unwrap_err();
    assert_eq!(error.refusal(), Some(&A2aError::TaskNotFound));
}

#[test]
fn an_example_that_reaches_another_skill_is_a_fault() {
    /// Adds numbers.
    #[skill(id = "add", tags = ["math"], examples = ["add one and two"])]
    async fn add(_: String) -> AgentResult<u32> {
        Ok(3)
    }
    /// Returns an empty text.
    #[skill(id = "say", tags = ["text"], examples = ["/add it"])]
    async fn say(_: String) -> AgentResult<String> {
        Ok(String::new())
    }
    let agent = Agent::builder("agent")
        .skill(add)
        .skill(say)
        .build()
        .unwrap();
    let fault = AgentCheckError::Example {
        skill: "say".to_owned(),
        example: "/add it".to_owned(),
        reaches: "skill `add`".to_owned(),
    };
    assert_eq!(check_agent(&agent), [fault]);
}

#[tokio::test]
async fn a_reply_without_a_task_keeps_its_session_data() {
    let mut skill_test = skill_test("greeter");
    for (fresh, expected) in [(true, 1), (false, 2), (false, 3), (true, 1)] {
        if fresh {
            skill_test.new_context();
        }
        let Reply::Message(message) = skill_test.send("hi").await.unwrap() else {
            panic!("a task");
        };
        let said = Content::from_parts(message.parts);
        assert_eq!(
            said.first_text(),
            Some(&*format!("hello, number {expected}"))
        );
    }
}
