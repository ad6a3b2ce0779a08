//! A deployment between two runs of a turn: its steps are those of the first run, or the task
//! fails. No step gets the result of another.

use super::generate::Random;
use super::runtime;
use a2a_lambda::SkillTest;
use a2a_lambda::llm::LlmWorker;
use a2a_lambda::prelude::*;
use a2a_lambda::skill;
use a2a_lambda::task::TaskState;
use a2a_lambda::testing::{Reply, ScriptedModel};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The changed programs of the default run.
const CHANGES: u64 = 200;

/// A step: its name, and what it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: &'static str,
    asked: Option<u8>,
}

/// What is around the steps.
#[derive(Debug, Clone, Copy)]
enum Around {
    Nothing,
    Step,
    Scope,
}

/// The steps before and after the deployment.
#[derive(Debug, Clone)]
struct Change {
    before: Vec<Step>,
    after: Vec<Step>,
    around: Around,
}

/// The effects of both releases: the release, and the place in its steps.
type Effects = Arc<Mutex<Vec<(u32, usize)>>>;

/// Runs the steps of its release. It ignores errors.
#[skill(id = "released", tags = ["test"])]
struct Released {
    change: Change,
    effects: Effects,
    runs: Arc<Mutex<u32>>,
}

impl Released {
    async fn steps(&self, cx: &TaskContext<'_>, run: u32) -> AgentResult<String> {
        let steps = if run == 1 {
            &self.change.before
        } else {
            &self.change.after
        };
        let mut results = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let work = async {
                self.effects.lock().unwrap().push((run, place));
                Ok(format!("{run}.{place}"))
            };
            let result = match step.asked {
                Some(asked) => cx.step_of(step.name, &asked, work).await,
                None => cx.step(step.name, work).await,
            };
            results.push(result.unwrap_or_default());
        }
        Ok(results.join(" "))
    }
}

impl SkillHandler for Released {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String>> {
        let run = {
            let mut runs = self.runs.lock().unwrap();
            *runs += 1;
            *runs
        };
        let steps = self.steps(cx, run);
        let results = match self.change.around {
            Around::Nothing => steps.await,
            Around::Step => cx.step("around", steps).await,
            Around::Scope => cx.scope("around", steps).await,
        };
        OnRequestResult::done(results.unwrap_or_default())
    }
}

fn step(random: &mut Random) -> Step {
    let name = ["pay", "mail"][usize::try_from(random.below(2)).unwrap()];
    let asked = [None, Some(1), Some(2)][usize::try_from(random.below(3)).unwrap()];
    Step { name, asked }
}

fn change(random: &mut Random) -> Change {
    let before: Vec<Step> = (0..2 + random.below(4)).map(|_| step(random)).collect();
    let mut after = before.clone();
    let many = u64::try_from(before.len()).unwrap();
    let mut place = || usize::try_from(random.below(many)).unwrap();
    let (one, other) = (place(), place());
    match random.below(5) {
        0 => after.swap(one, other),
        1 => drop(after.remove(one)),
        2 => after.insert(one, step(random)),
        3 => after[one] = step(random),
        _ => after.push(step(random)),
    }
    let around = [Around::Nothing, Around::Step, Around::Scope];
    let around = around[usize::try_from(random.below(3)).unwrap()];
    Change {
        before,
        after,
        around,
    }
}

/// Deploys after so many stored steps; returns the reply and the effects.
async fn deploy(change: &Change, stored: usize) -> (Reply, Vec<(u32, usize)>) {
    let effects = Effects::default();
    let released = Released {
        change: change.clone(),
        effects: Arc::clone(&effects),
        runs: Arc::default(),
    };
    let agent = Agent::builder("agent").skill(released).build().unwrap();
    let mut client = SkillTest::new(&agent, "released");
    client.crash_after(u64::try_from(stored).unwrap());
    let reply = client.send("go").await.unwrap();
    let effects = effects.lock().unwrap().clone();
    (reply, effects)
}

#[test]
fn a_deployed_change_of_steps_never_takes_another_steps_result() {
    let (mut failed, mut went_on) = (0, 0);
    for seed in 1..=CHANGES {
        let mut random = Random::new(seed);
        let change = change(&mut random);
        for stored in 1..=change.before.len() {
            let (reply, effects) = runtime().block_on(deploy(&change, stored));
            let first = (0..stored).map(|place| (1, place));
            let place = format!("seed {seed}, {stored} stored steps: {change:?}");
            // A result that nobody asks for is a change too.
            if change.after.starts_with(&change.before[..stored]) {
                let second = (stored..change.after.len()).map(|place| (2, place));
                let expected: Vec<_> = first.clone().chain(second.clone()).collect();
                assert_eq!(effects, expected, "{place}");
                let texts = first.chain(second);
                let texts: Vec<_> = texts.map(|(run, place)| format!("{run}.{place}")).collect();
                let result = reply.artifact_text("released");
                assert_eq!(result.as_deref(), Some(&*texts.join(" ")), "{place}");
                went_on += 1;
            } else {
                assert_eq!(effects, first.collect::<Vec<_>>(), "{place}");
                assert_eq!(reply.error_code(), Some("STEP_CHANGED"), "{place}");
                assert_eq!(reply.state(), Some(TaskState::Failed), "{place}");
                failed += 1;
            }
        }
    }
    println!("replay: {failed} deployments fail the task, with {went_on} it goes on");
}

/// A worker whose author asks and instructs it differently in each release.
#[skill(id = "worker", tags = ["test"])]
struct Worker {
    releases: [(&'static str, &'static str); 2],
    runs: Mutex<usize>,
    paid: Arc<Mutex<Vec<String>>>,
}

/// Pays.
#[skill(id = "pay", tags = ["test"])]
struct Pay(Arc<Mutex<Vec<String>>>);

impl SkillHandler for Pay {
    type Input = Value;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Value,
    ) -> AgentResult<OnRequestResult<String>> {
        let pay = async {
            self.0.lock().unwrap().push(input["to"].to_string());
            Ok(format!("paid {}", input["to"]))
        };
        OnRequestResult::done(cx.step_of("charge", &input, pay).await?)
    }
}

impl SkillHandler for Worker {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String>> {
        let (instructions, asked) = {
            let mut runs = self.runs.lock().unwrap();
            let release = self.releases[(*runs).min(1)];
            *runs += 1;
            release
        };
        let pay = skill::Tool::new(Pay(Arc::clone(&self.paid))).trusted();
        let worker = LlmWorker::<String>::new(instructions).skills([pay]);
        let answer = worker.run(cx, asked).await;
        // A skill that goes on after every error.
        OnRequestResult::done(answer.unwrap_or_else(|error| error.to_string()))
    }
}

/// Deploys the second release after so many things; returns the reply and what was paid.
async fn redeploy(
    releases: [(&'static str, &'static str); 2],
    stored: u64,
) -> (Reply, Vec<String>) {
    let paid: Arc<Mutex<Vec<String>>> = Arc::default();
    let worker = Worker {
        releases,
        runs: Mutex::default(),
        paid: Arc::clone(&paid),
    };
    let agent = Agent::builder("agent").skill(worker).build().unwrap();
    let model = ScriptedModel::new()
        .tool_calls([("pay", json!({"to": "A"})), ("pay", json!({"to": "B"}))])
        .text("both are paid");
    let mut client = SkillTest::new(&agent, "worker");
    client.model(model.clone()).crash_after(stored);
    let reply = client.send("go").await.unwrap();
    let paid = paid.lock().unwrap().clone();
    (reply, paid)
}

#[test]
fn a_changed_prompt_goes_on_in_the_middle_of_a_turn() {
    for stored in 1..=6 {
        let releases = [("Pay.", "both"), ("Pay all of them.", "both")];
        let (reply, paid) = runtime().block_on(redeploy(releases, stored));
        let result = reply.artifact_text("worker");
        assert_eq!(result.as_deref(), Some("both are paid"), "{stored}");
        assert_eq!(paid, ["\"A\"", "\"B\""], "{stored}");
    }
}

#[test]
fn a_changed_input_of_a_worker_fails_in_the_middle_of_a_turn() {
    for stored in 1..=5 {
        let releases = [("Pay.", "both"), ("Pay.", "one")];
        let (reply, paid) = runtime().block_on(redeploy(releases, stored));
        assert_eq!(reply.error_code(), Some("STEP_CHANGED"), "{stored}");
        assert!(paid.len() <= 2, "{stored}: {paid:?}");
    }
}
