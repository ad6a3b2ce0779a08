//! Contexts: to which of them a message belongs, and what its turn reads there.

use crate::contexts::{
    DAY, KINDS, Kind, WEEK, answer, contexts, conversation, done, ended, expired, ids, ours, say,
};
use a2a_lambda::task::Timestamp;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{Fault, NOT_FOUND};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_reused_context_id_keeps_nothing_of_its_first_context
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    data_saved_by_a_message_skill_reaches_the_next_message
    a_reply_that_saves_nothing_and_makes_no_task_makes_no_context
    a_reply_that_saves_too_much_becomes_a_failed_task
}

const MINUTE: Duration = Duration::from_secs(60);

fn webhook(task: &str) -> Request {
    let config = json!({"taskId": task, "id": "late", "url": "https://hook.example/a2a"});
    let path = format!("/tasks/{task}/pushNotificationConfigs");
    Dialect::Rest10.versioned(Request::post(path, &config))
}

fn id_of(task: &Value) -> &str {
    task["id"].as_str().unwrap()
}

fn time_of(conversation: &Value, name: &str) -> Timestamp {
    Timestamp::parse_rfc3339(conversation[name].as_str().unwrap()).unwrap()
}

async fn a_reused_context_id_keeps_nothing_of_its_first_context(dialect: Dialect) {
    for cleaned in [false, true] {
        for first in ["show", "set colour blue add anew"] {
            let world = World::new().unwrap();
            let context = ended(&world, dialect, Kind::Own).await;
            let orders = "set k v add noted";
            done(&world, dialect, "notes", orders, &context).await;
            advance(DAY + WEEK + MINUTE).await;
            if cleaned {
                world.clean_up();
            }
            let task = done(&world, dialect, "notes", first, &context).await;
            assert_eq!(
                at(&task, "/metadata/a2a-lambda~1contextReset"),
                &Value::Null
            );
            let task = done(&world, dialect, "notes", "show", &context).await;
            let expected = if first == "show" {
                "show|show".to_owned()
            } else {
                format!("{first}|anew|show")
            };
            assert_eq!(answer(dialect, &task), expected, "{dialect:?} {cleaned}");
            let page = contexts(&world, "", "local:local").await;
            let conversation = &page["contexts"][0];
            let life = time_of(conversation, "expiresAt");
            assert_eq!(time_of(conversation, "createdAt").plus(DAY), life, "{page}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_simultaneous_first_messages_share_one_context() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    // The first send begins first, but the thread of the second is stored first.
    world.store.hold();
    let early = done(&world, dialect, "notes", "add early", "mine:c");
    let late = async {
        tokio::time::sleep(MINUTE / 12).await;
        done(&world, dialect, "echo", "late", "mine:c").await
    };
    let release = async {
        tokio::time::sleep(MINUTE / 6).await;
        world.store.release();
    };
    tokio::join!(early, late, release);
    let task = done(&world, dialect, "notes", "show", "mine:c").await;
    assert_eq!(answer(dialect, &task), "add early|early|late|show");
}

#[tokio::test(start_paused = true)]
async fn a_context_is_found_behind_many_newer_tasks_of_its_caller() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    // One read of the index returns at most ten tasks.
    world.store.read_at_most(10);
    each_row_async(KINDS, async |kind| {
        let (context, _) = conversation(&world, dialect, kind).await;
        advance(Duration::from_secs(1)).await;
        done(&world, dialect, "notes", "add noted", &context).await;
        for _ in 0..45 {
            advance(Duration::from_secs(1)).await;
            done(&world, dialect, "echo", "something else", "").await;
        }
        let task = done(&world, dialect, "notes", "show", &context).await;
        let thread = answer(dialect, &task);
        // Two tasks of the same millisecond have no order.
        assert!(thread.contains("hi|which one?|"), "{kind:?} {thread}");
        assert!(thread.contains("|add noted|noted|"), "{kind:?} {thread}");
        // A new context reads no tasks of the others.
        let reads = world.store.list_reads();
        let task = done(&world, dialect, "notes", "show", "").await;
        assert_eq!(answer(dialect, &task), "show");
        assert!(world.store.list_reads() <= reads + 1, "{kind:?}");
        advance(DAY).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_thread_is_read_only_as_far_as_shown() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    world.store.read_at_most(10);
    for n in 0..60 {
        advance(Duration::from_secs(1)).await;
        done(&world, dialect, "echo", &format!("no {n}"), "mine:c").await;
    }
    let reads = world.store.list_reads();
    let task = done(&world, dialect, "notes", "show", "mine:c").await;
    let thread = answer(dialect, &task);
    assert!(thread.starts_with("cut|no 40|no 41|"), "{thread}");
    assert!(thread.ends_with("|no 59|show"), "{thread}");
    assert!(world.store.list_reads() <= reads + 1);
}

async fn greeted(world: &World, dialect: Dialect, text: &str, context: &str, key: &str) -> Reply {
    let mut say = Say::to("greet", text);
    if !context.is_empty() {
        say = say.in_context(context);
    }
    let mut request = dialect.send(&say);
    if !key.is_empty() {
        request = request.header("idempotency-key", key);
    }
    world.call(&request).await
}

/// The message or the task of a response.
fn message(dialect: Dialect, reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let result = dialect.result(reply);
    let inner = result.get("message").or_else(|| result.get("task"));
    let inner = inner.cloned().unwrap_or(result);
    assert_eq!(at(&inner, "/taskId"), &Value::Null, "{inner}");
    inner
}

async fn data_saved_by_a_message_skill_reaches_the_next_message(dialect: Dialect) {
    for given in ["", "mine:c"] {
        for key in ["", "key 1"] {
            let world = World::new().unwrap();
            let reply = greeted(&world, dialect, "note blue", given, key).await;
            let reported = message(dialect, &reply);
            let context = reported["contextId"].as_str().unwrap_or("none").to_owned();
            assert!(given.is_empty() || context == given, "{reported}");
            let page = contexts(&world, "", "local:local").await;
            assert_eq!(ids(&page), [&context], "{dialect:?} {key}");
            let task = done(&world, dialect, "notes", "get noted", &context).await;
            assert_eq!(answer(dialect, &task), "blue", "{dialect:?} {key}");
            let task = done(&world, dialect, "notes", "show", &context).await;
            let thread = answer(dialect, &task);
            // The task of a keyed send also shows the message of its client.
            let said = 1 + usize::from(!key.is_empty());
            assert_eq!(thread.matches("blue").count(), said, "{thread}");
            // The same send again gets the same reply, and stores nothing twice.
            if !key.is_empty() {
                let again = greeted(&world, dialect, "note blue", given, key).await;
                assert_eq!(reply.body, again.body);
            }
        }
    }
}

async fn a_reply_that_saves_nothing_and_makes_no_task_makes_no_context(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut offered = String::new();
    for given in ["", "mine:c"] {
        let reply = greeted(&world, dialect, "hi", given, "").await;
        let reported = message(dialect, &reply);
        let context = at(&reported, "/contextId").as_str().unwrap();
        if given.is_empty() {
            assert!(context.starts_with("new-"), "{reported}");
            context.clone_into(&mut offered);
        } else {
            assert_eq!(context, given, "{reported}");
        }
    }
    let page = contexts(&world, "", "local:local").await;
    assert_eq!(ids(&page), Vec::<&str>::new(), "{dialect:?}");
    assert_eq!(world.store.writes(), 0, "{dialect:?}");
    // The next message begins the context that the reply names.
    let task = done(&world, dialect, "notes", "get noted", &offered).await;
    assert_eq!(answer(dialect, &task), "nothing", "{dialect:?}");
    assert_eq!(dialect.context(&task), offered);
    let page = contexts(&world, "", "local:local").await;
    assert_eq!(ids(&page), [&offered], "{dialect:?}");
}

async fn a_reply_that_saves_too_much_becomes_a_failed_task(dialect: Dialect) {
    for key in ["", "key 1"] {
        let little = |settings: &mut a2a_lambda::settings::Settings| {
            settings.policy.state_max_bytes = 100;
        };
        let world = World::with(little).unwrap();
        let text = format!("note {}", "x".repeat(100));
        let reply = greeted(&world, dialect, &text, "mine:c", key).await;
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "failed", "{dialect:?} {key}");
        assert!(task.to_string().contains("STATE_TOO_LARGE"), "{task}");
        let task = done(&world, dialect, "notes", "get noted", "mine:c").await;
        assert_eq!(answer(dialect, &task), "nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_gives_a_context_up_that_only_its_question_has_kept() {
    let dialect = Dialect::Rest10;
    each_row_async(KINDS, async |kind| {
        for cleaned in [false, true] {
            let world = World::new().unwrap();
            let (context, question) = conversation(&world, dialect, kind).await;
            advance(DAY).await;
            if cleaned {
                advance(DAY / 2).await;
                world.clean_up();
            }
            let register = world.call(&webhook(id_of(&question))).await;
            assert_eq!(register.status, 200, "{}", register.text());
            let what = format!("{kind:?} cleaned {cleaned}");
            let page = contexts(&world, "", "local:local").await;
            assert_eq!(ids(&page), [&context], "{what}");
            let cancel = dialect.of_task(Op::Cancel, id_of(&question));
            assert_eq!(world.call(&cancel).await.status, 200);
            let page = contexts(&world, "", "local:local").await;
            assert_eq!(ids(&page), Vec::<&str>::new(), "{what}");
            let reply = say(&world, dialect, "echo", "more", &context).await;
            assert_eq!(reply.status, 400, "{what} {}", reply.text());
            expired(dialect, &reply);
            let path = format!("contexts/{context}");
            expired(dialect, &world.call(&ours("DELETE", &path)).await);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_extends_the_life_of_its_context() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let slow = dialect.stream(&Say::to("slow", "go"));
    let live = world.open(&slow).await;
    let page = contexts(&world, "", "local:local").await;
    let context = ids(&page)[0].to_owned();
    advance(MINUTE).await;
    let list = dialect.request(Op::List, "", &json!({}));
    let task = dialect.result(&world.call(&list).await)["tasks"][0].clone();
    let canceled = dialect.of_task(Op::Cancel, id_of(&task));
    assert_eq!(world.call(&canceled).await.status, 200);
    live.finish().await;
    advance(DAY - Duration::from_millis(1)).await;
    done(&world, dialect, "echo", "more", &context).await;
}

#[tokio::test(start_paused = true)]
async fn a_context_expires_by_its_thread_before_and_after_clean_up() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let context = ended(&world, dialect, Kind::Second).await;
    // The thread was written a minute ago, too recently to be written again.
    advance(MINUTE).await;
    done(&world, dialect, "echo", "again", &context).await;
    advance(DAY - MINUTE / 2).await;
    let before = say(&world, dialect, "echo", "more", &context).await;
    world.clean_up();
    let after = say(&world, dialect, "echo", "more", &context).await;
    expired(dialect, &before);
    assert_eq!(before.body, after.body);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_extends_a_tasks_life_and_a_push_config_does_not() {
    let dialect = Dialect::Rest10;
    for cancel in [false, true] {
        let world = World::new().unwrap();
        let task = done(&world, dialect, "ask", "hi", "").await;
        advance(29 * DAY).await;
        let reply = if cancel {
            world.call(&dialect.of_task(Op::Cancel, id_of(&task))).await
        } else {
            world.call(&webhook(id_of(&task))).await
        };
        assert_eq!(reply.status, 200, "{}", reply.text());
        let get = dialect.of_task(Op::Get, id_of(&task));
        let left = if cancel { 30 * DAY } else { DAY };
        advance(left - Duration::from_millis(1)).await;
        assert_eq!(world.call(&get).await.status, 200, "cancel {cancel}");
        advance(Duration::from_millis(1)).await;
        let gone = world.call(&get).await;
        let fault = Fault::new(dialect, NOT_FOUND);
        assert_eq!(fault.check(&gone), Ok(()), "cancel {cancel}");
    }
}

#[tokio::test(start_paused = true)]
async fn forty_parallel_tasks_of_a_context_each_save_their_event_once() {
    const TASKS: usize = 40;
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    done(&world, dialect, "echo", "hi", "mine:c").await;
    // A table across the network: many turns read the same thread, one writes first.
    world.store.take(Duration::from_millis(25));
    let calls = (0..TASKS).map(|n| {
        let world = &world;
        async move {
            let text = format!("wait set k{n} v add e{n}.");
            say(world, dialect, "notes", &text, "mine:c").await
        }
    });
    let all = futures::future::join_all(calls);
    let race = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.gate.open();
    };
    let (replies, ()) = tokio::join!(all, race);
    for reply in replies {
        let state = dialect.state(&dialect.task(&reply));
        assert_eq!(state, "completed", "{}", reply.text());
    }
    let task = done(&world, dialect, "notes", "show", "mine:c").await;
    let thread = answer(dialect, &task);
    let events = thread.split('|');
    let mut events: Vec<&str> = events.filter(|it| it.starts_with('e')).collect();
    events.sort_unstable();
    let mut expected: Vec<String> = (0..TASKS).map(|n| format!("e{n}.")).collect();
    expected.sort();
    assert_eq!(events, expected);
}

#[tokio::test(start_paused = true)]
async fn two_parallel_tasks_cannot_exceed_the_state_limit_together() {
    let small = |settings: &mut a2a_lambda::settings::Settings| {
        settings.policy.state_max_bytes = 2_000;
    };
    let world = World::with(small).unwrap();
    let dialect = Dialect::Rest10;
    done(&world, dialect, "echo", "hi", "mine:c").await;
    // Both turns read the context before either of them is stored.
    let (one, other) = (
        say(&world, dialect, "notes", "wait fill a 1200", "mine:c"),
        say(&world, dialect, "notes", "wait fill b 1200", "mine:c"),
    );
    let race = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.store.hold();
        world.gate.open();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.store.release();
    };
    let (one, other, ()) = tokio::join!(one, other, race);
    let mut ended = [&one, &other].map(|reply| {
        let task = dialect.task(reply);
        let error = at(&task, "/status/message/metadata/a2a-lambda~1errorCode");
        (
            dialect.state(&task),
            error.as_str().unwrap_or_default().to_owned(),
        )
    });
    ended.sort();
    let completed = ("completed".to_owned(), String::new());
    let failed = ("failed".to_owned(), "STATE_TOO_LARGE".to_owned());
    assert_eq!(ended, [completed, failed]);
    let mut kept = Vec::new();
    for order in ["get a", "get b"] {
        let task = done(&world, dialect, "notes", order, "mine:c").await;
        kept.push(answer(dialect, &task).len());
    }
    kept.sort_unstable();
    assert_eq!(kept, ["nothing".len(), 1200], "one of them is stored");
}
