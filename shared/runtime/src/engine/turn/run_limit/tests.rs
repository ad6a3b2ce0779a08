//! Tests the total running time of a task, over the memory store and tokio's paused
//! clock.

use crate::engine::doubles::{FakeQueue, ann, owner, send_command, sent_task, services, work_item};
use crate::engine::{Engine, Policy};
use crate::prelude::*;
use crate::store::ReadTasks as _;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, WorkItem};
use crate::task::{SendMode, TaskId, TaskRecord, TaskState, metadata_keys};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Makes one step of a minute after the other, for ever.
#[skill(id = "endless", tags = ["test"], input_modes = ["text/plain"])]
struct Endless;

impl SkillHandler for Endless {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        for n in 0_u32.. {
            let minute = async {
                tokio::time::sleep(MINUTE).await;
                Ok(n)
            };
            cx.step(&format!("step-{n}"), minute).await?;
        }
        OnRequestResult::done("done".to_owned())
    }
}

struct RunFixture {
    engine: Engine,
    store: Arc<MemoryStore>,
    line: FakeQueue<WorkItem>,
}

impl RunFixture {
    fn with(change: impl FnOnce(&mut Policy)) -> Self {
        let store = Arc::new(MemoryStore::new());
        let agent = Agent::builder("test").skill(Endless).build().unwrap();
        let mut policy = Policy::default();
        change(&mut policy);
        let services = services(store.clone(), &store);
        Self {
            engine: Engine::new(Arc::new(agent), services, policy),
            store,
            line: FakeQueue::default(),
        }
    }

    async fn queued(&self) -> TaskId {
        let command = send_command("go", SendMode::Immediate);
        sent_task(&self.engine, &ann(), command).await.id
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        let now = self.engine.reader.clock.now();
        self.store.load(&owner(), id, now).await.unwrap().unwrap()
    }

    /// Runs a worker with 15 minutes.
    async fn work(&self, id: &TaskId) -> Ack {
        let item = work_item(&self.record(id).await);
        let deadline = self.engine.reader.clock.now().plus(15 * MINUTE);
        self.engine.work(&item, &self.line, Some(deadline)).await
    }

    /// Runs workers until the task rests; returns how many.
    async fn work_to_the_end(&self, id: &TaskId) -> u32 {
        for workers in 1..100 {
            assert_eq!(self.work(id).await, Ack::Delete);
            // Time in the queue does not count.
            tokio::time::sleep(100 * MINUTE).await;
            if self.record(id).await.state().is_at_rest() {
                return workers;
            }
        }
        panic!("the task does not end")
    }
}

fn code_of(record: &TaskRecord) -> &str {
    let message = record.status().message.as_ref().unwrap();
    message.metadata[metadata_keys::ERROR_CODE]
        .as_str()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_when_its_turns_have_run_for_the_limit() {
    let fixture = RunFixture::with(|policy| policy.task_run_max = 60 * MINUTE);
    let id = fixture.queued().await;
    // A worker stops after 13 minutes and hands over: five of them have run for an hour.
    assert_eq!(fixture.work_to_the_end(&id).await, 5);
    let record = fixture.record(&id).await;
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(code_of(&record), "RUN_LIMIT_EXCEEDED");
    let text = format!("{:?}", record.status().message);
    assert!(text.contains("a task may run for 3600 s in all"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn hand_overs_that_make_progress_for_ever_end() {
    let fixture = RunFixture::with(|policy| policy.task_hand_overs_max = 7);
    let id = fixture.queued().await;
    assert_eq!(fixture.work_to_the_end(&id).await, 8);
    let record = fixture.record(&id).await;
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(code_of(&record), "RUN_LIMIT_EXCEEDED");
}

#[tokio::test(start_paused = true)]
async fn dead_attempts_count_until_the_end_of_their_leases() {
    let fixture = RunFixture::with(|policy| policy.task_run_max = 3 * MINUTE);
    let id = fixture.queued().await;
    for attempt in 1..=2 {
        let dying = tokio::time::timeout(MINUTE / 2, fixture.work(&id)).await;
        assert!(dying.is_err(), "worker {attempt} did not die");
        tokio::time::sleep(100 * MINUTE).await;
    }
    // Each died after 30 s. Its last heartbeat, at 20 s, had extended the lease to 80 s.
    let record = fixture.record(&id).await;
    let used = record
        .used()
        .ended(fixture.engine.reader.clock.now(), record.lease_until());
    assert_eq!(used.run_time, Duration::from_secs(160));
    let dying = tokio::time::timeout(MINUTE / 2, fixture.work(&id)).await;
    assert!(dying.is_err(), "the third worker did not die");
    tokio::time::sleep(100 * MINUTE).await;
    assert_eq!(fixture.work(&id).await, Ack::Delete);
    let record = fixture.record(&id).await;
    assert_eq!(code_of(&record), "RUN_LIMIT_EXCEEDED");
    assert_eq!(record.attempt(), 3, "the last worker did not claim it");
}
