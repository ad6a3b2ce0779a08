//! Answers to `auth-required`, and messages to a skill that keeps no input, are sealed everywhere
//! they are stored.

use a2a_lambda::auth::Identity;
use a2a_lambda::engine::SecretKeys;
use a2a_lambda::http::Function;
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::ReadBlobs as _;
use a2a_lambda::store::aws::{AwsClients, sdk_config};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::queue::{Ack, Receipt, WorkItem};
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::stored::Encoded;
use a2a_lambda::store::{Blobs as _, StoreError};
use a2a_lambda::task::{
    Message, Owner, PartContent, Role, Sealed, Subject, TaskId, TaskRecord, TaskState, TenantId,
    Timestamp,
};
use a2a_lambda_tests::world::{Reply, Request, send};
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// The answer of the client. The agent repeats no word of it.
const CANARY: &str = "canary-credential-xyzzy";

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

struct Held;

#[async_trait]
impl Receipt for Held {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    }
}

/// An agent with a table, its stream, and a bucket.
struct Endpoint {
    embedded: Embedded,
    clients: AwsClients,
    runtime: Runtime,
}

impl Endpoint {
    async fn new() -> Self {
        Self::serving(conformance_agent::agent(Duration::from_secs(2)).unwrap()).await
    }

    async fn serving(agent: AgentDefinition) -> Self {
        let embedded = Embedded::start(None).await.unwrap();
        let clients = AwsClients::connect(embedded.endpoints()).await;
        let settings = Settings::read(&Local).unwrap();
        let runtime = Runtime::builder(agent, settings).aws(&clients);
        let runtime = runtime.build().unwrap();
        Self {
            embedded,
            clients,
            runtime,
        }
    }

    /// Lets a worker run the turn that waits.
    async fn works(&self, task: &TaskId, is_queued: bool) {
        if is_queued {
            self.has_no_trace("queued").await;
            let queued = self.stored(task).await;
            assert!(!queued.state().is_at_rest());
            let (engine, item) = (self.runtime.engine(), work(&queued));
            assert_eq!(engine.turns.work(&item, &Held, None).await, Ack::Delete);
        }
    }

    async fn says(&self, message: Value, at_once: bool) -> Reply {
        let reply = self.sends(message, at_once).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply
    }

    async fn sends(&self, message: Value, at_once: bool) -> Reply {
        let body = json!({"message": message, "configuration": {"returnImmediately": at_once}});
        let request = Request::post("/message:send", &body).header("a2a-version", "1.0");
        let identity = Identity {
            authorizer: None,
            authorization: Some("Bearer dev:acme:ann".to_owned()),
        };
        let edge = self
            .runtime
            .edge(Function::of(request.method, request.path()));
        send(&edge, &request, identity).await.finish().await
    }

    /// Starts a task that asks for credentials.
    async fn asking(&self) -> TaskId {
        let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "auth"}]});
        let reply = self.says(message, false).await;
        let task = reply.json()["task"].clone();
        assert_eq!(
            task["status"]["state"], "TASK_STATE_AUTH_REQUIRED",
            "{task}"
        );
        TaskId::parse(task["id"].as_str().unwrap()).unwrap()
    }

    async fn answer(&self, task: &TaskId, text: &str, at_once: bool) -> Reply {
        let message = json!({"messageId": "m2", "role": "ROLE_USER", "taskId": task.as_str(),
            "parts": [{"text": text}, {"data": {"key": text}}]});
        self.says(message, at_once).await
    }

    async fn stored(&self, task: &TaskId) -> TaskRecord {
        let records = dynamodb::records(self.clients.dynamodb.clone(), TABLE);
        let found = records.load(&owner(), task, Timestamp::default()).await;
        found.unwrap().unwrap()
    }

    /// Everything the services store, as text: items, stream records, objects.
    async fn everything(&self) -> Vec<String> {
        let scan = self.clients.dynamodb.scan().table_name(TABLE);
        let found = scan.consistent_read(true).send().await.unwrap();
        let mut all: Vec<String> = Vec::new();
        for item in found.items() {
            all.push(format!("{item:?} {}", body_of(item)));
        }
        let at = self.embedded.endpoints();
        let config = sdk_config(at.dynamodb.as_deref(), at.keys.as_ref()).await;
        let client = aws_sdk_dynamodbstreams::Client::new(&config);
        let streams = client
            .list_streams()
            .table_name(TABLE)
            .send()
            .await
            .unwrap();
        let arn = streams.streams()[0].stream_arn().unwrap();
        let stream = client
            .describe_stream()
            .stream_arn(arn)
            .send()
            .await
            .unwrap();
        for shard in stream.stream_description().unwrap().shards() {
            let from = client
                .get_shard_iterator()
                .stream_arn(arn)
                .shard_id(shard.shard_id().unwrap())
                .shard_iterator_type(ShardIteratorType::TrimHorizon);
            let mut next = from.send().await.unwrap().shard_iterator;
            while let Some(iterator) = next {
                let read = client
                    .get_records()
                    .shard_iterator(iterator)
                    .send()
                    .await
                    .unwrap();
                for record in read.records() {
                    let image = record.dynamodb().and_then(|it| it.new_image());
                    let body = image.and_then(|image| image.get("body"));
                    let body = body.and_then(|body| body.as_b().ok());
                    let body = body.map(|bytes| inflated(bytes.as_ref()));
                    all.push(format!("{record:?} {}", body.unwrap_or_default()));
                }
                next = read
                    .next_shard_iterator
                    .filter(|_| !read.records.unwrap_or_default().is_empty());
            }
        }
        let blobs = S3Blobs::new(self.clients.s3.clone(), BUCKET);
        for key in blobs.keys("", None, 1_000).await.unwrap() {
            let bytes = blobs.get(&key).await.unwrap().unwrap();
            let text = String::from_utf8_lossy(&bytes);
            all.push(format!("{key} {text} {}", inflated(&bytes)));
        }
        all
    }

    async fn has_no_trace(&self, when: &str) {
        let everything = self.everything().await;
        // At least the META item, and the stream records of its creation and of the answer.
        assert!(everything.len() >= 3, "{when}");
        // What is compressed is seen too.
        let request = "\"messageId\":\"m1\"";
        assert!(
            everything.iter().any(|what| what.contains(request)),
            "{when}"
        );
        // The Base64 form of a text depends on the bytes before it only by their count modulo 3.
        let mut traces = vec![CANARY.to_owned()];
        for place in 0..3 {
            let code = STANDARD.encode(CANARY.get(place..place + 18).unwrap());
            traces.push(code);
        }
        for what in everything {
            let found = traces.iter().find(|trace| what.contains(*trace));
            assert_eq!(found, None, "{when}: {what}");
        }
    }
}

/// The body of an item as text.
fn body_of(item: &HashMap<String, AttributeValue>) -> String {
    match item.get("body") {
        Some(AttributeValue::S(text)) => text.clone(),
        Some(AttributeValue::B(bytes)) => inflated(bytes.as_ref()),
        _ => String::new(),
    }
}

/// The content of compressed bytes; empty if they are not.
fn inflated(bytes: &[u8]) -> String {
    let content = Encoded::Deflated(bytes.into());
    content.json().unwrap_or_default().into_owned()
}

fn runtime(clients: &AwsClients, change: impl FnOnce(&mut Settings)) -> Runtime {
    let mut settings = Settings::read(&Local).unwrap();
    change(&mut settings);
    let agent = conformance_agent::agent(Duration::from_secs(2)).unwrap();
    let builder = Runtime::builder(agent, settings).aws(clients);
    builder.build().unwrap()
}

fn work(record: &TaskRecord) -> WorkItem {
    WorkItem {
        owner: owner(),
        task: record.id.clone(),
        incarnation: record.incarnation.clone(),
        turn: record.turn,
        dispatch: record.version,
    }
}

#[tokio::test]
async fn an_answer_to_auth_required_is_never_stored_in_the_clear() {
    // A short answer stays in the META item; a long one gets a separate item.
    for length in [0, 10_000] {
        let site = Endpoint::new().await;
        let words = format!("{CANARY}{}", "y".repeat(length));
        let task = site.asking().await;
        site.answer(&task, &words, true).await;
        let queued = site.stored(&task).await;
        assert_eq!(queued.state(), TaskState::Submitted);
        site.has_no_trace("queued").await;
        let engine = site.runtime.engine();
        let ack = engine.turns.work(&work(&queued), &Held, None).await;
        assert_eq!(ack, Ack::Delete);
        // The worker has opened the answer: the agent asks a question about it.
        assert_eq!(site.stored(&task).await.state(), TaskState::InputRequired);
        let task = site.asking().await;
        let reply = site.answer(&task, &words, false).await;
        assert!(!reply.text().contains(CANARY));
        assert_eq!(site.stored(&task).await.state(), TaskState::InputRequired);
        site.has_no_trace("at rest").await;
    }
}

#[tokio::test]
async fn a_sealed_answer_opens_only_in_its_own_turn_and_with_its_key() {
    let site = Endpoint::new().await;
    let mut sealed = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let task = site.asking().await;
        site.answer(&task, CANARY, true).await;
        let everything = site.everything().await;
        let item = everything.iter().find(|it| {
            it.contains("\"secret\":\"") && it.contains(task.as_str()) && !it.contains("eventID")
        });
        let item = item.unwrap().clone();
        let (_, rest) = item.split_once("\"secret\":\"").unwrap();
        sealed.push(rest.split('"').next().unwrap().to_owned());
        tasks.push(task);
    }
    // Each seal has its own nonce of 12 bytes.
    let nonces: Vec<Vec<u8>> = sealed
        .iter()
        .map(|it| it.split_once('.').unwrap().1)
        .map(|it| STANDARD_NO_PAD.decode(it).unwrap()[..12].to_vec())
        .collect();
    assert_ne!(nonces[0], nonces[1]);
    let other = runtime(&site.clients, |settings| {
        settings.policy.secrets =
            SecretKeys::from_keys([b"another key of 32 characters ....".to_vec()]);
    });
    let queued = site.stored(&tasks[0]).await;
    let ack = other.engine().turns.work(&work(&queued), &Held, None).await;
    // Another worker may have the key, so the turn is released. The answer is not opened.
    assert_eq!(ack, Ack::Delete);
    let waiting = site.stored(&tasks[0]).await;
    assert!(!waiting.state().is_at_rest());
    let secret = waiting.secret.as_ref().map(Sealed::as_str);
    assert_eq!(secret, Some(&*sealed[0]));
    // The sealed answer of one task, put in the place of the other's.
    let queued = site.stored(&tasks[1]).await;
    let key = |name: &str, value: String| (name.to_owned(), AttributeValue::S(value));
    let partition = format!("T#acme#K#{}", tasks[1]);
    let item_key = [key("PK", partition), key("SK", "META".to_owned())].into();
    let get = site.clients.dynamodb.get_item().table_name(TABLE);
    let got = get.set_key(Some(item_key)).send().await.unwrap();
    let mut item = got.item.unwrap();
    let body = inflated(item["body"].as_b().unwrap().as_ref());
    let body = body.replace(&sealed[1], &sealed[0]);
    assert!(body.contains(&sealed[0]));
    let Encoded::Deflated(body) = Encoded::of(body).unwrap() else {
        panic!("a short body");
    };
    let body = AttributeValue::B(body.into_owned().into());
    item.insert("body".to_owned(), body);
    let put = site.clients.dynamodb.put_item().table_name(TABLE);
    put.set_item(Some(item)).send().await.unwrap();
    let engine = site.runtime.engine();
    let ack = engine.turns.work(&work(&queued), &Held, None).await;
    assert_eq!(ack, Ack::Delete);
    assert_eq!(site.stored(&tasks[1]).await.state(), TaskState::Failed);
}

#[derive(Serialize, Deserialize)]
struct More;

impl SkillSlot for More {}

/// Counts the letters of a diary, of which it keeps nothing.
#[skill(id = "diary", tags = ["test"], text = "dear diary {text}", keeps_input = false)]
struct Diary;

#[derive(Deserialize, JsonSchema)]
struct Page {
    text: String,
}

/// The letters of a page, and what the thread says.
async fn letters(cx: &mut TaskContext<'_>, text: &str) -> AgentResult<String> {
    let thread = cx.thread().await?;
    let texts = thread.iter().flat_map(|message| &message.parts);
    let texts = texts.filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        _ => None,
    });
    let texts: Vec<String> = texts.collect();
    Ok(format!("{} letters, {}", text.len(), texts.join("|")))
}

impl SkillHandler<More> for Diary {
    type Input = Page;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        page: Page,
    ) -> AgentResult<OnRequestResult<String, More>> {
        OnRequestResult::ask(letters(cx, &page.text).await?, More)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: More,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, More>> {
        OnInputResult::done(letters(cx, answer.text()?).await?)
    }
}

/// What the history shows of a message, and the words of the status.
fn shown(record: &TaskRecord) -> (Vec<String>, String) {
    let texts = |message: &Message| {
        let texts = message.parts.iter().map(|part| match &part.content {
            PartContent::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        });
        texts.collect::<String>()
    };
    let users = record.history.iter().filter(|it| it.role == Role::User);
    let status = record.status.message.as_ref();
    (
        users.map(texts).collect(),
        status.map(texts).unwrap_or_default(),
    )
}

#[tokio::test]
async fn input_of_a_skill_that_keeps_none_is_never_stored_in_the_clear() {
    let stand_in = "The agent does not keep this message.";
    for (at_once, length) in [(false, 0), (true, 0), (true, 10_000)] {
        let when = format!("{at_once} {length}");
        let agent = Agent::builder("diary").skill(Diary).build().unwrap();
        let site = Endpoint::serving(agent).await;
        let page = format!("{CANARY}{}", "y".repeat(length));
        // A pattern makes the input, which the route must not keep either.
        let message = json!({"messageId": "m1", "role": "ROLE_USER", "contextId": "mine:c",
            "parts": [{"text": format!("Dear diary {page}")}], "metadata": {"note": CANARY}});
        let reply = site.says(message.clone(), at_once).await;
        assert!(!reply.text().contains(CANARY), "{}", reply.text());
        let task = TaskId::parse(reply.json()["task"]["id"].as_str().unwrap()).unwrap();
        site.works(&task, at_once).await;
        let record = site.stored(&task).await;
        assert_eq!(record.state(), TaskState::InputRequired, "{when}");
        let asked = format!("{} letters, {stand_in}", page.len());
        assert_eq!(shown(&record), (vec![stand_in.to_owned()], asked.clone()));
        site.has_no_trace(&when).await;

        let reply = site.answer(&task, &page, at_once).await;
        assert!(!reply.text().contains(CANARY), "{}", reply.text());
        site.works(&task, at_once).await;
        let record = site.stored(&task).await;
        assert_eq!(record.state(), TaskState::Completed, "{when}");
        assert_eq!(shown(&record).0, [stand_in, stand_in]);
        assert_eq!(record.secret.as_ref(), None);
        let result = Artifact::from(record.artifacts[0].clone()).text();
        let expected = format!("{} letters, {stand_in}|{asked}|{stand_in}", page.len());
        assert_eq!(result.unwrap(), expected);
        site.has_no_trace(&when).await;
        // Sent again, it is recognised by its fingerprint.
        let again = site.answer(&task, &page, false).await;
        assert_eq!(
            again.json()["task"]["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
    }
}

#[tokio::test]
async fn file_for_a_skill_that_keeps_no_input_is_refused() {
    let agent = Agent::builder("diary").skill(Diary).build().unwrap();
    let site = Endpoint::serving(agent).await;
    for (parts, field) in [
        (
            json!([{"data": {"text": "x"}}, {"raw": "eA==", "mediaType": "text/plain"}]),
            "message.parts[1]",
        ),
        (
            json!([{"data": {"text": "x".repeat(40_000)}}]),
            "message.parts",
        ),
    ] {
        let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": parts});
        let reply = site.sends(message, false).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert!(reply.text().contains(field), "{}", reply.text());
    }
}
