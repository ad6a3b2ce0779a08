//! `GetTask` and the get methods of the older generations.

use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World};
use serde_json::{Value, json};

per_dialect! {
    paused ALL:
    a_get_returns_the_task_that_the_send_returned
    history_has_at_most_the_requested_length
}

/// A completed task with three messages; its id.
async fn conversation(world: &World, dialect: Dialect) -> String {
    let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
    let id = task["id"].as_str().unwrap().to_owned();
    world.call(&dialect.send(&Say::in_task(&id, "blue"))).await;
    id
}

fn history(dialect: Dialect, task: &Value) -> Option<Vec<String>> {
    let messages = task.get("history")?.as_array()?;
    Some(messages.iter().map(|it| dialect.words(it)).collect())
}

async fn a_get_returns_the_task_that_the_send_returned(dialect: Dialect) {
    let world = World::new().unwrap();
    let sent = dialect.task(&world.call(&dialect.send(&Say::to("echo", "hi"))).await);
    let id = sent["id"].as_str().unwrap();
    let read = dialect.task(&world.call(&dialect.of_task(Op::Get, id)).await);
    assert_eq!(read, sent, "{dialect:?}");
}

async fn history_has_at_most_the_requested_length(dialect: Dialect) {
    let world = World::new().unwrap();
    let id = conversation(&world, dialect).await;
    let all = ["hi", "which one?", "blue"];
    let latest = |count: usize| {
        let skip = all.len().saturating_sub(count);
        Some(
            all.iter()
                .skip(skip)
                .map(|it| (*it).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let rows = [
        (json!(0), None),
        (json!(1), latest(1)),
        (json!(2), latest(2)),
        (json!(100), latest(3)),
        (json!(2_000_000_000), latest(3)),
    ];
    each_row_async(rows, async |(asked, expected)| {
        let task = dialect.task(&world.call(&dialect.get(&id, asked.clone())).await);
        assert_eq!(history(dialect, &task), expected, "{dialect:?} {asked}");
        // A2A 1.0 §3.2.4: the member is absent for a length of 0.
        assert_eq!(task.get("history").is_some(), expected.is_some());
    })
    .await;
    let task = dialect.task(&world.call(&dialect.of_task(Op::Get, &id)).await);
    let unset = if dialect.is_v01() { None } else { latest(3) };
    assert_eq!(history(dialect, &task), unset, "{dialect:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_0_1_is_read_at_its_own_path() {
    let world = World::new().unwrap();
    let dialect = Dialect::Path01;
    let id = conversation(&world, dialect).await;
    let posted = world.call(&dialect.get(&id, 2)).await;
    let path = format!("/tasks/{id}/get?historyLength=2");
    let read = world.call(&Request::new("GET", path)).await;
    assert_eq!(read.text(), posted.text());
    assert_eq!(history(dialect, &read.json()).unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_shared_method_answers_in_the_generation_of_the_task() {
    let world = World::new().unwrap();
    let mut ids = Vec::new();
    for dialect in [Dialect::Rpc01, Dialect::Rpc03, Dialect::Rpc10] {
        let task = dialect.task(&world.call(&dialect.send(&Say::to("echo", "hi"))).await);
        ids.push(task["id"].as_str().unwrap().to_owned());
    }
    // 0.1 and 0.3 both name it `tasks/get`. A task of 1.0 gets the form of 0.3.
    for (id, kind) in ids.iter().zip([Value::Null, json!("task"), json!("task")]) {
        let reply = world.call(&Dialect::Rpc03.of_task(Op::Get, id)).await;
        let task = Dialect::Rpc03.task(&reply);
        assert_eq!(*at(&task, "/kind"), kind, "{task}");
        assert_eq!(at(&task, "/sessionId").is_string(), kind.is_null());
        assert_eq!(at(&task, "/status/state"), "completed");
    }
}

// A2A 1.0 §3.6.1: the version is in the header or in the query.
#[tokio::test(start_paused = true)]
async fn a_version_may_be_in_the_query_and_have_a_patch_number() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let id = conversation(&world, dialect).await;
    let bare = dialect.of_task(Op::Get, &id).without("a2a-version");
    for version in ["1.0", "1.0.1"] {
        let mut asked = bare.clone();
        asked.target.push_str(&format!("?A2A-Version={version}"));
        assert_eq!(world.call(&asked).await.status, 200);
        let asked = bare.clone().header("a2a-version", version);
        assert_eq!(world.call(&asked).await.status, 200);
    }
}
