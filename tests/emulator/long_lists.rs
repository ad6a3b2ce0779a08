//! A list that is longer than one page may read: 2,000 items of the index.

use a2a_lambda::store::RecordQuery;
use a2a_lambda::store::contract::SampleData;
use a2a_lambda::task::{TaskId, TaskState};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use std::collections::{BTreeSet, HashMap};

/// More tasks than one page may read or a count may count.
const TASKS: usize = 2_020;

type Item = HashMap<String, AttributeValue>;

/// The META item of a task as it is stored.
async fn item(emulator: &Emulator, partition: &str) -> Item {
    let get = emulator.clients.dynamodb.get_item().table_name(TABLE);
    let get = get
        .key("PK", AttributeValue::S(partition.to_owned()))
        .key("SK", AttributeValue::S("META".to_owned()));
    get.consistent_read(true)
        .send()
        .await
        .unwrap()
        .item
        .unwrap()
}

/// Copies of an item, each with its own id and list position. They are written in batches,
/// since a commit for each would take as long as the rest of the suite.
async fn copied(emulator: &Emulator, item: &Item, id: &TaskId, ids: &[TaskId]) {
    let copies: Vec<Item> = ids
        .iter()
        .map(|copy| {
            let renamed = |value: &AttributeValue| match value {
                AttributeValue::S(text) => {
                    AttributeValue::S(text.replace(id.as_str(), copy.as_str()))
                }
                other => other.clone(),
            };
            let members = item.iter();
            members
                .map(|(name, value)| (name.clone(), renamed(value)))
                .collect()
        })
        .collect();
    // BatchWriteItem takes at most 25 items.
    for some in copies.chunks(25) {
        let puts = some.iter().map(|item| {
            let put = PutRequest::builder().set_item(Some(item.clone()));
            WriteRequest::builder()
                .put_request(put.build().unwrap())
                .build()
        });
        let written = emulator.clients.dynamodb.batch_write_item();
        let written = written.request_items(TABLE, puts.collect()).send().await;
        let left = written.unwrap().unprocessed_items.unwrap_or_default();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The pages of a list: the length of each, and the ids on all of them.
async fn pages(
    emulator: &Emulator,
    sample: &SampleData,
    mut query: RecordQuery,
) -> (Vec<usize>, BTreeSet<TaskId>) {
    let (mut lengths, mut found) = (Vec::new(), BTreeSet::new());
    loop {
        let page = emulator.records.list(&sample.owner, &query).await.unwrap();
        lengths.push(page.records.len());
        found.extend(page.records.iter().map(|record| record.id.clone()));
        query.after = page.next;
        query.count_limit = 0;
        if query.after.is_none() {
            return (lengths, found);
        }
    }
}

#[tokio::test]
async fn a_page_ends_after_2000_items_and_a_count_at_its_limit() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "long").unwrap();
    let stores = emulator.stores();
    // The two wanted tasks are older than all others.
    let mut wanted = BTreeSet::new();
    for _ in 0..2 {
        let task = sample.task().unwrap();
        sample.stored(&stores, &task).await.unwrap();
        let asks = sample.committed(&stores, &task, [sample.start()]).await;
        wanted.insert(asks.unwrap().id.clone());
    }
    let done = sample.finished(&sample.task().unwrap()).unwrap();
    sample.stored(&stores, &done).await.unwrap();
    let partition = format!("T#{}#K#{}", sample.owner.tenant, &done.id);
    let mut stored = item(&emulator, &partition).await;
    let later = stored["GSI1SK"].as_s().unwrap().replacen('4', "5", 1);
    stored.insert("GSI1SK".to_owned(), AttributeValue::S(later));
    let ids: Vec<TaskId> = (0..TASKS).map(|n| TaskId::made_of(n as u128)).collect();
    copied(&emulator, &stored, &done.id, &ids).await;

    let mut query = sample.everything();
    query.state = Some(TaskState::Working);
    query.limit = 50;
    let first = emulator.records.list(&sample.owner, &query).await.unwrap();
    assert_eq!(
        (first.records.len(), first.matching),
        (0, 0),
        "the count is a lower bound"
    );
    assert!(first.next.is_some(), "there is another page");
    let (lengths, found) = pages(&emulator, &sample, query.clone()).await;
    assert_eq!((lengths, found), (vec![0, 2], wanted));

    // The count stops exactly at its limit.
    query.state = None;
    for (limit, expected) in [(1_001, 1_001), (5_000, 2_000)] {
        query.count_limit = limit;
        let page = emulator.records.list(&sample.owner, &query).await.unwrap();
        assert_eq!(page.matching, expected, "up to {limit}");
    }
}
