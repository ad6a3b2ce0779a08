//! Tests when streams, subscriptions and blocking sends end before their turn.

use super::*;
use crate::engine::{CallBudget, EngineError};
use crate::task::{Frame, Generation, SendResponse, SubscribeCommand};
use a2a_lambda_rows::each_row_async;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// The frames of a stream, and how long it lasted.
async fn watched(
    work: impl Future<Output = Result<(), EngineError>>,
    frames: &mut UnboundedReceiver<Frame>,
) -> (Vec<Frame>, Duration) {
    let begun = Instant::now();
    work.await.unwrap();
    let mut shown = Vec::new();
    while let Ok(frame) = frames.try_recv() {
        shown.push(frame);
    }
    (shown, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn stream_ends_before_its_invocation_and_asks_to_reconnect() {
    // `long steps` is handed over, `background` is dispatched to a worker, and `steps`
    // ends within the stream. `None`: without a deadline.
    let rows = [
        ("long steps", SendMode::Blocking, Some(900), 898),
        ("long steps", SendMode::Blocking, Some(60), 58),
        ("background", SendMode::Blocking, Some(900), 300),
        ("background", SendMode::Blocking, Some(90), 88),
        ("background", SendMode::Blocking, Some(1), 0),
        ("background", SendMode::Blocking, None, 300),
        ("steps", SendMode::Blocking, None, 60),
    ];
    each_row_async(rows, async |(words, mode, left, lasts)| {
        let fixture = WorkerFixture::with_message(words);
        let clock = &fixture.engine.reader.clock;
        let deadline = left.map(|left| clock.now().plus(Duration::from_secs(left)));
        let command = send_command(words, mode);
        let (sender, mut frames) = unbounded_channel();
        let caller = ann();
        let stream = fixture
            .engine
            .stream(&caller, command, CallBudget::until(deadline), sender);
        let (shown, lasted) = Box::pin(watched(stream, &mut frames)).await;
        assert_eq!(lasted.as_secs(), lasts, "{words} {left:?}");
        let ends = shown.iter().filter(|frame| **frame == Frame::Reconnect);
        let planned = usize::from(words != "steps");
        assert_eq!(ends.count(), planned, "{words} {left:?}");
        assert_eq!(shown.last() == Some(&Frame::Reconnect), planned == 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscription_ends_before_its_invocation_and_asks_to_reconnect() {
    let fixture = WorkerFixture::new();
    let id = fixture.send("steps", SendMode::Immediate).await.id;
    let caller = ann();
    let command = SubscribeCommand {
        id: id.clone(),
        last_event: None,
        generation: Generation::V10,
    };
    let rows = [(Some(60), 58), (Some(900), 300), (Some(2), 0), (None, 300)];
    each_row_async(rows, async |(left, lasts)| {
        let reader = fixture.engine.reader();
        let deadline = left.map(|left| reader.clock.now().plus(Duration::from_secs(left)));
        let (sender, mut frames) = unbounded_channel();
        let stream = reader.subscribe(&caller, &command, CallBudget::until(deadline), sender);
        let (shown, lasted) = watched(stream, &mut frames).await;
        assert_eq!((lasted.as_secs(), shown.len()), (lasts, 2), "{left:?}");
        assert_eq!(shown.last(), Some(&Frame::Reconnect), "{left:?}");
    })
    .await;
    let (sender, mut frames) = unbounded_channel();
    let stream =
        fixture
            .engine
            .reader()
            .subscribe(&caller, &command, CallBudget::default(), sender);
    let watching = watched(stream, &mut frames);
    let ((shown, _), _) = tokio::join!(watching, fixture.work(&id));
    assert!(!shown.contains(&Frame::Reconnect), "the task has ended");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_when_its_client_leaves() {
    let fixture = WorkerFixture::new();
    let id = fixture.send("steps", SendMode::Immediate).await.id;
    let (caller, last_event) = (ann(), None);
    let generation = Generation::V10;
    let command = SubscribeCommand {
        id,
        last_event,
        generation,
    };
    let (sender, mut frames) = unbounded_channel();
    let reader = fixture.engine.reader();
    let stream = reader.subscribe(&caller, &command, CallBudget::default(), sender);
    let begun = Instant::now();
    let client = async {
        frames.recv().await.unwrap();
        // The next read of the log is due a second after the last.
        tokio::time::sleep(Duration::from_millis(10_001)).await;
        drop(frames);
    };
    let (ended, ()) = tokio::join!(stream, client);
    ended.unwrap();
    assert_eq!(begun.elapsed().as_millis(), 10_001);
}

#[tokio::test(start_paused = true)]
async fn blocking_send_returns_before_its_invocation_ends() {
    for words in ["steps", "background"] {
        let fixture = WorkerFixture::with_message(words);
        let begun = Instant::now();
        let deadline = fixture
            .engine
            .reader
            .clock
            .now()
            .plus(Duration::from_secs(10));
        let command = send_command(words, SendMode::Blocking);
        let caller = ann();
        let sent = fixture
            .engine
            .send(&caller, command, CallBudget::until(Some(deadline)));
        assert!(matches!(sent.await.unwrap(), SendResponse::Task(_)));
        assert!(
            begun.elapsed() <= Duration::from_secs(9),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn blocking_send_returns_within_its_budget_and_a_worker_continues() {
    let fixture = WorkerFixture::new();
    let begun = Instant::now();
    let task = fixture.send("steps", SendMode::Blocking).await;
    assert!(
        begun.elapsed() <= Duration::from_secs(28),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(task.status.state, TaskState::Working);
    assert_eq!(fixture.work(&task.id).await, Ack::Delete);
    assert_eq!(fixture.record(&task.id).await.state(), TaskState::Completed);
    assert_eq!(fixture.counter.runs.load(Ordering::SeqCst), 2);
    // In the first run one step completed and the second was cut off.
    assert_eq!(fixture.counter.effects.load(Ordering::SeqCst), 3);
}
