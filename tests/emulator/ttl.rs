//! The TTL of the table removes expired items, and changes no response.

use a2a_lambda::auth::Caller;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::{Clock as _, Engine, EngineError, Policy, Services, SystemClock};
use a2a_lambda::prelude::*;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb;
use a2a_lambda::task::{
    A2aError, ContextId, Generation, GetQuery, IdempotencyKey, Message, Metadata, Part, PushOffer,
    SendCommand, SendMode, SendResponse, Task,
};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

type Item = HashMap<String, AttributeValue>;

/// The lifetime of everything here.
const LIFE: Duration = Duration::from_secs(4);

/// Stores something of every kind: messages and chunks too large for its item, a value of
/// the task, a value of the thread.
#[skill(id = "leaves", tags = ["test"])]
async fn leaves(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    cx.save_data("kept", &noise(1, 40_000)).await?;
    for _ in 0..2 {
        cx.send_intermediate_update(noise(2, 8_000)).await?;
    }
    cx.save_session("seen", &true)?;
    let mut chunks = cx.artifact_chunks("text");
    for _ in 0..12 {
        chunks.push(noise(3, 8_000)).await?;
    }
    chunks.finish().await?;
    Ok("done".to_owned())
}

struct Stage {
    emulator: Emulator,
    engine: Engine,
    caller: Caller,
}

impl Stage {
    async fn new() -> Self {
        let emulator = Emulator::start().await.unwrap();
        let owner = SampleData::new(run(), "ttl").unwrap().owner;
        let store = dynamodb::records(emulator.clients.dynamodb.clone(), TABLE);
        let store = store.with_blobs(Arc::new(emulator.blobs.clone()));
        let services = Services {
            push: true,
            ..Services::new(store, Arc::new(emulator.blobs.clone()))
        };
        let policy = Policy {
            task_ttl: LIFE,
            thread_ttl: LIFE,
            state_ttl: LIFE,
            thread_tombstone: LIFE,
            ..Policy::default()
        };
        let agent = Agent::builder("leaves").skill(leaves).build().unwrap();
        let caller = Caller {
            owner,
            tier: "default".to_owned(),
            scopes: BTreeSet::new(),
        };
        Self {
            emulator,
            engine: Engine::new(Arc::new(agent), services, policy),
            caller,
        }
    }

    async fn send(&self, context: Option<&ContextId>, key: &str) -> Result<Task, EngineError> {
        let mut message = Message::from_user("m-1", vec![Part::text("go")]);
        message.context_id = context.cloned();
        let command = SendCommand {
            message,
            client_task_id: None,
            idempotency_key: Some(IdempotencyKey::parse(key).unwrap()),
            mode: SendMode::Blocking,
            history_length: 10,
            accepted_output_modes: Vec::new(),
            push: Some(PushOffer {
                signs: false,
                at: String::new(),
                id: None,
                url: "https://hook.example/ttl".to_owned(),
                token: None,
                schemes: Vec::new(),
                credentials: None,
                generation: Generation::V10,
            }),
            metadata: Metadata::from_iter([("pad".to_owned(), "m".repeat(20_000).into())]),
            generation: Generation::V10,
        };
        match Box::pin(
            self.engine
                .send(&self.caller, command, CallBudget::default()),
        )
        .await?
        {
            SendResponse::Task(task) => Ok(*task),
            SendResponse::Message(message) => panic!("{message:?}"),
        }
    }

    async fn get(&self, task: &Task) -> Result<Task, A2aError> {
        let query = GetQuery {
            id: task.id.clone(),
            history_length: 0,
        };
        let reader = self.engine.reader();
        reader
            .get(&self.caller, &query)
            .await
            .map_err(|e| e.a2a_error)
    }

    /// Every item of this caller's tenant.
    async fn items(&self) -> Vec<Item> {
        let tenant = format!("T#{}#", self.caller.owner.tenant);
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let scan = self.emulator.clients.dynamodb.scan().table_name(TABLE);
            let found = scan
                .filter_expression("begins_with(PK, :tenant)")
                .expression_attribute_values(":tenant", AttributeValue::S(tenant.clone()))
                .set_exclusive_start_key(start)
                .send()
                .await
                .unwrap();
            items.extend(found.items.unwrap_or_default());
            start = found.last_evaluated_key;
            if start.is_none() {
                return items;
            }
        }
    }
}

/// The kind of an item: the letter of its partition and the first field of its sort key.
fn kind(partition: &str, sort: &str) -> String {
    let whose = partition.split('#').nth(2).unwrap();
    format!("{whose} {}", sort.split('#').next().unwrap())
}

/// The kinds of items that this release stores for a tenant, by its corpus. The form of the
/// table stays as long as the table.
fn kept_kinds() -> BTreeSet<String> {
    let items = include_str!("../corpus/0.1/items.jsonl").lines();
    let items = items.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let text = |item: &serde_json::Value, name: &str| item[name]["S"].as_str().unwrap().to_owned();
    items
        .map(|item| (text(&item, "PK"), text(&item, "SK")))
        .filter(|(partition, _)| partition.starts_with("T#"))
        .map(|(partition, sort)| kind(&partition, &sort))
        .collect()
}

#[tokio::test]
async fn every_item_has_a_ttl_and_its_removal_changes_no_response() {
    let stage = Stage::new().await;
    let ours = ContextId::parse("c:ttl").unwrap();
    let made = stage.send(Some(&ours), "one").await.unwrap();
    let served = stage.send(None, "two").await.unwrap();
    assert_eq!(stage.get(&made).await.unwrap().id, made.id);

    let items = stage.items().await;
    let text = |item: &Item, name: &str| item[name].as_s().unwrap().clone();
    let kinds = items
        .iter()
        .map(|item| kind(&text(item, "PK"), &text(item, "SK")));
    let kinds: BTreeSet<String> = kinds.collect();
    // If this fails for a new kind of item, add the kind to the corpus and to this test.
    let missing: Vec<_> = kept_kinds().difference(&kinds).cloned().collect();
    assert!(missing.is_empty(), "{missing:?} are not in {kinds:?}");
    for item in &items {
        let ttl = item.get("ttl").map(|ttl| ttl.as_n().unwrap());
        assert!(
            ttl.is_some(),
            "{:?} {:?} has no ttl",
            item["PK"],
            item["SK"]
        );
    }

    // Expired content is refused before anything is removed …
    let clock = SystemClock;
    clock.sleep_until(clock.now().plus(LIFE)).await;
    gone(&stage, [&made, &served]).await;
    let again = stage.send(Some(&ours), "three").await.unwrap_err();
    assert_eq!(again.a2a_error, A2aError::ContextExpired);

    // … and in the same way after the removal.
    while !stage.items().await.is_empty() {
        clock
            .sleep_until(clock.now().plus(Duration::from_secs(1)))
            .await;
        stage.emulator.clean_up().await.unwrap();
    }
    gone(&stage, [&made, &served]).await;
    let anew = stage.send(Some(&ours), "one").await.unwrap();
    assert_ne!(anew.id, made.id, "the id is new after its tombstone");
}

/// Asserts that these tasks can neither be read nor continued.
async fn gone(stage: &Stage, tasks: [&Task; 2]) {
    for task in tasks {
        assert_eq!(stage.get(task).await.unwrap_err(), A2aError::TaskNotFound);
    }
    let context = &tasks[1].context_id;
    let more = stage.send(Some(context), "more").await.unwrap_err();
    assert_eq!(
        more.a2a_error,
        A2aError::ContextExpired,
        "a context made by the server"
    );
}
