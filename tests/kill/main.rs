//! The unchanged program, killed at every store call of three scenarios: what
//! it has acknowledged comes to rest after a restart, and what had finished
//! keeps its content. And streams, cut after every frame.
#![cfg(test)]

#[expect(dead_code, reason = "the suite `local` uses more of it")]
#[path = "../local/agent.rs"]
mod agent;
mod client;
mod proxy;

use agent::{Folder, Running};
use client::{cut, events, get, post};
use proxy::{Side, Watch, line};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What is done to the program.
#[derive(Debug, Clone, Copy)]
enum Scenario {
    /// A task that a worker runs.
    Background,
    /// A stream.
    Stream,
    /// A question, and the answer to it.
    Continuation,
}

/// What a client knows in the end.
#[derive(Debug, Default)]
struct Known {
    /// The tasks it was told of, each as it was told last.
    tasks: Vec<Value>,
    /// Whether it heard the end.
    finished: bool,
}

fn message(text: &str, task: Option<&Value>) -> Value {
    let mut message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(id) = task {
        message["messageId"] = json!("m2");
        message["taskId"] = id.clone();
    }
    json!({"message": message})
}

const CHUNKS: &str = "chunks 4 20";
const CHUNKS_TEXT: &str = "chunk-1 chunk-2 chunk-3 chunk-4 ";

impl Scenario {
    /// Does it, as far as the program lives.
    async fn run(self, base: &str) -> Known {
        let mut known = Known::default();
        // A call that breaks off leaves the client with what it knew.
        let _ = self.steps(base, &mut known).await;
        known
    }

    async fn steps(self, base: &str, known: &mut Known) -> Option<()> {
        match self {
            Self::Background => {
                let mut body = message(CHUNKS, None);
                body["configuration"] = json!({"returnImmediately": true});
                let sent = post(&format!("{base}/message:send"), &body).await?;
                known.tasks.push(sent["task"].clone());
                let id = sent["task"]["id"].as_str()?.to_owned();
                loop {
                    let task = get(&format!("{base}/tasks/{id}")).await?;
                    if rests(&task) {
                        known.tasks = vec![task];
                        known.finished = true;
                        return Some(());
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Self::Stream => {
                let frames = cut(
                    &format!("{base}/message:stream"),
                    &message(CHUNKS, None),
                    None,
                    None,
                )
                .await;
                known
                    .tasks
                    .extend(frames.first().map(|f| f.data["task"].clone()));
                let last = frames
                    .last()
                    .map(|f| f.data.to_string())
                    .unwrap_or_default();
                known.finished = last.contains("TASK_STATE_COMPLETED");
                Some(())
            }
            Self::Continuation => {
                let url = format!("{base}/message:send");
                let asked = post(&url, &message("anything", None)).await?;
                known.tasks.push(asked["task"].clone());
                let id = asked["task"]["id"].clone();
                let done = post(&url, &message("echo it went on", Some(&id))).await?;
                known.tasks = vec![done["task"].clone()];
                known.finished = true;
                Some(())
            }
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Background | Self::Stream => CHUNKS_TEXT,
            Self::Continuation => "echo: it went on",
        }
    }

    /// What is wrong with the tasks a client knows of, after a restart.
    async fn judge(self, base: &str, known: &Known) -> Vec<String> {
        let mut wrong = Vec::new();
        for told in &known.tasks {
            let id = told["id"].as_str().unwrap_or_default();
            let Some(task) = rested(base, id).await else {
                wrong.push(format!("does not come to rest: {told}"));
                continue;
            };
            if rests(told) && known.finished && task["artifacts"] != told["artifacts"] {
                wrong.push(format!("told {told}, stored {task}"));
            }
            let completed = task["status"]["state"] == "TASK_STATE_COMPLETED";
            let asks = task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED";
            if completed && text(&task) != self.text() {
                wrong.push(format!("other content: {task}"));
            }
            if !completed && (!asks || known.finished) {
                wrong.push(format!("rests otherwise: {task}"));
            }
        }
        wrong
    }
}

/// All text of the artifacts of a task.
fn text(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts.flat_map(|one| one["parts"].as_array().into_iter().flatten());
    parts.filter_map(|part| part["text"].as_str()).collect()
}

fn rests(task: &Value) -> bool {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    !["", "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state)
}

async fn rested(base: &str, id: &str) -> Option<Value> {
    for _ in 0..400 {
        let task = get(&format!("{base}/tasks/{id}")).await;
        if let Some(task) = task.filter(rests) {
            return Some(task);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    None
}

/// The services, and the lines to them.
struct Bench {
    folder: Folder,
    watch: Arc<Watch>,
    dynamodb: String,
    s3: String,
    _services: Running,
}

impl Bench {
    async fn new() -> Self {
        let folder = Folder::new();
        let services = Running::start(&folder, &["aws", "--memory"], &[], "ready").await;
        let setting = |name: &str| {
            let lines = services.said.lines();
            let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            values.next().unwrap().to_owned()
        };
        let watch = Arc::<Watch>::default();
        Self {
            dynamodb: line(&setting("AWS_ENDPOINT_URL_DYNAMODB"), &watch).await,
            s3: line(&setting("AWS_ENDPOINT_URL_S3"), &watch).await,
            folder,
            watch,
            _services: services,
        }
    }

    async fn agent(&self) -> Running {
        let endpoints = ["--endpoint", &self.dynamodb, "--s3-endpoint", &self.s3];
        let arguments = [&["--agent", "conformance"][..], &endpoints].concat();
        Running::agent(&self.folder, &arguments).await
    }
}

#[tokio::test]
async fn a_program_killed_at_any_store_call_finishes_what_it_acknowledged() {
    let bench = Bench::new().await;
    let mut agent = bench.agent().await;
    let (mut kills, mut violations) = (0, Vec::new());
    for scenario in [
        Scenario::Background,
        Scenario::Stream,
        Scenario::Continuation,
    ] {
        bench.watch.count(None);
        let known = scenario.run(agent.base()).await;
        let (calls, _) = bench.watch.stop();
        assert!(known.finished, "{scenario:?} without a kill: {known:?}");
        println!("{scenario:?}: {} calls: {}", calls.len(), calls.join(" "));
        for (n, operation) in calls.iter().enumerate() {
            for side in [Side::Before, Side::After] {
                bench.watch.count(Some((n, side, agent.id())));
                let known = scenario.run(agent.base()).await;
                let (_, killed) = bench.watch.stop();
                // Polling makes some runs shorter than the counted one.
                if killed {
                    kills += 1;
                    drop(agent);
                    agent = bench.agent().await;
                }
                for wrong in scenario.judge(agent.base(), &known).await {
                    println!("{scenario:?} killed {side:?} call {n} ({operation}): {wrong}");
                    violations.push((n, side));
                }
            }
        }
    }
    println!("{kills} kills, {} violations", violations.len());
    assert!(violations.is_empty(), "{violations:?}");
}

#[tokio::test]
async fn a_stream_cut_after_any_frame_goes_on_with_the_next() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--agent", "conformance", "--memory"]).await;
    let base = agent.base();
    let body = message("chunks 6 30", None);
    let url = format!("{base}/message:stream");
    let whole = cut(&url, &body, None, None).await;
    let mut cuts = 0;
    for n in 1..whole.len() {
        let mut read = cut(&url, &body, None, Some(n)).await;
        let id = read[0].data["task"]["id"].as_str().unwrap().to_owned();
        let last = read.last().unwrap().id.clone().unwrap();
        let subscribe = format!("{base}/tasks/{id}:subscribe");
        let rest = events(&subscribe, &last).await;
        // The first frame of a resumed stream is the task, without an id.
        assert_eq!(rest[0].id, None, "after frame {n}");
        read.extend(rest.into_iter().skip(1));
        let log = events(&subscribe, read[0].id.as_deref().unwrap()).await;
        let (ids, log): (Vec<_>, Vec<_>) = (
            read.iter().skip(1).map(|f| (&f.id, &f.data)).collect(),
            log.iter().skip(1).map(|f| (&f.id, &f.data)).collect(),
        );
        assert_eq!(ids, log, "after frame {n}");
        assert!(rested(base, &id).await.is_some());
        cuts += 1;
    }
    assert!(cuts > 0);
    println!("{cuts} cuts, 0 violations");
}
