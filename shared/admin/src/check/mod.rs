//! The command `check`: walks an A2A server as its clients do, after a deployment.
//!
//! It sends fixed requests and examples of the card. `interface` has the wire, `calls` the
//! requests and the transcript, `walk` the steps.

mod calls;
mod interface;
mod walk;

use crate::output::CommandError;
use a2a_lambda::engine::{Clock as _, SystemClock};
use calls::{CheckClient, Fault, escape};
use interface::text;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Instant;

/// Which server to check, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckServer {
    /// The base URL of the server: its card is below it.
    #[arg(value_name = "URL")]
    pub url: String,
    /// An API key or token of a caller. With the scope `ops` the health names the build.
    #[arg(long, value_name = "K")]
    pub key: Option<String>,
    /// Words to send instead of the examples on the card; can be repeated.
    #[arg(long, value_name = "WORDS")]
    pub say: Vec<String>,
    /// A public URL that leads to --webhook-port of this machine.
    #[arg(long, value_name = "URL", requires = "webhook_port")]
    pub webhook: Option<String>,
    /// The port of the receiver of webhooks; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub webhook_port: u16,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Write the requests and responses to this file, as Markdown, without the key.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
}

/// What a step has shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WalkStep {
    step: String,
    result: &'static str,
    ms: u128,
    detail: String,
    look_at: Option<&'static str>,
}

/// The steps, and what the health says.
struct Report<'a> {
    caller: &'a CheckClient,
    steps: Vec<WalkStep>,
    health: Value,
}

impl Report<'_> {
    /// Makes a step of the walk, on an interface if that has a name.
    async fn step<F>(&mut self, name: &str, interface: &str, outcome: F)
    where
        F: Future<Output = Result<String, Fault>>,
    {
        let (step, began) = (format!("{name} {interface}"), Instant::now());
        let step = step.trim_end().to_owned();
        self.caller.entries.borrow_mut().push(format!("## {step}"));
        let (result, status, detail) = match outcome.await {
            Ok(text) => ("ok", 0, text),
            Err(Fault::NotShown(text)) => ("not shown", 0, text),
            Err(Fault::Fails(text)) => ("failed", 0, text),
            Err(Fault::Refused(status, _, text)) => ("failed", status, text),
        };
        let detail = escape(&detail);
        let look_at = (result == "failed").then(|| look_at(name, status));
        let ms = began.elapsed().as_millis();
        self.steps.push(WalkStep {
            step,
            result,
            ms,
            detail,
            look_at,
        });
    }

    fn failures(&self) -> usize {
        let failures = self.steps.iter().filter(|it| it.result == "failed");
        failures.count()
    }

    fn text(&self) -> String {
        let mut lines = format!("{}\n", self.caller.base);
        for WalkStep {
            step,
            result,
            ms,
            detail,
            look_at,
        } in &self.steps
        {
            lines += &format!("{result:<10}{step:<24}{ms:>7} ms  {detail}\n");
            let look_at = look_at.map(|it| format!("{:46}look at: {it}\n", ""));
            lines += &look_at.unwrap_or_default();
        }
        let fact = |name| escape(text(&self.health, name).unwrap_or("not shown"));
        let (build, settings) = (fact("/build"), fact("/settings"));
        lines + &format!("build {build}, settings {settings}\n")
    }

    fn json(&self) -> String {
        let [build, settings] = ["build", "settings"].map(|name| self.health.get(name));
        let (url, ok) = (&self.caller.base, self.failures() == 0);
        let report = json!({
            "url": url, "ok": ok, "build": build, "settings": settings, "steps": self.steps,
        });
        format!("{report:#}\n")
    }
}

/// Where the cause of a failure is: the answer says more than the step.
fn look_at(step: &str, status: u16) -> &'static str {
    match status {
        401 => return "`--key`: the server does not know the caller",
        403 => return "the rights of the key; whether its tenant is braked",
        429 => return "the rates of the caller's tenant; wait, and check again",
        503 => return "the table and its rights; whether an operator has braked everything",
        _ => {}
    }
    match step {
        "card" => "the address, its path and stage; `A2A_PUBLIC_URL`; the log of agent-card",
        "stream" => "a proxy or an integration that buffers; the logs of rpc and tasks-stream",
        "background" => "the work queue and its dead letters; the logs of relay and worker",
        "file" => "the bucket and the rights on it; a proxy that limits bodies",
        "webhook" => "the push queue and its dead letters; the logs of relay and push",
        "refused" => "the authorizer, and the error responses of the gateway",
        "preflight" => "`A2A_CORS_ORIGIN`; a proxy that answers OPTIONS",
        "health" => "the dependency that is not ok; the log of ops",
        _ => "the table; the logs of rpc and tasks-send",
    }
}

/// A text in which the key is hidden, as a server may repeat it. A short key may be a part of
/// other words, which stay.
fn without_key(text: String, key: Option<&str>) -> String {
    let Some(key) = key.filter(|key| !key.is_empty()) else {
        return text;
    };
    let is_of_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (mut output, mut rest) = (String::new(), text.as_str());
    while let Some((before, after)) = rest.split_once(key) {
        output += before;
        let is_word = is_of_word(output.chars().next_back()) || is_of_word(after.chars().next());
        output += if is_word { key } else { "KEY" };
        rest = after;
    }
    output + rest
}

impl CheckServer {
    /// Walks the server, prints a line for each step, and writes the transcript.
    ///
    /// # Errors
    /// When a step failed, or the command cannot be carried out.
    pub async fn run(&self) -> Result<(), CommandError> {
        let caller = CheckClient::new(&self.url, self.key.clone());
        let caller = caller.ok_or_else(|| {
            let rule = "expected an https URL, or with a key an http URL of this machine";
            format!("`{}`: {rule}", self.url)
        })?;
        let report = Box::pin(walk::walk(self, &caller)).await;
        let keyless = |text: String| without_key(text, self.key.as_deref());
        let text = if self.json {
            report.json()
        } else {
            report.text()
        };
        let fault = |error: io::Error| format!("failed to write: {error}");
        let result = io::stdout().write_all(keyless(text).as_bytes());
        result.map_err(fault)?;
        if let Some(path) = &self.transcript {
            let time = SystemClock.now().to_rfc3339();
            let (text, calls) = (report.text(), caller.entries.take().join("\n\n"));
            let text = format!("# A check at {time}\n\n```text\n{text}```\n\n{calls}\n");
            fs::write(path, keyless(text)).map_err(fault)?;
        }
        match report.failures() {
            0 => Ok(()),
            failures => Err(format!("{failures} of {} steps failed", report.steps.len()).into()),
        }
    }
}
