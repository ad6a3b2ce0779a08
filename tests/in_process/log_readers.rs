//! Nothing that an agent does reads its log: it works without a reader, with `A2A_LOG=off` and under
//! a subscriber of its author, also one that blocks or panics.

use crate::budgets::used;
use a2a_lambda::llm::LlmFunction;
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::RuntimeBuilder;
use a2a_lambda::testing::ScriptedModel;
use a2a_lambda_rows::{each_row, each_row_async};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::log_lines::LogLines;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Request, World};
use futures::FutureExt as _;
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

const GUIDE: &str = include_str!("../../docs/operations.md");
/// The files that write lines with fields.
const WRITERS: [&str; 2] = [
    include_str!("../../shared/runtime/src/telemetry/events.rs"),
    include_str!("../../shared/skill/src/model_line.rs"),
];
const REST: Dialect = Dialect::Rest10;
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Says what a model answers, and its trace.
#[skill(id = "traced", tags = ["test"])]
async fn traced(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let answer: String = LlmFunction::new("Answer.").run(cx, &text).await?;
    Ok(format!(
        "{answer} {}",
        cx.trace_parent().unwrap_or_default()
    ))
}

/// Says what it gets.
#[skill(id = "echo", tags = ["test"])]
async fn echo(text: String) -> AgentResult<String> {
    Ok(text)
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    let agent = Agent::builder("readers").description("Talks.").version("1");
    agent.skill(traced).skill(echo).build()
}

/// An agent whose tenants have so many tokens a day.
fn world(before: Option<&World>, tokens: u64) -> World {
    let (store, clock) =
        before.map_or_else(Default::default, |it| (it.store.clone(), it.clock.clone()));
    let model = ScriptedModel::new().text("once").text("twice");
    let with_model = |runtime: RuntimeBuilder| runtime.model(model);
    let settings = |settings: &mut a2a_lambda::settings::Settings| {
        settings.policy.limits.tokens_per_day = Some(tokens);
    };
    World::over(store, clock, agent, settings, with_model).unwrap()
}

/// A place for the lines of an author's subscriber, which does something for each.
struct Lines(Arc<dyn Fn() + Send + Sync>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A subscriber of an author on this thread, until the guard is dropped.
fn subscribe(line: impl Fn() + Send + Sync + 'static) -> impl Sized {
    let line: Arc<dyn Fn() + Send + Sync> = Arc::new(line);
    // Two subscribers, as in `LogLines`.
    let second = tracing_subscriber::fmt().with_max_level(LevelFilter::OFF);
    let second = second.set_default();
    let subscriber = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
    let guard = subscriber
        .with_writer(move || Lines(line.clone()))
        .set_default();
    (guard, second)
}

/// What reads the log.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reader {
    Nobody,
    Off,
    Author,
}

/// `future`, whose log has this reader.
async fn read_by<F: Future>(reader: Reader, future: F) -> F::Output {
    let lines = LogLines::default();
    let _off = (reader == Reader::Off).then(|| lines.capture_at("off"));
    let _own = (reader == Reader::Author).then(|| subscribe(|| ()));
    future.await
}

const READERS: [Reader; 3] = [Reader::Nobody, Reader::Off, Reader::Author];

fn unknown() -> Request {
    REST.of_task(Op::Get, "nothing").from("acme:ann")
}

#[tokio::test(start_paused = true)]
async fn a_turn_has_the_trace_of_its_call_whoever_reads_the_log() {
    each_row_async(READERS, async |reader| {
        let world = world(None, 100_000);
        let request = REST.send(&Say::to("traced", "hi")).from("acme:ann");
        let request = request.header("traceparent", TRACE);
        let reply = read_by(reader, world.call(&request)).await;
        let trace = TRACE.split('-').nth(1).unwrap();
        assert!(
            reply.text().contains(&format!("once 00-{trace}-")),
            "{}",
            reply.text()
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn tokens_count_and_a_budget_ends_a_turn_whoever_reads_the_log() {
    each_row_async(READERS, async |reader| {
        let first = world(None, 100_000);
        let request = REST.send(&Say::to("traced", "hi")).from("acme:ann");
        read_by(reader, first.call(&request)).await;
        let tokens = used(&first, "acme", 0).await;
        assert!(tokens > 0);
        let last = world(Some(&first), tokens);
        let reply = read_by(reader, last.call(&request)).await;
        assert!(reply.text().contains("BUDGET_EXCEEDED"), "{}", reply.text());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn refusals_are_sampled_whoever_reads_the_log() {
    each_row_async(READERS, async |reader| {
        let world = world(None, 1);
        read_by(reader, async {
            for _ in 0..15 {
                assert_eq!(world.call(&unknown()).await.status, 404);
            }
        })
        .await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let lines = LogLines::default();
        let _guard = lines.capture();
        world.call(&unknown()).await;
        // Ten had a line, or would have had one.
        assert_eq!(lines.with_message("refused")[0]["a2a.left_out"], 5);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_costs_no_more_than_the_answer_of_its_call() {
    let world = world(None, 1);
    let request = REST.send(&Say::to("echo", "hi")).from("acme:ann");
    let request = request.header("idempotency-key", "k1");
    let guard = subscribe(|| panic!("no place for a line"));
    for request in [&request, &unknown()] {
        let answer = AssertUnwindSafe(world.call(request)).catch_unwind().await;
        assert!(answer.is_err());
    }
    drop(guard);
    // The client asks again, and gets the task of the first call.
    let lines = LogLines::default();
    let _guard = lines.capture();
    let task = REST.task(&world.call(&request).await);
    assert_eq!(REST.state(&task), "completed");
    let line = &lines.with_message("call")[0];
    assert_eq!(line["a2a.task"], task["id"], "{line}");
    assert_eq!(line.get("a2a.attempt"), None, "no turn ran again: {line}");
    assert_eq!(world.call(&unknown()).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_fields_of_lines_are_those_of_the_guide() {
    let (_, guide) = GUIDE.split_once("\n| Field | Holds |\n").unwrap();
    let (table, _) = guide.split_once("\n\n").unwrap();
    let world = world(None, 100_000);
    let lines = LogLines::default();
    let _guard = lines.capture_at("info");
    for text in ["once", "twice", "no answer is left"] {
        let request = REST.send(&Say::to("traced", text)).from("acme:ann");
        world.call(&request).await;
    }
    for _ in 0..11 {
        world.call(&unknown()).await;
    }
    let mut names = BTreeSet::new();
    for message in ["call", "refused", "model"] {
        let lines = lines.with_message(message);
        let fields = lines.iter().filter_map(|line| line.as_object());
        names.extend(fields.flat_map(|line| line.keys().cloned()));
    }
    for of_every_line in ["timestamp", "level", "message", "target", "spans"] {
        names.remove(of_every_line);
    }
    assert!(names.len() > 15, "{names:?}");
    names.retain(|name| !table.contains(&format!("`{name}`")));
    assert_eq!(names, BTreeSet::new());
}

#[test]
fn the_guide_names_the_fields_of_lines_and_no_others() {
    let (_, guide) = GUIDE
        .split_once("\n| Field | Holds |\n|---|---|\n")
        .unwrap();
    let (table, _) = guide.split_once("\n\n").unwrap();
    let cells = table.lines().filter_map(|row| row.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let guide: BTreeSet<&str> = names.filter(|name| name.contains('.')).collect();
    // A field with a dot is written in no other form than at the start of a line.
    let lines = WRITERS.iter().flat_map(|source| source.lines());
    let fields = lines.filter_map(|line| line.trim_start().split_once(" = "));
    let is_field = |name: &&str| name.contains('.') && !name.contains([' ', '(', '"']);
    let fields: BTreeSet<&str> = fields.map(|(name, _)| name).filter(is_field).collect();
    assert_eq!(fields, guide);
}

/// The status of each request, on a thread of its own whose log has a `reader`.
fn call<R>(world: &World, requests: &[Request], reader: impl FnOnce() -> R) -> Vec<u16> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let _reader = reader();
    runtime.enable_all().build().unwrap().block_on(async {
        let calls = requests.iter().map(|request| world.call(request));
        let replies = futures::future::join_all(calls).await;
        replies.iter().map(|reply| reply.status).collect()
    })
}

#[test]
fn a_subscriber_that_blocks_blocks_no_other_call() {
    let world = world(None, 1);
    let newer = || {
        REST.send(&Say::to("echo", "hi"))
            .from("acme:ann")
            .header("a2a-version", "9.9")
    };
    each_row([unknown(), newer()], |request| {
        let world = &world;
        let requests = [request];
        std::thread::scope(|threads| {
            let (blocks, is_blocked) = channel();
            let (release, released) = channel::<()>();
            let released = std::sync::Mutex::new(released);
            let block = move || {
                // Only the first line waits.
                if let Ok(released) = released.try_lock() {
                    let _other_end = (blocks.send(()), released.recv());
                }
            };
            let blocked = threads.spawn(|| call(world, &requests, || subscribe(block)));
            is_blocked.recv().unwrap();
            let (done, answers) = channel();
            let others = &requests;
            threads.spawn(move || done.send(call(world, others, || ())));
            let others = answers.recv_timeout(Duration::from_secs(20));
            drop(release);
            assert_eq!(others.ok(), blocked.join().ok());
        });
    });
}
