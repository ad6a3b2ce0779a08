//! The eight scenarios, and the properties each must have whatever faults occur.

use crate::agent::{BIG, CHUNKS, chunk};
use crate::case::Case;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::EngineError;
use a2a_lambda::store::ReadThreads as _;
use a2a_lambda::task::{
    A2aError, CancelCommand, Event, Frame, Generation, IdempotencyKey, Message, PartContent, Role,
    SendCommand, SendMode, Sent, Task, TaskId, TaskRecord, TaskState,
};
use std::time::Duration;
use tokio::sync::mpsc;

/// The calls of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A short blocking send; the first write waits for the skill.
    Deferred,
    /// A 0.1 send with the client's own task id, repeated.
    ClientId,
    /// A queued send; its worker runs out of time.
    Queued,
    /// A stream; its chunks are committed in groups.
    Stream,
    /// A question and its answer, with session values.
    Continued,
    /// A cancel during the work, with an artifact in the bucket.
    Cancel,
    /// A send with an idempotency key, repeated until the client gets a response.
    Keyed,
    /// A question, and an answer with an idempotency key, repeated until the client gets a
    /// response.
    KeyedAnswer,
}

impl Scenario {
    pub(crate) const ALL: [Self; 8] = [
        Self::Deferred,
        Self::ClientId,
        Self::Queued,
        Self::Stream,
        Self::Continued,
        Self::Cancel,
        Self::Keyed,
        Self::KeyedAnswer,
    ];

    /// Runs the scenario with faults, lets it recover, then checks it.
    pub(crate) async fn run(self, case: &Case) {
        match self {
            Self::Deferred => deferred(case).await,
            Self::ClientId => client_id(case).await,
            Self::Queued => queued(case).await,
            Self::Stream => stream(case).await,
            Self::Continued => continued(case).await,
            Self::Cancel => Box::pin(cancel(case)).await,
            Self::Keyed => keyed(case).await,
            Self::KeyedAnswer => keyed_answer(case).await,
        }
    }
}

/// The task in a response. An error must be true for the client: the result is unknown, or
/// the server failed.
fn task(case: &Case, answer: Result<Sent, EngineError>) -> Option<Task> {
    match answer {
        Ok(Sent::Task(task)) => Some(*task),
        Ok(Sent::Message(message)) => {
            case.wrong(format!("a message instead of a task: {message:?}"));
            None
        }
        Err(error) => {
            blames_us(case, &error);
            None
        }
    }
}

fn blames_us(case: &Case, error: &EngineError) {
    let ours = matches!(
        error.refusal,
        A2aError::Unavailable { .. } | A2aError::Internal
    );
    case.check(ours, || {
        format!("refused with an error of the client: {error:?}")
    });
}

/// Checks that the task in a response is stored.
async fn is_stored(case: &Case, said: &Task) {
    let Some(record) = case.load(&said.id).await else {
        return case.wrong(format!("acknowledged and not stored: {said:?}"));
    };
    if said.status.state.is_at_rest() {
        let shown = case.shown(record.id()).await.unwrap();
        case.check(shown == *said, || {
            format!("answered {said:?}, stored {shown:?}")
        });
    }
}

/// Recovers, then checks that at most one task exists and that it is complete. Returns the
/// task.
async fn rests(case: &Case, acknowledged: bool, said: usize, artifact: &str) -> Option<TaskRecord> {
    case.recovers().await;
    let mut tasks = case.stored().await;
    case.check(tasks.len() <= 1, || {
        format!("more than one task: {tasks:#?}")
    });
    case.check(!acknowledged || !tasks.is_empty(), || {
        "acknowledged task is lost".to_owned()
    });
    let record = tasks.pop()?;
    let shown = case.shown(record.id()).await.unwrap();
    let history = shown.history.iter().flatten();
    let users = history.filter(|message| message.role == Role::User).count();
    // A message that can never be stored is missing from its failed task.
    let kept = users > 0 || record.state() == TaskState::Failed;
    case.check(users <= said && kept, || {
        format!("{users} messages of {said}: {shown:?}")
    });
    let mut seq = None;
    for event in record.events_after(0) {
        let expected = seq.map_or(event.seq, |last: u64| last + 1);
        case.check(event.seq == expected, || {
            format!("a gap in the log before {event:?}")
        });
        seq = Some(event.seq);
    }
    match record.state() {
        TaskState::Completed => {
            let texts: Vec<String> = shown.artifacts.iter().flatten().map(text).collect();
            let results = texts.iter().filter(|text| *text == artifact).count();
            case.check(results == 1, || {
                format!("artifact {artifact:?} not exactly once: {texts:?}")
            });
        }
        TaskState::InputRequired => {}
        TaskState::Failed => {
            let why = shown.status.message.as_ref().map(words);
            case.wrong(format!("failed: {why:?} {:?}", record.status()));
        }
        other => case.wrong(format!("at rest in state {other:?}")),
    }
    Some(record)
}

fn words(message: &Message) -> String {
    let parts = message.parts.iter();
    parts.filter_map(|part| string(&part.content)).collect()
}

fn string(content: &PartContent) -> Option<&str> {
    match content {
        PartContent::Text(text) => Some(text),
        _ => None,
    }
}

fn text(artifact: &a2a_lambda::task::Artifact) -> String {
    let parts = artifact.parts.iter();
    parts
        .map(|part| match &part.content {
            PartContent::Text(text) => text.clone(),
            PartContent::Raw(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

async fn deferred(case: &Case) {
    let command = case.says("short", None);
    let answer = case
        .engine
        .send(&case.caller, command, CallBudget::default())
        .await;
    let said = task(case, answer);
    if let Some(said) = &said {
        is_stored(case, said).await;
    }
    rests(case, said.is_some(), 1, "short").await;
}

async fn client_id(case: &Case) {
    let mut command = case.says("short", None);
    let id = TaskId::parse("mine-1").unwrap();
    command.client_task_id = Some(id.clone());
    command.generation = Generation::V01;
    for _ in 0..2 {
        let answer = case
            .engine
            .send(&case.caller, command.clone(), CallBudget::default())
            .await;
        if let Some(said) = task(case, answer) {
            is_stored(case, &said).await;
        }
    }
    case.line.mend();
    let answer = case
        .engine
        .send(&case.caller, command.clone(), CallBudget::default())
        .await;
    let Some(said) = task(case, answer) else {
        return case.wrong("refused without a fault");
    };
    case.check(said.id == id, || format!("another task: {:?}", said.id));
    rests(case, true, 1, "short").await;
}

/// Sends the same command three times, the last time without faults. Every response must
/// name the same task.
async fn until_heard(case: &Case, command: &SendCommand) -> Option<Task> {
    let mut first: Option<TaskId> = None;
    for mended in [false, false, true] {
        if mended {
            case.line.mend();
        }
        let answer = case
            .engine
            .send(&case.caller, command.clone(), CallBudget::default())
            .await;
        let Some(said) = task(case, answer) else {
            case.check(!mended, || "refused without a fault".to_owned());
            continue;
        };
        is_stored(case, &said).await;
        let one = first.get_or_insert_with(|| said.id.clone());
        case.check(*one == said.id, || format!("{one}, then {}", said.id));
        if mended {
            return Some(said);
        }
    }
    None
}

fn under(mut command: SendCommand, key: &str) -> SendCommand {
    command.idempotency_key = IdempotencyKey::parse(key).ok();
    command
}

async fn keyed(case: &Case) {
    let command = under(case.says("short", None), "k");
    let said = until_heard(case, &command).await;
    rests(case, said.is_some(), 1, "short").await;
}

async fn keyed_answer(case: &Case) {
    let command = under(case.says("ask", None), "question");
    let answer = case
        .engine
        .send(&case.caller, command, CallBudget::default())
        .await;
    let Some(asked) = task(case, answer) else {
        rests(case, false, 1, "2 turns").await;
        return;
    };
    if asked.status.state != TaskState::InputRequired {
        case.wrong(format!("failed: does not ask: {:?}", asked.status));
        return;
    }
    let command = under(case.says("ask", Some(&asked.id)), "answer");
    let said = until_heard(case, &command).await;
    case.check(said.is_some_and(|said| said.id == asked.id), || {
        "the answer went to another task".to_owned()
    });
    let record = rests(case, true, 2, "2 turns").await;
    let state = record.map(|record| record.state());
    case.check(state == Some(TaskState::Completed), || {
        format!("failed: {state:?} after its answer")
    });
}

async fn queued(case: &Case) {
    let mut command = case.says("steps", None);
    command.mode = SendMode::Immediate;
    let answer = case
        .engine
        .send(&case.caller, command, CallBudget::default())
        .await;
    let said = task(case, answer);
    if let Some(said) = &said {
        is_stored(case, said).await;
    }
    for time in [Some(Duration::from_secs(5)), None] {
        case.relays().await;
        // The first worker must run out of time; the second may finish the skill.
        if time.is_none() {
            case.signals.free.send_replace(true);
        }
        case.works(&case.engine, time).await;
    }
    let record = rests(case, said.is_some(), 1, "one two").await;
    // Each of the two steps may run at most twice: a stored step does not run again.
    let steps = case.signals.steps.lock().unwrap().clone();
    case.check(record.is_none() || steps.len() <= 4, || {
        format!("more than 4 step runs: {steps:?}")
    });
}

async fn stream(case: &Case) {
    let (frames, mut shown) = mpsc::unbounded_channel();
    let command = case.says("chunks", None);
    let done = case
        .engine
        .stream(&case.caller, command, CallBudget::default(), frames)
        .await;
    let mut seen = Vec::new();
    while let Some(frame) = shown.recv().await {
        seen.push(frame);
    }
    match &done {
        Ok(()) => case.check(ends(seen.last()), || {
            format!("the stream ends without an error after {:?}", seen.last())
        }),
        Err(error) => {
            blames_us(case, error);
            case.check(seen.is_empty(), || "frames and an error".to_owned());
        }
    }
    let expected: String = (0..CHUNKS).map(chunk).collect();
    let letters = format!("{expected}end");
    let record = rests(case, !seen.is_empty(), 1, &letters).await;
    let mut last = None;
    for frame in &seen {
        let Frame::Event { event, .. } = frame else {
            continue;
        };
        let stored = record.as_ref().and_then(|record| {
            let mut log = record.events_after(event.seq.saturating_sub(1));
            log.next().cloned()
        });
        case.check(stored.as_ref() == Some(event), || {
            format!("shown {event:?}, stored {stored:?}")
        });
        case.check(last.is_none_or(|last| event.seq == last + 1), || {
            format!("out of order: {event:?}")
        });
        last = Some(event.seq);
    }
}

/// Whether a stream may end with this frame: the task is at rest, or it is an error.
fn ends(frame: Option<&Frame>) -> bool {
    match frame {
        Some(Frame::Refused(_)) => true,
        Some(Frame::Event { event, .. }) => match &event.event {
            Event::Status(update) => update.status.state.is_at_rest(),
            Event::Artifact(_) => false,
        },
        _ => false,
    }
}

async fn continued(case: &Case) {
    let command = case.says("ask", None);
    let answer = case
        .engine
        .send(&case.caller, command, CallBudget::default())
        .await;
    let asked = task(case, answer);
    let Some(asked) = asked else {
        rests(case, false, 1, "2 turns").await;
        return;
    };
    is_stored(case, &asked).await;
    if asked.status.state != TaskState::InputRequired {
        case.wrong(format!("failed: does not ask: {:?}", asked.status));
        return;
    }
    let command = case.says("ask", Some(&asked.id));
    let answer = case
        .engine
        .send(&case.caller, command, CallBudget::default())
        .await;
    let said = task(case, answer);
    if let Some(said) = &said {
        is_stored(case, said).await;
    }
    let Some(record) = rests(case, true, 2, "2 turns").await else {
        return;
    };
    let finished = record.state() == TaskState::Completed;
    case.check(finished || said.is_none(), || {
        format!("failed: acknowledged and not done: {:?}", record.status())
    });
    let owner = &case.caller.owner;
    let thread = case.store.load_thread(owner, record.context_id()).await;
    let turns = thread
        .unwrap()
        .map(|thread| thread.state.session["turns"].clone());
    let expected = if finished { 2 } else { 1 };
    case.check(turns == Some(expected.into()), || {
        format!("{turns:?} turns in the session, expected {expected}")
    });
}

async fn cancel(case: &Case) {
    let command = case.says("big", None);
    let mut waiting = case.signals.waiting.subscribe();
    let work = case
        .engine
        .send(&case.caller, command, CallBudget::default());
    let client = async {
        let id = waiting.wait_for(Option::is_some).await.unwrap().clone();
        let command = CancelCommand {
            id: id.unwrap(),
            metadata: Default::default(),
        };
        let answer = case.engine.cancel(&case.caller, &command).await;
        let stored = case.load(&command.id).await;
        case.signals.free.send_replace(true);
        (answer, stored)
    };
    tokio::pin!(work);
    tokio::pin!(client);
    let mut canceled = None;
    let ended = tokio::select! {
        biased;
        done = &mut client => {
            canceled = Some(done);
            work.await
        }
        ended = &mut work => ended,
    };
    // Waits for a cancel that has started.
    if canceled.is_none() && case.signals.waiting.borrow().is_some() {
        canceled = Some(client.await);
    }
    let Some((answer, stored)) = canceled else {
        let said = task(case, ended);
        rests(case, said.is_some(), 1, "big").await;
        return;
    };
    let _answered = task(case, ended);
    match answer {
        Ok(answer) => stays_canceled(case, &answer, &stored.unwrap()).await,
        Err(error) => {
            blames_us(case, &error);
            // The result is unknown: the task may be canceled, or it continues.
            case.recovers().await;
            let record = stored.unwrap();
            let after = case.load(record.id()).await.unwrap();
            let state = after.state();
            case.check(
                state == TaskState::Canceled || state == TaskState::Completed,
                || format!("{:?}", after.status()),
            );
        }
    }
}

/// Checks that a canceled task keeps its earlier output and gets no more.
async fn stays_canceled(case: &Case, answer: &Task, before: &TaskRecord) {
    case.recovers().await;
    let after = case.load(&answer.id).await;
    case.check(answer.status.state == TaskState::Canceled, || {
        format!("{:?}", answer.status)
    });
    case.check(after.as_ref() == Some(before), || {
        format!("changed after its cancel: {before:?} {after:?}")
    });
    let shown = case.shown(&answer.id).await.unwrap();
    let texts: Vec<String> = shown.artifacts.iter().flatten().map(text).collect();
    case.check(texts == ["b".repeat(BIG)], || {
        format!("{} artifacts of a canceled task", texts.len())
    });
}
