//! Measures the functions as Lambda starts them, beside programs that do the least.
//!
//! Each program is a bootstrap with a Runtime API of its own. It gets events of API Gateway,
//! one at a time, and its DynamoDB is the embedded one. All programs take turns, each in a
//! fresh process, so that a slow minute of the machine meets all of them. Ratios of one run
//! count; times of two machines do not compare.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command")]
#![expect(
    clippy::indexing_slicing,
    reason = "a member of JSON that is absent is `null`"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a deadline is a time of this machine"
)]

mod curves;
mod events;
mod figures;
mod program;
mod report;
mod runtime_api;
mod targets;
mod tokens;

use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use figures::{Figures, millis};
use program::Program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use targets::{Kind, TARGETS, Target};

/// Why the benchmark ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Program(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the embedded services: {0}")]
    Embedded(#[from] a2a_local::embedded::EmbeddedError),
    #[error("a response is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What the command line says.
#[derive(Debug)]
struct Options {
    programs: PathBuf,
    rounds: usize,
    calls: usize,
    only: String,
    curves: bool,
    write: Option<PathBuf>,
}

const HELP: &str = "\
usage: bench --programs DIR [--rounds N] [--calls N] [--only NAME] [--no-curves] [--write DIR]

Measures the programs in DIR, in N fresh processes each (20), with N warm calls (50).
--only measures what has NAME in its name, --no-curves leaves the curves out.
--write DIR writes DIR/performance.md between its marks, and DIR/performance.svg.";

fn options() -> Result<Options, String> {
    let mut options = Options {
        programs: PathBuf::new(),
        rounds: 20,
        calls: 50,
        only: String::new(),
        curves: true,
        write: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(HELP);
        let number = |text: String| text.parse().map_err(|_| HELP);
        match name.as_str() {
            "--programs" => options.programs = value()?.into(),
            "--rounds" => options.rounds = number(value()?)?,
            "--calls" => options.calls = number(value()?)?,
            "--only" => options.only = value()?,
            "--no-curves" => options.curves = false,
            "--write" => options.write = Some(value()?.into()),
            _ => return Err(HELP.to_owned()),
        }
    }
    if options.programs.as_os_str().is_empty() {
        return Err(HELP.to_owned());
    }
    Ok(options)
}

/// The figures of one target over all rounds.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) init: Figures,
    pub(crate) cold: Figures,
    pub(crate) cold_cpu: Figures,
    pub(crate) warm: Figures,
    pub(crate) warm_cpu: Figures,
    pub(crate) first: Figures,
    pub(crate) peak: Figures,
    pub(crate) binary: u64,
    pub(crate) zip: u64,
}

/// The embedded services, and the settings with which programs use them.
pub(crate) struct Site {
    pub(crate) embedded: Embedded,
    pub(crate) programs: PathBuf,
    folder: PathBuf,
}

impl Site {
    fn variables(&self, function: &str) -> Vec<(String, String)> {
        let endpoints = self.embedded.endpoints();
        let keys = endpoints.keys.as_ref();
        let url = |url: &Option<String>| url.clone().unwrap_or_default();
        [
            ("A2A_AUTH", "gateway".to_owned()),
            ("A2A_FUNCTION", function.to_owned()),
            ("A2A_TABLE", TABLE.to_owned()),
            ("BENCH_TABLE", TABLE.to_owned()),
            ("A2A_BUCKET", BUCKET.to_owned()),
            ("A2A_PUBLIC_URL", "https://agent.example.com".to_owned()),
            (
                "A2A_SECRET_KEY",
                "0123456789abcdef0123456789abcdef".to_owned(),
            ),
            ("PRICES_KEY", "none".to_owned()),
            ("AWS_ENDPOINT_URL_DYNAMODB", url(&endpoints.dynamodb)),
            ("AWS_ENDPOINT_URL_S3", url(&endpoints.s3)),
            ("AWS_REGION", "us-east-1".to_owned()),
            (
                "AWS_ACCESS_KEY_ID",
                keys.map(|keys| keys.id.clone()).unwrap_or_default(),
            ),
            (
                "AWS_SECRET_ACCESS_KEY",
                keys.map(|keys| keys.secret.clone()).unwrap_or_default(),
            ),
            ("AWS_LAMBDA_FUNCTION_NAME", "bench".to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".to_owned()),
            ("AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH", "true".to_owned()),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "bench".to_owned()),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "bench".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// Starts a program. `function` is what a program of all functions becomes.
    pub(crate) async fn start(&self, program: &str, function: &str) -> Result<Program, Failure> {
        let log = self.folder.join("log");
        let bootstrap = self.programs.join(program);
        Program::start(&bootstrap, &self.variables(function), log).await
    }
}

/// One fresh process of a target: its cold start, and its warm calls.
async fn measure(
    site: &Site,
    target: &Target,
    (round, calls): (usize, usize),
    known: &str,
    row: &mut Row,
) -> Result<(), Failure> {
    let id = |n: usize| {
        format!(
            "{}-{round}-{n}",
            target.name.len() * 1000 + target.kind as usize
        )
    };
    let check = |body: &[u8]| {
        let text = String::from_utf8_lossy(body);
        if text.contains(target.kind.says()) {
            return Ok(());
        }
        Err(Failure::Program(format!("{}: {text}", target.name)))
    };
    let mut program = site.start(target.program, "tasks-stream").await?;
    let first = program.call(target.kind.event(&id(0), known)).await?;
    check(&first.body)?;
    row.init.add_time(program.init);
    row.cold.add_time(first.since_start);
    row.cold_cpu.add_time(program.cpu()?);
    // The pools have their sizes after a few calls.
    for n in 1..=5 {
        program.call(target.kind.event(&id(n), known)).await?;
    }
    let before = program.cpu()?;
    for n in 0..calls {
        let call = program.call(target.kind.event(&id(n + 6), known)).await?;
        check(&call.body)?;
        row.warm.add_time(call.whole);
        row.first.add_time(call.first);
    }
    let cpu = program.cpu()? - before;
    row.warm_cpu.add(millis(cpu) / calls as f64);
    row.peak.add(program.peak()? as f64 / 1e6);
    Ok(())
}

/// Stores what the reads read, and returns the ids for our functions and for the floor.
async fn stored(site: &Site) -> Result<(String, String), Failure> {
    let mut program = site.start("tasks-send", "tasks-send").await?;
    let sent = program.call(Kind::Send.event("known", "")).await?;
    let response: Value = serde_json::from_slice(&sent.body)?;
    let body = response["body"].as_str().unwrap_or_default();
    let task: Value = serde_json::from_str(body)?;
    let id = task["task"]["id"].as_str().unwrap_or_default().to_owned();
    let mut program = site.start("floor-dynamodb", "").await?;
    program.call(Kind::FloorPut.event("known", "")).await?;
    Ok((id, "known".to_owned()))
}

/// Milliseconds of CPU for a fixed piece of work, to compare machines.
fn calibration() -> f64 {
    let began = std::time::Instant::now();
    let mut state = 1_u64;
    for _ in 0..20_000_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7) ^ 0x9E37;
    }
    std::hint::black_box(state);
    millis(began.elapsed())
}

async fn run(options: Options) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let site = Site {
        embedded: Embedded::start(None).await?,
        programs: options.programs.clone(),
        folder: folder.clone(),
    };
    let (task, item) = stored(&site).await?;
    let chosen = |target: &&Target| target.name.contains(&options.only);
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let before = calibration();
    for round in 0..options.rounds {
        for target in TARGETS.iter().filter(chosen) {
            let known = if target.kind == Kind::FloorGet {
                &item
            } else {
                &task
            };
            let row = rows.entry(target.name).or_default();
            measure(&site, target, (round, options.calls), known, row).await?;
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    for target in TARGETS.iter().filter(chosen) {
        let row = rows.entry(target.name).or_default();
        (row.binary, row.zip) = report::sizes(&site.programs.join(target.program))?;
    }
    let spin = (before, calibration());
    let mut text = report::table(&rows, &options, spin);
    if options.curves {
        text += &tokens::measure(&site).await?;
        let curves = curves::measure(&site, &task).await?;
        text += &curves.text();
        if let Some(folder) = &options.write {
            std::fs::write(folder.join("performance.svg"), curves.svg())?;
        }
    }
    println!("{text}");
    if let Some(docs) = &options.write {
        report::write(&docs.join("performance.md"), &text)?;
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = match options() {
        Ok(options) => options,
        Err(help) => {
            eprintln!("{help}");
            std::process::exit(2);
        }
    };
    if let Err(failure) = run(options).await {
        eprintln!("{failure}");
        std::process::exit(1);
    }
}
