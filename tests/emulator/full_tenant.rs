//! A tenant with content of every kind that can be stored, on stores with a line that tests
//! can cut.

use a2a_lambda::auth::{Caller, Identity};
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::Engine;
use a2a_lambda::http::Function;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::skill::{
    Agent, AgentDefinition, AgentResult, Artifact, Content, OnInputResult, OnRequestResult, Skill,
    SkillHandler, SkillMetadata, SkillSlot, TaskContext,
};
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::documents::{
    DocumentCollection, DocumentExpect, DocumentKey, DocumentOwner, DocumentWrite, Documents,
};
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::task::{
    ContextId, Generation, IdempotencyKey, Message, Metadata, Owner, Part, PushId, SendCommand,
    SendMode, SendResponse, Task, TaskId, TenantId,
};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_lambda_tests::faulty::FaultyLine;
use a2a_lambda_tests::world::{Reply, Request, send};
use a2a_local::embedded::{BUCKET, TABLE};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::primitives::ByteStream;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Item = HashMap<String, AttributeValue>;

/// More bytes than a value (32 KiB) or an event batch (200 KiB) may have inside an item.
const LARGE: usize = 205 * 1024;

/// Stored content: items by their keys, objects by their keys with their metadata.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Stored {
    pub(crate) items: BTreeMap<(String, String), Item>,
    pub(crate) objects: BTreeMap<String, (Blob, BTreeMap<String, String>)>,
}

impl Stored {
    /// The names of everything, for a message.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.items.keys().map(|(pk, sk)| format!("{pk} {sk}"));
        items.chain(self.objects.keys().cloned()).collect()
    }

    /// This content without the named partitions and folders.
    pub(crate) fn without(&self, partitions: &[String], folders: &[String]) -> Self {
        let mut rest = self.clone();
        let is_in = |pk: &String, sk: &String| {
            partitions.contains(pk) || partitions.contains(&format!("{pk} {sk}"))
        };
        rest.items.retain(|(pk, sk), _| !is_in(pk, sk));
        rest.objects
            .retain(|key, _| !folders.iter().any(|folder| key.starts_with(folder)));
        rest
    }
}

/// Stores much content: chunks and values too large for an item, each value twice, and a
/// file.
struct Leaves;

impl Skill for Leaves {
    const METADATA: SkillMetadata = SkillMetadata::new("leaves", "Leaves much.", &["test"]);
}

#[derive(Serialize, Deserialize)]
struct More;

impl SkillSlot for More {}

impl SkillHandler<More> for Leaves {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        said: Content,
    ) -> AgentResult<OnRequestResult<String, More>> {
        if said.text()? == "little" {
            return OnRequestResult::done("done".to_owned());
        }
        for text in [1, 2] {
            cx.save_data("kept", &noise(text, LARGE)).await?;
        }
        cx.save_session("seen", &noise(3, LARGE))?;
        let mut chunks = cx.artifact_chunks("text");
        for _ in 0..4 {
            chunks.push(noise(4, 8_000)).await?;
        }
        chunks.finish().await?;
        let file = Artifact::from_file("logo.bin", "application/octet-stream", vec![7; 40_000]);
        cx.send_partial_artifact(file).await?;
        OnRequestResult::ask("More?", More)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: More,
        said: Content,
    ) -> AgentResult<OnInputResult<String, More>> {
        cx.save_session("seen", &said.text()?)?;
        OnInputResult::done("done".to_owned())
    }
}

pub(crate) fn agent() -> AgentDefinition {
    Agent::builder("leaves").skill(Leaves).build().unwrap()
}

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        match name {
            "A2A_AUTH" => Some("dev".to_owned()),
            "A2A_PUBLIC_URL" => Some("https://agent.example".to_owned()),
            _ => None,
        }
    }
}

pub(crate) fn settings() -> Settings {
    Settings::read(&Local).unwrap()
}

/// Stores that use one pair of connections.
pub(crate) struct Side {
    pub(crate) table: DynamoTable,
    pub(crate) records: Records,
    pub(crate) blobs: S3Blobs,
    pub(crate) runtime: Runtime,
}

impl Side {
    fn new(dynamodb: aws_sdk_dynamodb::Client, s3: aws_sdk_s3::Client) -> Self {
        let blobs = S3Blobs::new(s3, BUCKET);
        let table = DynamoTable::new(dynamodb, TABLE);
        let records = Records::new(Arc::new(table.clone())).with_blobs(Arc::new(blobs.clone()));
        let runtime = Runtime::builder(agent(), settings())
            .table(records.table())
            .blobs(Arc::new(blobs.clone()))
            .build()
            .unwrap();
        Self {
            table,
            records,
            blobs,
            runtime,
        }
    }

    /// Sends a request of `owner` to the function it belongs to.
    pub(crate) async fn call(&self, owner: &Owner, method: &'static str, path: &str) -> Reply {
        let edge = self.runtime.edge(Function::of(method, path));
        let Owner { tenant, subject } = owner;
        let identity = Identity {
            authorizer: None,
            authorization: Some(format!("Bearer dev:{tenant}:{}", subject.as_str())),
        };
        let request = Request::new(method, path);
        send(&edge, &request, identity).await.finish().await
    }
}

/// Sends a message. Returns the task that it created or continued.
pub(crate) async fn say(
    engine: &Engine,
    owner: &Owner,
    said: &str,
    change: impl FnOnce(&mut SendCommand),
) -> Task {
    let mut command = SendCommand {
        message: Message::from_user("m-1", vec![Part::text(said)]),
        client_task_id: None,
        idempotency_key: None,
        mode: SendMode::Blocking,
        history_length: 10,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V10,
    };
    change(&mut command);
    let caller = Caller {
        owner: owner.clone(),
        tier: "default".to_owned(),
        scopes: BTreeSet::new(),
    };
    match Box::pin(engine.send(&caller, command, CallBudget::default()))
        .await
        .unwrap()
    {
        SendResponse::Task(task) => *task,
        SendResponse::Message(message) => panic!("{message:?}"),
    }
}

/// Two tenants, one with two subjects and one with a single one, and content of every kind.
pub(crate) struct Estate {
    emulator: Emulator,
    /// Stores with a direct connection.
    pub(crate) near: Side,
    /// Stores behind the line that tests cut.
    pub(crate) far: Side,
    pub(crate) line: FaultyLine,
    _beside: FaultyLine,
    pub(crate) sample: SampleData,
}

impl Estate {
    pub(crate) async fn new(case: &str) -> Self {
        // A sweep of objects covers the whole bucket, so the test needs its own.
        let emulator = Emulator::alone().await.unwrap();
        let line = FaultyLine::to(emulator.dynamodb).await.unwrap();
        let beside = line.beside(emulator.s3).await.unwrap();
        // The SDK's attempts, without the waits between them.
        let quick = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
        let dynamodb = emulator.clients.dynamodb.config().to_builder();
        let dynamodb = dynamodb
            .endpoint_url(line.url())
            .retry_config(quick.clone());
        let s3 = emulator.clients.s3.config().to_builder();
        let s3 = s3.endpoint_url(beside.url()).force_path_style(true);
        let s3 = s3.retry_config(quick);
        let clients = &emulator.clients;
        Self {
            near: Side::new(clients.dynamodb.clone(), clients.s3.clone()),
            far: Side::new(
                aws_sdk_dynamodb::Client::from_conf(dynamodb.build()),
                aws_sdk_s3::Client::from_conf(s3.build()),
            ),
            emulator,
            line,
            _beside: beside,
            sample: SampleData::new(run(), case).unwrap(),
        }
    }

    /// The three owners: two of one tenant, one of another.
    pub(crate) fn owners(&self) -> [&Owner; 3] {
        let SampleData {
            owner,
            colleague,
            stranger,
            ..
        } = &self.sample;
        [owner, colleague, stranger]
    }

    /// The stores of a process that has read nothing yet.
    pub(crate) fn side(&self) -> Side {
        let clients = &self.emulator.clients;
        Side::new(clients.dynamodb.clone(), clients.s3.clone())
    }

    pub(crate) async fn say(
        &self,
        owner: &Owner,
        said: &str,
        change: impl FnOnce(&mut SendCommand),
    ) -> Task {
        say(self.near.runtime.engine(), owner, said, change).await
    }

    /// One context of `owner` with three tasks: one with large values, one with a push config
    /// and a key, and a small one.
    pub(crate) async fn conversation(&self, owner: &Owner, context: &ContextId) -> Vec<Task> {
        let named = |command: &mut SendCommand| command.message.context_id = Some(context.clone());
        let much = self
            .say(owner, "much", |command| {
                named(command);
                command.client_task_id = Some(TaskId::parse("order:1").unwrap());
            })
            .await;
        let reported = self
            .say(owner, "little", |command| {
                named(command);
                command.idempotency_key = Some(IdempotencyKey::parse("k-1").unwrap());
            })
            .await;
        let records = &self.near.records;
        let now = a2a_lambda::task::Timestamp::from_millis(0);
        let record = records.load(owner, &reported.id, now);
        let record = record.await.unwrap().unwrap();
        let push = self.sample.push(&record, &PushId::only());
        records.put_push(&push, record.kept_until).await.unwrap();
        let small = self.say(owner, "little", named).await;
        vec![much, reported, small]
    }

    /// Everything else: a running task, an upload, a document that the tenant shares.
    pub(crate) async fn sundries(&self, owner: &Owner) {
        let records = &self.near.records;
        let id = TaskId::made_of(self.sample.number());
        let open = self.sample.new_task(owner, id).unwrap();
        records.commit(&self.sample.create(&open)).await.unwrap();
        let (tenant, subject) = (owner.tenant.folder(), owner.subject.hash());
        let upload = format!("up/{tenant}/{subject}/01ARZ3NDEKTSV4RRFFQ69G5FAV");
        self.near.blobs.put(&upload, "sent".into()).await.unwrap();
        let shared = DocumentOwner::Tenant(owner.tenant.clone());
        let note = DocumentWrite {
            collection: DocumentCollection::new(shared, "notes").unwrap(),
            key: DocumentKey::parse(subject).unwrap(),
            text: Some("1".to_owned()),
            author: Some(owner.subject.clone()),
            expires_at: None,
            expect: DocumentExpect::Absent,
            id: self.sample.write_id(),
            now: self.sample.now,
        };
        let documents = Documents::new(records.table());
        assert!(documents.write_document(&note).await.unwrap());
    }

    /// The stored content of a tenant.
    pub(crate) async fn stored(&self, tenant: &TenantId) -> Stored {
        let mut stored = Stored::default();
        let mut start = None;
        loop {
            let scan = self.emulator.clients.dynamodb.scan().table_name(TABLE);
            let found = scan
                .filter_expression("begins_with(PK, :tenant)")
                .expression_attribute_values(":tenant", AttributeValue::S(format!("T#{tenant}#")))
                .set_exclusive_start_key(start)
                .send()
                .await
                .unwrap();
            for item in found.items.unwrap_or_default() {
                let text = |name: &str| item[name].as_s().unwrap().clone();
                stored.items.insert((text("PK"), text("SK")), item);
            }
            start = found.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        for root in ["v1", "up"] {
            let below = format!("{root}/{}/", tenant.folder());
            for key in self.near.blobs.keys(&below, None, 1000).await.unwrap() {
                let get = self.emulator.clients.s3.get_object().bucket(BUCKET);
                let found = get.key(&key).send().await.unwrap();
                let notes = found.metadata().cloned().unwrap_or_default();
                let bytes = found.body.collect().await.unwrap().into_bytes();
                let kept = (Blob::new(bytes), notes.into_iter().collect());
                stored.objects.insert(key, kept);
            }
        }
        stored
    }

    /// Puts stored content back.
    pub(crate) async fn restore(&self, stored: &Stored) {
        let clients = &self.emulator.clients;
        for item in stored.items.values() {
            let put = clients.dynamodb.put_item().table_name(TABLE);
            put.set_item(Some(item.clone())).send().await.unwrap();
        }
        for (key, (bytes, notes)) in &stored.objects {
            let put = clients.s3.put_object().bucket(BUCKET).key(key);
            put.set_metadata(Some(notes.clone().into_iter().collect()))
                .body(ByteStream::from(bytes.as_ref().to_vec()))
                .send()
                .await
                .unwrap();
        }
    }
}
