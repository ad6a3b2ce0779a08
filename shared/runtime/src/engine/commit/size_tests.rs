//! Operations on tasks that are as large as a task may be. The size of a stored task is set
//! by what it says it has moved to children, so that it is exact and cheap.

use crate::engine::doubles::{FakeQueue, ann, send_command, services, work_item};
use crate::engine::{CallBudget, Engine, Leases, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::{Ack, WorkItem};
use crate::store::{CommitResult, Expect, TaskWrite, stored};
use crate::task::{
    A2aError, CancelCommand, Message, Metadata, Part, SendCommand, SendMode, SendResponse, Task,
    TaskId, TaskRecord, TaskState, WriteId,
};
use a2a_lambda_model::stored::fill;
use a2a_lambda_rows::each_row_async;
use std::sync::Arc;
use std::time::Duration;

/// The largest task that has not ended.
const OPEN: u64 = stored::OPEN_MAX_BYTES as u64;
/// How far below the limit the tests look.
const BAND: u64 = 300;
/// More than all leases.
const LATER: Duration = Duration::from_secs(3600);

#[derive(serde::Serialize, serde::Deserialize)]
struct Asked;

impl SkillSlot for Asked {}

/// Asks as long as its text says.
#[skill(id = "ask", tags = ["test"], input_modes = ["text/plain"])]
struct Asks;

impl SkillHandler<Asked> for Asks {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        if input == "wait" {
            tokio::time::sleep(LATER).await;
        }
        match input.starts_with("done") {
            true => OnRequestResult::done(String::new()),
            false => OnRequestResult::ask("which one?", Asked),
        }
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

struct Fixture {
    engine: Engine,
    memory: Arc<MemoryStore>,
}

impl Fixture {
    fn new() -> Self {
        let agent = Agent::builder("test").skill(Asks).build().unwrap();
        let memory = Arc::new(MemoryStore::new());
        Self {
            engine: Engine::new(Arc::new(agent), services(&memory), Policy::default()),
            memory,
        }
    }

    async fn sent(&self, command: SendCommand) -> Result<Task, A2aError> {
        match self
            .engine
            .send(&ann(), command, CallBudget::default())
            .await
        {
            Ok(SendResponse::Task(task)) => Ok(*task),
            Ok(SendResponse::Message(message)) => panic!("{message:?}"),
            Err(error) => {
                assert!(error.cause.is_none(), "logged as an error: {error:?}");
                Err(error.a2a_error)
            }
        }
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        let now = self.engine.reader.clock.now();
        let found = self.memory.records.load(&ann().owner, id, now).await;
        found.unwrap().unwrap()
    }

    /// A stored task of exactly `size` bytes, made by a send of this text and mode.
    async fn task_of(&self, size: u64, text: &str, mode: SendMode) -> TaskRecord {
        let task = self.sent(send_command(text, mode)).await.unwrap();
        let before = self.record(&task.id).await;
        let (write, at) = (WriteId::made_of(7), self.engine.reader.clock.now());
        let mut record = before.next([], write, at, before.expires_at).unwrap();
        stored::arrange(&mut record);
        fill(&mut record, usize::try_from(size).unwrap());
        let write = TaskWrite {
            record: record.clone(),
            expect: Expect::of(&before),
            thread: None,
            pushes: Vec::new(),
            key: None,
            has_pointer: false,
            now: at,
        };
        let stored = self.memory.records.commit(&write).await.unwrap();
        assert_eq!(stored, CommitResult::Done);
        record
    }

    /// Runs the turn of a task in a worker.
    async fn work(&self, record: &TaskRecord) -> TaskState {
        let queue = FakeQueue::<WorkItem>::default();
        let ack = self
            .engine
            .turns
            .work(&work_item(record), &queue, None)
            .await;
        assert_eq!(ack, Ack::Delete, "the message has its effect");
        self.record(&record.id).await.state()
    }
}

fn answer(record: &TaskRecord, length: u64) -> SendCommand {
    let text = "x".repeat(usize::try_from(length).unwrap());
    let mut command = send_command(&text, SendMode::Blocking);
    command.message = Message::from_user("m-2", vec![Part::text(text)]);
    command.message.task_id = Some(record.id.clone());
    command
}

#[tokio::test(start_paused = true)]
async fn a_full_task_that_asks_can_be_canceled_and_deleted() {
    for below in 0..=BAND {
        let fixture = Fixture::new();
        let record = fixture
            .task_of(OPEN - below, "hello", SendMode::Blocking)
            .await;
        assert_eq!(record.state(), TaskState::InputRequired);
        let id = record.id.clone();
        let metadata = Metadata::new();
        let cancel = CancelCommand { id, metadata };
        let canceled = fixture.engine.tasks.cancel(&ann(), &cancel).await;
        assert_eq!(
            canceled.unwrap().status.state,
            TaskState::Canceled,
            "{below}"
        );
        let record = fixture
            .task_of(OPEN - below, "hello", SendMode::Blocking)
            .await;
        fixture
            .engine
            .tasks
            .delete_task(&ann(), &record.id)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_task_that_waits_for_a_worker_comes_to_rest() {
    let (mut asks, mut fails) = (0, 0);
    for below in 0..=BAND * 3 {
        let fixture = Fixture::new();
        let record = fixture
            .task_of(OPEN - below, "hello", SendMode::Immediate)
            .await;
        match fixture.work(&record).await {
            TaskState::InputRequired => asks += 1,
            TaskState::Failed => fails += 1,
            state => panic!("{state} {below} bytes below the limit"),
        }
    }
    assert!(asks > 0 && fails > 0, "{asks} questions, {fails} failures");
}

#[tokio::test(start_paused = true)]
async fn a_full_task_of_a_worker_that_died_comes_to_rest() {
    let (mut again, mut fails) = (0, 0);
    for below in (0..=BAND * 3).step_by(5) {
        let fixture = Fixture::new();
        let record = fixture
            .task_of(OPEN - below, "wait", SendMode::Immediate)
            .await;
        // The worker claims the turn and dies, or the task fails at once.
        let (queue, item) = (FakeQueue::<WorkItem>::default(), work_item(&record));
        {
            let dies = Box::pin(fixture.engine.turns.work(&item, &queue, None));
            let _pending = futures::poll!(dies);
        }
        tokio::time::advance(LATER).await;
        let queue = FakeQueue::default();
        let swept = fixture.engine.sweeper.sweep(&queue, Leases::Respect);
        swept.await.unwrap();
        let record = fixture.record(&record.id).await;
        if record.state().is_at_rest() {
            fails += 1;
        } else {
            again += 1;
            fixture.work(&record).await;
        }
    }
    assert!(again > 0 && fails > 0, "{again} runs, {fails} failures");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_makes_its_task_too_large_is_refused_with_figures() {
    let fixture = Fixture::new();
    let record = fixture
        .task_of(OPEN - 5_000, "hello", SendMode::Blocking)
        .await;
    let large = fixture.sent(answer(&record, 9_000)).await.unwrap_err();
    let A2aError::StateTooLarge { current, limit } = large else {
        panic!("{large:?}");
    };
    assert_eq!(limit, OPEN);
    // The size grows by a byte with each byte of the text.
    let fits = 9_000 - (current - limit);
    for length in [fits + 1, fits + 2, fits + 300] {
        let error = fixture.sent(answer(&record, length)).await.unwrap_err();
        let current = limit + length - fits;
        assert_eq!(error, A2aError::StateTooLarge { current, limit });
        assert_eq!(
            fixture.record(&record.id).await,
            record,
            "nothing is written"
        );
    }
    each_row_async([0, 1, 2, 300], async |below| {
        let record = fixture
            .task_of(OPEN - 5_000, "hello", SendMode::Blocking)
            .await;
        let state = fixture.sent(answer(&record, fits - below)).await;
        let state = state.unwrap().status.state;
        // The answer fits, and the next question does or fails the task.
        assert!(state.is_at_rest(), "{state} {below} bytes below the limit");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_first_message_that_is_too_large_is_refused_with_figures() {
    for mode in [SendMode::Blocking, SendMode::Immediate] {
        let text =
            |length: u64| format!("done{}", "x".repeat(usize::try_from(length - 4).unwrap()));
        let fixture = Fixture::new();
        let large = fixture
            .sent(send_command(&text(OPEN), mode))
            .await
            .unwrap_err();
        let A2aError::StateTooLarge { current, limit } = large else {
            panic!("{mode:?}: {large:?}");
        };
        assert_eq!(limit, OPEN);
        let fits = OPEN - (current - limit);
        let error = fixture
            .sent(send_command(&text(fits + 1), mode))
            .await
            .unwrap_err();
        let current = limit + 1;
        assert_eq!(
            error,
            A2aError::StateTooLarge { current, limit },
            "{mode:?}"
        );
        let task = fixture.sent(send_command(&text(fits), mode)).await.unwrap();
        assert!(!task.status.state.is_interrupted(), "{mode:?}");
    }
}
