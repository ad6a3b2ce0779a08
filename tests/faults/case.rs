//! One run of one scenario: clients with faults, and clients without faults that check what
//! is stored.

use crate::faulty_connection::{Faulty, FaultyConnection, Plan};
use a2a_lambda::auth::Caller;
use a2a_lambda::engine::{
    Clock as _, Engine, EngineError, Leases, Policy, Services, SystemClock, relay,
};
use a2a_lambda::store::dynamodb::{self, task_image};
use a2a_lambda::store::queue::{Ack, Receipt, WorkItem, WorkMessage, WorkQueue};
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::table::{Query, QueryPage, QuerySource, Table, Value};
use a2a_lambda::store::{RecordQuery, StoreError, keys};
use a2a_lambda::task::{GetQuery, Owner, Subject, Task, TaskId, TaskRecord, TenantId};
use a2a_lambda::testing::{TableHooks, TableLayer, TestClock};
use a2a_lambda_tests::emulator::Emulator;
use a2a_lambda_tests::scenarios::agent::{Signals, agent};
use a2a_local::embedded::{BUCKET, TABLE};
use async_trait::async_trait;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition, TokenBucket};
use aws_sdk_dynamodb::types::AttributeValue;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How much faster the engine's clock runs than real time.
const SPEED: u32 = 20;

/// The queue of one case: in memory, with delivery at least once.
#[derive(Debug, Default)]
struct Queue(Mutex<Vec<WorkItem>>);

#[async_trait]
impl WorkQueue for Queue {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        let items = messages.iter().map(|it| it.item.clone());
        self.0.lock().unwrap().extend(items);
        Ok(vec![true; messages.len()])
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(self.0.lock().unwrap().len())
    }
}

struct Hidden;

#[async_trait]
impl Receipt for Hidden {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Shows the open tasks of one tenant. Cases share the table, and no case may change the tasks
/// of another.
#[derive(Debug)]
struct Own(TenantId);

#[async_trait]
impl TableHooks for Own {
    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        let mut page = table.query(query).await?;
        if query.partition.source() == QuerySource::Sweep {
            let own = keys::tenant(&self.0);
            page.items.retain(|item| match item.get(keys::PK) {
                Some(Value::Text(partition)) => partition.starts_with(&own),
                _ => false,
            });
        }
        Ok(page)
    }
}

/// One run of one scenario.
pub(crate) struct Case {
    pub(crate) engine: Engine,
    /// The same agent with clients that have no faults.
    pub(crate) clean: Engine,
    pub(crate) line: Arc<FaultyConnection>,
    pub(crate) caller: Caller,
    pub(crate) signals: Arc<Signals>,
    pub(crate) store: Records,
    pub(crate) clock: Arc<TestClock>,
    emulator: Arc<Emulator>,
    queue: Queue,
    /// The task as stored when a response said that it is canceled.
    pub(crate) canceled: Mutex<Option<TaskRecord>>,
    /// The violations of the run.
    pub(crate) wrong: Mutex<Vec<String>>,
}

impl Case {
    /// The most messages in a response: all of them.
    pub(crate) const HISTORY: usize = 100;

    pub(crate) fn new(emulator: &Arc<Emulator>, name: &str, plan: Option<Plan>) -> Self {
        let line = FaultyConnection::new(plan);
        let signals = Arc::<Signals>::default();
        let clock = Arc::new(TestClock::following(SystemClock.now(), SPEED));
        let (near_store, near_blobs) = on(emulator, &line, name);
        let engine = |store: &Records, blobs: S3Blobs| {
            let services = Services {
                clock: clock.clone(),
                ..Services::new(store.clone(), Arc::new(blobs))
            };
            let agent = Arc::new(agent(&signals).unwrap());
            Engine::new(agent, services, Policy::default())
        };
        let owner = Owner {
            tenant: TenantId::parse(name).unwrap(),
            subject: Subject::parse("tester").unwrap(),
        };
        let table = TableLayer::new(emulator.records.table(), Own(owner.tenant.clone()));
        let own = Records::new(table).with_blobs(Arc::new(emulator.blobs.clone()));
        let clean = engine(&own, emulator.blobs.clone());
        Self {
            engine: engine(&near_store, near_blobs),
            clean,
            line,
            caller: Caller {
                owner,
                tier: "default".to_owned(),
                scopes: Default::default(),
            },
            store: emulator.records.clone(),
            signals,
            clock,
            emulator: Arc::clone(emulator),
            queue: Queue::default(),
            canceled: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    /// Records a violation.
    pub(crate) fn wrong(&self, what: impl Into<String>) {
        self.wrong.lock().unwrap().push(what.into());
    }

    /// Records a violation unless `holds`.
    pub(crate) fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong(what());
        }
    }

    /// The tasks of this case, each as far as its DynamoDB item has it.
    async fn heads(&self) -> Vec<TaskRecord> {
        let query = RecordQuery {
            context_id: None,
            state: None,
            status_after: None,
            after: None,
            limit: 100,
            count_limit: 100,
            now: self.clock.now(),
        };
        let page = self.store.list(&self.caller.owner, &query).await;
        page.unwrap().records
    }

    /// A task as stored.
    pub(crate) async fn load(&self, id: &TaskId) -> Option<TaskRecord> {
        let owner = &self.caller.owner;
        self.store.load(owner, id, self.clock.now()).await.unwrap()
    }

    /// A task as the client sees it, with the bytes of files.
    pub(crate) async fn shown(&self, id: &TaskId) -> Result<Task, EngineError> {
        let query = GetQuery {
            id: id.clone(),
            history_length: Self::HISTORY,
        };
        self.clean.reader().get(&self.caller, &query).await
    }

    /// Runs the relay on the stream records of all tasks.
    pub(crate) async fn relays(&self) {
        for record in self.heads().await {
            let key = record.key();
            let partition = format!("T#{}#K#{}", key.tenant(), key.local());
            let get = self.emulator.clients.dynamodb.get_item();
            let get = get.table_name(TABLE).consistent_read(true);
            let get = get.key("PK", AttributeValue::S(partition));
            let found = get.key("SK", AttributeValue::S("META".to_owned()));
            let item = found.send().await.unwrap().item.unwrap();
            let image = task_image(&|name| match item.get(name)? {
                AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
                _ => None,
            });
            relay(&self.queue, &[image.unwrap().unwrap()], self.clock.now()).await;
        }
    }

    /// Works once on every message of the queue.
    pub(crate) async fn works(&self, engine: &Engine, time: Option<Duration>) {
        let items = std::mem::take(&mut *self.queue.0.lock().unwrap());
        for item in items {
            let deadline = time.map(|time| self.clock.now().plus(time));
            match engine.turns.work(&item, &Hidden, deadline).await {
                Ack::Keep => self.queue.0.lock().unwrap().push(item),
                Ack::Delete => self.may_delete(&item).await,
            }
        }
    }

    /// Checks that a deleted message was not the only one that would continue its task.
    async fn may_delete(&self, item: &WorkItem) {
        let Some(record) = self.load(&item.task).await else {
            return;
        };
        // A hand-over has no lease, and the relay finds its new intent.
        self.check(
            record.state().is_at_rest() || record.version > item.dispatch,
            || format!("the queue message of an open task was deleted: {record:?}"),
        );
    }

    /// Ends the faults, then runs sweep, relay and worker until every task is at rest.
    /// Returns the tasks.
    pub(crate) async fn recovers(&self) -> Vec<TaskRecord> {
        self.line.mend();
        self.signals.free.send_replace(true);
        for _ in 0..8 {
            self.relays().await;
            self.works(&self.clean, None).await;
            let tasks = self.heads().await;
            if tasks.iter().all(|record| record.state().is_at_rest()) {
                return tasks;
            }
            self.clock.advance(Duration::from_secs(400));
            let swept = Box::pin(self.clean.sweeper.sweep(&self.queue, Leases::Respect)).await;
            self.check(swept.is_ok(), || format!("the sweep failed: {swept:?}"));
        }
        self.wrong("open tasks are not at rest after 8 rounds");
        self.heads().await
    }
}

/// Stores whose clients send through `line`.
fn on(emulator: &Emulator, line: &Arc<FaultyConnection>, name: &str) -> (Records, S3Blobs) {
    // The three attempts of the SDK, but with a short delay between them. Each case has its
    // own retry budget, since a process otherwise shares one.
    let retries = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    let budget = |service: &str| {
        let partition = RetryPartition::custom(format!("{name}-{service}"));
        partition.token_bucket(TokenBucket::unlimited()).build()
    };
    let config = emulator.clients.dynamodb.config();
    let inner = config.http_client().unwrap();
    let config = config.to_builder().http_client(Faulty {
        inner,
        line: Arc::clone(line),
    });
    let config = config
        .retry_config(retries.clone())
        .retry_partition(budget("dynamodb"));
    let dynamodb = aws_sdk_dynamodb::Client::from_conf(config.build());
    let config = emulator.clients.s3.config();
    let inner = config.http_client().unwrap();
    let config = config.to_builder().http_client(Faulty {
        inner,
        line: Arc::clone(line),
    });
    let config = config.retry_config(retries).retry_partition(budget("s3"));
    let s3 = aws_sdk_s3::Client::from_conf(config.force_path_style(true).build());
    let blobs = S3Blobs::new(s3, BUCKET);
    let store = dynamodb::records(dynamodb, TABLE).with_blobs(Arc::new(blobs.clone()));
    (store, blobs)
}
