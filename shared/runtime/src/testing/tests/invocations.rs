//! Turns that do not end in their call.

use super::*;
use a2a_lambda_rows::each_row_async;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts the runs of its turn and of its steps.
#[skill(id = "cook", tags = ["test"])]
struct Cook(Arc<(AtomicU32, AtomicU32)>);

impl SkillHandler for Cook {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let (runs, steps) = (&self.0.0, &self.0.1);
        runs.fetch_add(1, Ordering::SeqCst);
        for course in ["soup", "fish", "cake"] {
            let cooked = async {
                tokio::time::sleep(Duration::from_secs(100)).await;
                Ok(steps.fetch_add(1, Ordering::SeqCst))
            };
            cx.step(course, cooked).await?;
            cx.send_intermediate_update(course).await?;
        }
        OnRequestResult::done("served".to_owned())
    }
}

/// Works in the background.
#[skill(id = "later", tags = ["test"], background = true)]
async fn later(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    cx.save_session("last", &text)?;
    cx.send_intermediate_update("begun").await?;
    Ok(text)
}

/// Says what the other skill has saved for the conversation.
#[skill(id = "last", tags = ["test"])]
async fn last(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    Ok(cx.load_session("last").await?.unwrap_or_default())
}

/// Fails with a cause.
#[skill(id = "broken", tags = ["test"])]
async fn broken(_: String) -> AgentResult<String> {
    let port: u16 = "none".parse().map_err(AgentError::network)?;
    Ok(port.to_string())
}

fn kitchen() -> (SkillTest, Arc<(AtomicU32, AtomicU32)>) {
    let counts = Arc::default();
    let agent = Agent::builder("kitchen")
        .skill(Cook(Arc::clone(&counts)))
        .skill(later)
        .skill(last)
        .skill(broken);
    (SkillTest::new(&agent.build().unwrap(), "cook"), counts)
}

fn counted(counts: &(AtomicU32, AtomicU32)) -> (u32, u32) {
    let of = |count: &AtomicU32| count.load(Ordering::SeqCst);
    (of(&counts.0), of(&counts.1))
}

#[tokio::test(start_paused = true)]
async fn a_step_that_was_stored_before_a_crash_is_not_run_again() {
    // The opening of the turn does not count: a step and its update are two things.
    each_row_async([1, 2, 3, 5], async |things| {
        let (mut client, counts) = kitchen();
        let reply = client.crash_after(things).send("dinner").await.unwrap();
        assert_eq!(reply.artifact_text("cook").as_deref(), Some("served"));
        assert_eq!(counted(&counts), (2, 3), "{things}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_crash_is_run_once_and_one_that_cannot_crash_is_an_error() {
    let (mut client, counts) = kitchen();
    client.send("dinner").await.unwrap();
    assert_eq!(counted(&counts), (1, 3));
    let error = client.crash_after(99).send("dinner").await.unwrap_err();
    assert_eq!(error, SkillTestError::NoCrash { things: 99 });
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_time_is_over_continues_in_another_invocation() {
    let (mut client, counts) = kitchen();
    client.time_left(Duration::from_secs(150));
    let reply = client.send("dinner").await.unwrap();
    assert_eq!(reply.artifact_text("cook").as_deref(), Some("served"));
    let (runs, steps) = counted(&counts);
    assert!(runs > 1 && steps >= 3, "{runs} {steps}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_handed_over_as_its_stream_ends_goes_on() {
    /// Is slow once.
    #[skill(id = "slow", tags = ["test"])]
    async fn slow(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        if RUNS.fetch_add(1, Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        cx.step("done", async { Ok("done".to_owned()) }).await
    }
    let agent = Agent::builder("agent").skill(slow).build().unwrap();
    let mut client = SkillTest::new(&agent, "slow");
    // Below 20 s the stream ends when the engine drops the skill.
    client.time_left(Duration::from_secs(10));
    let reply = client.send("go").await.unwrap();
    assert_eq!(reply.artifact_text("slow").as_deref(), Some("done"));
}

#[tokio::test]
async fn events_of_earlier_turns_are_not_shown_again_after_a_crash() {
    let mut client = skill_test("stepper");
    client.send("one").await.unwrap();
    client.crash_after(0).send("two").await.unwrap();
    assert_eq!(shown(&client), ["working", "stepper", "completed"]);
}

#[tokio::test]
async fn a_background_skill_runs_to_its_end_without_waiting() {
    let (mut client, _) = kitchen();
    let begun = std::time::Instant::now();
    let reply = client.skill("later").send("soup").await.unwrap();
    assert_eq!(reply.artifact_text("later").as_deref(), Some("soup"));
    assert_eq!(shown(&client), ["working", "working", "later", "completed"]);
    // A wait of the bench would take minutes.
    assert!(begun.elapsed() < Duration::from_secs(30));
    let crashed = client.crash_after(1).send("fish").await.unwrap();
    assert_eq!(crashed.artifact_text("later").as_deref(), Some("fish"));
    let asked = client.skill("last").send("?").await.unwrap();
    assert_eq!(asked.artifact_text("last").as_deref(), Some("fish"));
}

#[tokio::test]
async fn the_cause_of_a_failure_is_shown_to_the_test_alone() {
    let (mut client, _) = kitchen();
    let reply = client.skill("broken").send("go").await.unwrap();
    assert_eq!(reply.error_code(), Some("NETWORK"));
    assert!(!reply.text().contains("digit"), "{}", reply.text());
    let cause = client.cause().unwrap();
    assert_eq!(cause, "invalid digit found in string");
    client.skill("last").send("?").await.unwrap();
    assert_eq!(client.cause(), None);
}

#[test]
fn an_input_that_admits_every_object_is_a_fault_beside_other_skills() {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Any {
        vegetarian: Option<bool>,
    }
    /// Writes a menu.
    #[skill(id = "menu", tags = ["test"])]
    async fn menu(input: Any) -> AgentResult<bool> {
        Ok(input.vegetarian.unwrap_or_default())
    }
    let alone = Agent::builder("agent").skill(menu).build().unwrap();
    assert_eq!(check_agent(&alone), []);
    let two = Agent::builder("agent").skill(menu).skill(last);
    let faults = check_agent(&two.build().unwrap());
    let skill = "menu".to_owned();
    assert_eq!(faults, [AgentCheckError::AnyObject { skill }]);
}
