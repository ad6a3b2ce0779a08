//! Several tasks in turn under one id: work on one of them neither changes nor
//! shows the next. Only 0.1 clients make the ids of tasks.

use super::contexts::ours;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, NOT_FOUND, PARAMS};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

per_dialect! {
    paused [Rpc01, Path01]:
    a_stream_of_a_deleted_task_shows_nothing_of_its_successor
    a_client_waiting_for_a_deleted_task_gets_nothing_of_its_successor
    a_heartbeat_ends_the_turn_of_a_replaced_task
    a_task_cannot_be_resumed_after_an_event_of_its_predecessor
}

per_dialect! {
    paused ALL:
    only_a_client_made_id_can_be_used_again_after_deletion
}

const ID: &str = "order-1";
const OLD: [Dialect; 2] = [Dialect::Rpc01, Dialect::Path01];

/// The first message of a task, and of the task that replaces it.
fn say(words: &str) -> Say<'_> {
    Say::to("slow", words).under(ID)
}

/// Cancels the task and deletes it.
async fn remove(world: &World, dialect: Dialect) {
    let canceled = world.call(&dialect.of_task(Op::Cancel, ID)).await;
    assert_eq!(dialect.state(&dialect.task(&canceled)), "canceled");
    let deleted = world.call(&ours("DELETE", &format!("tasks/{ID}"))).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    gone(dialect, &world.call(&dialect.of_task(Op::Get, ID)).await);
}

fn gone(dialect: Dialect, reply: &Reply) {
    let fault = Fault::new(dialect, NOT_FOUND);
    assert_eq!(fault.check(reply), Ok(()), "{}", reply.text());
}

/// Replaces the running task after 1.5 s, and returns the new task.
async fn replace(world: &World, dialect: Dialect, words: &str) -> Value {
    sleep(Duration::from_millis(1500)).await;
    remove(world, dialect).await;
    let reply = world.call(&dialect.send(&say(words))).await;
    dialect.task(&reply)
}

/// Checks that the second task has nothing of the first one.
fn untouched(dialect: Dialect, task: &Value, words: &str, first: &str) {
    assert_eq!(dialect.state(task), "completed", "{task}");
    let text = task.to_string();
    assert!(text.contains(&format!("after {words}")), "{text}");
    assert!(!text.contains(first), "{text}");
}

/// Checks that a stream of the first task shows nothing of the second one, and
/// that its last frame says that the task is gone.
fn ended(reply: &Reply, words: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let text = reply.text();
    assert!(!text.contains(words), "{text}");
    let last = frames(reply).unwrap().pop().unwrap().data.to_string();
    assert!(
        last.contains("TASK_NOT_FOUND") || last.contains("-32001"),
        "{last}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_deleted_task_does_not_change_its_successor() {
    // The versions of both tasks are equal when the first turn ends after one
    // step, and differ at each of several steps.
    for dialect in OLD {
        for first in ["for 8", "steps 10 900"] {
            for second in ["for 15", "steps 3 3000"] {
                let world = World::new().unwrap();
                let turn = dialect.send(&say(first));
                let (reply, task) =
                    tokio::join!(world.call(&turn), replace(&world, dialect, second));
                gone(dialect, &reply);
                untouched(dialect, &task, second, first);
                let read = world.call(&dialect.get(ID, 10)).await;
                untouched(dialect, &dialect.task(&read), second, first);
            }
        }
    }
}

async fn a_stream_of_a_deleted_task_shows_nothing_of_its_successor(dialect: Dialect) {
    for first in ["for 8", "steps 10 900"] {
        for second in ["for 15", "steps 3 3000"] {
            let world = World::new().unwrap();
            let own = dialect.stream(&say(first));
            let watch = async {
                sleep(Duration::from_millis(500)).await;
                world.call(&dialect.of_task(Op::Subscribe, ID)).await
            };
            let (own, watched, task) =
                tokio::join!(world.call(&own), watch, replace(&world, dialect, second));
            ended(&own, second);
            ended(&watched, second);
            untouched(dialect, &task, second, first);
        }
    }
}

async fn a_client_waiting_for_a_deleted_task_gets_nothing_of_its_successor(dialect: Dialect) {
    for first in ["for 8", "steps 10 900"] {
        for second in ["for 4", "for 15"] {
            let world = World::new().unwrap();
            let keyed = |request: Request| request.header("idempotency-key", "key 1");
            let (turn, again) = (
                keyed(dialect.send(&say(first))),
                dialect.stream(&say(first)),
            );
            let later = async |request: &Request| {
                sleep(Duration::from_millis(500)).await;
                world.call(request).await
            };
            let again = keyed(again);
            let (own, waiting, followed, task) = tokio::join!(
                world.call(&turn),
                later(&turn),
                later(&again),
                replace(&world, dialect, second)
            );
            gone(dialect, &own);
            gone(dialect, &waiting);
            ended(&followed, &format!("after {second}"));
            untouched(dialect, &task, second, first);
        }
    }
}

async fn a_heartbeat_ends_the_turn_of_a_replaced_task(dialect: Dialect) {
    for stream in [false, true] {
        let world = World::new().unwrap();
        let first = say("for 24");
        let first = match stream {
            true => dialect.stream(&first),
            false => dialect.send(&first),
        };
        let began = Instant::now();
        let turn = async {
            let reply = world.call(&first).await;
            (reply, began.elapsed().as_secs())
        };
        let ((reply, lasted), task) = tokio::join!(turn, replace(&world, dialect, "for 22"));
        // The heartbeat comes after a third of the lease, or after 2 s for a stream.
        assert_eq!(lasted, if stream { 2 } else { 20 }, "{}", reply.text());
        untouched(dialect, &task, "for 22", "for 24");
    }
}

async fn a_task_cannot_be_resumed_after_an_event_of_its_predecessor(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut seen: Vec<String> = Vec::new();
    for words in ["steps 2 100", "steps 3 100"] {
        let stream = world.call(&dialect.stream(&say(words))).await;
        let shown = frames(&stream).unwrap();
        each_row_async(Dialect::ALL, async |reader| {
            for id in &seen {
                let resume = reader.of_task(Op::Subscribe, ID);
                let refused = world.call(&resume.header("last-event-id", id)).await;
                let field = Fault::new(reader, PARAMS).at("Last-Event-ID");
                assert_eq!(field.check(&refused), Ok(()), "{id} {}", refused.text());
            }
            let own = shown[0].id.as_ref().unwrap();
            let resume = reader
                .of_task(Op::Subscribe, ID)
                .header("last-event-id", own);
            let resumed = world.call(&resume).await;
            assert_eq!(frames(&resumed).unwrap().len(), shown.len(), "{reader:?}");
        })
        .await;
        seen.extend(shown.into_iter().filter_map(|frame| frame.id));
        let deleted = world.call(&ours("DELETE", &format!("tasks/{ID}"))).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
    }
    assert!(seen.len() > 6, "{seen:?}");
}

async fn only_a_client_made_id_can_be_used_again_after_deletion(dialect: Dialect) {
    let world = World::new().unwrap();
    for round in 1..=3 {
        let words = format!("for {round}");
        let task = dialect.task(&world.call(&dialect.send(&say(&words))).await);
        untouched(dialect, &task, &words, &format!("for {}", round - 1));
        let id = task["id"].as_str().unwrap();
        let deleted = world.call(&ours("DELETE", &format!("tasks/{id}"))).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        if !dialect.is_v01() {
            let late = world.call(&dialect.send(&Say::in_task(id, "blue"))).await;
            gone(dialect, &late);
        }
    }
}
