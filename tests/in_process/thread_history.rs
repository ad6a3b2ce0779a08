//! The thread of a context as a skill reads it, word by word.

use super::contexts::Kind;
use super::contexts::{DAY, HOUR, WEEK, answer, contexts, conversation, done, expired, ids, say};
use a2a_lambda::skill::{
    Agent, AgentDefinition, AgentResult, AuthHint, BuildError, Content, OnInputResult,
    OnRequestResult, Skill, SkillHandler, SkillMetadata, SkillSlot, TaskContext,
};
use a2a_lambda::task::{ContextId, PartContent};
use a2a_lambda_tests::dialect::{Dialect, Say, at};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::World;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::{advance, sleep};

per_dialect! {
    paused ALL:
    a_skill_reads_its_thread_once_and_oldest_message_first
    a_skill_reads_a_value_that_it_has_just_set
    credentials_are_not_part_of_the_thread
    a_context_that_reuses_an_expired_id_is_listed_and_lives_normally
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    a_context_id_derived_from_a_task_of_another_context_is_unknown
}

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// The thread that the skill `notes` reads, in a streaming or a plain call.
async fn shown(world: &World, dialect: Dialect, context: &str, streams: bool) -> String {
    if !streams {
        let task = done(world, dialect, "notes", "show", context).await;
        return answer(dialect, &task);
    }
    let say = Say::to("notes", "show").under("t:show").in_context(context);
    let text = world.call(&dialect.stream(&say)).await.text();
    let rest = text.split("|show").next().unwrap();
    let said = rest.rsplit('"').next().unwrap();
    format!("{said}|show")
}

async fn a_skill_reads_its_thread_once_and_oldest_message_first(dialect: Dialect) {
    for streams in [false, true] {
        let world = World::new().unwrap();
        let (context, asked) = conversation(&world, dialect, Kind::Own).await;
        advance(SECOND).await;
        done(&world, dialect, "notes", "add noted", &context).await;
        // Messages of the same caller in other contexts are not part of it.
        for other in ["", "mine:other"] {
            advance(SECOND).await;
            done(&world, dialect, "notes", "add elsewhere", other).await;
        }
        // The answer comes last, but has its place in the first task.
        advance(SECOND).await;
        let id = asked["id"].as_str().unwrap();
        let reply = world.call(&dialect.send(&Say::in_task(id, "blue"))).await;
        assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
        advance(SECOND).await;
        assert_eq!(
            shown(&world, dialect, &context, streams).await,
            "hi|which one?|blue|add noted|noted|show",
            "{dialect:?} streams {streams}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_reads_the_newest_hundred_messages_and_all_it_added() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    done(&world, dialect, "notes", "add noted", "mine:c").await;
    advance(SECOND).await;
    let asked = done(&world, dialect, "ask", "hi", "mine:c").await;
    let id = asked["id"].as_str().unwrap();
    for number in 0..60 {
        let message = format!("again-{number}");
        let again = dialect.send(&Say::in_task(id, "again").with_id(&message));
        assert_eq!(world.call(&again).await.status, 200);
    }
    advance(SECOND).await;
    let reported = shown(&world, dialect, "mine:c", false).await;
    let reported: Vec<&str> = reported.split('|').collect();
    let (first, reported) = reported.split_first().unwrap();
    assert_eq!(*first, "cut", "older messages are missing");
    assert_eq!(reported[0], "noted", "it is stored apart from the messages");
    let (said, noted): (Vec<&str>, Vec<&str>) = reported.iter().partition(|it| **it != "noted");
    assert_eq!((said.len(), noted.len()), (100, 1));
    assert_eq!(said[99], "show");
    assert_eq!(said[98], "which one now?");
}

async fn a_skill_reads_a_value_that_it_has_just_set(dialect: Dialect) {
    let world = World::new().unwrap();
    for orders in ["set k new get k", "set k newer get k"] {
        let task = done(&world, dialect, "notes", orders, "mine:c").await;
        let set = orders.split(' ').nth(2).unwrap();
        assert_eq!(answer(dialect, &task), set, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_expires_during_a_turn_is_read_and_kept() {
    let expected = "old";
    for order in ["get k", "set x 1"] {
        for silence in [HOUR - MILLISECOND, HOUR] {
            let world = World::new().unwrap();
            let dialect = Dialect::Rest10;
            done(&world, dialect, "notes", "set k old", "mine:c").await;
            let orders = format!("wait {order}");
            let say = Say::to("notes", &orders).in_context("mine:c");
            let live = world.open(&dialect.stream(&say)).await;
            // The thread cannot be renewed while the turn runs.
            world.store.refuse_threads(true);
            sleep(silence).await;
            world.gate.open();
            let text = live.finish().await.text();
            world.store.refuse_threads(false);
            let last = if order == "get k" {
                assert!(
                    text.contains(&format!("\"{expected}\"")),
                    "{silence:?} {text}"
                );
                continue;
            } else {
                done(&world, dialect, "notes", "get k", "mine:c").await
            };
            assert_eq!(answer(dialect, &last), expected, "{silence:?}");
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Waits;

impl SkillSlot for Waits {}

/// Asks for a sign-in, then returns the thread that it reads.
struct Vault;

impl Skill for Vault {
    const METADATA: SkillMetadata = SkillMetadata::new("vault", "Opens when signed in.", &["test"]);
}

async fn reported(cx: &mut TaskContext<'_>) -> AgentResult<String> {
    let thread = cx.thread().await?;
    let parts = thread.iter().flat_map(|message| &message.parts);
    let texts = parts.filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Ok(texts.collect::<Vec<&str>>().join("|"))
}

impl SkillHandler<Waits> for Vault {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<String, Waits>> {
        if input.first_text() == Some("show") {
            return OnRequestResult::done(reported(cx).await?);
        }
        Ok(OnRequestResult::AuthRequired {
            message: Content::from_text("sign in first"),
            slot: Waits,
            auth: AuthHint::default(),
        })
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: Waits,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Waits>> {
        OnInputResult::done(reported(cx).await?)
    }
}

fn vault(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("vault").skill(Vault).build()
}

async fn credentials_are_not_part_of_the_thread(dialect: Dialect) {
    let world = World::serving(vault, |_| ()).unwrap();
    let open = Say::to("vault", "open").in_context("mine:c");
    let asked = dialect.task(&world.call(&dialect.send(&open)).await);
    let id = asked["id"].as_str().unwrap();
    let signs_in = Say::in_task(id, "canary-password");
    let reply = world.call(&dialect.send(&signs_in)).await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "completed", "{}", reply.text());
    assert_eq!(answer(dialect, &task), "open|sign in first", "{dialect:?}");
    advance(SECOND).await;
    let task = done(&world, dialect, "vault", "show", "mine:c").await;
    let reported = answer(dialect, &task);
    assert_eq!(reported, "open|sign in first|show", "{dialect:?}");
}

/// The id of the context that is derived from a task id.
fn named_after(task: &str) -> String {
    let task = a2a_lambda::task::TaskId::parse(task).unwrap();
    ContextId::named_after(&task).unwrap().as_str().to_owned()
}

async fn a_context_id_derived_from_a_task_of_another_context_is_unknown(dialect: Dialect) {
    let world = World::new().unwrap();
    let task = done(&world, dialect, "echo", "hi", "mine:c").await;
    let made_up = named_after(task["id"].as_str().unwrap());
    expired(
        dialect,
        &say(&world, dialect, "echo", "more", &made_up).await,
    );
}

async fn a_context_that_reuses_an_expired_id_is_listed_and_lives_normally(dialect: Dialect) {
    let world = World::new().unwrap();
    done(&world, dialect, "notes", "set k v", "mine:c").await;
    advance(DAY).await;
    // The sweep leaves a tombstone, which DynamoDB has not deleted a week later.
    world.sweep_threads().await.unwrap();
    advance(WEEK).await;
    done(&world, dialect, "notes", "set k v", "mine:c").await;
    let page = contexts(&world, "", "local:local").await;
    assert_eq!(ids(&page), ["mine:c"], "{dialect:?} {page}");
    advance(HOUR * 2).await;
    let task = done(&world, dialect, "echo", "more", "mine:c").await;
    let reset = at(&task, "/metadata/a2a-lambda~1contextReset");
    assert_eq!(reset, true, "{dialect:?}: it was idle, not new");
    advance(DAY).await;
    expired(
        dialect,
        &say(&world, dialect, "echo", "late", "mine:c").await,
    );
}
