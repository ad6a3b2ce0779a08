//! Tasks of one context that end at the same time, in memory and in a table, and the items
//! of the thread afterwards.

use a2a_lambda::store::stored::Encoded;
use a2a_lambda::task::Timestamp;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::emulator::Emulator;
use a2a_lambda_tests::fixture::{Fixture, Place};
use a2a_lambda_tests::tester::{self, Gate};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const ANN: &str = "acme:ann";
const TASKS: usize = 12;
const DIALECTS: [Dialect; 3] = [Dialect::Rest10, Dialect::Rpc03, Dialect::Path01];

type Item = HashMap<String, AttributeValue>;

/// The result of a task of the skill that keeps values, in a protocol version by `n`.
async fn note(fixture: &Fixture, n: usize, text: &str) -> String {
    let dialect = DIALECTS[n % DIALECTS.len()];
    let name = format!("t:{n}");
    let say = Say::to("notes", text).under(&name).in_context("mine:c");
    // A send with a key is stored before its skill begins.
    let request = dialect.send(&say).header("idempotency-key", &name);
    let reply = fixture.call(&request, ANN).await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "completed", "{}", reply.text());
    dialect.words(&task["artifacts"][0])
}

/// The items of the only context, by their sort key.
async fn items(emulator: &Emulator, tenant: &str) -> BTreeMap<String, Item> {
    let scan = emulator.clients.dynamodb.scan().table_name(TABLE);
    let partition = format!("T#{tenant}#C#");
    let mut pages = scan
        .filter_expression("begins_with(PK, :of)")
        .expression_attribute_values(":of", AttributeValue::S(partition))
        .into_paginator()
        .send();
    let mut found = BTreeMap::new();
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items.unwrap_or_default() {
            found.insert(item["SK"].as_s().unwrap().clone(), item);
        }
    }
    found
}

/// Asserts that the table has the thread's id and times (RAD-C2).
async fn is_persisted(fixture: &Fixture, emulator: &Emulator, begun: Timestamp) {
    let tenant = fixture.tenant("acme");
    let items = items(emulator, &tenant).await;
    let (meta, state) = (&items["META"], &items["STATE"]);
    let text = |name: &str| meta[name].as_s().unwrap().clone();
    let time = |name: &str| Timestamp::parse_rfc3339(&text(name)).unwrap();
    assert_eq!(
        (text("thread_id"), text("tenant_id")),
        ("mine:c".into(), tenant)
    );
    assert_eq!(time("created_at"), begun);
    let updated = fixture.now();
    assert_eq!(time("updated_at"), updated);
    let number = |item: &Item, name: &str| -> i64 { item[name].as_n().unwrap().parse().unwrap() };
    let day = updated.plus(Duration::from_secs(24 * 3600));
    assert_eq!(number(meta, "expires_at"), day.as_millis());
    let hour = updated.plus(Duration::from_secs(3600));
    assert_eq!(number(state, "expires_at"), hour.as_millis());
    for item in items.values() {
        assert!(number(item, "ttl") > day.as_millis() / 1000, "{item:?}");
    }
    let context = Encoded::Deflated(state["body"].as_b().unwrap().as_ref().into());
    let context = context.json().unwrap();
    for n in 0..TASKS {
        assert!(context.contains(&format!("v{n}.")), "{context}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_end_at_the_same_time_lose_no_thread_changes() {
    each_row_async(Place::ALL, async |place| {
        let gate = Gate::default();
        let agent = tester::agent(gate.clone()).unwrap();
        let fixture = Fixture::at(place, agent, |_| ()).await.unwrap();
        let begun = fixture.now();
        note(&fixture, 100, "show").await;
        fixture.set(begun, Duration::from_secs(600));
        let orders = (0..TASKS).map(|n| format!("wait set k{n} v{n}. add e{n}."));
        let orders: Vec<String> = orders.collect();
        let tasks = orders
            .iter()
            .enumerate()
            .map(|(n, it)| note(&fixture, n, it));
        let open = async {
            // The gate opens when each task is stored and working.
            while working(&fixture).await < TASKS {
                tokio::task::yield_now().await;
            }
            gate.open();
        };
        let (said, ()) = tokio::join!(join_all(tasks), open);
        assert_eq!(said.len(), TASKS);
        for n in 0..TASKS {
            let value = note(&fixture, 200 + n, &format!("get k{n}")).await;
            assert_eq!(value, format!("v{n}."), "{place:?}");
        }
        let thread = note(&fixture, 300, "show").await;
        for n in 0..TASKS {
            let event = format!("e{n}.");
            let times = thread.split('|').filter(|it| **it == event).count();
            assert_eq!(times, 1, "{place:?} {event} {thread}");
        }
        if let Some(emulator) = &fixture.emulator {
            is_persisted(&fixture, emulator, begun).await;
        }
    })
    .await;
}

/// The number of working tasks.
async fn working(fixture: &Fixture) -> usize {
    let query = json!({"status": "TASK_STATE_WORKING", "pageSize": 1});
    let list = Dialect::Rest10.request(Op::List, "", &query);
    let page = fixture.call(&list, ANN).await.json();
    let total = page["totalSize"].as_u64().unwrap();
    usize::try_from(total).unwrap()
}
