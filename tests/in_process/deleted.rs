//! Deleted conversations: what the call could not see, what came between, and what
//! begins under the same id.

use super::contexts::{DAY, HOUR, KINDS, Kind, RESET, WEEK};
use super::contexts::{answer, contexts, conversation, done, expired, ids, ours, say};
use a2a_lambda::engine::ThreadSweep;
use a2a_lambda::store::{ReadThreads as _, ThreadStatus, WriteTasks as _};
use a2a_lambda::task::{ContextId, Owner, Subject, TenantId};
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{BUSY, Fault, NOT_FOUND, UNAVAILABLE};
use a2a_lambda_tests::world::{Reply, World};
use serde_json::Value;
use std::time::Duration;
use tokio::time::advance;

const DIALECT: Dialect = Dialect::Rest10;
const MINUTE: Duration = Duration::from_secs(60);
const MILLISECOND: Duration = Duration::from_millis(1);
/// From then on nothing of a deletion can be hidden.
const SETTLED: Duration = Duration::from_secs(20 * 60);

fn caller() -> Owner {
    Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    }
}

async fn delete(world: &World, context: &str) -> Reply {
    world
        .call(&ours("DELETE", &format!("contexts/{context}")))
        .await
}

async fn deleted(world: &World, context: &str) {
    let reply = delete(world, context).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

async fn is_there(world: &World, task: &Value) -> bool {
    let get = DIALECT.of_task(Op::Get, task["id"].as_str().unwrap());
    let reply = world.call(&get).await;
    let gone = Fault::new(DIALECT, NOT_FOUND).check(&reply);
    assert!(reply.status == 200 || gone == Ok(()), "{}", reply.text());
    reply.status == 200
}

/// How many tasks are stored of a conversation, whoever sees them.
async fn stored(world: &World, context: &str) -> usize {
    let context = ContextId::parse(context).unwrap();
    let memory = world.store.memory();
    let found = memory.tasks_in(&caller(), &context, None, 1000).await;
    found.unwrap().0.len()
}

/// What stands of its thread.
async fn thread(world: &World, context: &str) -> Option<ThreadStatus> {
    let context = ContextId::parse(context).unwrap();
    let found = world.store.memory().load_thread(&caller(), &context).await;
    found.unwrap().map(|thread| thread.status)
}

async fn shown(world: &World, context: &str) -> String {
    answer(
        DIALECT,
        &done(world, DIALECT, "notes", "show", context).await,
    )
}

/// What a sweep removed: tasks and threads.
async fn sweep(world: &World) -> (usize, usize) {
    let swept = world.sweep_threads().await.unwrap();
    (swept.tasks_removed, swept.threads_removed)
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_deleted_conversation_begins_another_one_in_the_same_millisecond() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let question = done(&world, dialect, "ask", "hi", "mine:c").await;
        done(&world, dialect, "notes", "set k v add noted", "mine:c").await;
        for round in 1..=3 {
            deleted(&world, "mine:c").await;
            let get = dialect.of_task(Op::Get, question["id"].as_str().unwrap());
            let gone = Fault::new(dialect, NOT_FOUND).check(&world.call(&get).await);
            assert_eq!(gone, Ok(()), "{dialect:?}");
            expired(DIALECT, &delete(&world, "mine:c").await);
            let task = done(&world, dialect, "notes", "get k", "mine:c").await;
            assert_eq!(answer(dialect, &task), "nothing", "{dialect:?} {round}");
            assert_eq!(at(&task, RESET), &Value::Null, "it is new, not reset");
            done(&world, dialect, "notes", "set k v", "mine:c").await;
            let task = done(&world, dialect, "notes", "show", "mine:c").await;
            // Of one moment, in no order.
            let thread = answer(dialect, &task);
            let mut said: Vec<&str> = thread.split('|').collect();
            said.sort_unstable();
            assert_eq!(said, ["get k", "set k v", "show"], "{dialect:?}");
            let page = contexts(&world, "", "local:local").await;
            assert_eq!(ids(&page), ["mine:c"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_list_did_not_show_is_of_no_later_conversation_and_goes_with_the_sweep() {
    for kind in KINDS {
        let world = World::new().unwrap();
        let (context, question) = conversation(&world, DIALECT, kind).await;
        world.store.memory().lag_index();
        let unseen = done(&world, DIALECT, "ask", "unseen", &context).await;
        deleted(&world, &context).await;
        // The first task of a context of ours is known by its name.
        assert!(!is_there(&world, &question).await, "{kind:?}");
        assert!(is_there(&world, &unseen).await, "the index lags");
        world.store.memory().catch_up_index();
        let id = unseen["id"].as_str().unwrap();
        let late = world.call(&DIALECT.send(&Say::in_task(id, "blue"))).await;
        expired(DIALECT, &late);
        let page = contexts(&world, "", "local:local").await;
        assert_eq!(ids(&page), Vec::<&str>::new());
        let again = say(&world, DIALECT, "notes", "set k v", &context).await;
        let own = kind == Kind::Own;
        if own {
            assert_eq!(again.status, 200, "{}", again.text());
            assert_eq!(shown(&world, &context).await, "set k v|show");
            let late = world.call(&DIALECT.send(&Say::in_task(id, "blue"))).await;
            expired(DIALECT, &late);
        } else {
            expired(DIALECT, &again);
        }

        advance(SETTLED - MILLISECOND).await;
        assert_eq!(world.sweep_threads().await.unwrap(), ThreadSweep::default());
        assert!(is_there(&world, &unseen).await);
        advance(MILLISECOND).await;
        assert_eq!(sweep(&world).await, (1, 1), "{kind:?}");
        assert!(!is_there(&world, &unseen).await);
        assert_eq!(world.sweep_threads().await.unwrap(), ThreadSweep::default());
        let left = thread(&world, &context).await;
        assert_eq!(left, own.then_some(ThreadStatus::Active), "{kind:?}");
        if own {
            let task = done(&world, DIALECT, "notes", "get k", &context).await;
            assert_eq!(answer(DIALECT, &task), "v");
            // Its own end is noted as that of any other.
            advance(DAY).await;
            let swept = world.sweep_threads().await.unwrap();
            assert_eq!((swept.threads_expired, swept.threads_removed), (1, 0));
        } else {
            expired(DIALECT, &say(&world, DIALECT, "echo", "hi", &context).await);
            expired(DIALECT, &delete(&world, &context).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_of_one_task_that_no_list_shows_yet_is_deleted() {
    let world = World::new().unwrap();
    world.store.memory().lag_index();
    let opened = world.call(&DIALECT.send(&Say::to("ask", "hi"))).await;
    let task = DIALECT.task(&opened);
    let context = task["contextId"].as_str().unwrap();
    assert_eq!(
        thread(&world, context).await,
        None,
        "its task stands for it"
    );
    deleted(&world, context).await;
    assert!(!is_there(&world, &task).await);
    expired(DIALECT, &say(&world, DIALECT, "echo", "hi", context).await);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_saw_no_task_at_all_is_one_all_the_same() {
    let world = World::new().unwrap();
    let task = done(&world, DIALECT, "notes", "set k v", "mine:c").await;
    world.store.lose_lists(true);
    deleted(&world, "mine:c").await;
    assert!(is_there(&world, &task).await, "the index lags");
    let again = done(&world, DIALECT, "notes", "get k", "mine:c").await;
    assert_eq!(answer(DIALECT, &again), "nothing");
    world.store.lose_lists(false);
    assert_eq!(shown(&world, "mine:c").await, "get k|show");
    // Of the next deletion, both conversations are past.
    deleted(&world, "mine:c").await;
    assert_eq!(stored(&world, "mine:c").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_under_way_ends_and_leaves_nothing_in_what_was_deleted_or_began_since() {
    for anew in [false, true] {
        for words in ["wait set k old add old", "wait add old"] {
            let world = World::new().unwrap();
            done(&world, DIALECT, "notes", "set k before", "mine:c").await;
            world.store.memory().lag_index();
            let request = DIALECT.stream(&Say::to("notes", words).in_context("mine:c"));
            let mut live = world.open(&request).await;
            let first = live.next().await.unwrap().unwrap().data;
            let working = at(&first, "/task").clone();
            deleted(&world, "mine:c").await;
            if anew {
                done(&world, DIALECT, "notes", "set k new", "mine:c").await;
            }
            world.store.memory().catch_up_index();
            // Another deletion leaves it alone: it is of no conversation that stands.
            world.gate.open();
            let rest = live.finish().await.text();
            assert!(rest.contains("TASK_STATE_COMPLETED"), "{rest}");
            assert!(
                is_there(&world, &working).await,
                "it has ended as any other"
            );
            let status = if anew {
                ThreadStatus::Active
            } else {
                ThreadStatus::Cleared
            };
            assert_eq!(thread(&world, "mine:c").await, Some(status), "{words}");
            let value = done(&world, DIALECT, "notes", "get k", "mine:c").await;
            let expected = if anew { "new" } else { "nothing" };
            assert_eq!(answer(DIALECT, &value), expected, "{words}");
            let all = shown(&world, "mine:c").await;
            assert!(!all.contains("old") && !all.contains("before"), "{all}");
            advance(SETTLED).await;
            assert_eq!(sweep(&world).await, (1, 1));
            assert!(!is_there(&world, &working).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_turn_neither_revives_its_deleted_conversation_nor_keeps_another_alive() {
    for anew in [false, true] {
        let world = World::new().unwrap();
        done(&world, DIALECT, "echo", "hi", "mine:c").await;
        world.store.memory().lag_index();
        let slow = DIALECT.stream(&Say::to("slow", "go").in_context("mine:c"));
        let live = world.open(&slow).await;
        deleted(&world, "mine:c").await;
        if anew {
            done(&world, DIALECT, "echo", "anew", "mine:c").await;
        }
        world.store.memory().catch_up_index();
        // It beats on, past the sweep and the end of every conversation.
        for _ in 0..30 {
            tokio::time::sleep(HOUR).await;
            let (tasks, _) = sweep(&world).await;
            assert_eq!(tasks, 0, "it is worked on");
        }
        assert_eq!(
            ids(&contexts(&world, "", "local:local").await),
            Vec::<&str>::new()
        );
        if anew {
            expired(
                DIALECT,
                &say(&world, DIALECT, "echo", "late", "mine:c").await,
            );
        } else {
            let left = thread(&world, "mine:c").await;
            assert_eq!(left, Some(ThreadStatus::Cleared), "it is still known");
        }
        world.gate.open();
        live.finish().await;
        if !anew {
            advance(SETTLED).await;
            assert_eq!(sweep(&world).await, (1, 1));
            assert_eq!(stored(&world, "mine:c").await, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_nobody_sees_goes_with_its_conversation() {
    for stands in [true, false] {
        let world = World::new().unwrap();
        if stands {
            done(&world, DIALECT, "echo", "hi", "mine:c").await;
        }
        let greet = DIALECT
            .send(&Say::to("greet", "hi").in_context("mine:c"))
            .header("idempotency-key", "key 1");
        let first = world.call(&greet).await;
        assert_eq!(first.status, 200, "{}", first.text());
        assert_eq!(stored(&world, "mine:c").await, 1 + usize::from(stands));
        for _ in 0..2 {
            deleted(&world, "mine:c").await;
            assert_eq!(stored(&world, "mine:c").await, 0, "{stands}");
            expired(DIALECT, &delete(&world, "mine:c").await);
            // The key is free: the reply is made anew.
            let again = world.call(&greet).await;
            let id = |reply: &Reply| DIALECT.result(reply)["message"]["messageId"].clone();
            assert_ne!(id(&first), id(&again), "{stands}");
            assert_eq!(stored(&world, "mine:c").await, 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_of_three_pages_is_deleted_whole() {
    let world = World::new().unwrap();
    let first = done(&world, DIALECT, "echo", "hi", "mine:c").await;
    for _ in 0..249 {
        advance(MILLISECOND).await;
        done(&world, DIALECT, "echo", "hi", "mine:c").await;
    }
    let other = done(&world, DIALECT, "echo", "hi", "mine:d").await;
    deleted(&world, "mine:c").await;
    assert!(!is_there(&world, &first).await);
    assert_eq!(stored(&world, "mine:c").await, 0);
    assert!(is_there(&world, &other).await);
    expired(DIALECT, &delete(&world, "mine:c").await);
}

#[tokio::test(start_paused = true)]
async fn work_behind_the_first_page_keeps_a_conversation_from_being_deleted() {
    let world = World::new().unwrap();
    let slow = DIALECT.stream(&Say::to("slow", "go").in_context("mine:c"));
    let live = world.open(&slow).await;
    for _ in 0..110 {
        advance(MILLISECOND).await;
        done(&world, DIALECT, "echo", "hi", "mine:c").await;
    }
    let busy = Fault::new(DIALECT, BUSY);
    assert_eq!(busy.check(&delete(&world, "mine:c").await), Ok(()));
    assert_eq!(stored(&world, "mine:c").await, 111, "nothing was deleted");
    world.gate.open();
    live.finish().await;
    deleted(&world, "mine:c").await;
    assert_eq!(stored(&world, "mine:c").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_without_the_time_for_all_says_so_and_goes_on_when_asked_again() {
    let world = World::new().unwrap();
    for _ in 0..150 {
        advance(MILLISECOND).await;
        done(&world, DIALECT, "echo", "hi", "mine:c").await;
    }
    // Eight at once: some sixty of them in the time of a call.
    world.store.take(Duration::from_secs(3));
    let mut left = 150;
    for _ in 0..2 {
        let reply = delete(&world, "mine:c").await;
        assert_eq!(Fault::new(DIALECT, UNAVAILABLE).check(&reply), Ok(()));
        assert!(reply.text().contains("call again"), "{}", reply.text());
        assert!(!reply.header("retry-after").is_empty());
        let now = stored(&world, "mine:c").await;
        assert!(now < left, "{now} of {left}");
        left = now;
        let page = contexts(&world, "", "local:local").await;
        assert_eq!(ids(&page), Vec::<&str>::new(), "it is gone at once");
    }
    deleted(&world, "mine:c").await;
    assert_eq!(stored(&world, "mine:c").await, 0);
    expired(DIALECT, &delete(&world, "mine:c").await);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_meets_a_deletion_is_of_one_conversation_or_of_the_next() {
    for wait in 0..12 {
        let world = World::new().unwrap();
        done(&world, DIALECT, "notes", "set k before", "mine:c").await;
        world.store.take(MILLISECOND * 10);
        let deletion = delete(&world, "mine:c");
        let message = async {
            tokio::time::sleep(MILLISECOND * 5 * wait).await;
            say(&world, DIALECT, "notes", "set k now add now", "mine:c").await
        };
        let (deletion, message) = tokio::join!(deletion, message);
        world.store.take(Duration::ZERO);
        let busy = Fault::new(DIALECT, BUSY).check(&deletion) == Ok(());
        assert!(busy || deletion.status == 200, "{}", deletion.text());
        let is_in = message.status == 200;
        if !is_in {
            expired(DIALECT, &message);
        }
        let value = done(&world, DIALECT, "notes", "get k", "mine:c").await;
        let value = answer(DIALECT, &value);
        let all = shown(&world, "mine:c").await;
        assert!(busy || !all.contains("before"), "{wait}: {all}");
        // All of the message is there, or nothing.
        let both = (value.as_str(), all.contains("set k now"));
        let fits = [("now", true), ("nothing", false), ("before", false)];
        assert!(fits.contains(&both), "{wait}: {both:?} {all}");
        assert!(is_in || both.0 != "now", "{wait}: {both:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_deletion_goes_by_itself_if_no_sweep_comes() {
    let world = World::new().unwrap();
    done(&world, DIALECT, "echo", "hi", "mine:c").await;
    deleted(&world, "mine:c").await;
    advance(DAY * 6).await;
    world.clean_up();
    assert_eq!(
        thread(&world, "mine:c").await,
        Some(ThreadStatus::Cleared),
        "every sweep of six days could have come"
    );
    advance(WEEK + MINUTE).await;
    world.clean_up();
    assert_eq!(thread(&world, "mine:c").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_begins_while_the_sweep_ends_the_one_before_has_its_thread() {
    let world = World::new().unwrap();
    done(&world, DIALECT, "echo", "hi", "mine:c").await;
    deleted(&world, "mine:c").await;
    advance(SETTLED).await;
    let message = say(&world, DIALECT, "notes", "wait get k", "mine:c");
    let sweeps = async {
        // The message has been let in, and its task is not stored yet.
        tokio::time::sleep(MILLISECOND).await;
        assert_eq!(sweep(&world).await, (0, 1));
        assert_eq!(thread(&world, "mine:c").await, None);
        world.gate.open();
    };
    let (reply, ()) = tokio::join!(message, sweeps);
    assert_eq!(DIALECT.state(&DIALECT.task(&reply)), "completed");
    let there = thread(&world, "mine:c").await;
    assert_eq!(there, Some(ThreadStatus::Active));
}
