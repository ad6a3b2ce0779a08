//! Tests a write with a reply that comes late, after later writes.

use crate::engine::doubles::{
    FakeQueue, ann, owner, send_command, sent_task, services_over, work_item,
};
use crate::engine::{Engine, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, WorkItem};
use crate::store::table::{Table, Write, WriteResult};
use crate::store::{RecordQuery, StoreError};
use crate::task::{ContextId, SendMode, Task, TaskId, TaskRecord, TaskState, Timestamp};
use crate::testing::{TableHooks, TableLayer, committed_task};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// More commits than a record keeps write ids of.
const LATER: u32 = 10;

/// Asks once, then commits so often that the record drops the write id of the question.
#[skill(id = "ask", tags = ["test"], input_modes = ["text/plain"])]
struct Asks(Arc<AtomicU32>);

#[derive(serde::Serialize, serde::Deserialize)]
struct Asked;

impl SkillSlot for Asked {
    const VERSION: u32 = 1;
}

impl SkillHandler<Asked> for Asks {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        cx.step("look", async { Ok(1) }).await?;
        OnRequestResult::ask("which one?", Asked)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        for step in 0..LATER + 5 {
            cx.step(&format!("step-{step}"), async {
                tokio::time::sleep(Duration::from_millis(250)).await;
                Ok(step)
            })
            .await?;
        }
        OnInputResult::done("all of it".to_owned())
    }
}

/// Delays the reply to the write of the question until later writes are stored. Then it makes
/// the write again, as the client of a table does without a reply.
#[derive(Debug)]
struct Late {
    version: watch::Sender<u64>,
    again: watch::Sender<Option<WriteResult>>,
}

#[async_trait]
impl TableHooks for Late {
    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        let outcome = table.write(write.clone()).await?;
        let Some(task) = committed_task(&write) else {
            return Ok(outcome);
        };
        if let WriteResult::Done(_) = outcome {
            self.version.send_replace(task.version);
        }
        if task.state() != TaskState::InputRequired || self.again.borrow().is_some() {
            return Ok(outcome);
        }
        let mut stored = self.version.subscribe();
        let later = task.version + 1 + u64::from(LATER);
        stored.wait_for(|stored| *stored >= later).await.unwrap();
        let again = table.write(write).await?;
        self.again.send_replace(Some(again.clone()));
        Ok(again)
    }
}

/// An engine over a store that is late with one reply.
struct LateReplyFixture {
    engine: Engine,
    store: MemoryStore,
    layer: Arc<TableLayer<Late>>,
    answered: Arc<AtomicU32>,
}

impl LateReplyFixture {
    fn new() -> Self {
        let answered = Arc::new(AtomicU32::new(0));
        let agent = Agent::builder("test").skill(Asks(answered.clone()));
        let store = MemoryStore::new();
        let late = Late {
            version: watch::Sender::new(0),
            again: watch::Sender::new(None),
        };
        let layer = TableLayer::new(store.table.clone(), late);
        Self {
            engine: Engine::new(
                Arc::new(agent.build().unwrap()),
                services_over(layer.clone()),
                Policy::default(),
            ),
            store,
            layer,
            answered,
        }
    }

    async fn send(&self, task: Option<&TaskId>, queued: bool) -> Task {
        let mode = match queued {
            true => SendMode::Immediate,
            false => SendMode::Blocking,
        };
        let mut command = send_command("hello", mode);
        command.message.task_id = task.cloned();
        command.message.id = format!("m-{}", usize::from(task.is_some()));
        sent_task(&self.engine, &ann(), command).await
    }

    /// Sends a message and, if it is queued, runs its turn in a worker.
    async fn turn(&self, task: Option<&TaskId>, queued: bool) {
        let task = self.send(task, queued).await;
        if !queued {
            return;
        }
        let record = self.record(&task.id).await;
        let item = work_item(&record);
        let line = FakeQueue::<WorkItem>::default();
        let ack = self.engine.turns.work(&item, &line, None).await;
        // A worker never deletes the message of a turn that may not have ended.
        let stored = self.record(&task.id).await;
        let ended = stored.state().is_at_rest() || stored.turn > item.turn;
        assert!(ended || ack == Ack::Keep);
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        let (owner, now) = (owner(), Timestamp::default());
        let found = self.store.records.load(&owner, id, now).await;
        found.unwrap().unwrap()
    }

    /// Waits for the task that asks, and returns its id.
    async fn asking(&self) -> TaskId {
        let query = RecordQuery {
            context_id: None,
            state: Some(TaskState::InputRequired),
            status_after: None,
            after: None,
            limit: 1,
            count_limit: 1,
            now: Timestamp::default(),
        };
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let page = self.store.records.list(&owner(), &query).await;
            if let Some(task) = page.unwrap().records.pop() {
                return task.id.clone();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn late_store_reply_to_a_question_does_not_stop_the_next_turn() {
    for asked_by_worker in [false, true] {
        for answered_by_worker in [false, true] {
            let fixture = LateReplyFixture::new();
            let answer = async {
                let id = fixture.asking().await;
                fixture.turn(Some(&id), answered_by_worker).await;
                id
            };
            let ((), id) = tokio::join!(fixture.turn(None, asked_by_worker), answer);
            let case = (asked_by_worker, answered_by_worker);
            let again = fixture.layer.hooks.again.borrow().clone();
            let is_refused = matches!(again, Some(WriteResult::Refused(_)));
            assert!(is_refused, "{again:?}");
            let record = fixture.record(&id).await;
            assert_eq!(record.state(), TaskState::Completed, "{case:?}");
            assert_eq!(fixture.answered.load(Ordering::SeqCst), 1, "{case:?}");
            let asked = record.transitions.iter();
            let asked = asked.filter(|it| it.state == TaskState::InputRequired);
            assert_eq!(asked.count(), 1, "{case:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_that_two_releases_open_together_outlasts_the_open_tasks_of_both() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    for lifetimes in [[3 * DAY, 30 * DAY], [30 * DAY, 3 * DAY]] {
        let store = MemoryStore::new();
        let engines = lifetimes.map(|task_ttl| {
            let agent = Agent::builder("test").skill(Asks(Arc::default()));
            let services = services_over(store.table.clone());
            let policy = Policy {
                task_ttl,
                ..Policy::default()
            };
            Engine::new(Arc::new(agent.build().unwrap()), services, policy)
        });
        let id = ContextId::parse("mine").unwrap();
        let now = engines[0].reader.clock.now();
        // Each has read that there is no thread.
        let openings = engines.each_ref().map(|engine| {
            engine
                .turns
                .commits
                .fresh_context(&owner(), id.clone(), Some(0), now, now)
        });
        for (engine, opening) in engines.iter().zip(openings) {
            engine
                .turns
                .commits
                .link_context(None, opening.opens)
                .await
                .unwrap();
        }
        let head = store.records.load_thread_head(&owner(), &id).await;
        let head = head.unwrap().unwrap();
        assert!(head.kept_until >= now.plus(60 * DAY), "{lifetimes:?}");
    }
}
