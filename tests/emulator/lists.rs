//! Lists, and the requests of one page.

use a2a_lambda::store::contract::SampleData;
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::{ListPosition, RecordPage, RecordQuery};
use a2a_lambda::task::{TaskId, TaskRecord, TaskState};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextMut, BeforeTransmitInterceptorContextRef,
};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

/// Operations with their bodies, in the order of the calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<(String, Value)>>>);

impl Calls {
    pub(crate) fn taken(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Intercept for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default())?;
        self.0.lock().unwrap().push((operation, body));
        Ok(())
    }
}

/// The store of a new process, and a record of its calls.
pub(crate) fn watched(emulator: &Emulator) -> (Records, Calls) {
    let calls = Calls::default();
    let config = emulator.clients.dynamodb.config().to_builder();
    let config = config.interceptor(calls.clone()).build();
    (dynamodb::records(Client::from_conf(config), TABLE), calls)
}

/// `count` tasks, newest first.
async fn made(emulator: &Emulator, sample: &SampleData, count: u32) -> Vec<TaskRecord> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let task = sample.new_task(&sample.owner, TaskId::made_of(sample.number()));
        let task = task.unwrap();
        sample.stored(&emulator.stores(), &task).await.unwrap();
        tasks.push(task);
    }
    tasks.sort_by_key(|task| Reverse(ListPosition::of(task)));
    tasks
}

/// All pages of a list. Only the first page counts.
async fn joined(store: &Records, sample: &SampleData, mut query: RecordQuery) -> Vec<RecordPage> {
    let mut pages = Vec::new();
    loop {
        let page = store.list(&sample.owner, &query).await.unwrap();
        query.after.clone_from(&page.next);
        // Like the engine, which carries the count over in the page token.
        query.count_limit = 0;
        pages.push(page);
        if query.after.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn pages_of_any_size_join_into_one_ordered_list() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "pages").unwrap();
    let tasks = made(&emulator, &sample, 50).await;
    each_row_async([1, 7, 50, 100], async |limit| {
        let (store, calls) = watched(&emulator);
        let mut query = sample.everything();
        query.limit = limit;
        let pages = joined(&store, &sample, query).await;
        let found: Vec<TaskRecord> = pages.iter().flat_map(|page| page.records.clone()).collect();
        assert_eq!(found, tasks, "pages of {limit}");
        assert_eq!(pages[0].matching, 50);
        assert!(pages.iter().all(|page| page.records.len() <= limit));
        // A page queries the index once, and the first one may count.
        let calls = calls.taken();
        let queries = calls.iter().filter(|(operation, _)| operation == "Query");
        assert!(queries.count() <= pages.len() + 1, "pages of {limit}");
    })
    .await;
    let mut query = sample.everything();
    query.context_id = Some(tasks[3].context_id.clone());
    let found = emulator.records.list(&sample.owner, &query).await.unwrap();
    assert!(found.records.contains(&tasks[3]));
    assert_eq!(found.matching, found.records.len());
}

#[tokio::test]
async fn a_list_page_reads_a_bounded_number_of_items_and_never_scans() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "bounded").unwrap();
    made(&emulator, &sample, 12).await;
    let (store, calls) = watched(&emulator);
    let mut query = sample.everything();
    query.limit = 5;
    joined(&store, &sample, query.clone()).await;
    query.state = Some(TaskState::Working);
    joined(&store, &sample, query).await;
    let calls = calls.taken();
    assert!(calls.len() > 4);
    for (operation, body) in &calls {
        assert!(
            ["Query", "BatchGetItem", "GetItem"].contains(&operation.as_str()),
            "{operation}"
        );
        if operation == "Query" {
            assert!(body["KeyConditionExpression"].is_string(), "{body}");
            assert!(body["Limit"].as_u64().is_some_and(|n| n <= 500), "{body}");
            let count = body["Select"] == "COUNT";
            assert!(count || body.get("FilterExpression").is_some(), "{body}");
        }
    }
    // The count reads only the index, once per list.
    let counts = calls.iter().filter(|(_, body)| body["Select"] == "COUNT");
    assert_eq!(counts.count(), 1);
}

/// An index that lags: it executes a query for `then` in place of a query for `now`.
#[derive(Debug)]
struct Late {
    now: String,
    then: String,
}

impl Intercept for Late {
    fn name(&self) -> &'static str {
        "late"
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request_mut();
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        if target.ends_with(".Query") {
            let body = request.body().bytes().unwrap_or_default().to_vec();
            // Both values have the same length, so the body keeps its length.
            let body = String::from_utf8(body)?.replace(&self.now, &self.then);
            *request.body_mut() = SdkBody::from(body);
        }
        Ok(())
    }
}

fn late(emulator: &Emulator, now: &str, then: &str) -> Records {
    assert_eq!(now.len(), then.len());
    let late = Late {
        now: now.to_owned(),
        then: then.to_owned(),
    };
    let config = emulator.clients.dynamodb.config().to_builder();
    let client = Client::from_conf(config.interceptor(late).build());
    dynamodb::records(client, TABLE)
}

#[tokio::test]
async fn a_lagging_index_lists_no_outdated_task() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "late").unwrap();
    let open = made(&emulator, &sample, 2).await;
    let over = sample.finished(&sample.task().unwrap()).unwrap();
    sample.stored(&emulator.stores(), &over).await.unwrap();

    // The index shows a task in a state that the task has left.
    let mut query = sample.everything();
    query.state = Some(TaskState::Submitted);
    let store = late(&emulator, "submitted", "completed");
    let page = store.list(&sample.owner, &query).await.unwrap();
    assert_eq!((page.records.len(), page.matching), (0, 1));

    // The index shows a task as it was before its expiry.
    let mut query = sample.everything();
    query.now = sample.expiry();
    let now = query.now.as_millis().to_string();
    let store = late(&emulator, &now, &"0".repeat(now.len()));
    let page = store.list(&sample.owner, &query).await.unwrap();
    assert_eq!(page.matching, 3);
    assert_eq!(page.records, open);
}

#[tokio::test]
async fn a_task_behind_2100_newer_ones_is_counted_and_found() {
    let emulator = Emulator::alone().await.unwrap();
    let sample = SampleData::new(run(), "behind").unwrap();
    let tasks = made(&emulator, &sample, 2_100).await;
    let mut query = sample.everything();
    query.limit = 10;
    query.count_limit = 1_000;
    let page = emulator.records.list(&sample.owner, &query).await.unwrap();
    assert_eq!((page.records.len(), page.matching), (10, 1_000));
    // A query for one context does not read the others.
    let oldest = tasks.last().unwrap();
    query.context_id = Some(oldest.context_id.clone());
    let page = emulator.records.list(&sample.owner, &query).await.unwrap();
    assert_eq!(
        (page.records.as_slice(), page.matching),
        (std::slice::from_ref(oldest), 1)
    );
    assert_eq!(page.next, None);
}
