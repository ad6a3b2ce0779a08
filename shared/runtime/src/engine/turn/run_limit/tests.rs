//! Tests the limits of turns that run again and again, over the memory store and tokio's
//! paused clock.

use crate::engine::doubles::{FakeQueue, ann, owner, send_command, sent_task, services, work_item};
use crate::engine::{Engine, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, WorkItem};
use crate::task::{SendMode, TaskId, TaskRecord, TaskState, metadata_keys};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Makes one step of a minute after the other, for ever; no step if its input is `idle`.
#[skill(id = "endless", tags = ["test"], input_modes = ["text/plain"])]
struct Endless;

impl SkillHandler for Endless {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String>> {
        if input == "idle" {
            std::future::pending::<()>().await;
        }
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
        let services = services(&store);
        Self {
            engine: Engine::new(Arc::new(agent), services, policy),
            store,
            line: FakeQueue::default(),
        }
    }

    async fn queued(&self, text: &str) -> TaskId {
        let command = send_command(text, SendMode::Immediate);
        sent_task(&self.engine, &ann(), command).await.id
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        let now = self.engine.reader.clock.now();
        self.store
            .records
            .load(&owner(), id, now)
            .await
            .unwrap()
            .unwrap()
    }

    /// Runs a worker with 15 minutes.
    async fn work(&self, id: &TaskId) -> Ack {
        let item = work_item(&self.record(id).await);
        let deadline = self.engine.reader.clock.now().plus(15 * MINUTE);
        self.engine
            .turns
            .work(&item, &self.line, Some(deadline))
            .await
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
    let message = record.status.message.as_ref().unwrap();
    message.metadata[metadata_keys::ERROR_CODE]
        .as_str()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_progress_for_the_limit_fails_its_task() {
    let fixture = RunFixture::with(|policy| policy.task_run_max = 60 * MINUTE);
    let id = fixture.queued("idle").await;
    // The worker hands over after 13 minutes. The next one comes after 100 minutes.
    assert_eq!(fixture.work_to_the_end(&id).await, 2);
    let record = fixture.record(&id).await;
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(code_of(&record), "RUN_LIMIT_EXCEEDED");
    let text = format!("{:?}", record.status.message);
    assert!(text.contains("made no progress for"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_makes_progress_runs_longer_than_the_limit() {
    let fixture = RunFixture::with(|policy| policy.task_run_max = 60 * MINUTE);
    let id = fixture.queued("go").await;
    for _ in 0..7 {
        assert_eq!(fixture.work(&id).await, Ack::Delete);
        tokio::time::sleep(45 * MINUTE).await;
    }
    assert_eq!(fixture.record(&id).await.state(), TaskState::Working);
}

#[tokio::test(start_paused = true)]
async fn hand_overs_that_make_progress_for_ever_end() {
    let fixture = RunFixture::with(|policy| policy.task_hand_overs_max = 7);
    let id = fixture.queued("go").await;
    assert_eq!(fixture.work_to_the_end(&id).await, 8);
    let record = fixture.record(&id).await;
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(code_of(&record), "RUN_LIMIT_EXCEEDED");
}
