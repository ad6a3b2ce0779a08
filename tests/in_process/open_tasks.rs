//! An open task keeps its context, and what is stored beside it, until it expires.

use super::contexts::{
    DAY, HOUR, KINDS, RESET, answer, contexts, conversation, done, ended, expired, ids, ours, say,
};
use crate::text_clients::works;
use a2a_lambda::settings::Settings;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester;
use a2a_lambda_tests::world::{Reply, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_question_is_answered_after_three_days
    an_open_task_is_reachable_until_it_expires
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// What sweeps and the TTL of the table remove by now.
async fn remove_expired(world: &World) {
    world.sweep_threads().await.unwrap();
    world.clean_up();
}

async fn answered(world: &World, dialect: Dialect, task: &str) -> Reply {
    world.call(&dialect.send(&Say::in_task(task, "blue"))).await
}

async fn a_question_is_answered_after_three_days(dialect: Dialect) {
    each_row_async(KINDS, async |kind| {
        for removed in [false, true] {
            let world = World::new().unwrap();
            let (context, asked) = conversation(&world, dialect, kind).await;
            let id = asked["id"].as_str().unwrap();
            done(&world, dialect, "notes", "set k v", &context).await;
            for _ in 0..72 {
                advance(HOUR).await;
                if removed {
                    remove_expired(&world).await;
                }
            }
            let reply = answered(&world, dialect, id).await;
            let task = dialect.task(&reply);
            let what = format!("{dialect:?} {kind:?} {removed} {}", reply.text());
            assert_eq!(dialect.state(&task), "completed", "{what}");
            assert_eq!(at(&task, RESET), &Value::Null, "{what}");
            let task = done(&world, dialect, "notes", "get k", &context).await;
            assert_eq!(answer(dialect, &task), "v", "{what}");
        }
    })
    .await;
}

/// Whether the owner of an open task reaches it in each way: by its id, by the lists of tasks and
/// contexts, and by a message to its context.
async fn reaches(world: &World, dialect: Dialect, context: &str, id: &str) {
    let what = format!("{dialect:?} {context} {:?}", world.clock);
    let get = world.call(&dialect.of_task(Op::Get, id)).await;
    assert_eq!(
        dialect.state(&dialect.task(&get)),
        "input-required",
        "{what}"
    );
    let page = contexts(world, "", "local:local").await;
    assert!(ids(&page).contains(&context), "{what} {page}");
    if dialect.is_v10() {
        let of = json!({ "contextId": context });
        let list = world.call(&dialect.request(Op::List, "", &of)).await;
        assert!(list.text().contains(id), "{what} {}", list.text());
    }
}

async fn an_open_task_is_reachable_until_it_expires(dialect: Dialect) {
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let (context, asked) = conversation(&world, dialect, kind).await;
        let id = asked["id"].as_str().unwrap();
        for day in 0..30 {
            reaches(&world, dialect, &context, id).await;
            advance(DAY - SECOND).await;
            remove_expired(&world).await;
            advance(SECOND).await;
            if day == 20 {
                // A message for a new task of the context is accepted too.
                done(&world, dialect, "echo", "more", &context).await;
            }
        }
        let get = world.call(&dialect.of_task(Op::Get, id)).await;
        assert!(!get.text().contains("input-required"), "{}", get.text());
    })
    .await;
}

/// The release that keeps tasks for `task`, and contexts for `thread`.
fn kept_for(world: &World, task: Duration, thread: Duration) -> World {
    let lifetimes = |settings: &mut Settings| {
        settings.policy.task_ttl = task;
        settings.policy.thread_ttl = thread;
        settings.policy.state_ttl = thread;
    };
    world.redeployed(tester::agent, lifetimes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_raised_or_lowered_lifetime_leaves_open_tasks_in_their_contexts() {
    let dialect = Dialect::Rest10;
    each_row_async(KINDS, async |kind| {
        let lives = [MINUTE / 2, HOUR, 2 * MINUTE, DAY];
        let pairs = lives
            .into_iter()
            .flat_map(|it| lives.map(|other| (it, other)));
        for (n, (before, after)) in pairs.clone().chain(pairs).enumerate() {
            // The thread of the second half is too young to be written again.
            let thread = if n < 16 { MINUTE / 3 } else { HOUR };
            let first = kept_for(&World::new().unwrap(), before, thread);
            let (context, asked) = conversation(&first, dialect, kind).await;
            let id = asked["id"].as_str().unwrap();
            done(&first, dialect, "notes", "set k v", &context).await;
            advance(SECOND).await;
            let second = kept_for(&first, after, thread);
            let again = Say::in_task(id, "again");
            let task = dialect.task(&second.call(&dialect.send(&again)).await);
            assert_eq!(dialect.state(&task), "input-required");
            advance(after - 2 * SECOND).await;
            remove_expired(&second).await;
            reaches(&second, dialect, &context, id).await;
            assert_eq!(answered(&second, dialect, id).await.status, 200);
            let task = done(&second, dialect, "notes", "get k", &context).await;
            assert_eq!(answer(dialect, &task), "v", "{kind:?} {before:?} {after:?}");
            let path = format!("contexts/{context}");
            assert_eq!(second.call(&ours("DELETE", &path)).await.status, 200);
            let get = second.call(&dialect.of_task(Op::Get, id)).await;
            assert_eq!(get.status, 404, "it survives the deletion of its context");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_old_question_does_not_keep_values_after_its_answer() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let context = "mine:c";
    let asked = done(&world, dialect, "ask", "hi", context).await;
    done(&world, dialect, "notes", "set k v", context).await;
    for _ in 0..50 {
        advance(HOUR).await;
        let swept = world.sweep_threads().await.unwrap();
        assert_eq!(swept.states_cleaned, 0);
    }
    let mut looked = 0;
    for _ in 0..20 {
        advance(HOUR).await;
        looked += world.sweep_threads().await.unwrap().looked_at;
    }
    assert!(
        looked <= 1,
        "it is looked at once a day, not {looked} times"
    );
    answered(&world, dialect, asked["id"].as_str().unwrap()).await;
    let mut cleaned = 0;
    for _ in 0..26 {
        advance(HOUR).await;
        cleaned += world.sweep_threads().await.unwrap().states_cleaned;
    }
    assert_eq!(cleaned, 1);
    expired(
        dialect,
        &say(&world, dialect, "echo", "late", context).await,
    );
}

#[tokio::test(start_paused = true)]
async fn a_context_without_an_open_task_is_not_asked_twice() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    each_row_async(KINDS, async |kind| {
        let context = ended(&world, dialect, kind).await;
        advance(DAY).await;
        let reads = world.store.list_reads();
        expired(
            dialect,
            &say(&world, dialect, "echo", "late", &context).await,
        );
        assert_eq!(world.store.list_reads() - reads, 1, "{kind:?}");
        advance(DAY * 9).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_a_longer_lifetime_keeps_the_values_for_its_question() {
    let dialect = Dialect::Rest10;
    let first = kept_for(&World::new().unwrap(), MINUTE / 2, HOUR);
    let task = done(&first, dialect, "notes", "set k v", "").await;
    let context = dialect.context(&task);
    let mut params = dialect.say(&Say::to("ask", "hi").in_context(&context));
    params["configuration"] = json!({"returnImmediately": true});
    let sent = first.call(&dialect.request(Op::Send, "", &params)).await;
    let id = dialect.task(&sent)["id"].as_str().unwrap().to_owned();
    let second = kept_for(&first, DAY, HOUR);
    works(&second).await;
    advance(DAY - MINUTE).await;
    remove_expired(&second).await;
    assert_eq!(answered(&second, dialect, &id).await.status, 200);
    let task = done(&second, dialect, "notes", "get k", &context).await;
    assert_eq!(answer(dialect, &task), "v");
}
