//! The scenarios that the suites `faults` and `kill` attack: the calls of a client, the
//! commands in its messages, and what must hold afterwards.
//!
//! A suite keeps its attack, its way to make a call, and its own checks: it implements
//! [`Client`], once for the attack and once for the time after it.
//!
//! The agent obeys the text of a message:
//!
//! | Text | The agent |
//! |---|---|
//! | `echo hello` | delivers the text `echo: hello` |
//! | `steps N` | runs N steps, delivers the names of their runs, and counts in the context |
//! | `chunks N MS` | delivers a text in N chunks, with pauses of MS milliseconds |
//! | `file N` | delivers a file of N bytes |
//! | `file N MS` | delivers the file, and works on for MS milliseconds |
//! | anything else | asks a question |
//!
//! The suite `kill` runs the unchanged program, so its agent is the conformance agent, which
//! waits for time. The suite `faults` runs [`agent`], which waits for signals of the test.

pub mod agent;
mod deletes;
mod holds;
mod steps;

use crate::dialect::{Dialect, Op, Say, at};
use crate::frames::Frame;
use crate::world::Request;
use a2a_lambda::task::TaskState;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;

/// The task id that the client makes in [`Scenario::ClientId`].
const OWN_ID: &str = "mine-1";

/// The context that the client names in [`Scenario::Context`].
const OWN_CONTEXT: &str = "mine:c";

/// The text of the short sends.
const ECHO: &str = "echo hello";

/// The number of chunks in [`Scenario::Stream`].
const CHUNKS: usize = 3;

/// The size in bytes of the files in [`Scenario::File`] and [`Scenario::Cancel`]: more than
/// a task's DynamoDB item may hold.
const BYTES: usize = 40_000;

/// The name of the artifact that an agent sends after the file of [`Scenario::Cancel`].
const LATE: &str = "late";

/// The file of [`BYTES`] bytes that an agent delivers: byte i is i mod 251.
fn file() -> Vec<u8> {
    let round: Vec<u8> = (0..=250).collect();
    let mut bytes = round.repeat(BYTES / round.len() + 1);
    bytes.truncate(BYTES);
    bytes
}

/// The calls of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// A short blocking send; the first write waits for the skill.
    Deferred,
    /// A 0.1 send with the client's own task id, repeated.
    ClientId,
    /// A queued send; a worker runs steps. In `faults` it runs out of time between them.
    Queued,
    /// A stream of chunks.
    Stream,
    /// A question and its answer, with a step and session values.
    Continued,
    /// A cancel during the work, with an artifact in the bucket.
    Cancel,
    /// A file in the bucket that the client reads again.
    File,
    /// A send with an idempotency key, repeated until the client gets a response.
    Keyed,
    /// A question, and an answer with an idempotency key, repeated until the client gets a
    /// response.
    KeyedAnswer,
    /// Two short sends in a context that the client has named.
    Context,
}

impl Scenario {
    /// All scenarios, as the suite `faults` runs them.
    pub const ALL: [Self; 10] = [
        Self::Deferred,
        Self::ClientId,
        Self::Queued,
        Self::Stream,
        Self::Continued,
        Self::Cancel,
        Self::File,
        Self::Keyed,
        Self::KeyedAnswer,
        Self::Context,
    ];

    /// Whether the suite `kill` runs it. That leaves out the two with an idempotency key: they
    /// make more than 20 store calls, each call costs two restarts of the program, and the
    /// suite would take half as long again.
    #[must_use]
    pub const fn is_killed(self) -> bool {
        !matches!(self, Self::Keyed | Self::KeyedAnswer)
    }

    /// Makes the calls of the scenario, until it ends or a call breaks.
    pub async fn run(self, client: &dyn Client) -> Known {
        steps::run(self, client).await
    }

    /// Checks what must hold after the attack, and returns the violations. Those that a task
    /// may have that can never be stored begin with `failed: `.
    pub async fn holds(self, after: &dyn Client, known: &Known) -> Vec<String> {
        holds::holds(self, after, known).await
    }

    /// Checks that each context knows its tasks, and that no task outlives the deletion of
    /// its context; returns the violations. It deletes all contexts, so it is the last check.
    pub async fn deletes(self, after: &dyn Client, known: &Known) -> Vec<String> {
        deletes::deletes(after, known).await
    }
}

/// What the client knows at the end of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The tasks of the responses, each as in its last response.
    pub reported: Vec<Value>,
    /// The frames of a stream.
    pub frames: Vec<Frame>,
    /// The number of different messages it has sent.
    pub messages: usize,
    /// Whether a response had the question.
    pub asked: bool,
    /// Whether a response acknowledged the answer.
    pub answered: bool,
    /// Whether a response said that the task is canceled.
    pub canceled: bool,
    /// Whether it got all its responses.
    pub finished: bool,
    /// The runs of steps whose results were stored before the program died. The suite `kill`
    /// adds them.
    pub kept: BTreeSet<String>,
    /// The violations that it has seen.
    pub wrong: Vec<String>,
}

/// The client of a suite.
#[async_trait]
pub trait Client: Sync {
    /// Makes a call. `None` without a response, or for an error that the attack explains.
    async fn call(&self, request: &Request) -> Option<Value>;

    /// Makes a call, and reads its stream until it ends or breaks.
    async fn stream(&self, request: &Request) -> Vec<Frame>;

    /// The call that [`Scenario::Cancel`] cancels: a send that waits, or a stream.
    fn canceled_call(&self) -> Op;

    /// The task whose file is stored while its skill works on.
    fn delivered(&self) -> watch::Receiver<Option<String>>;

    /// Lets workers run the queued task; `None` if the client does not read it afterwards.
    async fn background(&self, task: Option<&str>) -> Option<()>;

    /// Ends the attack; false if the suite cannot do that during a scenario.
    fn mend(&self) -> bool;

    /// Whether a read of the task finds it.
    async fn reads(&self, task: &str) -> bool;

    /// The number of commands `steps` that a context has counted; `None` if it is unknown.
    async fn counted(&self, context: &str, known: &Known) -> Option<u64>;

    /// Whether the agent also reports what it saved, and its count in the context.
    fn reports_saved(&self) -> bool;

    /// The text of a chunk of [`Scenario::Stream`], from number 1.
    fn chunk(&self, number: usize) -> String;
}

/// A message of 1.0 that starts a task.
#[must_use]
pub fn says(op: Op, text: &str) -> Request {
    Dialect::Rest10.request(op, "", &Dialect::Rest10.say(&say(text)))
}

/// The read of a task.
#[must_use]
pub fn get(id: &str) -> Request {
    Dialect::Rest10.of_task(Op::Get, id)
}

/// The stream of a task after an event.
#[must_use]
pub fn subscribe(id: &str, after: &str) -> Request {
    let request = Request::new("GET", format!("/tasks/{id}:subscribe"));
    Dialect::Rest10
        .versioned(request)
        .header("last-event-id", after)
}

/// The ids of the client's tasks.
pub async fn ids(client: &dyn Client) -> BTreeSet<String> {
    tasks(client, "pageSize=100").await.into_keys().collect()
}

/// The tasks of a list, with their contexts.
async fn tasks(client: &dyn Client, query: &str) -> BTreeMap<String, String> {
    let request = Request::new("GET", format!("/tasks?{query}"));
    let page = client.call(&Dialect::Rest10.versioned(request)).await;
    let page = page.unwrap_or_default();
    let tasks = at(&page, "/tasks").as_array().into_iter().flatten();
    let named = tasks.map(|task| (text(task, "/id"), text(task, "/contextId")));
    named.collect()
}

fn say(text: &str) -> Say<'_> {
    Say {
        skill: None,
        ..Say::to("", text)
    }
}

/// The send of [`Scenario::ClientId`].
fn own_id() -> Request {
    Dialect::Path01.send(&say(ECHO).under(OWN_ID))
}

fn text(value: &Value, pointer: &str) -> String {
    at(value, pointer).as_str().unwrap_or_default().to_owned()
}

/// The state of a task or of a status update in 1.0.
fn state(holder: &Value) -> Option<TaskState> {
    TaskState::parse(&Dialect::Rest10.state(holder))
}

fn rests(task: &Value) -> bool {
    state(task).is_some_and(TaskState::is_at_rest)
}
