//! `ListTasks`.

use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use serde_json::{Value, json};
use std::time::Duration;

per_dialect! {
    paused [Rpc10, Rest10, Rest03]:
    an_empty_list_has_all_its_members
    a_list_is_newest_first_and_shows_artifacts_only_on_request
    a_filter_shows_only_matching_tasks
    a_page_token_is_valid_only_for_its_caller_and_filter
    a_page_token_is_valid_for_an_hour
}

const LISTING: [Dialect; 3] = [Dialect::Rpc10, Dialect::Rest10, Dialect::Rest03];

async fn page(world: &World, dialect: Dialect, params: Value) -> Value {
    let reply = world.call(&dialect.request(Op::List, "", &params)).await;
    assert_eq!(reply.status, 200, "{dialect:?} {params} {}", reply.text());
    dialect.result(&reply)
}

fn ids(page: &Value) -> Vec<String> {
    let tasks = page["tasks"].as_array().unwrap();
    tasks
        .iter()
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Tasks a second apart, oldest first: id and context.
async fn tasks(world: &World, dialect: Dialect, skills: &[&str]) -> Vec<(String, String)> {
    let mut made = Vec::new();
    for skill in skills {
        tokio::time::advance(Duration::from_secs(1)).await;
        let task = dialect.task(&world.call(&dialect.send(&Say::to(skill, "hi"))).await);
        made.push((
            task["id"].as_str().unwrap().to_owned(),
            dialect.context(&task),
        ));
    }
    made
}

async fn an_empty_list_has_all_its_members(dialect: Dialect) {
    let world = World::new().unwrap();
    // A2A 1.0 §3.1.4: these members are required even if they are empty.
    let expected = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
    assert_eq!(
        page(&world, dialect, json!({})).await,
        expected,
        "{dialect:?}"
    );
}

async fn a_list_is_newest_first_and_shows_artifacts_only_on_request(dialect: Dialect) {
    let world = World::new().unwrap();
    let made = tasks(&world, dialect, &["echo", "ask", "echo"]).await;
    let mut expected: Vec<String> = made.iter().map(|(id, _)| id.clone()).collect();
    expected.reverse();
    let all = page(&world, dialect, json!({})).await;
    assert_eq!(ids(&all), expected, "{dialect:?}");
    assert_eq!(all["totalSize"], 3);
    // A2A 1.0 §3.1.4: the member is absent unless `includeArtifacts` is true.
    assert!(all["tasks"][0].get("artifacts").is_none(), "{all}");
    let all = page(&world, dialect, json!({"includeArtifacts": true})).await;
    assert_eq!(dialect.words(&all["tasks"][0]["artifacts"][0]), "echo: hi");
    let short = page(&world, dialect, json!({"historyLength": 0})).await;
    assert!(short["tasks"][0].get("history").is_none(), "{short}");
    // The task in the middle gets its third message.
    tokio::time::advance(Duration::from_secs(1)).await;
    let asked = Say::in_task(&made[1].0, "again");
    world.call(&dialect.send(&asked)).await;
    for (length, said) in [
        (1, ["again"].as_slice()),
        (100, &["hi", "which one?", "again"]),
    ] {
        let some = page(&world, dialect, json!({"historyLength": length})).await;
        let messages = some["tasks"][0]["history"].as_array().unwrap().iter();
        let found: Vec<String> = messages.map(|it| dialect.words(it)).collect();
        assert_eq!(found, said, "{dialect:?} {length}");
    }
}

async fn a_filter_shows_only_matching_tasks(dialect: Dialect) {
    let world = World::new().unwrap();
    let made = tasks(&world, dialect, &["echo", "ask", "broken", "echo"]).await;
    let of = |indexes: &[usize]| -> Vec<String> {
        indexes.iter().map(|index| made[*index].0.clone()).collect()
    };
    let all = page(&world, dialect, json!({})).await;
    let second = all["tasks"][2]["status"]["timestamp"].clone();
    let rows = [
        (json!({"status": "TASK_STATE_COMPLETED"}), of(&[3, 0])),
        (json!({"status": "TASK_STATE_INPUT_REQUIRED"}), of(&[1])),
        (json!({"status": "TASK_STATE_WORKING"}), of(&[])),
        (json!({"contextId": made[2].1}), of(&[2])),
        (json!({"contextId": "nobodys"}), of(&[])),
        (json!({"statusTimestampAfter": second}), of(&[3, 2, 1])),
        (
            json!({"contextId": made[0].1, "status": "TASK_STATE_FAILED"}),
            of(&[]),
        ),
    ];
    each_row_async(rows, async |(filter, expected)| {
        let found = page(&world, dialect, filter.clone()).await;
        assert_eq!(ids(&found), expected, "{dialect:?} {filter}");
        assert_eq!(found["totalSize"], expected.len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pages_join_to_the_whole_list_and_keep_its_size() {
    each_row_async(LISTING, async |dialect| {
        let world = World::new().unwrap();
        let made = tasks(&world, dialect, &["echo"; 7]).await;
        let (mut token, mut found, mut pages) = (String::new(), Vec::new(), 0);
        loop {
            let part = page(&world, dialect, json!({"pageSize": 3, "pageToken": token})).await;
            assert_eq!(
                (&part["pageSize"], &part["totalSize"]),
                (&json!(3), &json!(7))
            );
            found.extend(ids(&part));
            pages += 1;
            token = part["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
        }
        found.reverse();
        let expected: Vec<String> = made.into_iter().map(|(id, _)| id).collect();
        assert_eq!((pages, found), (3, expected), "{dialect:?}");
    })
    .await;
}

async fn a_page_token_is_valid_only_for_its_caller_and_filter(dialect: Dialect) {
    let world = World::new().unwrap();
    tasks(&world, dialect, &["echo"; 3]).await;
    let first = page(&world, dialect, json!({"pageSize": 1})).await;
    let token = first["nextPageToken"].as_str().unwrap();
    let with = |params: Value| dialect.request(Op::List, "", &params);
    let good = with(json!({"pageSize": 1, "pageToken": token}));
    assert_eq!(world.call(&good).await.status, 200);
    let mut spoiled = token.to_owned();
    spoiled.replace_range(0..1, if token.starts_with('A') { "B" } else { "A" });
    let rows = [
        good.clone().from("local:bob"),
        good.from("evil:local"),
        with(json!({"pageToken": token, "status": "TASK_STATE_COMPLETED"})),
        with(json!({"pageToken": token, "contextId": "other"})),
        with(json!({"pageToken": spoiled})),
        with(json!({"pageToken": token.split_at(token.len() - 2).0})),
    ];
    each_row_async(rows, async |bad| {
        let reply = world.call(&bad).await;
        let fault = Fault::new(dialect, PARAMS).at("pageToken");
        fault.check(&reply).unwrap();
    })
    .await;
}

async fn a_page_token_is_valid_for_an_hour(dialect: Dialect) {
    let world = World::new().unwrap();
    tasks(&world, dialect, &["echo"; 3]).await;
    let first = page(&world, dialect, json!({"pageSize": 1})).await;
    let token = first["nextPageToken"].as_str().unwrap();
    let next = dialect.request(Op::List, "", &json!({"pageSize": 1, "pageToken": token}));
    tokio::time::advance(Duration::from_secs(3_599)).await;
    assert_eq!(world.call(&next).await.status, 200, "{dialect:?}");
    tokio::time::advance(Duration::from_secs(1)).await;
    let fault = Fault::new(dialect, PARAMS).at("pageToken");
    fault.check(&world.call(&next).await).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_total_above_its_limit_is_a_lower_bound() {
    each_row_async(LISTING, async |dialect| {
        let world = World::with(|settings| settings.policy.list_count_max = 2).unwrap();
        tasks(&world, dialect, &["echo"; 6]).await;
        let (mut token, mut totals) = (String::new(), Vec::new());
        loop {
            let part = page(&world, dialect, json!({"pageSize": 2, "pageToken": token})).await;
            totals.push(part["totalSize"].as_u64().unwrap());
            token = part["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
        }
        // At least the number delivered so far, plus one while there are more.
        assert_eq!(totals, [3, 5, 6], "{dialect:?}");
    })
    .await;
}
