//! The time that a skill has left, and the log lines when it is over.

use crate::engine::CallBudget;
use crate::engine::doubles::{FakeQueue, ann, owner, send_command, services, work_item};
use crate::engine::{Engine, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::queue::WorkItem;
use crate::task::{Frame, SendMode, SendResponse, Task, TaskState, Timestamp};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the time it has left, or works.
#[skill(id = "clock", tags = ["test"], input_modes = ["text/plain"])]
async fn watches(cx: &mut TaskContext<'_>, input: String) -> AgentResult<String> {
    let left = cx.time_left().as_secs();
    if input == "step" {
        cx.step("one", async { Ok(()) }).await?;
    }
    if input != "how long" {
        tokio::time::sleep(1_000 * SECOND).await;
    }
    Ok(left.to_string())
}

/// An engine whose skill reads the time that it has left.
struct TimeLeftFixture {
    engine: Engine,
    store: Arc<MemoryStore>,
}

impl TimeLeftFixture {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let agent = Agent::builder("test").skill(watches).build().unwrap();
        let services = services(&store);
        let engine = Engine::new(Arc::new(agent), services, Policy::default());
        Self { engine, store }
    }

    fn in_seconds(&self, left: Option<u64>) -> Option<Timestamp> {
        let now = self.engine.reader.clock.now();
        left.map(|left| now.plus(SECOND * u32::try_from(left).unwrap()))
    }

    async fn send(&self, text: &str, mode: SendMode, left: Option<u64>) -> Task {
        let command = send_command(text, mode);
        let caller = ann();
        let sent = self
            .engine
            .send(&caller, command, CallBudget::until(self.in_seconds(left)));
        match sent.await.unwrap() {
            SendResponse::Task(task) => *task,
            SendResponse::Message(message) => panic!("{message:?}"),
        }
    }

    /// The artifact of a task that a worker runs with this deadline.
    async fn worked(&self, deadline: Option<Timestamp>) -> String {
        let task = self.send("how long", SendMode::Immediate, None).await;
        let (owner, now) = (owner(), self.engine.reader.clock.now());
        let record = self.store.records.load(&owner, &task.id, now).await;
        let record = record.unwrap().unwrap();
        let item = work_item(&record);
        let line = FakeQueue::<WorkItem>::default();
        self.engine.turns.work(&item, &line, deadline).await;
        let record = self.store.records.load(&owner, &task.id, now).await;
        let record = record.unwrap().unwrap();
        assert_eq!(record.state(), TaskState::Completed);
        let artifact = record.artifacts.first().unwrap().clone();
        Artifact::from(artifact).text().unwrap()
    }
}

fn said(task: Task) -> String {
    let artifact = task.artifacts.unwrap_or_default().remove(0);
    Artifact::from(artifact).text().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_time_left_is_the_smaller_of_deadline_and_budget() {
    for (left, expected) in [(None, "25"), (Some(60), "25"), (Some(10), "8")] {
        let fixture = TimeLeftFixture::new();
        let task = fixture.send("how long", SendMode::Blocking, left).await;
        assert_eq!(said(task), expected, "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_has_the_time_of_its_invocation_or_15_minutes() {
    for (left, expected) in [(None, "900"), (Some(300), "300"), (Some(0), "0")] {
        let fixture = TimeLeftFixture::new();
        let deadline = fixture.in_seconds(left);
        assert_eq!(fixture.worked(deadline).await, expected, "{left:?}");
    }
    let fixture = TimeLeftFixture::new();
    let passed = Timestamp::from_millis(1);
    assert_eq!(fixture.worked(Some(passed)).await, "0");
}

#[tokio::test(start_paused = true)]
async fn the_time_left_of_a_stream_without_a_deadline_is_15_minutes() {
    let fixture = TimeLeftFixture::new();
    let (frames, mut shown) = tokio::sync::mpsc::unbounded_channel();
    let command = send_command("how long", SendMode::Blocking);
    let caller = ann();
    let stream = fixture
        .engine
        .stream(&caller, command, CallBudget::default(), frames);
    Box::pin(stream).await.unwrap();
    let frames: Vec<Frame> = std::iter::from_fn(|| shown.try_recv().ok()).collect();
    let words = format!("{frames:?}");
    assert!(words.contains(r#""900""#), "{words}");
}

/// Says something after a pause, and again 100 ms later.
#[skill(id = "pauses", tags = ["test"])]
async fn pauses(cx: &mut TaskContext<'_>, _: String) -> AgentResult<()> {
    tokio::time::sleep(SECOND).await;
    for _ in 0..2 {
        cx.send_intermediate_update("news").await?;
        tokio::time::sleep(SECOND / 10).await;
    }
    tokio::time::sleep(SECOND).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_event_after_a_pause_is_shown_at_once_and_the_next_after_an_interval() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::builder("test").skill(pauses).build().unwrap();
    let services = services(&store);
    let engine = Engine::new(Arc::new(agent), services, Policy::default());
    let (frames, mut shown) = tokio::sync::mpsc::unbounded_channel();
    let (command, caller) = (send_command("go", SendMode::Blocking), ann());
    let stream = engine.stream(&caller, command, CallBudget::default(), frames);
    let began = tokio::time::Instant::now();
    let client = async {
        let mut times = Vec::new();
        while let Some(frame) = shown.recv().await {
            if matches!(frame, Frame::Event { last: false, .. }) {
                times.push(began.elapsed().as_millis());
            }
        }
        times
    };
    let (ended, times) = tokio::join!(Box::pin(stream), client);
    ended.unwrap();
    // The timer rounds up to whole milliseconds.
    let [first, second] = times.try_into().unwrap();
    assert!((1_000..1_010).contains(&first), "{first}");
    assert!((1_375..1_390).contains(&second), "{second}");
}

/// Collects the lines of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log lines of a skill that gets `text` and takes longer than its call.
async fn logged(text: &str) -> Vec<serde_json::Value> {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().json().flatten_event(true);
    let log = log.with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(log);
    let task = TimeLeftFixture::new()
        .send(text, SendMode::Blocking, None)
        .await;
    assert_eq!(task.status.state, TaskState::Working);
    let lines = lines.0.lock().unwrap();
    let lines = lines.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .filter(|line: &serde_json::Value| line["message"] != "turn")
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_is_logged_and_one_without_steps_warns() {
    let [repeats] = logged("work").await.try_into().unwrap();
    assert_eq!(
        (&repeats["level"], &repeats["skill"]),
        (&"WARN".into(), &"clock".into())
    );
    let message = repeats["message"].as_str().unwrap();
    assert!(message.contains("starts again"), "{message}");
    let [continues] = logged("step").await.try_into().unwrap();
    assert_eq!(continues["level"], "INFO", "{continues}");
    let message = continues["message"].as_str().unwrap();
    assert!(message.ends_with("is handed over"), "{message}");
}
