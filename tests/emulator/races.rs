//! Jobs that another process overtakes between two of their requests. What the other
//! process has stored stays.

use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::{CommitResult, TaskWrite};
use a2a_lambda::task::{Change, Message, Metadata, OutputCounts, Part, TaskId, TaskRecord};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::{Arc, Mutex};

/// More bytes than a value inside an item may have (32 KiB).
const LARGE: usize = 300 * 1024;

/// An HTTP client or connector that runs a future before the first request of one
/// operation.
#[derive(Clone)]
struct Overtaken<T> {
    inner: T,
    operation: &'static str,
    first: Arc<Mutex<Option<BoxFuture<'static, ()>>>>,
}

impl<T> fmt::Debug for Overtaken<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overtaken")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

impl<T> Overtaken<T> {
    /// The future, at the first request of the operation.
    fn first_at(&self, request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        if target.rsplit('.').next() != Some(self.operation) {
            return None;
        }
        self.first.lock().unwrap().take()
    }
}

impl HttpClient for Overtaken<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Overtaken {
            inner: self.inner.http_connector(settings, components),
            operation: self.operation,
            first: Arc::clone(&self.first),
        })
    }
}

impl HttpConnector for Overtaken<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (inner, first) = (self.inner.clone(), self.first_at(&request));
        HttpConnectorFuture::new(async move {
            if let Some(first) = first {
                first.await;
            }
            inner.call(request).await
        })
    }
}

/// A store of another process. `first` runs before its first request of `operation`.
fn overtaken(
    emulator: &Emulator,
    operation: &'static str,
    first: impl Future<Output = ()> + Send + 'static,
) -> Records {
    let first: BoxFuture<'static, ()> = Box::pin(first);
    let config = emulator.clients.dynamodb.config();
    let client = Overtaken {
        inner: config.http_client().unwrap(),
        operation,
        first: Arc::new(Mutex::new(Some(first))),
    };
    let config = config.to_builder().http_client(client);
    let store = dynamodb::records(Client::from_conf(config.build()), TABLE);
    store.with_blobs(Arc::new(emulator.blobs.clone()))
}

async fn commits(records: &Records, writes: &[TaskWrite]) {
    for write in writes {
        let answer = records.commit(write).await.unwrap();
        assert_eq!(answer, CommitResult::Done);
    }
}

/// A task under this id with items beside it, and the two writes that store it.
fn grown(sample: &SampleData, id: &TaskId) -> (TaskRecord, [TaskWrite; 2]) {
    let task = sample.new_task(&sample.owner, id.clone()).unwrap();
    let text = vec![Part::text(noise(1, 9_000))];
    let says = Change::Update {
        message: Some(Message::from_agent("m", text)),
        metadata: Metadata::new(),
    };
    let grown = sample.next(&task, [sample.start(), says]).unwrap();
    assert!(!grown.layout.is_empty());
    let writes = [sample.create(&task), sample.update(&grown, &task)];
    (grown, writes)
}

#[tokio::test]
async fn a_late_removal_keeps_the_items_of_the_next_task() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "late removal").unwrap();
    let id = TaskId::parse("order:1").unwrap();
    let (first, writes) = grown(&sample, &id);
    commits(&emulator.records, &writes).await;
    // Its items have the same names.
    let (second, writes) = grown(&sample, &id);
    let (records, removed) = (emulator.records.clone(), first.clone());
    let other = async move {
        assert!(records.remove_task(&removed).await.unwrap());
        commits(&records, &writes).await;
    };
    let late = overtaken(&emulator, "DeleteItem", other);
    let removed = late.remove_task(&first).await.unwrap();
    assert!(!removed, "another task is stored");
    let found = emulator.records.load(&sample.owner, &id, sample.now).await;
    assert!(found.unwrap().as_ref() == Some(&second));
}

#[tokio::test]
async fn a_removal_that_a_write_overtakes_keeps_the_task() {
    let emulator = Emulator::start().await.unwrap();
    // The write is a commit of the task, or creates the next task under the id.
    for next in [false, true] {
        let sample = SampleData::new(run(), "overtaken").unwrap();
        let id = TaskId::parse("order:1").unwrap();
        let task = sample.new_task(&sample.owner, id.clone()).unwrap();
        commits(&emulator.records, &[sample.create(&task)]).await;
        let (stays, write) = if next {
            let other = sample.new_task(&sample.owner, id.clone()).unwrap();
            let write = sample.create(&other);
            (other, write)
        } else {
            let working = sample.next(&task, [sample.start()]).unwrap();
            let write = sample.update(&working, &task);
            (working, write)
        };
        let (records, removed) = (emulator.records.clone(), task.clone());
        let other = async move {
            if next {
                assert!(records.remove_task(&removed).await.unwrap());
            }
            commits(&records, &[write]).await;
        };
        let late = overtaken(&emulator, "TransactWriteItems", other);
        assert!(!late.remove_task(&task).await.unwrap(), "{next}");
        let found = emulator.records.load(&sample.owner, &id, sample.now).await;
        assert_eq!(found.unwrap(), Some(stays), "{next}");
    }
}

#[tokio::test]
async fn a_value_replaced_during_its_look_up_counts_as_named() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "looked up").unwrap();
    let keeps = |size: usize| Change::Save {
        key: "k".to_owned(),
        value: noise(1, size).into(),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    };
    let task = sample.task().unwrap();
    let first = sample.next(&task, [sample.start(), keeps(LARGE)]).unwrap();
    let writes = [sample.create(&task), sample.update(&first, &task)];
    commits(&emulator.records, &writes).await;
    let second = sample.next(&first, [keeps(LARGE + 1)]).unwrap();
    let (records, write) = (emulator.records.clone(), sample.update(&second, &first));
    let other = async move {
        commits(&records, &[write]).await;
    };
    let late = overtaken(&emulator, "Query", other);
    let named = late.sweep().content_objects(&task.key()).await.unwrap();
    let newest = emulator.records.sweep().content_objects(&task.key()).await;
    assert_eq!(named, newest.unwrap());
    assert_eq!(named.len(), 1);
}
