//! The command `check`: walks an A2A server as its clients do, after a deployment.
//!
//! It sends fixed requests, and the examples of the card. `interface` has the wire, `calls` the
//! requests, `walk` the steps, `webhook` the receiver of a webhook.

mod calls;
mod interface;
mod walk;
mod webhook;

use a2a_lambda::engine::{Clock as _, SystemClock};
use calls::{Caller, Fault};
use serde_json::json;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Which server to check, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckServer {
    /// The base URL of the server: its card is below it.
    #[arg(value_name = "URL")]
    pub url: String,
    /// An API key or token of a caller. With the scope `ops` the health names the build.
    #[arg(long, value_name = "K")]
    pub key: Option<String>,
    /// Words to send instead of the examples of the card; can be repeated.
    #[arg(long, value_name = "WORDS")]
    pub say: Vec<String>,
    /// The interface to check, as `JSONRPC 0.3`; else all of the card's preferred version.
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// The origin of a page that may call; else any answer to a preflight will do.
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Option<String>,
    /// A public URL that leads to --webhook-port of this machine.
    #[arg(long, value_name = "URL", requires = "webhook_port")]
    pub webhook: Option<String>,
    /// The port of the receiver of webhooks; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub webhook_port: u16,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Write all requests and responses to this file, as Markdown without the key.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
}

/// Why a server is not known to work.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The URL or the key cannot be used.
    #[error("`{0}`: expected an https URL, or with a key an http URL of this machine")]
    Url(String),
    /// Steps failed.
    #[error("{0} of {1} steps failed")]
    Failed(usize, usize),
    /// The transcript cannot be written.
    #[error("failed to write `{0}`: {1}")]
    Transcript(PathBuf, #[source] io::Error),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// What a step found out.
enum Verdict {
    Works(String),
    NotShown(String),
    Fails(String),
}

/// A step that was made.
struct Step {
    name: String,
    verdict: Verdict,
    took: Duration,
}

/// The steps so far, and what the health says of the program.
#[derive(Default)]
struct Report {
    steps: Vec<Step>,
    build: Option<String>,
    settings: Option<String>,
}

impl Report {
    /// Adds the step that began at `began`.
    fn add(&mut self, name: String, began: Instant, verdict: Result<Verdict, Fault>) {
        let verdict = verdict.unwrap_or_else(|fault| Verdict::Fails(fault.to_string()));
        let took = began.elapsed();
        self.steps.push(Step {
            name,
            verdict,
            took,
        });
    }

    fn failures(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| step.word() == "failed")
            .count()
    }

    fn text(&self, url: &str) -> String {
        let lines = self.steps.iter().map(|step| {
            let Step { name, took, .. } = step;
            let look = step
                .look()
                .map(|look| format!("\n{:34}look at: {look}", ""));
            let (word, took) = (step.word(), format!("{} ms", took.as_millis()));
            let detail = step.detail();
            format!(
                "{word:<10}{name:<24}{took:>9}  {detail}{}\n",
                look.unwrap_or_default()
            )
        });
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "not shown".to_owned());
        let (build, settings) = (known(&self.build), known(&self.settings));
        format!(
            "{url}\nbuild {build}, settings {settings}\n\n{}",
            lines.collect::<String>()
        )
    }

    fn json(&self, url: &str) -> String {
        let steps = self.steps.iter().map(|step| {
            json!({
                "step": step.name, "verdict": step.word(), "detail": step.detail(),
                "ms": u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX), "lookAt": step.look(),
            })
        });
        let report = json!({
            "url": url, "ok": self.failures() == 0, "build": self.build,
            "settings": self.settings, "steps": steps.collect::<Vec<_>>(),
        });
        format!("{report:#}\n")
    }
}

impl Step {
    const fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Works(_) => "ok",
            Verdict::NotShown(_) => "not shown",
            Verdict::Fails(_) => "failed",
        }
    }

    fn detail(&self) -> &str {
        let (Verdict::Works(text) | Verdict::NotShown(text) | Verdict::Fails(text)) = &self.verdict;
        text
    }

    /// Where the cause of a failure is.
    fn look(&self) -> Option<&'static str> {
        let failed = matches!(self.verdict, Verdict::Fails(_));
        failed.then(|| match self.name.split(' ').next().unwrap_or_default() {
            "card" => "the address, its path and stage; `A2A_PUBLIC_URL`; the log of agent-card",
            "preflight" => "`A2A_CORS_ORIGIN`; a proxy that answers OPTIONS itself",
            "health" => "the dependency that is not ok; the log of ops",
            "stream" => "a proxy or an integration that buffers; the log of rpc or tasks-stream",
            "background" => "the work queue and its dead letters; the logs of relay and worker",
            "file" => "the bucket and the rights on it; limits of a proxy on bodies",
            "webhook" => "the push queue and its dead letters; the logs of relay and push",
            "refused" => "the authorizer and the error responses of the gateway",
            _ => "the log of rpc or tasks-send; the table",
        })
    }
}

/// Walks the server, prints a line for each step, and writes the transcript.
///
/// # Errors
/// [`CheckError`] when a step failed, or the command cannot be carried out.
pub async fn run(options: &CheckServer) -> Result<(), CheckError> {
    let url = options.url.trim_end_matches('/');
    let caller = Caller::new(url, options.key.clone());
    let caller = caller.ok_or_else(|| CheckError::Url(options.url.clone()))?;
    let mut report = Report::default();
    Box::pin(walk::walk(options, url, &caller, &mut report)).await;
    let shown = if options.json {
        report.json(url)
    } else {
        report.text(url)
    };
    // A server may repeat the key.
    let key = options
        .key
        .as_deref()
        .filter(|key| !key.is_empty())
        .unwrap_or("\0");
    io::stdout().write_all(shown.replace(key, "KEY").as_bytes())?;
    if let Some(path) = &options.transcript {
        let (time, text) = (SystemClock.now().to_rfc3339(), report.text(url));
        let calls = caller.entries.take().join("\n\n");
        let text = format!("# A check at {time}\n\n```text\n{text}```\n\n{calls}\n");
        let written = fs::write(path, text.replace(key, "KEY"));
        written.map_err(|cause| CheckError::Transcript(path.clone(), cause))?;
    }
    match report.failures() {
        0 => Ok(()),
        failures => Err(CheckError::Failed(failures, report.steps.len())),
    }
}
