//! Deleted contexts: what a deletion removes, and when the id can be used again.

use super::contexts::{DAY, HOUR, KINDS, RESET, WEEK};
use super::contexts::{answer, as_ann, contexts, conversation, done, expired, ids, ours, say};
use a2a_lambda::store::{Blobs as _, ThreadStatus};
use a2a_lambda::task::{ContextId, Owner, Subject, TenantId};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{BUSY, Fault, NOT_FOUND, UNAVAILABLE};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_deleted_context_id_is_refused_until_the_sweep_removes_it
}

per_dialect! {
    paused [Rpc01, Path01]:
    a_task_id_is_free_when_its_context_is_deleted
}

const DIALECT: Dialect = Dialect::Rest10;
const MINUTE: Duration = Duration::from_secs(60);
const MILLISECOND: Duration = Duration::from_millis(1);
/// Time after which nothing of a deletion can still be under way.
const SETTLED: Duration = Duration::from_secs(20 * 60);

fn caller() -> Owner {
    Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    }
}

/// A task that asks, with a file stored as an object. Returns the task's id.
async fn with_a_file(world: &World) -> String {
    let large = json!({"raw": STANDARD.encode([7; 40_000]), "mediaType": "application/pdf"});
    let mut asks = DIALECT.say(&Say::to("ask", "hi"));
    asks["message"]["parts"].as_array_mut().unwrap().push(large);
    let task = world.call(&DIALECT.request(Op::Send, "", &asks)).await;
    DIALECT.task(&task)["id"].as_str().unwrap().to_owned()
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

/// Counts the stored tasks of a context, visible to its caller or not.
async fn stored(world: &World, context: &str) -> usize {
    let context = ContextId::parse(context).unwrap();
    let memory = world.store.memory();
    let found = memory
        .records
        .tasks_in(&caller(), &context, None, None, 1000)
        .await;
    found.unwrap().0.len()
}

/// The status of a stored thread.
async fn thread(world: &World, context: &str) -> Option<ThreadStatus> {
    let context = ContextId::parse(context).unwrap();
    let found = world
        .store
        .memory()
        .records
        .load_thread(&caller(), &context)
        .await;
    found.unwrap().map(|thread| thread.status)
}

async fn shown(world: &World, context: &str) -> String {
    answer(
        DIALECT,
        &done(world, DIALECT, "notes", "show", context).await,
    )
}

/// Sweeps, and returns how many tasks and threads it removed.
async fn sweep(world: &World) -> (usize, usize) {
    let swept = world.sweep_threads().await.unwrap();
    (swept.tasks_removed, swept.threads_removed)
}

async fn a_deleted_context_id_is_refused_until_the_sweep_removes_it(dialect: Dialect) {
    let world = World::new().unwrap();
    let question = done(&world, dialect, "ask", "hi", "mine:c").await;
    done(&world, dialect, "notes", "set k v add noted", "mine:c").await;
    for round in 1..=3 {
        deleted(&world, "mine:c").await;
        let get = dialect.of_task(Op::Get, question["id"].as_str().unwrap());
        let gone = Fault::new(dialect, NOT_FOUND).check(&world.call(&get).await);
        assert_eq!(gone, Ok(()), "{dialect:?}");
        expired(DIALECT, &delete(&world, "mine:c").await);
        for wait in [MILLISECOND, SETTLED - MILLISECOND * 2] {
            let refused = say(&world, dialect, "notes", "get k", "mine:c").await;
            expired(dialect, &refused);
            let page = contexts(&world, "", "local:local").await;
            assert_eq!(ids(&page), Vec::<&str>::new());
            advance(wait).await;
            assert_eq!(sweep(&world).await, (0, 0), "it is too early");
        }
        advance(MILLISECOND).await;
        let refused = say(&world, dialect, "notes", "get k", "mine:c").await;
        expired(dialect, &refused);
        assert_eq!(sweep(&world).await, (0, 1));
        let task = done(&world, dialect, "notes", "get k", "mine:c").await;
        assert_eq!(answer(dialect, &task), "nothing", "{dialect:?} {round}");
        assert_eq!(at(&task, RESET), &Value::Null, "it is new, not reset");
        done(&world, dialect, "notes", "set k v", "mine:c").await;
        let task = done(&world, dialect, "notes", "show", "mine:c").await;
        // Tasks of the same millisecond have no order.
        let thread = answer(dialect, &task);
        let mut said: Vec<&str> = thread.split('|').collect();
        said.sort_unstable();
        assert_eq!(said, ["get k", "set k v", "show"], "{dialect:?}");
        let page = contexts(&world, "", "local:local").await;
        assert_eq!(ids(&page), ["mine:c"]);
    }
}

async fn a_task_id_is_free_when_its_context_is_deleted(dialect: Dialect) {
    let world = World::new().unwrap();
    let of = |text: &str, context: &str| {
        let said = Say::to("notes", text).under("t:same").in_context(context);
        dialect.send(&said)
    };
    world.call(&of("add one", "mine:c")).await;
    deleted(&world, "mine:c").await;
    let again = dialect.task(&world.call(&of("show", "mine:d")).await);
    assert_eq!(answer(dialect, &again), "show");
    expired(DIALECT, &delete(&world, "mine:c").await);
    advance(SETTLED).await;
    assert_eq!(sweep(&world).await, (0, 1));
    assert!(is_there(&world, &again).await, "it is in another context");
}

#[tokio::test(start_paused = true)]
async fn a_task_the_index_lacks_is_read_and_deleted_with_its_context() {
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let (context, question) = conversation(&world, DIALECT, kind).await;
        world.store.memory().table.lag_indexes();
        let unseen = done(&world, DIALECT, "ask", "unseen", &context).await;
        let all = shown(&world, &context).await;
        assert!(all.contains("unseen|which one?"), "{kind:?}: {all}");
        deleted(&world, &context).await;
        assert!(!is_there(&world, &question).await, "{kind:?}");
        assert!(!is_there(&world, &unseen).await, "{kind:?}");
        assert_eq!(stored(&world, &context).await, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_context_with_one_task_the_index_lacks_can_be_deleted() {
    let world = World::new().unwrap();
    world.store.memory().table.lag_indexes();
    let opened = world.call(&DIALECT.send(&Say::to("ask", "hi"))).await;
    let task = DIALECT.task(&opened);
    let context = task["contextId"].as_str().unwrap();
    assert_eq!(
        thread(&world, context).await,
        None,
        "only its task is stored"
    );
    deleted(&world, context).await;
    assert!(!is_there(&world, &task).await);
    expired(DIALECT, &say(&world, DIALECT, "echo", "hi", context).await);
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_finishes_and_writes_nothing_to_a_deleted_context() {
    for words in ["wait set k old add old", "wait add old"] {
        let world = World::new().unwrap();
        done(&world, DIALECT, "notes", "set k before", "mine:c").await;
        // The message is accepted, and its task is not stored yet.
        let send = DIALECT.send(&Say::to("notes", words).in_context("mine:c"));
        let message = world.call(&send);
        let deletion = async {
            tokio::time::sleep(MILLISECOND).await;
            deleted(&world, "mine:c").await;
            world.gate.open();
        };
        let (reply, ()) = tokio::join!(message, deletion);
        let late = DIALECT.task(&reply);
        assert_eq!(
            DIALECT.state(&late),
            "completed",
            "it finishes like any other"
        );
        assert!(is_there(&world, &late).await);
        assert_eq!(thread(&world, "mine:c").await, Some(ThreadStatus::Cleared));
        expired(DIALECT, &say(&world, DIALECT, "echo", "hi", "mine:c").await);
        advance(SETTLED).await;
        assert_eq!(sweep(&world).await, (1, 1));
        assert!(!is_there(&world, &late).await);
        let value = done(&world, DIALECT, "notes", "get k", "mine:c").await;
        assert_eq!(answer(DIALECT, &value), "nothing", "{words}");
        assert_eq!(shown(&world, "mine:c").await, "get k|show");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_turn_does_not_revive_its_deleted_context() {
    let world = World::new().unwrap();
    done(&world, DIALECT, "echo", "hi", "mine:c").await;
    // The message is accepted, and its task is not stored yet.
    let slow = DIALECT.stream(&Say::to("slow", "go").in_context("mine:c"));
    world.store.take(MILLISECOND * 100);
    let (live, ()) = tokio::join!(world.open(&slow), async {
        tokio::time::sleep(MILLISECOND * 150).await;
        world.store.take(Duration::ZERO);
        deleted(&world, "mine:c").await;
    });
    assert_eq!(stored(&world, "mine:c").await, 1);
    // Its heartbeat continues past the sweep and the end of every context.
    for _ in 0..30 {
        tokio::time::sleep(HOUR).await;
        let (tasks, _) = sweep(&world).await;
        assert_eq!(tasks, 0, "the task still runs");
    }
    let page = contexts(&world, "", "local:local").await;
    assert_eq!(ids(&page), Vec::<&str>::new());
    expired(
        DIALECT,
        &say(&world, DIALECT, "echo", "late", "mine:c").await,
    );
    world.gate.open();
    live.finish().await;
    advance(SETTLED).await;
    assert_eq!(sweep(&world).await, (1, 1));
    assert_eq!(stored(&world, "mine:c").await, 0);
    done(&world, DIALECT, "echo", "anew", "mine:c").await;
}

#[tokio::test(start_paused = true)]
async fn the_task_of_a_keyed_reply_is_deleted_with_its_context() {
    for has_thread in [true, false] {
        let world = World::new().unwrap();
        if has_thread {
            done(&world, DIALECT, "echo", "hi", "mine:c").await;
        }
        let greet = DIALECT
            .send(&Say::to("greet", "hi").in_context("mine:c"))
            .header("idempotency-key", "key 1");
        let first = world.call(&greet).await;
        assert_eq!(first.status, 200, "{}", first.text());
        assert_eq!(stored(&world, "mine:c").await, 1 + usize::from(has_thread));
        for _ in 0..2 {
            deleted(&world, "mine:c").await;
            assert_eq!(stored(&world, "mine:c").await, 0, "{has_thread}");
            expired(DIALECT, &delete(&world, "mine:c").await);
            expired(DIALECT, &world.call(&greet).await);
            advance(SETTLED).await;
            assert_eq!(sweep(&world).await, (0, 1));
            // The key is free: the skill replies again.
            let again = world.call(&greet).await;
            let id = |reply: &Reply| DIALECT.result(reply)["task"]["id"].clone();
            assert_ne!(id(&first), id(&again), "{has_thread}");
            assert_eq!(stored(&world, "mine:c").await, 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_of_250_tasks_is_listed_and_deleted_completely() {
    let world = World::new().unwrap();
    let first = done(&world, DIALECT, "echo", "no 0", "mine:c").await;
    for n in 1..250 {
        advance(MILLISECOND).await;
        done(&world, DIALECT, "echo", &format!("no {n}"), "mine:c").await;
    }
    assert_eq!(stored(&world, "mine:c").await, 250);
    let other = done(&world, DIALECT, "echo", "hi", "mine:d").await;
    let mut listed = Vec::new();
    let mut token = String::new();
    loop {
        let mut of = json!({ "contextId": "mine:c", "pageSize": 100 });
        if !token.is_empty() {
            of["pageToken"] = token.into();
        }
        let list = world.call(&DIALECT.request(Op::List, "", &of)).await.json();
        let tasks = list["tasks"].as_array().unwrap();
        listed.extend(tasks.iter().map(|task| task["id"].to_string()));
        assert_eq!(list["totalSize"], 250);
        token = list["nextPageToken"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if token.is_empty() {
            break;
        }
    }
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed.len(), 250);
    // A skill sees the last messages, and that the list was cut.
    let all = shown(&world, "mine:c").await;
    assert!(all.starts_with("cut|no 230|no 231|"), "{all}");
    assert!(all.ends_with("|no 249|show"), "{all}");
    deleted(&world, "mine:c").await;
    assert!(!is_there(&world, &first).await);
    assert_eq!(stored(&world, "mine:c").await, 0);
    assert!(is_there(&world, &other).await);
    expired(DIALECT, &delete(&world, "mine:c").await);
}

#[tokio::test(start_paused = true)]
async fn a_running_task_beyond_the_first_page_prevents_the_deletion() {
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
async fn a_deletion_that_runs_out_of_time_continues_with_the_next_call() {
    let world = World::new().unwrap();
    for _ in 0..150 {
        advance(MILLISECOND).await;
        done(&world, DIALECT, "echo", "hi", "mine:c").await;
    }
    // Eight deletions run in parallel: about sixty tasks in the time of one call.
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
        assert_eq!(ids(&page), Vec::<&str>::new(), "it is no longer listed");
    }
    deleted(&world, "mine:c").await;
    assert_eq!(stored(&world, "mine:c").await, 0);
    expired(DIALECT, &delete(&world, "mine:c").await);
}

#[tokio::test(start_paused = true)]
async fn a_message_during_a_deletion_is_refused_or_deleted() {
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
        if !busy {
            // The message was for a deleted context: nothing of it remains.
            advance(SETTLED).await;
            sweep(&world).await;
            assert_eq!(stored(&world, "mine:c").await, 0, "{wait}");
            assert_eq!(thread(&world, "mine:c").await, None, "{wait}");
            continue;
        }
        let value = done(&world, DIALECT, "notes", "get k", "mine:c").await;
        let value = answer(DIALECT, &value);
        let all = shown(&world, "mine:c").await;
        // Either the whole message is stored, or nothing of it.
        let both = (value.as_str(), all.contains("set k now"));
        let fits = [("now", true), ("before", false)];
        assert!(fits.contains(&both), "{wait}: {both:?} {all}");
        assert!(is_in || both.0 != "now", "{wait}: {both:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_tombstone_expires_without_a_sweep() {
    let world = World::new().unwrap();
    done(&world, DIALECT, "echo", "hi", "mine:c").await;
    deleted(&world, "mine:c").await;
    advance(DAY * 6).await;
    world.clean_up();
    assert_eq!(
        thread(&world, "mine:c").await,
        Some(ThreadStatus::Cleared),
        "the tombstone outlives six days without a sweep"
    );
    advance(WEEK + MINUTE).await;
    world.clean_up();
    assert_eq!(thread(&world, "mine:c").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_context_that_begins_while_its_tombstone_expires_gets_a_thread() {
    let world = World::new().unwrap();
    done(&world, DIALECT, "echo", "hi", "mine:c").await;
    advance(DAY + WEEK).await;
    let message = say(&world, DIALECT, "notes", "wait get k", "mine:c");
    let sweeps = async {
        // The message is accepted, and its task is not stored yet. Its thread is.
        tokio::time::sleep(MILLISECOND).await;
        world.clean_up();
        let before = thread(&world, "mine:c").await;
        assert_eq!(before, Some(ThreadStatus::Active));
        world.gate.open();
    };
    let (reply, ()) = tokio::join!(message, sweeps);
    assert_eq!(DIALECT.state(&DIALECT.task(&reply)), "completed");
    let there = thread(&world, "mine:c").await;
    assert_eq!(there, Some(ThreadStatus::Active));
}

#[tokio::test(start_paused = true)]
async fn a_read_during_a_deletion_finds_no_task() {
    let world = World::new().unwrap();
    let id = with_a_file(&world).await;
    world.call(&DIALECT.of_task(Op::Cancel, &id)).await;
    let get = DIALECT.of_task(Op::Get, &id);
    assert_eq!(world.call(&get).await.status, 200);

    world.store.hold_objects(true);
    let deletion = async {
        tokio::time::sleep(MILLISECOND).await;
        let task = ours("DELETE", &format!("tasks/{id}"));
        assert_eq!(world.call(&task).await.status, 200);
        world.store.hold_objects(false);
    };
    let (read, ()) = tokio::join!(world.call(&get), deletion);
    Fault::new(DIALECT, NOT_FOUND).check(&read).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_read_of_a_task_with_a_lost_object_gives_500() {
    let world = World::new().unwrap();
    let id = with_a_file(&world).await;
    let objects = world.store.memory().blobs.keys("", None, 10).await.unwrap();
    world.store.memory().blobs.remove(&objects).await.unwrap();
    let read = world.call(&DIALECT.of_task(Op::Get, &id)).await;
    assert_eq!(read.status, 500, "{}", read.text());
}

#[tokio::test(start_paused = true)]
async fn deleting_a_task_keeps_its_context() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let task = done(&world, dialect, "ask", "hi", "mine:c").await;
    let path = format!("tasks/{}", task["id"].as_str().unwrap());
    let deleted = world.call(&ours("DELETE", &path)).await;
    assert_eq!((deleted.status, deleted.json()), (200, json!({})));
    for request in [
        ours("DELETE", &path),
        dialect.of_task(Op::Get, task["id"].as_str().unwrap()),
    ] {
        let reply = world.call(&request).await;
        assert_eq!(
            Fault::new(dialect, NOT_FOUND).check(&reply),
            Ok(()),
            "{}",
            reply.text()
        );
    }
    done(&world, dialect, "echo", "hi", "mine:c").await;
}

#[tokio::test(start_paused = true)]
async fn a_running_task_and_its_context_cannot_be_deleted() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let finished = done(&world, dialect, "echo", "hi", "mine:c").await;
    let slow = dialect.stream(&Say::to("slow", "go").in_context("mine:c"));
    let live = world.open(&slow).await;
    let list = dialect.request(Op::List, "", &json!({"contextId": "mine:c"}));
    let tasks = dialect.result(&world.call(&list).await)["tasks"].clone();
    let open = tasks
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] != finished["id"]);
    let open = open.unwrap()["id"].as_str().unwrap();
    for path in [format!("tasks/{open}"), "contexts/mine:c".to_owned()] {
        let reply = world.call(&ours("DELETE", &path)).await;
        assert_eq!(
            Fault::new(dialect, BUSY).check(&reply),
            Ok(()),
            "{}",
            reply.text()
        );
    }
    let kept = world
        .call(&dialect.of_task(Op::Get, finished["id"].as_str().unwrap()))
        .await;
    assert_eq!(kept.status, 200, "nothing was deleted");
    world.gate.open();
    live.finish().await;
    let reply = world.call(&ours("DELETE", "contexts/mine:c")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn deleting_a_context_deletes_its_tasks() {
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let dialect = Dialect::Rest10;
        let (context, asked) = conversation(&world, dialect, kind).await;
        let kept = done(&world, dialect, "notes", "set k v", &context).await;
        let path = format!("contexts/{context}");
        let deleted = world.call(&ours("DELETE", &path)).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        for task in [&asked, &kept] {
            let reply = world
                .call(&dialect.of_task(Op::Get, task["id"].as_str().unwrap()))
                .await;
            assert_eq!(Fault::new(dialect, NOT_FOUND).check(&reply), Ok(()));
        }
        expired(dialect, &world.call(&ours("DELETE", &path)).await);
        let again = say(&world, dialect, "notes", "get k", &context).await;
        expired(dialect, &again);
        let page = contexts(&world, "", "local:local").await;
        assert_eq!(ids(&page), Vec::<&str>::new(), "{kind:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn deleting_a_foreign_item_looks_like_deleting_an_absent_one() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let open = dialect
        .send(&Say::to("ask", "hi").in_context("mine:c"))
        .from("acme:ann");
    let task = dialect.task(&world.call(&open).await);
    let made = as_ann(&world, "echo", "").await;
    let unknown = "ffffffffffffffffffffffffffffffff";
    let pairs = [
        (
            format!("tasks/{}", task["id"].as_str().unwrap()),
            format!("tasks/task-{unknown}"),
        ),
        ("contexts/mine:c".to_owned(), "contexts/mine:x".to_owned()),
        (
            format!("contexts/{made}"),
            format!("contexts/ctx-{unknown}"),
        ),
    ];
    each_row_async(["evil:ann", "acme:bob", "ACME:ann"], async |caller| {
        for (theirs, none) in &pairs {
            let foreign = world.call(&ours("DELETE", theirs).from(caller)).await;
            let absent = world.call(&ours("DELETE", none).from(caller)).await;
            assert_eq!(foreign.body, absent.body, "{theirs} by {caller}");
            assert_eq!(foreign.status, absent.status);
            assert!(foreign.status >= 400, "{theirs} by {caller}");
        }
    })
    .await;
    for (mine, _) in &pairs {
        let reply = world.call(&ours("DELETE", mine).from("acme:ann")).await;
        assert_eq!(reply.status, 200, "{mine} {}", reply.text());
    }
    assert_eq!(
        ids(&contexts(&world, "", "acme:ann").await),
        Vec::<&str>::new()
    );
}
