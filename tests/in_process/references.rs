//! The tasks that a message refers to, as its skill sees them.

use a2a_lambda::prelude::*;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::World;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

const DIALECT: Dialect = Dialect::Rest10;
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// The answer of `skill` to a message that refers to these tasks.
async fn refers(world: &World, skill: &str, named: &[&str]) -> String {
    let mut params = DIALECT.say(&Say::to(skill, "look"));
    params["message"]["referenceTaskIds"] = json!(named);
    let reply = world.call(&DIALECT.request(Op::Send, "", &params)).await;
    let task = DIALECT.task(&reply);
    DIALECT.words(&task["artifacts"][0])
}

async fn sent(world: &World, request: &a2a_lambda_tests::world::Request) -> String {
    let task: Value = DIALECT.task(&world.call(request).await);
    task["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn unused_references_are_not_loaded() {
    let world = World::new().unwrap();
    let earlier = sent(&world, &DIALECT.send(&Say::to("echo", "hi"))).await;
    let (loads, writes) = (world.store.loads(), world.store.writes());
    refers(&world, "echo", &[&earlier]).await;
    assert_eq!(world.store.loads() - loads, 0);
    assert_eq!(world.store.writes() - writes, 1);
}

#[tokio::test(start_paused = true)]
async fn references_are_loaded_once_per_turn_and_never_written() {
    let world = World::new().unwrap();
    let earlier = sent(&world, &DIALECT.send(&Say::to("echo", "hi"))).await;
    let (loads, writes) = (world.store.loads(), world.store.writes());
    // The skill asks for the references it may see and for the unresolved ones.
    let said = refers(&world, "refers", &[&earlier, "nothing", &earlier]).await;
    assert_eq!(said, format!("shown: {earlier}; not: nothing"));
    assert_eq!(world.store.loads() - loads, 2, "each id is loaded once");
    assert_eq!(world.store.writes() - writes, 1, "the skill's own task");
}

#[tokio::test(start_paused = true)]
async fn an_expired_reference_is_unresolved_before_and_after_clean_up() {
    let world = World::new().unwrap();
    let earlier = sent(&world, &DIALECT.send(&Say::to("echo", "hi"))).await;
    let there = format!("shown: {earlier}; not: ");
    let gone = format!("shown: ; not: {earlier}");
    advance(MONTH - Duration::from_millis(1)).await;
    assert_eq!(refers(&world, "refers", &[&earlier]).await, there);
    advance(Duration::from_millis(1)).await;
    assert_eq!(refers(&world, "refers", &[&earlier]).await, gone);
    world.clean_up();
    assert_eq!(refers(&world, "refers", &[&earlier]).await, gone);
}

#[tokio::test(start_paused = true)]
async fn references_before_the_last_sixteen_are_unresolved() {
    let world = World::new().unwrap();
    let mut ids = Vec::new();
    for _ in 0..18 {
        ids.push(sent(&world, &DIALECT.send(&Say::to("echo", "hi"))).await);
    }
    let named: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (others, shown) = named.split_at(2);
    let said = refers(&world, "refers", &named).await;
    let expected = format!("shown: {}; not: {}", shown.join(" "), others.join(" "));
    assert_eq!(said, expected);
}

/// Returns the size of the artifacts of referenced tasks. Without references it
/// repeats its input.
#[skill(id = "quotes", tags = ["test"])]
async fn quotes(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<String> {
    let shown = cx.references().await?.iter();
    let made = shown.flat_map(|task| &task.artifacts);
    let made: Vec<String> = made.filter_map(|artifact| artifact.text()).collect();
    if made.is_empty() {
        return Ok(input.text()?.repeat(1_000));
    }
    Ok(format!("{} long", made.concat().len()))
}

fn quoting(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("quotes").skill(quotes).build()
}

#[tokio::test(start_paused = true)]
async fn a_skill_reads_the_artifacts_of_referenced_tasks() {
    let world = World::serving(quoting, |_| ()).unwrap();
    let one = sent(&world, &DIALECT.send(&Say::to("quotes", "one"))).await;
    let more = sent(&world, &DIALECT.send(&Say::to("quotes", "more"))).await;
    assert_eq!(refers(&world, "quotes", &[&one]).await, "3000 long");
    let said = refers(&world, "quotes", &[&more, &one]).await;
    assert_eq!(said, "7000 long");
}
