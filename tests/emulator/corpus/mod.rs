//! Reads the items and objects that each release has stored with this release.
//!
//! `tests/corpus` has a folder for each release; its README says how to write one.

mod broken;
mod read;
mod shapes;

use a2a_lambda::auth::Identity;
use a2a_lambda::engine::{Clock as _, Ids};
use a2a_lambda::http::Function;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::ReadBlobs as _;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::contract::Stores;
use a2a_lambda::store::contract::noise;
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::stored::Encoded;
use a2a_lambda::task::{
    ContextId, Event, Owner, PartContent, Subject, TaskId, TaskRecord, TenantId, Timestamp,
};
use a2a_lambda::testing::TestClock;
use a2a_lambda_tests::world::{Reply, Request, send};
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time of everything in a corpus: the year 2100, which native TTL does not reach.
const NOW: i64 = 4_102_444_800_000;

/// Ids that count up.
#[derive(Debug)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) << 64
    }
}

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        let value = match name {
            "A2A_AUTH" => "dev",
            "A2A_PUBLIC_URL" => "https://agent.example",
            _ => return None,
        };
        Some(value.to_owned())
    }
}

/// The owner of everything in a corpus.
fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("corpus").unwrap(),
        subject: Subject::parse("ann@example.com").unwrap(),
    }
}

/// An agent with a table and a bucket.
struct Endpoint {
    clients: AwsClients,
    records: Arc<Records>,
    blobs: Arc<S3Blobs>,
    runtime: Runtime,
    clock: Arc<TestClock>,
    _embedded: Embedded,
}

impl Endpoint {
    async fn new() -> Self {
        let embedded = Embedded::start(None).await.unwrap();
        let clients = AwsClients::connect(embedded.endpoints()).await;
        let blobs = Arc::new(S3Blobs::new(clients.s3.clone(), BUCKET));
        let records = dynamodb::records(clients.dynamodb.clone(), TABLE).with_blobs(blobs.clone());
        let records = Arc::new(records);
        let clock = Arc::new(TestClock::without_timers(Timestamp::from_millis(NOW)));
        let agent = conformance_agent::agent(Duration::from_secs(2)).unwrap();
        let runtime = Runtime::builder(agent, Settings::read(&Local).unwrap())
            .table(records.table())
            .blobs(blobs.clone())
            .clock(clock.clone())
            .ids(Arc::new(Counted(AtomicU64::new(1))))
            .build()
            .unwrap();
        Self {
            clients,
            records,
            blobs,
            runtime,
            clock,
            _embedded: embedded,
        }
    }

    /// The same, with the content of a corpus.
    async fn with(corpus: &Corpus) -> Self {
        let site = Self::new().await;
        for item in &corpus.items {
            site.put(item).await;
        }
        for (key, bytes) in &corpus.objects {
            let bytes = STANDARD.decode(bytes).unwrap();
            site.blobs.put(key, bytes.into()).await.unwrap();
        }
        site
    }

    fn stores(&self) -> Stores {
        Stores::over(self.records.table(), self.blobs.clone())
    }

    async fn put(&self, item: &Value) {
        let put = self.clients.dynamodb.put_item().table_name(TABLE);
        put.set_item(Some(untyped(item))).send().await.unwrap();
    }

    /// Sends one request as the owner.
    async fn call(&self, request: Request) -> Reply {
        let request = request.header("a2a-version", "1.0");
        let owner = owner();
        let identity = Identity {
            authorizer: None,
            authorization: Some(format!("Bearer dev:{}:{}", owner.tenant, owner.subject)),
        };
        let edge = self
            .runtime
            .edge(Function::of(request.method, request.path()));
        send(&edge, &request, identity).await.finish().await
    }

    /// All items, in the order of their keys.
    async fn items(&self) -> Vec<Value> {
        let found = self.clients.dynamodb.scan().table_name(TABLE);
        let found = found.send().await.unwrap();
        let mut items: Vec<Value> = found.items().iter().map(typed).collect();
        items.sort_by_key(|item| (text(item, "PK"), text(item, "SK")));
        items
    }

    /// Everything that is stored, and how this release reads it.
    async fn dump(&self) -> Corpus {
        let mut objects = BTreeMap::new();
        for key in self.blobs.keys("v1/", None, 100).await.unwrap() {
            let bytes = self.blobs.get(&key).await.unwrap().unwrap();
            objects.insert(key, STANDARD.encode(bytes));
        }
        let items = self.items().await;
        let expected = self.facts(&items).await;
        Corpus {
            items,
            objects,
            expected,
        }
    }

    async fn load(&self, id: &str) -> Option<TaskRecord> {
        let id = TaskId::parse(id).unwrap();
        self.records
            .load(&owner(), &id, self.clock.now())
            .await
            .unwrap()
    }

    /// The facts of every task and thread among the items.
    async fn facts(&self, items: &[Value]) -> Value {
        let mut facts = Map::new();
        for (id, _) in tasks_of(items) {
            facts.insert(id.clone(), self.facts_of_task(&id).await);
        }
        for item in items.iter().filter(|item| item.get("thread_id").is_some()) {
            let name = text(item, "thread_id");
            let id = ContextId::parse(name.clone()).unwrap();
            let thread = self
                .records
                .load_thread(&owner(), &id)
                .await
                .unwrap()
                .unwrap();
            let events = &thread.state.events;
            let said: Vec<_> = events.iter().map(|it| (&it.id, it.parts.len())).collect();
            let values: BTreeMap<_, _> = thread
                .state
                .session
                .iter()
                .map(|(key, value)| (key, fold(&value.to_string())))
                .collect();
            let facts_of = json!({
                "version": thread.version, "cleared": thread.is_cleared(),
                "created": thread.created_at.as_millis(), "updated": thread.updated_at.as_millis(),
                "expires": thread.expires_at.as_millis(), "stateExpires": thread.state_expires_at.as_millis(),
                "events": said, "session": values,
            });
            facts.insert(name, facts_of);
        }
        Value::Object(facts)
    }

    async fn facts_of_task(&self, id: &str) -> Value {
        let Some(record) = self.load(id).await else {
            return json!("not there");
        };
        let shown = self
            .call(Request::new(
                "GET",
                format!("/tasks/{id}?historyLength=100"),
            ))
            .await;
        let events: Vec<Value> = record
            .events_after(0)
            .map(|it| {
                let what = match &it.event {
                    Event::Status(status) => {
                        let message = status.status.message.as_ref();
                        json!([
                            status.status.state.as_str(),
                            message.map(|it| &it.id),
                            status.metadata
                        ])
                    }
                    Event::Artifact(update) => {
                        let parts: Vec<usize> = update
                            .artifact
                            .parts
                            .iter()
                            .map(|part| match &part.content {
                                PartContent::Text(text) => text.len(),
                                _ => 0,
                            })
                            .collect();
                        json!([update.artifact.id, parts, update.append, update.last_chunk])
                    }
                };
                json!([it.id.to_string(), it.seq, what])
            })
            .collect();
        let webhooks: Vec<&str> = record.push_ids.iter().map(|id| id.as_str()).collect();
        json!({
            "version": record.version, "epoch": record.epoch,
            "state": record.state().as_str(), "events": events, "webhooks": webhooks,
            "answer": [shown.status, folded(shown.json())],
        })
    }
}

/// The stored content of a release.
#[derive(Debug, PartialEq)]
struct Corpus {
    /// Items in the service's format, in the order of their keys.
    items: Vec<Value>,
    /// Objects by key, in Base64.
    objects: BTreeMap<String, String>,
    /// The facts of each task and thread, the same for every release that reads them.
    expected: Value,
}

fn folder(release: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(release)
}

/// The release that this source belongs to.
fn this_release() -> String {
    let (major, minor) = (
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    );
    format!("{major}.{minor}")
}

/// Every release that has a corpus.
fn releases() -> Vec<String> {
    let found = std::fs::read_dir(folder("")).unwrap();
    let found = found.map(|entry| entry.unwrap());
    let mut names: Vec<String> = found
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

impl Corpus {
    fn read(release: &str) -> Self {
        let read = |name: &str| std::fs::read_to_string(folder(release).join(name)).unwrap();
        let items = read("items.jsonl");
        Self {
            items: items
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            objects: serde_json::from_str(&read("objects.json")).unwrap(),
            expected: serde_json::from_str(&read("expected.json")).unwrap(),
        }
    }

    fn write(&self, release: &str) {
        let folder = folder(release);
        std::fs::create_dir_all(&folder).unwrap();
        let lines: Vec<String> = self.items.iter().map(|item| format!("{item}\n")).collect();
        let pretty = |value: &Value| format!("{value:#}\n");
        std::fs::write(folder.join("items.jsonl"), lines.concat()).unwrap();
        std::fs::write(folder.join("objects.json"), pretty(&json!(self.objects))).unwrap();
        std::fs::write(folder.join("expected.json"), pretty(&self.expected)).unwrap();
    }
}

/// The id and the META item of each task.
fn tasks_of(items: &[Value]) -> Vec<(String, &Value)> {
    let metas = items.iter().filter(|item| text(item, "SK") == "META");
    metas
        .filter_map(|item| {
            let partition = text(item, "PK");
            let (_, local) = partition.split_once("#K#")?;
            let id = local.rsplit('~').next()?;
            Some((id.to_owned(), item))
        })
        .collect()
}

fn text(item: &Value, name: &str) -> String {
    item[name]["S"].as_str().unwrap_or_default().to_owned()
}

fn typed(item: &HashMap<String, AttributeValue>) -> Value {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(digits) => json!({"N": digits}),
        AttributeValue::B(bytes) => json!({"B": STANDARD.encode(bytes)}),
        other => panic!("{other:?}"),
    };
    item.iter()
        .map(|(name, it)| (name.clone(), value(it)))
        .collect()
}

fn untyped(item: &Value) -> HashMap<String, AttributeValue> {
    let value = |value: &Value| {
        let member = |name: &str| value[name].as_str().map(str::to_owned);
        let bytes =
            member("B").map(|text| AttributeValue::B(STANDARD.decode(text).unwrap().into()));
        let text = bytes.or_else(|| member("S").map(AttributeValue::S));
        let number = text.or_else(|| member("N").map(AttributeValue::N));
        number.unwrap_or(AttributeValue::Bool(true))
    };
    let members = item.as_object().unwrap().iter();
    members
        .map(|(name, it)| (name.clone(), value(it)))
        .collect()
}

/// The body of an item as JSON; `null` if there is none or it is damaged.
fn body(item: &Value) -> Value {
    let json = match untyped(item).remove("body") {
        Some(AttributeValue::S(text)) => text,
        Some(AttributeValue::B(bytes)) => {
            let bytes = Encoded::Deflated(bytes.into_inner().into());
            bytes.json().unwrap_or_default().into_owned()
        }
        _ => String::new(),
    };
    serde_json::from_str(&json).unwrap_or_default()
}

/// The item with another body.
fn with_body(item: &Value, body: &Value) -> Value {
    let mut item = item.clone();
    item["body"] = match Encoded::of(body.to_string()).unwrap() {
        Encoded::Text(text) => json!({"S": text}),
        Encoded::Deflated(bytes) => json!({"B": STANDARD.encode(bytes)}),
    };
    item
}

/// A text of which every stored form has more than 32 KB.
fn long() -> String {
    noise(7, 66_000)
}

/// Replaces the long text, which would fill pages.
fn fold(text: &str) -> Value {
    json!(text.replace(&long(), "<long>"))
}

/// The value with every text folded.
fn folded(value: Value) -> Value {
    match value {
        Value::String(text) => fold(&text),
        Value::Array(items) => items.into_iter().map(folded).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(name, it)| (name, folded(it))).collect())
        }
        other => other,
    }
}
