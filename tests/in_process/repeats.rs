//! A message that its client sends again, because it did not get the response.

use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{FINISHED, Fault};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use futures::future::join_all;
use serde_json::Value;
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_repeated_answer_after_the_end_returns_the_task
    a_repeated_secret_answer_after_the_end_returns_the_task
}

// Messages of 0.1 have no id, so the same words can answer two questions.
per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    a_repeated_answer_does_not_answer_the_next_question
    a_repeated_secret_answer_does_not_answer_the_next_request
    an_answer_that_arrives_three_times_at_once_is_one_answer
    an_answer_with_a_known_id_and_other_content_is_new
    an_answer_under_another_idempotency_key_is_new
    an_opening_message_that_names_its_task_answers_nothing
    a_repeated_answer_as_a_stream_shows_the_task
}

/// A world with a task that waits for its client.
async fn asked(dialect: Dialect, skill: &str) -> (World, String) {
    let world = World::new().unwrap();
    let task = dialect.task(&world.call(&dialect.send(&Say::to(skill, "hi"))).await);
    let id = task["id"].as_str().unwrap().to_owned();
    (world, id)
}

async fn sends(world: &World, dialect: Dialect, say: &Say<'_>) -> Value {
    let reply = world.call(&dialect.send(say)).await;
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
    dialect.task(&reply)
}

/// Sends a message again: the same task, without a write.
async fn repeats(world: &World, dialect: Dialect, say: &Say<'_>, first: &Value) {
    let writes = world.store.writes();
    assert_eq!(sends(world, dialect, say).await, *first, "{dialect:?}");
    assert_eq!(world.store.writes(), writes, "{dialect:?}");
}

async fn a_repeated_answer_after_the_end_returns_the_task(dialect: Dialect) {
    let (world, id) = asked(dialect, "ask").await;
    let answer = Say::in_task(&id, "blue").with_id("m-2");
    let done = sends(&world, dialect, &answer).await;
    assert_eq!(dialect.state(&done), "completed");
    repeats(&world, dialect, &answer, &done).await;
    let other = dialect.send(&Say::in_task(&id, "red").with_id("m-2"));
    Fault::new(dialect, FINISHED)
        .check(&world.call(&other).await)
        .unwrap();
}

async fn a_repeated_secret_answer_after_the_end_returns_the_task(dialect: Dialect) {
    let (world, id) = asked(dialect, "login").await;
    let answer = Say::in_task(&id, "hunter2").with_id("m-2");
    let done = sends(&world, dialect, &answer).await;
    assert_eq!(dialect.state(&done), "completed");
    repeats(&world, dialect, &answer, &done).await;
    // Neither another secret nor the message before it is the last message.
    for other in [
        Say::in_task(&id, "hunter3").with_id("m-2"),
        Say::in_task(&id, "hi"),
    ] {
        Fault::new(dialect, FINISHED)
            .check(&world.call(&dialect.send(&other)).await)
            .unwrap();
    }
}

async fn a_repeated_answer_does_not_answer_the_next_question(dialect: Dialect) {
    let (world, id) = asked(dialect, "ask").await;
    let answer = Say::in_task(&id, "again").with_id("m-2");
    let asks = sends(&world, dialect, &answer).await;
    assert_eq!(dialect.status_words(&asks), "which one now?");
    repeats(&world, dialect, &answer, &asks).await;
    let next = Say::in_task(&id, "blue").with_id("m-3");
    let done = sends(&world, dialect, &next).await;
    assert_eq!(dialect.words(&done["artifacts"][0]), "blue after 2");
    // It is no longer the last message.
    let late = world.call(&dialect.send(&answer)).await;
    Fault::new(dialect, FINISHED).check(&late).unwrap();
}

async fn a_repeated_secret_answer_does_not_answer_the_next_request(dialect: Dialect) {
    let (world, id) = asked(dialect, "login").await;
    let answer = Say::in_task(&id, "again").with_id("m-2");
    let asks = sends(&world, dialect, &answer).await;
    assert_eq!(dialect.status_words(&asks), "sign in once more");
    repeats(&world, dialect, &answer, &asks).await;
    // The opening message is not the last one.
    let opening = Say::in_task(&id, "hi");
    let done = sends(&world, dialect, &opening).await;
    assert_eq!(dialect.state(&done), "completed");
}

async fn an_answer_that_arrives_three_times_at_once_is_one_answer(dialect: Dialect) {
    for skill in ["ask", "login"] {
        let (world, id) = asked(dialect, skill).await;
        world.store.take(Duration::from_millis(10));
        let commits = world.store.commits().len();
        let answer = dialect.send(&Say::in_task(&id, "again").with_id("m-2"));
        let replies = join_all((0..3).map(|_| world.call(&answer))).await;
        for reply in &replies {
            let task = dialect.task(reply);
            assert_eq!(task["id"], *id, "{dialect:?} {}", reply.text());
            assert!(!dialect.status_words(&task).ends_with("first"));
        }
        let read = world.call(&dialect.of_task(Op::Get, &id)).await;
        let words = dialect.status_words(&dialect.task(&read));
        assert!(["which one now?", "sign in once more"].contains(&words.as_str()));
        let versions: Vec<u64> = world.store.commits()[commits..]
            .iter()
            .map(|commit| commit.version)
            .collect();
        assert_eq!(versions.iter().max(), Some(&3), "{versions:?}");
    }
}

async fn an_answer_with_a_known_id_and_other_content_is_new(dialect: Dialect) {
    let (world, id) = asked(dialect, "ask").await;
    sends(&world, dialect, &Say::in_task(&id, "again").with_id("m-2")).await;
    let other = Say::in_task(&id, "blue").with_id("m-2");
    let done = sends(&world, dialect, &other).await;
    assert_eq!(dialect.words(&done["artifacts"][0]), "blue after 2");
}

async fn an_answer_under_another_idempotency_key_is_new(dialect: Dialect) {
    let (world, id) = asked(dialect, "ask").await;
    let answer = dialect.send(&Say::in_task(&id, "again").with_id("m-2"));
    for (key, version) in [("a", 3), ("a", 3), ("b", 5)] {
        let keyed = answer.clone().header("idempotency-key", key);
        let task = dialect.task(&world.call(&keyed).await);
        assert_eq!(dialect.status_words(&task), "which one now?");
        let commits = world.store.commits();
        assert_eq!(commits.last().unwrap().version, version, "{key}");
    }
    // Without a key it is the last message once more.
    let writes = world.store.writes();
    world.call(&answer).await;
    assert_eq!(world.store.writes(), writes);
}

async fn an_opening_message_that_names_its_task_answers_nothing(dialect: Dialect) {
    let (world, id) = asked(dialect, "ask").await;
    let read = world.call(&dialect.of_task(Op::Get, &id)).await;
    let opening = Say::in_task(&id, "hi");
    repeats(&world, dialect, &opening, &dialect.task(&read)).await;
}

async fn a_repeated_answer_as_a_stream_shows_the_task(dialect: Dialect) {
    let (world, id) = asked(dialect, "ask").await;
    let answer = Say::in_task(&id, "again").with_id("m-2");
    sends(&world, dialect, &answer).await;
    let writes = world.store.writes();
    let shown = frames(&world.call(&dialect.stream(&answer)).await).unwrap();
    let shown: Vec<String> = shown.iter().map(|frame| dialect.described(frame)).collect();
    assert_eq!(shown, ["task input-required"], "{dialect:?}");
    assert_eq!(world.store.writes(), writes);
}
