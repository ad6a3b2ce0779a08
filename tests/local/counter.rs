//! An agent whose calls of the table and the bucket are counted.

use crate::meter::{Bill, Counted, Index, Meter};
use a2a_lambda::auth::Identity;
use a2a_lambda::engine::{Clock as _, Leases, LimitPolicy, SystemClock};
use a2a_lambda::http::{Function, HttpService};
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::task::{Owner, Subject, TaskId, TenantId};
use a2a_lambda::testing::TestClock;
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use a2a_local::pumps::Pumps;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// The agent with metered clients.
pub(crate) struct Counter {
    pub(crate) runtime: Runtime,
    pub(crate) meter: Arc<Meter>,
    /// Reads tasks without the meter.
    pub(crate) tasks: Records,
    /// Puts objects without the meter.
    pub(crate) blobs: S3Blobs,
    /// A metered store.
    pub(crate) near: Records,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) rows: String,
    pub(crate) pumps: Vec<Pumps>,
    pub(crate) services: Embedded,
}

/// The keys and attributes of the table's indexes.
pub(crate) async fn indexes(clients: &AwsClients) -> Vec<Index> {
    let described = clients.dynamodb.describe_table().table_name(TABLE).send();
    let table = described.await.unwrap().table.unwrap();
    let indexes = table.global_secondary_indexes().iter();
    let index = indexes.map(|index| {
        let keys = index
            .key_schema()
            .iter()
            .map(|key| key.attribute_name().to_owned());
        let keys: Vec<String> = keys.collect();
        let mut holds = keys.clone();
        holds.extend(["PK".to_owned(), "SK".to_owned()]);
        holds.extend(index.projection().unwrap().non_key_attributes().to_vec());
        Index { keys, holds }
    });
    index.collect()
}

/// The same clients with a meter.
pub(crate) fn counted(clients: &AwsClients, meter: &Arc<Meter>) -> AwsClients {
    let config = clients.dynamodb.config();
    let (inner, meter) = (config.http_client().unwrap(), Arc::clone(meter));
    let config = config.to_builder().http_client(Counted {
        inner,
        meter: Arc::clone(&meter),
    });
    let dynamodb = aws_sdk_dynamodb::Client::from_conf(config.build());
    let config = clients.s3.config();
    let inner = config.http_client().unwrap();
    let config = config.to_builder().http_client(Counted { inner, meter });
    let s3 = aws_sdk_s3::Client::from_conf(config.force_path_style(true).build());
    AwsClients { dynamodb, s3 }
}

impl Counter {
    pub(crate) async fn new(agent: AgentDefinition) -> Self {
        let mut counter = Self::still(agent).await;
        let endpoints = counter.services.endpoints();
        let settings = Settings::read(&Local).unwrap();
        let engine = counter.runtime.engine();
        let pumps = Pumps::start(
            engine,
            counter.near.deliveries(),
            endpoints,
            &settings,
            Leases::CountAsExpired,
            None,
        );
        let pumps = pumps.await.unwrap();
        counter.pumps.push(pumps);
        counter.meter.take();
        counter
    }

    /// Without pumps, so that nothing runs but the calls.
    pub(crate) async fn still(agent: AgentDefinition) -> Self {
        Self::limited(agent, |_| ()).await
    }

    /// Without pumps, and with limits of its tenants.
    pub(crate) async fn limited(
        agent: AgentDefinition,
        change: impl FnOnce(&mut LimitPolicy),
    ) -> Self {
        let services = Embedded::start(None).await.unwrap();
        let clients = AwsClients::connect(services.endpoints()).await;
        let meter = Meter::new(indexes(&clients).await, clients.dynamodb.clone());
        let mut settings = Settings::read(&Local).unwrap();
        change(&mut settings.policy.limits);
        let near = counted(&clients, &meter);
        let clock = Arc::new(TestClock::following(SystemClock.now(), 1));
        let runtime = Runtime::builder(agent, settings)
            .aws(&near)
            .clock(clock.clone())
            .build()
            .unwrap();
        // The client of the test may take long to put a large file.
        let patient = clients.s3.config().to_builder();
        let patient = patient
            .timeout_config(TimeoutConfig::disabled())
            .force_path_style(true);
        let tasks = dynamodb::records(clients.dynamodb.clone(), TABLE);
        let near = dynamodb::records(near.dynamodb, TABLE);
        meter.take();
        Self {
            runtime,
            meter,
            tasks,
            blobs: S3Blobs::new(aws_sdk_s3::Client::from_conf(patient.build()), BUCKET),
            near,
            clock,
            rows: String::new(),
            pumps: Vec::new(),
            services,
        }
    }

    pub(crate) fn edge(&self, method: &str, path: &str) -> HttpService {
        self.runtime
            .edge(Function::of(method, path.split('?').next().unwrap()))
    }

    /// Sends one request, and returns the whole body of the response.
    pub(crate) async fn call(
        &self,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> String {
        let method = if body.is_some() { "POST" } else { "GET" };
        self.ask(method, path, body, headers).await
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.ask("DELETE", path, None, &[]).await;
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> String {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("A2A-Version", "1.0")
            .header("Content-Type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Bytes::from(body.map(Value::to_string).unwrap_or_default());
        let named = headers.iter().find(|(name, _)| *name == "Authorization");
        let identity = Identity {
            authorizer: None,
            authorization: named.map(|(_, value)| (*value).to_owned()),
        };
        let request = request.body(body).unwrap();
        let response = self
            .edge(method, path)
            .handle(request, identity, None)
            .await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(status.is_success(), "{path}: {text}");
        text
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.call(path, Some(body), &[]).await).unwrap()
    }

    /// Sends `text`, and returns the task.
    pub(crate) async fn send(&self, text: &str) -> Value {
        self.post("/message:send", &message(text)).await["task"].clone()
    }

    /// Reads how the caller's list is spread over partitions. The process keeps
    /// this for a minute.
    pub(crate) async fn warm(&self) {
        self.call("/tasks?pageSize=1", None, &[]).await;
        self.meter.take();
    }

    /// Waits without the meter until a task is at rest.
    pub(crate) async fn rests(&self, task: &Value) {
        let owner = owner();
        let id = TaskId::parse(task["id"].as_str().unwrap()).unwrap();
        loop {
            let found = self.tasks.load(&owner, &id, SystemClock.now()).await;
            if found.unwrap().unwrap().state().is_at_rest() {
                return self.meter.settles().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Adds a row to the table: what was metered since the last row.
    pub(crate) fn row(&mut self, operation: &str) -> Bill {
        let bill = self.meter.take();
        let requests: Vec<String> = bill
            .requests
            .iter()
            .map(|(name, n)| format!("{n} {name}"))
            .collect();
        let requests = match requests.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let writes = bill.writes + bill.index_writes;
        let reads = bill.half_reads as f64 / 2.0;
        writeln!(
            self.rows,
            "| {operation} | {} | {writes} | {reads} |",
            requests
        )
        .unwrap();
        bill
    }
}

pub(crate) fn message(text: &str) -> Value {
    json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

pub(crate) fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    }
}
