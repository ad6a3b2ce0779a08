//! When contexts expire, and what remains of them.

use super::contexts::{DAY, HOUR, KINDS, Kind, RESET, WEEK};
use super::contexts::{answer, contexts, conversation, done, ended, expired, ids, ours, say};
use a2a_lambda::engine::ThreadSweepReport;
use a2a_lambda::settings::Settings;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{BUSY, Fault};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Live, World};
use serde_json::Value;
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_context_accepts_messages_until_the_millisecond_it_expires
    a_context_of_one_task_also_reports_an_expired_state
    a_new_context_has_nothing_of_an_expired_one_with_its_id
    an_expired_context_gives_the_same_error_before_and_after_clean_up
}

per_dialect! {
    paused [Rpc01, Path01]:
    a_task_that_reuses_a_deleted_id_also_adds_to_the_thread
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// A stream of a task that runs until the gate opens, and the task's context.
async fn at_work(world: &World, dialect: Dialect, context: &str) -> (Live, String) {
    let mut say = Say::to("slow", "go");
    if !context.is_empty() {
        say = say.in_context(context);
    }
    let mut live = world.open(&dialect.stream(&say)).await;
    let first = live.next().await.unwrap().unwrap().data;
    let context = at(&first, "/task/contextId").as_str().unwrap().to_owned();
    (live, context)
}

#[tokio::test(start_paused = true)]
async fn an_expired_server_made_context_id_is_never_new() {
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let dialect = Dialect::Rest10;
        let context = ended(&world, dialect, kind).await;
        // DynamoDB deletes expired items late: nothing is removed in all this time.
        for wait in [DAY, WEEK, DAY * 60] {
            advance(wait).await;
            let reply = say(&world, dialect, "echo", "more", &context).await;
            if kind == Kind::Own && wait > DAY {
                assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
            } else {
                expired(dialect, &reply);
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_context_does_not_expire_while_its_first_task_runs() {
    let life = Duration::from_secs(600);
    let brief = |settings: &mut Settings| {
        settings.policy.thread_ttl = life;
        settings.policy.state_ttl = life;
    };
    let world = World::with(brief).unwrap();
    let dialect = Dialect::Rest10;
    let (live, context) = at_work(&world, dialect, "").await;
    // The context has no stored thread, only the record of that task.
    tokio::time::sleep(life * 3).await;
    let page = contexts(&world, "", "local:local").await;
    assert_eq!(ids(&page), [&context]);
    let task = done(&world, dialect, "echo", "meanwhile", &context).await;
    assert_eq!(at(&task, RESET), &Value::Null, "it was never idle");
    world.gate.open();
    live.finish().await;
}

async fn a_context_of_one_task_also_reports_an_expired_state(dialect: Dialect) {
    let silences = [
        (HOUR - MILLISECOND, false),
        (HOUR, true),
        (HOUR + MILLISECOND, true),
    ];
    for (silence, gone) in silences {
        let world = World::new().unwrap();
        let task = done(&world, dialect, "notes", "set k v", "").await;
        let context = dialect.context(&task);
        advance(silence).await;
        let task = done(&world, dialect, "echo", "more", &context).await;
        assert_eq!(dialect.context(&task), context);
        let said = at(&task, RESET) == &Value::Bool(true);
        assert_eq!(said, gone, "{dialect:?} {silence:?} {task}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_an_expired_context_is_refused() {
    each_row_async(KINDS, async |kind| {
        for (wait, there) in [(DAY - MILLISECOND, true), (DAY, false)] {
            let world = World::new().unwrap();
            let context = ended(&world, Dialect::Rest10, kind).await;
            advance(wait).await;
            let path = format!("contexts/{context}");
            let reply = world.call(&ours("DELETE", &path)).await;
            if there {
                assert_eq!(reply.status, 200, "{kind:?} {}", reply.text());
                continue;
            }
            expired(Dialect::Rest10, &reply);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_keeps_tasks_newer_than_the_running_one() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let (live, context) = at_work(&world, dialect, "mine:c").await;
    advance(Duration::from_secs(1)).await;
    let later = done(&world, dialect, "notes", "set k v", &context).await;
    let path = format!("contexts/{context}");
    let reply = world.call(&ours("DELETE", &path)).await;
    let busy = Fault::new(dialect, BUSY);
    assert_eq!(busy.check(&reply), Ok(()), "{}", reply.text());
    let get = dialect.of_task(Op::Get, later["id"].as_str().unwrap());
    assert_eq!(world.call(&get).await.status, 200, "nothing was deleted");
    let task = done(&world, dialect, "notes", "get k", &context).await;
    assert_eq!(answer(dialect, &task), "v");
    world.gate.open();
    live.finish().await;
}

async fn a_task_that_reuses_a_deleted_id_also_adds_to_the_thread(dialect: Dialect) {
    let world = World::new().unwrap();
    let first = Say::to("notes", "add one")
        .under("t:same")
        .in_context("mine:c");
    world.call(&dialect.send(&first)).await;
    let deleted = world.call(&ours("DELETE", "tasks/t:same")).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    let second = Say::to("notes", "add two")
        .under("t:same")
        .in_context("mine:c");
    world.call(&dialect.send(&second)).await;
    let task = done(&world, dialect, "notes", "show", "mine:c").await;
    let thread = answer(dialect, &task);
    let has = |text| thread.split('|').filter(|it| *it == text).count();
    assert_eq!((has("one"), has("two")), (1, 1), "{thread}");
}

async fn a_new_context_has_nothing_of_an_expired_one_with_its_id(dialect: Dialect) {
    let world = World::new().unwrap();
    let orders = "set old 1 add noted";
    done(&world, dialect, "notes", orders, "mine:c").await;
    // DynamoDB deletes expired items late: all of them are still stored.
    advance(DAY + WEEK).await;
    let now = done(&world, dialect, "notes", "set new 2", "mine:c").await;
    assert_eq!(at(&now, RESET), &Value::Null, "it is new, not reset");
    for (order, expected) in [("get new", "2"), ("get old", "nothing")] {
        let task = done(&world, dialect, "notes", order, "mine:c").await;
        assert_eq!(answer(dialect, &task), expected, "{dialect:?} {order}");
    }
    let task = done(&world, dialect, "notes", "show", "mine:c").await;
    let said = answer(dialect, &task);
    assert!(
        said.contains("get new") && !said.contains("noted"),
        "{said}"
    );
    let page = contexts(&world, "", "local:local").await;
    let shown = &page["contexts"][0];
    assert_eq!(shown["createdAt"], shown["updatedAt"], "{page}");
}

async fn a_context_accepts_messages_until_the_millisecond_it_expires(dialect: Dialect) {
    each_row_async(KINDS, async |kind| {
        let rows = [(-1_i64, true), (0, false), (1, false)];
        each_row_async(rows, async |(late, there)| {
            let world = World::new().unwrap();
            let context = ended(&world, dialect, kind).await;
            let wait = i64::try_from(DAY.as_millis()).unwrap() + late;
            advance(Duration::from_millis(wait.unsigned_abs())).await;
            let reply = say(&world, dialect, "echo", "more", &context).await;
            if there {
                let task = dialect.task(&reply);
                assert_eq!(dialect.state(&task), "completed", "{dialect:?} {kind:?}");
            } else {
                expired(dialect, &reply);
            }
        })
        .await;
    })
    .await;
}

async fn an_expired_context_gives_the_same_error_before_and_after_clean_up(dialect: Dialect) {
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let context = ended(&world, dialect, kind).await;
        advance(DAY + Duration::from_secs(1)).await;
        let writes = world.store.writes();
        let before = say(&world, dialect, "echo", "more", &context).await;
        expired(dialect, &before);
        let stream = dialect.stream(&Say::to("echo", "more").in_context(&context));
        let opened = world.call(&stream).await;
        expired(dialect, &opened);
        world.clean_up();
        let after = say(&world, dialect, "echo", "more", &context).await;
        assert_eq!(before.body, after.body, "{dialect:?} {kind:?}");
        let after = world.call(&stream).await;
        assert_eq!(opened.body, after.body, "{dialect:?} {kind:?}");
        assert_eq!(
            world.store.writes(),
            writes,
            "a refused message writes nothing"
        );
        // With its tombstone gone, a client-made id is new; a server-made id stays refused.
        advance(DAY * 31).await;
        world.clean_up();
        let reply = say(&world, dialect, "echo", "more", &context).await;
        if kind == Kind::Own {
            let task = dialect.task(&reply);
            assert_eq!(dialect.state(&task), "completed", "{}", reply.text());
        } else {
            assert_eq!(before.body, reply.body, "{dialect:?} {kind:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_made_context_id_is_new_after_its_tombstone_expires() {
    for cleaned in [false, true] {
        each_row_async(Dialect::ALL, async |dialect| {
            let world = World::new().unwrap();
            let orders = "set k v add noted";
            let task = done(&world, dialect, "notes", orders, "mine:c").await;
            advance(DAY + WEEK - Duration::from_millis(1)).await;
            expired(
                dialect,
                &say(&world, dialect, "echo", "more", "mine:c").await,
            );
            advance(Duration::from_millis(1)).await;
            if cleaned {
                world.clean_up();
            }
            let again = done(&world, dialect, "notes", "get k", "mine:c").await;
            assert_eq!(answer(dialect, &again), "nothing");
            assert_eq!(at(&again, RESET), &Value::Null, "it is new, not reset");
            // The new thread has only the messages since then.
            let again = done(&world, dialect, "notes", "show", "mine:c").await;
            assert_eq!(answer(dialect, &again), "get k|show");
            assert_ne!(again["id"], task["id"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn activity_keeps_a_context_alive() {
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let dialect = Dialect::Rest10;
        let context = ended(&world, dialect, kind).await;
        for _ in 0..5 {
            advance(DAY * 9 / 10).await;
            done(&world, dialect, "echo", "still here", &context).await;
        }
        advance(DAY).await;
        expired(
            dialect,
            &say(&world, dialect, "echo", "more", &context).await,
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_running_task_keeps_its_context_alive() {
    for kind in KINDS {
        let life = Duration::from_secs(600);
        let brief = |settings: &mut Settings| {
            settings.policy.thread_ttl = life;
            settings.policy.state_ttl = life;
        };
        let world = World::with(brief).unwrap();
        let dialect = Dialect::Rest10;
        let (context, _) = conversation(&world, dialect, kind).await;
        let slow = dialect.stream(&Say::to("slow", "go").in_context(&context));
        let live = world.open(&slow).await;
        // This turn has no deadline: its heartbeat continues.
        tokio::time::sleep(life * 3).await;
        done(&world, dialect, "echo", "meanwhile", &context).await;
        tokio::time::sleep(life * 3).await;
        world.gate.open();
        live.finish().await;
        tokio::time::sleep(life * 9 / 10).await;
        done(&world, dialect, "echo", "after it", &context).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_sweep_removes_expired_items_and_changes_no_response() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    done(&world, dialect, "notes", "set k v", "mine:c").await;
    advance(HOUR - Duration::from_millis(1)).await;
    assert_eq!(
        world.sweep_threads().await.unwrap(),
        ThreadSweepReport::default()
    );
    // The index records only the hour of the expiry.
    advance(HOUR + Duration::from_millis(1)).await;
    let swept = world.sweep_threads().await.unwrap();
    assert_eq!((swept.looked_at, swept.states_cleaned), (1, 1));
    assert_eq!(
        world.sweep_threads().await.unwrap(),
        ThreadSweepReport::default()
    );
    let task = done(&world, dialect, "notes", "get k", "mine:c").await;
    assert_eq!(answer(dialect, &task), "nothing");
    assert_eq!(at(&task, RESET), &Value::Bool(true));

    advance(DAY).await;
    let before = say(&world, dialect, "echo", "more", "mine:c").await;
    let swept = world.sweep_threads().await.unwrap();
    assert_eq!(
        swept,
        ThreadSweepReport::default(),
        "its expiry is not indexed"
    );
    world.clean_up();
    let after = say(&world, dialect, "echo", "more", "mine:c").await;
    expired(dialect, &after);
    assert_eq!(before.body, after.body);
    advance(WEEK).await;
    done(&world, dialect, "echo", "anew", "mine:c").await;
}
