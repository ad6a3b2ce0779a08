//! The table keeps an idempotency key as long as its task.

use a2a_lambda::auth::Caller;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::{Clock as _, Engine, Policy, Services, SystemClock};
use a2a_lambda::skill::{
    Agent, AgentResult, Content, OnInputResult, OnRequestResult, Skill, SkillHandler,
    SkillMetadata, SkillSlot, TaskContext,
};
use a2a_lambda::store::contract::SampleData;
use a2a_lambda::task::{
    Generation, IdempotencyKey, Message, Metadata, Part, SendCommand, SendMode, SendResponse, Task,
    TaskId,
};
use a2a_lambda::testing::TestClock;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Asks a question, and asks again after every answer.
struct Asks;

#[derive(Serialize, Deserialize)]
struct Asked;

impl SkillSlot for Asked {}

impl Skill for Asks {
    const METADATA: SkillMetadata = SkillMetadata::new("asks", "Asks and asks.", &["test"]);
}

impl SkillHandler<Asked> for Asks {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        OnRequestResult::ask("and?", Asked)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        OnInputResult::ask("and then?", Asked)
    }
}

struct Stage {
    emulator: Emulator,
    engine: Engine,
    caller: Caller,
    clock: Arc<TestClock>,
}

impl Stage {
    async fn new() -> Self {
        let emulator = Emulator::start().await.unwrap();
        let store = emulator.records.clone();
        let clock = Arc::new(TestClock::standing(SystemClock.now()));
        let services = Services {
            clock: clock.clone(),
            ..Services::new(store, Arc::new(emulator.blobs.clone()))
        };
        let policy = Policy {
            thread_ttl: DAY * 400,
            ..Policy::default()
        };
        let agent = Agent::builder("asks").skill(Asks).build().unwrap();
        let caller = Caller {
            owner: SampleData::new(run(), "keyed").unwrap().owner,
            tier: "default".to_owned(),
            scopes: BTreeSet::new(),
        };
        Self {
            engine: Engine::new(Arc::new(agent), services, policy),
            emulator,
            caller,
            clock,
        }
    }

    async fn send(&self, task: Option<&TaskId>, key: Option<&str>) -> Task {
        // The same answer with the same id would be a repeat.
        let id = format!("m-{}", self.clock.now().as_millis());
        let mut message = Message::from_user(id, vec![Part::text("go")]);
        message.task_id = task.cloned();
        let command = SendCommand {
            message,
            client_task_id: None,
            idempotency_key: key.map(|key| IdempotencyKey::parse(key).unwrap()),
            mode: SendMode::Blocking,
            history_length: 10,
            accepted_output_modes: Vec::new(),
            push: None,
            metadata: Metadata::new(),
            generation: Generation::V10,
        };
        match Box::pin(
            self.engine
                .send(&self.caller, command, CallBudget::default()),
        )
        .await
        {
            Ok(SendResponse::Task(task)) => *task,
            other => panic!("{other:?}"),
        }
    }

    /// The earliest `ttl` of the items of each kind, in seconds.
    async fn kept(&self) -> BTreeMap<String, i64> {
        let scan = self.emulator.clients.dynamodb.scan().table_name(TABLE);
        let tenant = format!("T#{}#", self.caller.owner.tenant);
        let mut pages = scan
            .filter_expression("begins_with(PK, :tenant)")
            .expression_attribute_values(":tenant", AttributeValue::S(tenant))
            .into_paginator()
            .send();
        let mut kept = BTreeMap::new();
        while let Some(page) = pages.next().await {
            for item in page.unwrap().items.unwrap_or_default() {
                let kind = item["SK"].as_s().unwrap().clone();
                let ttl: i64 = item["ttl"].as_n().unwrap().parse().unwrap();
                let least = kept.entry(kind).or_insert(ttl);
                *least = (*least).min(ttl);
            }
        }
        kept
    }
}

#[tokio::test]
async fn an_idempotency_key_is_kept_as_long_as_its_task() {
    let stage = Stage::new().await;
    let first = stage.send(None, Some("opens")).await;
    let begun = stage.clock.now();
    for round in 1..=6 {
        let now = begun.plus(DAY * 20 * round);
        stage.clock.set(now);
        let key = (round == 2).then_some("answers");
        stage.send(Some(&first.id), key).await;
        let lives = now.plus(DAY * 30).ttl_seconds();
        let kept = stage.kept().await;
        assert!(
            kept["IDEM"] >= lives,
            "round {round}: {kept:?}, not {lives}"
        );
        for key in ["opens", "answers"]
            .iter()
            .take(if round > 1 { 2 } else { 1 })
        {
            let of = (*key == "answers").then_some(&first.id);
            assert_eq!(stage.send(of, Some(key)).await.id, first.id, "{key}");
        }
    }
}
